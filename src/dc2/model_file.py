"""Fitted models as files: arrays and JSON in a zip, read back without running anything that is in the file.

A ``.dc2`` file holds ``model.json`` and one ``.npy`` member per array, so that `numpy.load` and any zip tool can look
into it. The JSON names a class and the small records it is made of; both are looked up in the tables below and
nowhere else, and every array is read without pickle.
"""

from __future__ import annotations

import dataclasses
import importlib
import io
import json
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.errors import ModelFileError
from dc2.output import check_target, renamed_at_the_end
from dc2.parameters import is_plain
from dc2.versions import __version__

__all__ = ["Header", "SaveMixin", "load", "read_header"]

FORMAT = "dc2 model"
FORMAT_VERSION = 1
HEADER_MEMBER = "model.json"
# Fixed, so that equal models are equal files.
MEMBER_TIME = (1980, 1, 1, 0, 0, 0)

# Where the classes live that a file may name; they are imported when a file that names them is read.
MODELS = {
    "Compressor": "dc2.compress.compressor",
    "KASP": "dc2.cluster.kasp",
    "RASP": "dc2.cluster.rasp",
    "RPFCluster": "dc2.cluster.rpf_cluster",
}
RECORDS = {
    "CentreRouter": "dc2.cluster.kasp",
    "Compression": "dc2.compress.compress",
    "RPTree": "dc2.trees.tree",
    "Router": "dc2.compress.router",
    "Scaling": "dc2.compress.scaling",
    "Signatures": "dc2.compress.signatures",
}


@dataclasses.dataclass(frozen=True)
class Header:
    """What a model file says about itself.

    Attributes
    ----------
    class_name : str
        The class of the model.
    dc2_version : str
        The version of dc2 that wrote the file.
    format_version : int
        The version of the file's format.
    """

    class_name: str
    dc2_version: str
    format_version: int


class SaveMixin:
    """Gives an estimator `save`; `dc2.load` reads the file back."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file, which `dc2.load` reads back: its predictions are the same, to the bit.

        The file has kilobytes to a few megabytes, whatever the number of rows: labels of the training rows are not
        in it, nor is what cannot be written down (a random generator, a progress callback: their parameters take
        their defaults). It is written under a temporary name and then renamed.

        Parameters
        ----------
        path : path
            The file, by custom ``.dc2``; an existing one is replaced.
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        name = type(self).__name__
        if name not in MODELS or _imported(name, MODELS) is not type(self):
            raise ModelFileError(
                f"A model file holds {', '.join(MODELS)}, not {name}. Use pickle, joblib or skops for classes of "
                "your own."
            )
        arrays: dict[str, NDArray[Any]] = {}
        header = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "dc2_version": __version__,
            "class": name,
            "parameters": {
                key: _encode(value, f"parameters/{key}", arrays) for key, value in _parameters(self).items()
            },
            "fitted": {
                key: _encode(value, f"fitted/{key}", arrays) for key, value in self._saved_state().items()
            },
        }
        _write(path, header, arrays)

    def _saved_state(self) -> dict[str, Any]:
        """Return what was learned, by attribute: all that a pickle would hold."""
        parameters: Mapping[str, Any] = self.get_params(deep=False)  # type: ignore[attr-defined]
        state: dict[str, Any] = self.__getstate__()  # type: ignore[assignment]
        return {name: value for name, value in state.items() if name not in parameters}


def load(path: str | os.PathLike[str]) -> Any:
    """Return the fitted model that `save` wrote to a file.

    Nothing in the file is executed. A file that is damaged, foreign, or of a newer format is refused.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    RPFCluster, RASP, KASP or Compressor
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
    header, read_array = _open(path)
    with _damage_is_told(path):
        model = _imported(header["class"], MODELS)(
            **{name: _decode(value, read_array) for name, value in header["parameters"].items()}
        )
        vars(model).update({name: _decode(value, read_array) for name, value in header["fitted"].items()})
    return model


def read_header(path: str | os.PathLike[str]) -> Header:
    """Return what a model file says about itself, without loading the model."""
    header, _ = _open(path)
    return Header(header["class"], str(header["dc2_version"]), header["format_version"])


def _open(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Callable[[str], NDArray[Any]]]:
    """Return the header of a file that this version can read, and what reads an array of it."""
    content = Path(path).expanduser().read_bytes()
    shown = repr(os.fspath(path))
    if not zipfile.is_zipfile(io.BytesIO(content)):
        if content.startswith(b"PK"):
            raise ModelFileError(f"{shown} is damaged: its end is missing. Copy or save it again.")
        raise ModelFileError(f"{shown} is not a dc2 model: it was not written by save.")
    with _damage_is_told(path):
        archive = zipfile.ZipFile(io.BytesIO(content))
        header = json.loads(archive.read(HEADER_MEMBER)) if HEADER_MEMBER in archive.namelist() else None
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            raise ModelFileError(f"{shown} is not a dc2 model: it was not written by save.")
        if int(header["format_version"]) > FORMAT_VERSION:
            raise ModelFileError(
                f"{shown} was written by dc2 {header['dc2_version']} in format {header['format_version']}, but dc2 "
                f"{__version__} reads formats up to {FORMAT_VERSION}. Install a newer dc2."
            )
        if header["class"] not in MODELS:
            raise ModelFileError(
                f"{shown} holds a {header['class']!r}, which dc2 {__version__} does not know; it knows "
                f"{', '.join(MODELS)}."
            )

    def read_array(name: str) -> NDArray[Any]:
        # All of the member is read first, so that its checksum is checked before its shape is believed.
        member = io.BytesIO(archive.read(name))
        array: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
        return array

    return header, read_array


@contextmanager
def _damage_is_told(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn whatever a broken file provokes into one sentence."""
    try:
        yield
    except ModelFileError:
        raise
    except Exception as error:  # a file can be broken in any way
        raise ModelFileError(
            f"{os.fspath(path)!r} is damaged and cannot be read as a dc2 model "
            f"({type(error).__name__}: {error}). Copy or save it again."
        ) from error


def _write(path: str | os.PathLike[str], header: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    with (
        renamed_at_the_end(check_target(path, "A model")) as temporary,
        open(temporary, "xb") as sink,
        zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        _write_member(archive, HEADER_MEMBER, json.dumps(header, indent=1).encode())
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, array, allow_pickle=False)
            _write_member(archive, name, member.getvalue())


def _write_member(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    member = zipfile.ZipInfo(name, MEMBER_TIME)
    member.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(member, content)


def _parameters(model: Any) -> dict[str, Any]:
    """Return the parameters; one that cannot be written down has its default."""
    defaults = type(model)().get_params(deep=False)
    return {
        name: value if is_plain(value) else defaults[name]
        for name, value in model.get_params(deep=False).items()
    }


def _imported(name: str, table: Mapping[str, str]) -> Any:
    return getattr(importlib.import_module(table[name]), name)


# --- values as JSON, with arrays beside it --------------------------------------------------------------------------


def _encode(value: Any, where: str, arrays: dict[str, NDArray[Any]]) -> Any:
    """Return a value as JSON; its arrays go to `arrays`, named by where they were."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        items = [_encode(item, f"{where}/{index}", arrays) for index, item in enumerate(value)]
        return items if isinstance(value, list) else {"tuple": items}
    if isinstance(value, dict):
        pairs = [
            [_encode(key, where, arrays), _encode(item, f"{where}/{key}", arrays)]
            for key, item in value.items()
        ]
        return {"dict": pairs}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufU":
        arrays[f"{where}.npy"] = value
        return {"array": f"{where}.npy"}
    if isinstance(value, np.ndarray) and all(isinstance(item, str) for item in value.flat):
        return {"names": value.tolist()}
    record = type(value).__name__
    if record in RECORDS and dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        encoded = {name: _encode(item, f"{where}/{name}", arrays) for name, item in fields.items()}
        return {"record": record, "fields": encoded}
    raise ModelFileError(f"{where} is a {type(value).__name__}, which a model file cannot hold.")


def _decode(value: Any, read_array: Callable[[str], NDArray[Any]]) -> Any:
    """Return the value that `_encode` wrote."""
    if isinstance(value, list):
        return [_decode(item, read_array) for item in value]
    if not isinstance(value, dict):
        return value
    if "tuple" in value:
        return tuple(_decode(value["tuple"], read_array))
    if "dict" in value:
        return {_decode(key, read_array): _decode(item, read_array) for key, item in value["dict"]}
    if "array" in value:
        return read_array(value["array"])
    if "names" in value:
        return np.array([str(name) for name in value["names"]], dtype=object)
    fields = {name: _decode(item, read_array) for name, item in value["fields"].items()}
    record = _imported(value["record"], RECORDS)(**fields)
    check = _CHECKS.get(value["record"])
    if check is not None and not check(record):
        raise ValueError(f"its {value['record']} does not fit together")
    return record


# --- what the core takes for granted, since a row must never be sent outside the arrays -------------------------------


def _router_is_sound(router: Any) -> bool:
    leaves = sum(tree.n_leaves for tree in router.trees)
    shortlist, gaps = router.shortlist, router.gaps
    return bool(
        len(router.trees) > 0
        and all(tree.directions.dtype == router.centres.dtype for tree in router.trees)
        and all(tree.directions.shape[1] == router.centres.shape[1] for tree in router.trees)
        and len(router.centres) == leaves
        and (shortlist is None) == (gaps is None)
        and (
            shortlist is None
            or (
                shortlist.dtype == np.int32
                and shortlist.shape == gaps.shape
                and len(shortlist) == leaves
                and gaps.dtype == router.centres.dtype
                and ((shortlist >= 0) & (shortlist < leaves)).all()
            )
        )
    )


_CHECKS: dict[str, Callable[[Any], bool]] = {"Router": _router_is_sound}  # a tree checks itself
