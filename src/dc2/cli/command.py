"""A function of one record of options as a command: every field of the record becomes an option."""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

__all__ = ["as_command"]


def as_command(run: Callable[[Any], None]) -> Callable[..., None]:
    """Return a function that takes the fields of a record by name, as typer wants them, and runs with the record.

    Parameters
    ----------
    run : callable
        Takes a dataclass whose fields are annotated with `typer.Option` or `typer.Argument`.

    Examples
    --------
    >>> @dataclasses.dataclass(frozen=True)
    ... class Options:
    ...     name: str
    ...     times: int = 2
    >>> def greet(options: Options) -> None:
    ...     print(options.times * f"hello {options.name} ")
    >>> as_command(greet)(name="you")
    hello you hello you
    >>> inspect.signature(as_command(greet))
    <Signature (*, name: str, times: int = 2) -> None>
    """
    (record,) = (hint for name, hint in get_type_hints(run).items() if name != "return")
    hints = get_type_hints(record, include_extras=True)
    parameters = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=_default(field), annotation=hints[field.name]
        )
        for field in dataclasses.fields(record)
    ]

    @functools.wraps(run)
    def command(**values: Any) -> None:
        run(record(**values))

    command.__signature__ = inspect.Signature(parameters, return_annotation=None)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
