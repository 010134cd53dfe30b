"""Centres of a kernel machine chosen in six ways, at equal numbers, with the same kernel and the best of seven ridges.

Run ``python benchmarks/bench_centres.py [--write]``; --write puts the table into docs/measured/.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from common import machine, table, write_page
from kernel_data import covertype, digits, letter, mnist, satimage
from learning_data import timed
from scipy.linalg import cho_factor, cho_solve
from sklearn.datasets import make_friedman1
from sklearn.preprocessing import StandardScaler

from dc2 import Compressor
from dc2.learn.kernel_functions import KernelShape, median_distance
from dc2.learn.kernel_solver import ProjectedRidge, kernel_matrix, normal_sums, predicted

TITLE = "Centres of kernel machines"
RIDGES = 10.0 ** np.arange(-4, 3)
COUNTS = (250, 1000)
MOST_ROWS, MOST_TEST = 12_000, 5_000
SEEDS = (0, 1, 2)

Chooser = Callable[[np.ndarray, int, KernelShape, int], np.ndarray]


def uniform(X: np.ndarray, count: int, shape: KernelShape, seed: int) -> np.ndarray:
    return X[np.random.default_rng(seed).choice(len(X), count, replace=False)]


def signatures(**parameters: object) -> Chooser:
    return lambda X, count, shape, seed: Compressor(
        count, n_jobs=1, random_state=seed, **parameters
    ).fit(X).signatures_.points.astype(X.dtype)  # fmt: skip


def cholesky(X: np.ndarray, count: int, shape: KernelShape, seed: int) -> np.ndarray:
    """Rows drawn in proportion to what earlier ones leave unexplained of the kernel, fifty at a time."""
    rng, left, chosen = np.random.default_rng(seed), np.ones(len(X)), np.empty(0, int)
    factor = np.zeros((len(X), count))
    while len(chosen) < count:
        drawn = rng.choice(len(X), min(50, count - len(chosen)), replace=False, p=left / left.sum())
        done = len(chosen)
        columns = shape.at(X[drawn])(X) - factor[:, :done] @ factor[drawn, :done].T
        root = np.linalg.cholesky(columns[drawn] + 1e-8 * np.eye(len(drawn)))
        new = np.linalg.solve(root, columns.T).T
        factor[:, done : done + len(drawn)] = new
        chosen = np.append(chosen, drawn)
        left = np.maximum(left - (new**2).sum(axis=1), 0)
        left[chosen] = 0
    return X[chosen]


def leverage(X: np.ndarray, count: int, shape: KernelShape, seed: int) -> np.ndarray:
    """Rows drawn by approximate ridge leverage scores, from as many uniform rows, at a ridge of one."""
    rng = np.random.default_rng(seed)
    first = X[rng.choice(len(X), count, replace=False)]
    K, at = kernel_matrix(shape, first), shape.at(first)
    to_rows = at(X)
    scores = 1 - np.einsum("ij,ji->i", to_rows, cho_solve(cho_factor(K + np.eye(count)), to_rows.T))
    return X[rng.choice(len(X), count, replace=False, p=scores / scores.sum())]


METHODS: dict[str, Chooser] = {
    "uniform": uniform,
    "signatures": signatures(populate="leaf"),
    "signatures, 5 steps of Lloyd": signatures(populate="nearest", refine=5),
    "rows of signatures": signatures(signature="member", populate="leaf"),
    "pivoted Cholesky": cholesky,
    "ridge leverage": leverage,
}


def sets() -> list[tuple[str, np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Return names, rows, targets, test rows and test targets."""
    found = []
    for load in (digits, satimage, letter, mnist, covertype):
        split = load()
        scaler = StandardScaler().fit(split.X)
        plain = split.name in ("digits", "MNIST")
        X, X_test = (part.astype(np.float64)[:most] for part, most in ((split.X, MOST_ROWS), (split.X_test, MOST_TEST)))
        X, X_test = (X, X_test) if plain else (scaler.transform(X), scaler.transform(X_test))
        Y = np.eye(split.y.max() + 1)
        found.append((split.name, X, Y[split.y[: len(X)]], X_test, Y[split.y_test[: len(X_test)]]))
    X, y = make_friedman1(MOST_ROWS + MOST_TEST, noise=1.0, random_state=0)
    y = (y - y.mean())[:, None] / y.std()
    found.append(("Friedman 1", X[MOST_TEST:], y[MOST_TEST:], X[:MOST_TEST], y[:MOST_TEST]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table into the documentation")
    options = parser.parse_args()
    by = machine()
    text = [
        "Squared error on test rows (of class indicators, summed and halved; of Friedman 1, the share of variance), of "
        "a machine with a Matérn 3/2 kernel whose bandwidth is the median distance; mean of three seeds. In "
        f"brackets: CPU seconds to choose. At most {MOST_ROWS:,} training rows."
    ]
    for count in COUNTS:
        rows = []
        for name, X, Y, X_test, Y_test in sets():
            count_here = min(count, len(X) // 2)
            shape, middle = KernelShape("matern32", median_distance(X)), Y.mean(axis=0)
            cells = []
            for choose in METHODS.values():
                losses, times = [], []
                for seed in SEEDS:
                    centres, seconds = timed(
                        lambda choose=choose, seed=seed: choose(X, count_here, shape, seed)  # noqa: B023
                    )
                    at = shape.at(centres)
                    path = ProjectedRidge(normal_sums(at, len(centres), X, Y - middle), kernel_matrix(shape, centres))
                    off = [predicted(at, path.coefficients(r), X_test) + middle - Y_test for r in RIDGES]
                    halved = 2 if Y.shape[1] > 1 else 1
                    losses.append(min((part**2).sum(axis=1).mean() / halved for part in off))
                    times.append(seconds)
                cells.append(f"{np.mean(losses):.4f} ({np.mean(times):.2f})")
            rows.append([name, *cells])
            print(count, *rows[-1], sep="  ", flush=True)
        text += [f"**{count:,} centres** (of digits at most half of the rows)", table(["set", *METHODS], rows)]
        if options.write:
            write_page("centres", TITLE, text, by, " --write")


if __name__ == "__main__":
    main()
