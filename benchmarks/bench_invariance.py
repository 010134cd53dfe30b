"""How far clusters change when rows change in ways that should not matter: the ARI before and after a change.

Writes docs/measured/invariance.md. ``--sets 6`` takes some of the sets only; the folder of public data is DC2_DATA.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from common import machine, table, write_page
from numpy.typing import NDArray
from public_data import list_benchmark_sets, load_benchmark_set
from sklearn.metrics import adjusted_rand_score

from dc2 import DC2Clustering

MOST_ROWS = 2000
Rows = NDArray[Any]
Change = Callable[[Rows, np.random.Generator], tuple[Rows, NDArray[np.intp]]]


def _same_rows(change: Callable[[Rows, np.random.Generator], Rows]) -> Change:
    return lambda X, rng: (change(X, rng), np.arange(len(X)))


def _some_rows(choose: Callable[[int, np.random.Generator], NDArray[np.intp]]) -> Change:
    def change(X: Rows, rng: np.random.Generator) -> tuple[Rows, NDArray[np.intp]]:
        chosen = choose(len(X), rng)
        return X[chosen], chosen

    return change


def rotation(width: int, rng: np.random.Generator) -> Rows:
    """Return a random rotation."""
    return np.asarray(np.linalg.qr(rng.normal(size=(width, width)))[0])


CHANGES: dict[str, Change] = {
    "another seed": _same_rows(lambda X, rng: X),
    "rows in another order": _some_rows(lambda n, rng: rng.permutation(n)),
    "every row twice": _some_rows(lambda n, rng: np.repeat(np.arange(n), 2)),
    "1% of rows left out": _some_rows(lambda n, rng: np.sort(rng.permutation(n)[: n - n // 100])),
    "columns in another order": _same_rows(lambda X, rng: X[:, rng.permutation(X.shape[1])]),
    "a constant column": _same_rows(lambda X, rng: np.column_stack([X, np.full(len(X), 7.0)])),
    "a rotation": _same_rows(lambda X, rng: X @ rotation(X.shape[1], rng)),
    "a rotation into twice the columns": _same_rows(
        lambda X, rng: np.column_stack([X, np.zeros_like(X)]) @ rotation(2 * X.shape[1], rng)
    ),
    "1000 times as large": _same_rows(lambda X, rng: 1000.0 * X),
    "shifted by 1000 deviations": _same_rows(lambda X, rng: X + 1000.0 * X.std()),
    "float32": _same_rows(lambda X, rng: X.astype(np.float32)),
}


def agreements(X: Rows) -> dict[str, float]:
    """Return the ARI of the clusters before and after each change."""
    before = DC2Clustering(random_state=0).fit_predict(X)
    found = {}
    for what, change in CHANGES.items():
        changed, rows = change(X, np.random.default_rng(1))
        after = DC2Clustering(random_state=int(what == "another seed")).fit_predict(changed)
        found[what] = float(adjusted_rand_score(before[rows], after))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=None, help="how many sets to take; all unless given")
    wanted = parser.parse_args()
    about = machine()
    scores: dict[str, list[float]] = {name: [] for name in CHANGES}
    names = list_benchmark_sets()[: wanted.sets]
    for name in names:
        X, _ = load_benchmark_set(*name)
        X = X[np.sort(np.random.default_rng(0).permutation(len(X))[:MOST_ROWS])]
        for what, score in agreements(X).items():
            scores[what].append(score)
        print(*name, *(f"{found[-1]:.3f}" for found in scores.values()), flush=True)
    lines = [
        [what, f"{min(found):.3f}", f"{np.mean(found):.3f}", f"{np.mean(np.array(found) > 0.999):.0%}"]
        for what, found in scores.items()
    ]
    text = [
        f"Of {len(names)} sets with known clusters, at most {MOST_ROWS:,} rows each, number of clusters not given: the "
        "adjusted Rand index between the clusters of the rows as they are and after one change.",
        table(["change", "worst set", "mean", "sets that stay the same"], lines),
    ]
    write_page("invariance", "What changes no cluster, measured", text, about)


if __name__ == "__main__":
    main()
