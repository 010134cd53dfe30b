"""Values as JSON with arrays beside it, and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.errors import ModelFileError
from dc2.model_file.fields import check_fields
from dc2.model_file.registry import MODELS, RECORDS
from dc2.parameters import is_plain

__all__ = ["decode", "decode_model", "encode", "encode_model", "has_control_characters"]

Arrays = dict[str, NDArray[Any]]
ReadArray = Callable[[str], NDArray[Any]]

SEPARATORS = "\t\n\r"  # which occur in names of columns


def encode(value: Any, where: str, arrays: Arrays) -> Any:
    """Return a value as JSON; its arrays go to `arrays`, named by where they were."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return _checked_text(value, where)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, list | tuple):
        items = [encode(item, f"{where}/{index}", arrays) for index, item in enumerate(value)]
        return items if isinstance(value, list) else {"tuple": items}
    if isinstance(value, range):
        return {"range": [value.start, value.stop, value.step]}
    if isinstance(value, dict):
        pairs = [[encode(key, where, arrays), encode(item, f"{where}/{key}", arrays)] for key, item in value.items()]
        return {"dict": pairs}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufU":
        return {"array": _name_of(value, where, arrays)}
    if isinstance(value, np.ndarray) and all(isinstance(item, str) for item in value.flat):
        return {"names": [_checked_text(name, where) for name in value.tolist()]}
    if _is_registered(value, RECORDS):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
        return {"record": type(value).__name__, "fields": _encode_each(fields, where, arrays)}
    if _is_registered(value, MODELS):
        return encode_model(value, where, arrays, _state(value))
    raise ModelFileError(f"{where} is a {type(value).__name__}, which a model file cannot hold.")


def encode_model(model: Any, where: str, arrays: Arrays, fitted: Mapping[str, Any] | None = None) -> Any:
    """Return an estimator as JSON: its parameters and, if given, what it has learned."""
    prefix = f"{where}/" if where else ""
    return {
        "model": type(model).__name__,
        "parameters": _encode_each(_parameters(model), f"{prefix}parameters", arrays),
        "fitted": None if fitted is None else _encode_each(fitted, f"{prefix}fitted", arrays),
    }


def decode(value: Any, read_array: ReadArray) -> Any:
    """Return the value that `encode` wrote."""
    if isinstance(value, str):
        return _checked_text(value, "a text")
    if isinstance(value, list):
        return [decode(item, read_array) for item in value]
    if not isinstance(value, dict):
        return value
    if "tuple" in value:
        return tuple(decode(item, read_array) for item in value["tuple"])
    if "range" in value:
        return range(*value["range"])
    if "dict" in value:
        return {decode(key, read_array): decode(item, read_array) for key, item in value["dict"]}
    if "array" in value:
        return read_array(value["array"])
    if "names" in value:
        return np.array([_checked_text(name, "a name") for name in value["names"]], dtype=object)
    if "model" in value:
        return decode_model(value, read_array)
    fields = _decode_each(value["fields"], read_array)
    check_fields(RECORDS[value["record"]], fields)
    record = RECORDS[value["record"]](**fields)
    if hasattr(record, "check"):
        record.check()
    return record


def decode_model(value: dict[str, Any], read_array: ReadArray) -> Any:
    """Return the estimator that `encode_model` wrote."""
    model = MODELS[value["model"]](**_decode_each(value["parameters"], read_array))
    if hasattr(model, "check"):
        model.check()
    for name, learned in _decode_each(value["fitted"] or {}, read_array).items():
        if hasattr(type(model), name) or name in vars(model) or name.startswith("__"):
            raise ValueError(f"{name!r} is not what a model learns")
        setattr(model, name, learned)
    return model


def has_control_characters(text: str) -> bool:
    r"""Return whether a text could do more to a terminal than be shown there; line breaks and tabs are no harm.

    Examples
    --------
    >>> has_control_characters("größe in m²"), has_control_characters("\x1b[2J")
    (False, True)
    """
    return any((character < " " and character not in SEPARATORS) or "\x7f" <= character < "\xa0" for character in text)


def _name_of(array: NDArray[Any], where: str, arrays: Arrays) -> str:
    """Return the name of an array in the file, which holds each once: rows that are signatures are used twice."""
    for name, known in arrays.items():
        if known is array:
            return name
    arrays[f"{where}.npy"] = array
    return f"{where}.npy"


def _checked_text(text: Any, where: str) -> str:
    if not isinstance(text, str):
        raise TypeError(f"{where} is a {type(text).__name__} and not a text")
    if has_control_characters(text):
        raise ModelFileError(
            f"A model file holds no control characters, but {where} is {text!r}. Give the column another name."
        )
    return text


def _encode_each(values: Mapping[str, Any], where: str, arrays: Arrays) -> dict[str, Any]:
    return {name: encode(value, f"{where}/{name}", arrays) for name, value in values.items()}


def _decode_each(values: dict[str, Any], read_array: ReadArray) -> dict[str, Any]:
    return {name: decode(value, read_array) for name, value in values.items()}


def _parameters(model: Any) -> dict[str, Any]:
    """Return the parameters; one that cannot be written down, such as a live generator, has its default."""
    defaults = type(model)().get_params(deep=False)
    return {
        name: value if _can_be_written(value) else defaults[name]
        for name, value in model.get_params(deep=False).items()
    }


def _state(model: Any) -> Mapping[str, Any] | None:
    is_fitted = hasattr(model, "_saved_state") and model.__sklearn_is_fitted__()
    return model._saved_state() if is_fitted else None


def _can_be_written(value: Any) -> bool:
    return is_plain(value) or isinstance(value, range) or _is_registered(value, MODELS)


def _is_registered(value: Any, table: Mapping[str, type[Any]]) -> bool:
    return table.get(type(value).__name__) is type(value)
