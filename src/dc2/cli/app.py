"""The commands, put together."""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

import typer

from dc2.cli.commands import cluster, compare, compress, export, info, predict, report, update
from dc2.cli.demo import demo
from dc2.cli.error_messages import with_plain_errors


def as_command(run: Callable[[Any], None]) -> Callable[..., None]:
    """Return a function that takes the fields of a record by name, as typer wants them, and runs with the record.

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
    hints = get_type_hints(record)
    own_first = sorted(dataclasses.fields(record), key=lambda field: field.name not in record.__annotations__)
    parameters = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_default(field),
            annotation=Annotated[hints[field.name], *field.metadata.values()] if field.metadata else hints[field.name],
        )
        for field in own_first
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


app = typer.Typer(
    help="Kernel-quality clusters of millions of rows: divide, compress, conquer, populate.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from dc2.versions import __version__

        print(f"dc2 {__version__}")
        raise typer.Exit


@app.callback()
def _dc2(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """The options of dc2 itself."""


for _command in (cluster, predict, update, compare, compress, info, report, export, demo):
    app.command()(with_plain_errors(as_command(_command)))
