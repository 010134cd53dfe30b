"""`load`: a fitted model from its file. It sits above the packages whose classes a file may hold."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

# Their classes register themselves when they are imported.
import dc2.cluster
import dc2.compress  # noqa: F401
from dc2.errors import ModelFileError
from dc2.model_file.archive import FORMAT_VERSION, open_archive
from dc2.model_file.registry import MODELS
from dc2.model_file.save import SaveMixin
from dc2.model_file.values import decode_model
from dc2.versions import __version__

__all__ = ["Header", "load", "read_header"]


@dataclass(frozen=True)
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
    DC2Clustering, RPFCluster, RASP, KASP or Compressor
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
    if not np.isfinite(model.distortion_):
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
    known = sorted(name for name, cls in MODELS.items() if issubclass(cls, SaveMixin))
    if name not in known:
        raise ModelFileError(
            f"{shown} holds a {name!r}, which dc2 {__version__} does not know; it knows {', '.join(known)}."
        )
    return Header(name, dc2_version, format_version)
