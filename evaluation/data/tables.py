"""Labelled tables of measurements: handwritten digits and letters, and land seen from a satellite."""

import numpy as np
from sklearn.utils import Bunch

from evaluation.data.bounded import open_bytes
from evaluation.data.location import DataNotFoundError, Folder, find_file, search_folders
from evaluation.data.standardise import standardise
from evaluation.data.text import numeric_blocks, stack

__all__ = ["TABLES", "load_table"]

TABLES = ("pendigits", "satimage", "letter")
_HOME = "https://github.com/EpistasisLab/pmlb"


def load_table(name: str, data_home: Folder | None = None) -> Bunch:
    """Load ``real/<name>.tsv``: pendigits, satimage or letter, with standardised columns.

    The file has a line of headings, tabs between columns, and the class in the last one.
    """
    folders = search_folders(data_home)
    path = find_file((f"real/{name}.tsv",), folders)
    if path is None:
        raise DataNotFoundError(
            f"real/{name}.tsv (plain or .gz) not found in {' and '.join(map(str, folders))}. Get {name}.tsv.gz from "
            f"{_HOME} and put it into {folders[0] / 'real'}."
        )
    with open_bytes(path) as stream:
        headings = stream.readline().decode().split()
    table = stack(numeric_blocks(path, n_columns=len(headings), delimiter="\t", dtype=np.float32, skip=1), path)
    data = np.ascontiguousarray(table[:, :-1])
    standardise(data)
    classes, target = np.unique(table[:, -1].astype(np.int32), return_inverse=True)
    return Bunch(
        data=data,
        target=target.astype(np.int32),
        target_names=classes.astype(str),
        feature_names=headings[:-1],
        DESCR=f"{name}: {len(data):,} rows, {data.shape[1]} standardised columns, {len(classes)} classes.",
    )
