"""Clusters with labels of some rows: agreement on the other rows, beside LabelSpreading and constrained K-means.

Writes docs/measured/labels.md. Takes a few minutes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from common import machine, table, write_page
from numpy.typing import NDArray
from public_data import load_mnist
from sklearn.cluster import kmeans_plusplus
from sklearn.datasets import load_digits, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.semi_supervised import LabelSpreading

from dc2 import DC2Clustering

SHARES = (0.0, 0.001, 0.01, 0.1)
ROUNDS, DRAWS = 100, 2
Data = tuple[NDArray[Any], NDArray[np.intp]]


def own(X: NDArray[Any], y: NDArray[np.intp], k: int) -> NDArray[Any]:
    return DC2Clustering(random_state=0).fit(X, y).labels_


def spreading(X: NDArray[Any], y: NDArray[np.intp], k: int) -> NDArray[Any]:
    if (y < 0).all():
        return np.zeros(len(X), int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows without a path to a label
        return LabelSpreading(kernel="knn", n_neighbors=10).fit(X, y).transduction_


def constrained_k_means(X: NDArray[Any], y: NDArray[np.intp], k: int) -> NDArray[Any]:
    """Return clusters by K-means in which labelled rows keep their class, and start its centre (Basu et al., 2002)."""
    centres = kmeans_plusplus(X, k, random_state=0)[0].astype(float)
    for label in np.unique(y[y >= 0]):
        centres[label] = X[y == label].mean(axis=0)
    labels = np.full(len(X), -1)
    for _ in range(ROUNDS):
        squared = (centres**2).sum(axis=1) - 2 * X @ centres.T
        found = np.where(y >= 0, y, squared.argmin(axis=1))
        if np.array_equal(found, labels):
            break
        labels = found
        for cluster in np.unique(labels):
            centres[cluster] = X[labels == cluster].mean(axis=0)
    return labels


METHODS: dict[str, Callable[..., NDArray[Any]]] = {
    "dc2": own,
    "LabelSpreading": spreading,
    "constrained K-means": constrained_k_means,
}


def digits() -> Data:
    X, truth = load_digits(return_X_y=True)
    return X, truth


def images() -> Data:
    data = load_mnist()
    some = np.random.default_rng(0).choice(len(data.data), 2000, replace=False)
    return data.data[some].astype(np.float32), data.target[some].astype(np.intp)


DATA: dict[str, Callable[[], Data]] = {
    "digits, 1797 rows": digits,
    "MNIST, 2000 of its rows": images,
    "two moons that overlap a little, 2000 rows": lambda: make_moons(2000, noise=0.12, random_state=0),
}


def scores(X: NDArray[Any], truth: NDArray[np.intp], share: float, labelled: NDArray[np.bool_]) -> list[float]:
    """Return the adjusted Rand index of each method on the rows that no share of labels includes, mean of 2 draws."""
    found = []
    for seed in range(DRAWS if share else 1):
        order = np.random.default_rng(seed).permutation(len(X))
        rest, y = order[round(max(SHARES) * len(X)) :], np.full(len(X), -1)
        known = order[: round(share * len(X))]
        known = known[labelled[truth[known]]]
        y[known] = truth[known]
        k = int(truth.max()) + 1
        found.append([adjusted_rand_score(truth[rest], find(X, y, k)[rest]) for find in METHODS.values()])
    return np.mean(found, axis=0).tolist()


def lines_of(names: Iterable[str], labelled_classes: Callable[[int], int]) -> list[list[str]]:
    lines = []
    for name in names:
        X, truth = DATA[name]()
        n_classes = int(truth.max()) + 1
        labelled = np.arange(n_classes) < labelled_classes(n_classes)
        for share in SHARES:
            lines.append([name, f"{share:g}", *(f"{score:.3f}" for score in scores(X, truth, share, labelled))])
            print(lines[-1], flush=True)
    return lines


def main() -> None:
    about, head = machine(), ["rows", "share of labels", *METHODS]
    text = [
        "Adjusted Rand index of the same nine tenths of the rows, of which none is ever labelled; mean of two draws "
        "of the labels. LabelSpreading joins ten neighbours; K-means knows the number of classes, dc2 does not.",
        "## Labels of all classes",
        table(head, lines_of(DATA, lambda n: n)),
        "## Labels of only the first half of the classes",
        table(head, lines_of(list(DATA)[:1], lambda n: n // 2)),
    ]
    write_page("labels", "Labels of some rows, measured", text, about)


if __name__ == "__main__":
    main()
