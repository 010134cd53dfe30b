"""Scores of signatures: classes are counted per signature once, then any labelling of signatures is scored."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dc2.metrics import accuracy_from_table

__all__ = ["adjusted_rand_from_table", "count_classes", "nmi_from_table", "score", "score_signatures"]


def count_classes(y: NDArray[np.intp], ids: NDArray[Any], n_signatures: int) -> NDArray[np.float64]:
    """Return how many rows of each class each signature represents, of shape (n_classes, n_signatures).

    Examples
    --------
    >>> count_classes(np.array([0, 1, 1]), np.array([0, 0, 1]), 2)
    array([[1., 0.],
           [1., 1.]])
    """
    n_classes = int(y.max()) + 1
    cells = y.astype(np.int64) * n_signatures + ids
    counts = np.bincount(cells, minlength=n_classes * n_signatures)
    return counts.reshape(n_classes, n_signatures).astype(np.float64)


def score_signatures(class_counts: NDArray[np.float64], labels: NDArray[Any]) -> dict[str, float]:
    """Score clusters of signatures as if every row had taken the cluster of its signature.

    Examples
    --------
    >>> score_signatures(np.array([[5.0, 0.0, 4.0], [0.0, 7.0, 0.0]]), np.array([0, 1, 0]))["accuracy"]
    1.0
    """
    return score(np.stack([np.bincount(labels, weights=counts) for counts in class_counts]))


def score(table: NDArray[np.float64]) -> dict[str, float]:
    """Return the scores of a table of classes by clusters.

    They are accuracy, ARI, NMI and the share of rows in the largest cluster; if that is near 1, the accuracy is that of
    putting all rows together.
    """
    return {
        "accuracy": accuracy_from_table(table),
        "ari": adjusted_rand_from_table(table),
        "nmi": nmi_from_table(table),
        "largest_cluster": float(table.sum(axis=0).max() / table.sum()),
    }


def adjusted_rand_from_table(table: ArrayLike) -> float:
    """Return the adjusted Rand index from a table of classes by clusters.

    Weights in the table equal repeated rows, which scikit-learn's score cannot take.

    Examples
    --------
    >>> adjusted_rand_from_table([[3, 0], [0, 4]])
    1.0
    """
    counts = np.asarray(table, dtype=np.float64)
    together_in_both = _pairs(counts)
    together_in_classes, together_in_clusters = _pairs(counts.sum(axis=1)), _pairs(counts.sum(axis=0))
    expected = together_in_classes * (together_in_clusters / max(_pairs(counts.sum()), 1.0))
    largest = (together_in_classes + together_in_clusters) / 2
    if largest == expected:  # both put all rows together, or both keep all apart
        return 1.0
    return float((together_in_both - expected) / (largest - expected))


def nmi_from_table(table: ArrayLike) -> float:
    """Return the normalized mutual information from a table of classes by clusters.

    The mutual information is divided by the mean of the two entropies; chance has about 0 and agreement 1.

    Examples
    --------
    >>> nmi_from_table([[3, 0], [0, 4]])
    1.0
    """
    counts = np.asarray(table, dtype=np.float64)
    joint = counts / counts.sum()
    entropies = _entropy(joint.sum(axis=1)) + _entropy(joint.sum(axis=0))
    if entropies == 0:  # one class and one cluster: no information in either
        return 1.0
    information = entropies - _entropy(joint)
    return float(np.clip(2 * information / entropies, 0.0, 1.0))


def _pairs(counts: ArrayLike) -> float:
    counts = np.asarray(counts)
    return float((counts * (counts - 1)).sum() / 2)


def _entropy(shares: NDArray[np.float64]) -> float:
    positive = shares[shares > 0]
    return float(-(positive * np.log(positive)).sum())
