"""The classes that a model file may name; they register themselves, so that this package need not know them."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

__all__ = ["MODELS", "RECORDS", "saved_model", "saved_record"]

Class = TypeVar("Class", bound=type)

MODELS: dict[str, type[Any]] = {}
RECORDS: dict[str, type[Any]] = {}


def saved_model(cls: Class) -> Class:
    """Register an estimator, or a recipe with `get_params`, that model files may hold.

    Its parameters are saved; they may be numbers, texts, None, lists and tuples of these, and other registered
    estimators. One that derives from `SaveMixin` is saved with what it has learned. A method ``check()`` is called as
    that of a record is. A subclass registers itself again.
    """
    return _registered(cls, MODELS)


def saved_record(cls: Class) -> Class:
    """Register a frozen dataclass that model files may hold.

    Its fields may be numbers, texts, None, lists, tuples, dicts, arrays, other registered records and estimators. If it
    has a method ``check()``, that is called on every record that was read from a file, and raises if the parts do not
    fit together: code that uses the record afterwards may rely on it.
    """
    if not dataclasses.is_dataclass(cls):
        raise TypeError(f"{cls.__name__} is not a dataclass.")
    return _registered(cls, RECORDS)


def _registered(cls: Class, table: dict[str, type[Any]]) -> Class:
    name = cls.__name__
    known = table.get(name, cls)
    if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        raise TypeError(f"A model file would mean two classes by {name}: {known!r} and {cls!r}.")
    table[name] = cls
    return cls
