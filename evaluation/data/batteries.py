"""Labelled clustering benchmarks: small sets, often with more than one valid labelling."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.errors import SourceError
from evaluation.data.bounded import open_bytes
from evaluation.data.location import DataNotFoundError, Folder, find_file, search_folders
from evaluation.data.text import numeric_blocks, stack

__all__ = ["list_benchmark_sets", "load_benchmark_set"]

_HOME = "https://github.com/gagolews/clustering-data-v1"
_SUFFIX = ".data.gz"


def list_benchmark_sets(data_home: Folder | None = None) -> list[tuple[str, str]]:
    """Return (battery, name) of every benchmark set on this machine, sorted.

    Sets lie in ``clustering/<battery>/<name>.data.gz`` with labellings ``<name>.labels0.gz``, ``<name>.labels1.gz``
    and so on, in `data_home`, in the folder named by the environment variable ``DC2_DATA``, or in the user's cache.
    """
    return sorted(
        {
            (path.parent.name, path.name.removesuffix(_SUFFIX))
            for folder in search_folders(data_home)
            for path in folder.glob(f"clustering/*/*{_SUFFIX}")
            if path.with_name(path.name.removesuffix(_SUFFIX) + ".labels0.gz").is_file()
        }
    )


def load_benchmark_set(
    battery: str, name: str, data_home: Folder | None = None
) -> tuple[NDArray[np.float64], list[NDArray[np.int32]]]:
    """Load one clustering benchmark set and all its labellings.

    Parameters
    ----------
    battery, name : str
        As `list_benchmark_sets` gives them, for example ``"fcps", "lsun"``.
    data_home : path, default=None
        Folder that holds ``clustering/``; None looks into the folder named by the environment variable ``DC2_DATA``,
        then into the user's cache.

    Returns
    -------
    data : ndarray of shape (n, n_features)
    labellings : list of ndarray of shape (n,)
        Clusters are numbered from 1; label 0 marks noise, which a score should leave out.
    """
    folders = search_folders(data_home)
    path = find_file((f"clustering/{battery}/{name}.data",), folders)
    if path is None:
        raise DataNotFoundError(
            f"The benchmark set {battery}/{name} was not found in {' and '.join(map(str, folders))}. Get "
            f"{name}.data.gz and {name}.labels0.gz from {_HOME}, and put them into "
            f"{folders[0] / 'clustering' / battery}."
        )
    with open_bytes(path) as stream:
        n_features = len(stream.readline().split())
    data = stack(numeric_blocks(path, n_columns=n_features, delimiter=None, dtype=np.float64), path)
    labellings: list[NDArray[np.int32]] = []
    while labels_path := find_file((f"{name}.labels{len(labellings)}",), [path.parent]):
        labellings.append(_read_labels(labels_path, len(data)))
    if not labellings:
        raise DataNotFoundError(f"{path} has no labelling beside it: get {name}.labels0.gz from {_HOME}.")
    return data, labellings


def _read_labels(path: Path, n_rows: int) -> NDArray[Any]:
    labels = stack(numeric_blocks(path, n_columns=1, delimiter=None, dtype=np.int32), path)[:, 0]
    if len(labels) != n_rows:
        raise SourceError(f"{path} holds {len(labels):,} labels for {n_rows:,} rows. Fetch the files again.")
    return labels
