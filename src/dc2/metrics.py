"""How well a clustering agrees with known classes, from one small table of counts."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from dc2.errors import InputError

__all__ = ["accuracy_from_table", "clustering_accuracy", "contingency_table", "majority_floor"]

_FloatArray: TypeAlias = npt.NDArray[np.float64]
_Codes: TypeAlias = npt.NDArray[np.intp]

_ROWS_AT_ONCE = 1 << 20  # bounds the memory of counting, whatever the number of rows
_DIRECT_CODES = 1 << 10  # integer labels within so narrow a range need no sorting


def clustering_accuracy(
    y_true: npt.ArrayLike, y_pred: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
) -> float:
    """Return the share of rows that are right under the best match of clusters to classes.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        Classes and clusters: numbers or strings, any number of either. A class or cluster that is left without
        a partner counts as wrong.
    sample_weight : array-like of shape (n,), default=None
        How many rows each row stands for.

    Returns
    -------
    float
        Between 0 and 1. Compare it with `majority_floor`, which one single cluster reaches.

    Examples
    --------
    >>> clustering_accuracy(["a", "a", "b", "b"], [1, 1, 0, 0])
    1.0
    >>> clustering_accuracy(["a", "a", "b", "b"], [0, 0, 0, 0])
    0.5
    """
    return accuracy_from_table(contingency_table(y_true, y_pred, sample_weight))


def majority_floor(y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> float:
    """Return the share of the largest class: the accuracy of putting everything into one cluster.

    Examples
    --------
    >>> majority_floor(["a", "b", "a", "a"])
    0.75
    """
    one_cluster = np.zeros(np.size(y), dtype=np.intp)
    counts = contingency_table(y, one_cluster, sample_weight)
    return float(counts.max() / counts.sum())


def contingency_table(
    y_true: npt.ArrayLike, y_pred: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
) -> _FloatArray:
    """Count how often each class meets each cluster.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        Classes and clusters: numbers or strings.
    sample_weight : array-like of shape (n,), default=None
        How many rows each row stands for.

    Returns
    -------
    ndarray of shape (n_classes, n_clusters)
        Only classes and clusters that occur.

    Examples
    --------
    >>> contingency_table(["a", "a", "b"], [7, 8, 8])
    array([[1., 1.],
           [0., 1.]])
    """
    (rows, n_rows), (columns, n_columns) = _encode(y_true, "y_true"), _encode(y_pred, "y_pred")
    if len(rows) != len(columns):
        raise InputError(f"y_true has {len(rows)} labels and y_pred {len(columns)}; they must speak of the same rows.")
    weights = None if sample_weight is None else _checked_weights(sample_weight, len(rows))
    cell_counts = np.zeros(n_rows * n_columns)
    step = max(_ROWS_AT_ONCE, cell_counts.size)
    for part in (slice(start, start + step) for start in range(0, len(rows), step)):
        cells = rows[part] * n_columns + columns[part]
        cell_counts += np.bincount(cells, None if weights is None else weights[part], cell_counts.size)
    table = cell_counts.reshape(n_rows, n_columns)
    return table[np.ix_(table.any(axis=1), table.any(axis=0))]


def accuracy_from_table(table: npt.ArrayLike) -> float:
    """Return `clustering_accuracy` from a table of classes by clusters.

    Examples
    --------
    >>> accuracy_from_table([[5, 1, 0], [0, 3, 1]])
    0.8
    """
    counts = np.asarray(table, dtype=np.float64)
    classes, clusters = linear_sum_assignment(counts, maximize=True)
    return float(counts[classes, clusters].sum() / counts.sum())


def _encode(labels: npt.ArrayLike, name: str) -> tuple[_Codes, int]:
    """Return a code per label, at least 0, and a number that all codes are below."""
    array = np.asarray(labels)
    if array.ndim != 1 or array.size == 0:
        raise InputError(f"{name} has shape {array.shape}, but it must be a list of at least one label.")
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise InputError(f"{name} holds {np.isnan(array).sum()} missing labels; leave those rows out.")
    if array.dtype.kind in "iub":
        lowest, highest = int(array.min()), int(array.max())
        if highest - lowest < _DIRECT_CODES and highest <= np.iinfo(np.intp).max:
            return array.astype(np.intp) - lowest, highest - lowest + 1
    if array.dtype.kind in "iuf":
        distinct = np.unique(array)
        return np.searchsorted(distinct, array), len(distinct)
    values = array.tolist()  # strings hash faster than they sort, and mixed kinds have no order at all
    code_of = {label: code for code, label in enumerate(dict.fromkeys(values))}
    return np.fromiter(map(code_of.__getitem__, values), np.intp, len(values)), len(code_of)


def _checked_weights(sample_weight: npt.ArrayLike, n_rows: int) -> _FloatArray:
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_rows,):
        raise InputError(f"sample_weight has shape {weights.shape}, but there are {n_rows} rows to weigh.")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
        raise InputError(
            f"sample_weight lies between {weights.min():.3g} and {weights.max():.3g}, but weights must be finite, "
            "none negative, and not all zero."
        )
    return weights
