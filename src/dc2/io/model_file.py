"""Model files: `save` writes a fitted estimator, `load` reads it back."""

from __future__ import annotations

import dataclasses
import io
import json
import math
import os
import re
import stat
import types
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from dc2.errors import ModelFileError, printable
from dc2.io.outputs import check_target, renamed_at_the_end
from dc2.parameters import is_plain
from dc2.versions import __version__

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


def check_fields(record: type[Any], values: dict[str, Any]) -> None:
    """Raise if a value is not of the type that its field is declared to have."""
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


FORMAT = "dc2 model"
FORMAT_VERSION = 2
HEADER_MEMBER = "model.json"
# Fixed, so that equal models are equal files.
MEMBER_TIME = (1980, 1, 1, 0, 0, 0)

# How much a file may unpack to. Arrays that compress better are stored uncompressed, so no real model comes near.
UNPACKED_BYTES = 64 * 2**20
UNPACKED_RATIO = 16
PACKED_RATIO, PACKED_WHATEVER_BYTES = 8, 2**14
EFFORT = 1  # of packing: the next levels take four times as long for a few bytes in a hundred
HEADER_BYTES = 8 * 2**20
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
MOST_AXES = 3
MOST_USES = 8  # of an array; a file with more would take long to check


def write_archive(
    path: str | os.PathLike[str], header: dict[str, Any], arrays: Mapping[str, NDArray[Any]], *, overwrite: bool = True
) -> None:
    """Write a model file: it appears whole or not at all."""
    with (
        renamed_at_the_end(check_target(path, "A model"), overwrite=overwrite) as temporary,
        open(temporary, "wb") as sink,
        zipfile.ZipFile(sink, "w") as archive,
    ):
        text = json.dumps(header, indent=1).encode()
        if len(text) > HEADER_BYTES:
            raise ModelFileError(
                f"A model file has room for {HEADER_BYTES} bytes of names and numbers, but these have {len(text)}. "
                "Give the columns shorter names, or pass an array without names."
            )
        _write_member(archive, HEADER_MEMBER, text)
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, array, allow_pickle=False)
            _write_member(archive, name, member.getvalue())


def _write_member(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    member = zipfile.ZipInfo(name, MEMBER_TIME)
    packed = len(zlib.compress(content, EFFORT))
    well = len(content) > max(PACKED_WHATEVER_BYTES, PACKED_RATIO * packed)
    archive.writestr(member, content, zipfile.ZIP_STORED if well else zipfile.ZIP_DEFLATED, EFFORT)


@contextmanager
def open_archive(path: str | os.PathLike[str]) -> Iterator[Archive]:
    """Open a model file; any error that a broken one causes, now or while it is open, becomes a ModelFileError."""
    place = Path(path).expanduser()
    _check_kind(place)
    with open(place, "rb") as file, _as_model_file_error(path):
        yield Archive(Path(path), file)


def _check_kind(place: Path) -> None:
    """Raise if it is a pipe or a device: such may have no end, or nobody who writes into it."""
    mode = place.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise ModelFileError(f"{os.fspath(place)!r} is not a dc2 model: it is a pipe or a device, not a file.")


class Archive:
    """A model file that is open for reading; its directory has been checked."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._shown = repr(os.fspath(path))
        self._file = file
        self._zip = self._opened()
        self._unread = self._members()
        self._read: dict[str, NDArray[Any]] = {}
        self._uses: Counter[str] = Counter()

    def header(self) -> dict[str, Any]:
        """Return the JSON of the file, if it was written by `save`."""
        info = self._unread.pop(HEADER_MEMBER, None)
        if info is None:
            raise self._foreign()
        if info.file_size > HEADER_BYTES:
            raise ValueError(f"{HEADER_MEMBER} claims to have {info.file_size} bytes")
        header = json.loads(self._zip.read(info))
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            raise self._foreign()
        return header

    def array(self, name: str) -> NDArray[Any]:
        """Return an array of the file; each is read once, and may be used in a few places."""
        self._uses[name] += 1
        if self._uses[name] > MOST_USES:
            raise ValueError(f"{name} is used more than {MOST_USES} times")
        if name in self._read:
            return self._read[name]
        info = self._unread.pop(name)
        with self._zip.open(info) as member:
            _check_array(member, info.file_size)
        with self._zip.open(info) as member:
            array: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
        self._read[name] = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
        return self._read[name]

    def _opened(self) -> zipfile.ZipFile:
        if not zipfile.is_zipfile(self._file):
            self._file.seek(0)
            if self._file.read(2) == b"PK":
                raise ModelFileError(f"{self._shown} is damaged: its end is missing. Copy or save it again.")
            raise self._foreign()
        return zipfile.ZipFile(self._file)

    def _members(self) -> dict[str, zipfile.ZipInfo]:
        members = self._zip.infolist()
        unpacked = sum(info.file_size for info in members)
        packed = os.fstat(self._file.fileno()).st_size
        if unpacked > max(UNPACKED_BYTES, UNPACKED_RATIO * packed):
            raise ModelFileError(
                f"{self._shown} has {packed} bytes and would unpack to {unpacked}, which no model does. It was not "
                "written by save."
            )
        if any(info.compress_size > packed for info in members):
            raise ValueError("a part of it claims to be larger than the file")
        if any(info.compress_type not in METHODS for info in members):
            raise ValueError("it is packed as save never packs")
        return {info.filename: info for info in members}

    def _foreign(self) -> ModelFileError:
        return ModelFileError(f"{self._shown} is not a dc2 model: it was not written by save.")


def _check_array(member: Any, n_bytes: int) -> None:
    """Raise if the shape and type of an array do not match the size of its member."""
    version = np.lib.format.read_magic(member)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(member)
    else:
        shape, _, dtype = np.lib.format.read_array_header_2_0(member)
    claimed = member.tell() + math.prod(shape) * dtype.itemsize
    if dtype.kind not in "biufU" or len(shape) > MOST_AXES or claimed != n_bytes:
        raise ValueError(f"an array of {n_bytes} bytes says that it has shape {shape} of {dtype}")


@contextmanager
def _as_model_file_error(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn any error that a broken file causes into a ModelFileError."""
    try:
        yield
    except (ModelFileError, MemoryError):
        raise
    except Exception as error:  # a file can be broken in any way
        reason = printable(" ".join(f"{type(error).__name__}: {error}".split()))[:300]
        raise ModelFileError(
            f"{os.fspath(path)!r} is damaged and cannot be read as a dc2 model ({reason}). Copy or save it again."
        ) from error


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


class SaveMixin:
    """Gives an estimator that is registered by `saved_model` the method `save`; `dc2.load` reads the file back."""

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = True) -> None:
        """Write the fitted model to a file, which `dc2.load` reads back: its predictions are the same, to the bit.

        The file takes kilobytes to a few megabytes, whatever the number of rows; only where `DC2Clustering` takes few
        rows as they are does the file hold them, and about as much again. Labels of the training rows are not in it,
        nor is what cannot be written down, such as a random generator or a progress callback: such parameters take
        their defaults. It is written under a temporary name and then renamed.

        Parameters
        ----------
        path : path
            The file, by custom ``.dc2``.
        overwrite : bool, default=True
            Whether an existing file is replaced; if not, ParameterError is raised.
        """
        check_is_fitted(self)
        name = type(self).__name__
        if MODELS.get(name) is not type(self):
            savable = sorted(known for known, cls in MODELS.items() if issubclass(cls, SaveMixin))
            raise ModelFileError(
                f"A model file holds {', '.join(savable)}, not {name}. Use pickle, joblib or skops for classes of "
                "your own."
            )
        arrays: dict[str, NDArray[Any]] = {}
        header = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "dc2_version": __version__,
            **encode_model(self, "", arrays, self._saved_state()),
        }
        write_archive(path, header, arrays, overwrite=overwrite)

    def _saved_state(self) -> dict[str, Any]:
        """Return what was learned, by attribute: all that a pickle would hold."""
        parameters: Mapping[str, Any] = self.get_params(deep=False)  # type: ignore[attr-defined]
        state: dict[str, Any] = self.__getstate__()  # type: ignore[assignment]
        return {name: value for name, value in state.items() if name not in parameters}


@dataclasses.dataclass(frozen=True)
class Header:
    """What a model file says about itself."""

    class_name: str
    dc2_version: str
    format_version: int


def load(path: str | os.PathLike[str]) -> Any:
    """Return the fitted model that `save` wrote to a file.

    Nothing in the file is executed, and no more memory is taken than a model of the file's size needs. A file that is
    damaged, foreign, or of another format is refused.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    DC2Clustering, RPFCluster, RASP, KASP, Compressor, RPNeighbors, KernelRegressor or KernelClassifier
        As it was saved, but for the labels of its training rows.

    Raises
    ------
    ModelFileError
        If the file cannot be read as a model.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import dc2
    >>> X = np.random.default_rng(0).normal(size=(5_000, 3))
    >>> model = dc2.RPFCluster(n_clusters=3, n_signatures=50, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.dc2")
    ...     again = dc2.load(f"{folder}/model.dc2")
    >>> bool(np.array_equal(model.predict(X), again.predict(X)))
    True
    """
    with np.errstate(all="ignore"), open_archive(path) as archive:  # what overflows is found by the checks
        content = archive.header()
        _checked_header(path, content)
        model = decode_model(content, archive.array)
        _check_model(model)
        return model


def read_header(path: str | os.PathLike[str]) -> Header:
    """Return what a model file says about itself, without loading the model."""
    with open_archive(path) as archive:
        return _checked_header(path, archive.header())


def _check_model(model: Any) -> None:
    """Raise if a model is not whole; its records have checked themselves."""
    check_is_fitted(model)
    if hasattr(type(model), "distortion_") and not np.isfinite(model.distortion_):
        raise ValueError("its signatures have no finite distortion")


def _checked_header(path: str | os.PathLike[str], content: dict[str, Any]) -> Header:
    """Return what a file says of itself, if this version can read such a file."""
    shown = repr(os.fspath(path))
    dc2_version, format_version = content["dc2_version"], content["format_version"]
    if not isinstance(dc2_version, str) or not re.fullmatch(r"[\w.+!-]{1,50}", dc2_version, re.ASCII):
        raise ValueError(f"its version of dc2 is {dc2_version!r}")
    if type(format_version) is not int or format_version < 1:
        raise ValueError(f"its format is {format_version!r}")
    if format_version < FORMAT_VERSION:
        raise ModelFileError(
            f"{shown} was written by dc2 {dc2_version}, whose models dc2 {__version__} cannot read: fit and save the "
            "model again."
        )
    if format_version > FORMAT_VERSION:
        raise ModelFileError(
            f"{shown} was written by dc2 {dc2_version} in format {format_version}, but dc2 {__version__} reads format "
            f"{FORMAT_VERSION}. Install a newer dc2."
        )
    name = content["model"]
    contents = import_module("dc2")
    public = [name] if name in contents.__all__ else [] if name in MODELS else contents.__all__
    for wanted in public:
        getattr(contents, wanted)  # imports its module, whose classes register themselves
    known = sorted(name for name, cls in MODELS.items() if issubclass(cls, SaveMixin))
    if name not in known:
        raise ModelFileError(
            f"{shown} holds a {name!r}, which dc2 {__version__} does not know; it knows {', '.join(known)}."
        )
    return Header(name, dc2_version, format_version)
