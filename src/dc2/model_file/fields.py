"""Checks that values read from a file have the types that the fields of a record declare."""

from __future__ import annotations

import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

__all__ = ["check_fields"]


def check_fields(record: type[Any], values: dict[str, Any]) -> None:
    """Raise if a value is not of the type that its field is declared to have.

    Parameters
    ----------
    record : dataclass
    values : dict
        By field.
    """
    hints = get_type_hints(record)
    for name, value in values.items():
        if not _fits(value, hints[name]):
            raise TypeError(f"{record.__name__}.{name} is a {type(value).__name__}")


def _fits(value: Any, hint: Any) -> bool:
    kind, inner = get_origin(hint), get_args(hint)
    if kind in (Union, types.UnionType):
        return any(_fits(value, one) for one in inner)
    if kind is Literal:
        return value in inner
    if kind is tuple and inner[-1:] == (...,):
        return isinstance(value, tuple) and all(_fits(item, inner[0]) for item in value)
    if kind is tuple:
        return isinstance(value, tuple) and len(value) == len(inner) and all(map(_fits, value, inner))
    if kind is list:
        return isinstance(value, list) and all(_fits(item, inner[0]) for item in value)
    if kind is dict:
        return isinstance(value, dict) and all(
            _fits(key, inner[0]) and _fits(item, inner[1]) for key, item in value.items()
        )
    expected = kind or hint
    if expected in (int, float):
        return isinstance(value, int if expected is int else int | float) and not isinstance(value, bool)
    if expected is Any or not isinstance(expected, type) or getattr(expected, "_is_protocol", False):
        return True  # Any, a type variable, a protocol: the record's own check looks at it
    return isinstance(value, expected)
