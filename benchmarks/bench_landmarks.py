"""Landmarks for Nyström features, at equal count and with the same solver: how good, and at what cost.

Run ``python benchmarks/bench_landmarks.py [--quick] [--write]``; --write puts the tables into docs/measured/.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from common import machine, table, write_page
from learning_data import Problem, problems, timed
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.blas import dsyrk
from sklearn.cluster import KMeans
from sklearn.metrics.pairwise import rbf_kernel

from dc2 import Compressor
from dc2.learn.nystroem import inverse_root

TITLE = "Landmarks for Nyström features"
BLOCK = 4096
PIVOTS_AT_ONCE = 50
KERNEL_ROWS = 2000


def uniform(problem: Problem, count: int) -> np.ndarray:
    rows = np.random.default_rng(1).choice(len(problem.X), count, replace=False)
    return problem.X[rows]


def kmeans_centres(problem: Problem, count: int) -> np.ndarray:
    """Ten steps of Lloyd after k-means++: more steps cost more and change the kernel little."""
    return KMeans(count, n_init=1, max_iter=10, random_state=1).fit(problem.X).cluster_centers_


def pivoted_cholesky(problem: Problem, count: int) -> np.ndarray:
    """Randomly pivoted Cholesky: draws rows in proportion to what earlier ones leave unexplained of the kernel."""
    rng = np.random.default_rng(1)
    X = problem.X
    factor = np.zeros((len(X), count), np.float32)
    left = np.ones(len(X))
    pivots: list[int] = []
    while len(pivots) < count:
        drawn = rng.choice(len(X), min(PIVOTS_AT_ONCE, count - len(pivots)), p=left / left.sum(), replace=False)
        done = len(pivots)
        columns = rbf_kernel(X, X[drawn], gamma=problem.gamma) - factor[:, :done] @ factor[drawn, :done].T
        root, _ = inverse_root(columns[drawn].astype(np.float64) + 1e-9 * np.eye(len(drawn)))
        new = columns @ root
        factor[:, done : done + new.shape[1]] = new
        pivots.extend(drawn.tolist())
        left = np.maximum(left - (new**2).sum(axis=1), 0.0)
        left[pivots] = 0.0
    return X[pivots]


def signatures(**parameters: object) -> Callable[[Problem, int], np.ndarray]:
    return lambda problem, count: (
        Compressor(count, n_jobs=1, random_state=1, **parameters).fit(problem.X).signatures_.points
    )


METHODS: dict[str, Callable[[Problem, int], np.ndarray]] = {
    "uniform": uniform,
    "k-means": kmeans_centres,
    "pivoted Cholesky": pivoted_cholesky,
    "signatures, sharpen=0": signatures(sharpen=0, populate="leaf"),
    "signatures": signatures(populate="leaf"),
    "signatures, nearest": signatures(populate="nearest", refine=5),
}


def feature_blocks(problem: Problem, X: np.ndarray, landmarks: np.ndarray) -> Iterator[np.ndarray]:
    S = landmarks.astype(np.float64)
    root, _ = inverse_root(rbf_kernel(S, gamma=problem.gamma))
    for start in range(0, len(X), BLOCK):
        yield rbf_kernel(X[start : start + BLOCK].astype(np.float64), S, gamma=problem.gamma) @ root


def features(problem: Problem, X: np.ndarray, landmarks: np.ndarray) -> np.ndarray:
    return np.concatenate(list(feature_blocks(problem, X, landmarks)))


def ridge(problem: Problem, landmarks: np.ndarray, n_rows: int) -> np.ndarray:
    """Return the weights of ridge regression on the features of the first rows, added up block by block."""
    targets = problem.targets()[:n_rows]
    gram, against = None, 0.0
    start = 0
    for Z in feature_blocks(problem, problem.X[:n_rows], landmarks):
        part = dsyrk(1.0, Z.T)
        gram = part if gram is None else gram + part
        against = against + Z.T @ targets[start : start + len(Z)]
        start += len(Z)
    assert gram is not None
    gram[np.diag_indices_from(gram)] += problem.alpha
    return cho_solve(cho_factor(gram), against)


def exact_predictions(problem: Problem, n_rows: int) -> np.ndarray:
    X = problem.X[:n_rows].astype(np.float64)
    K = rbf_kernel(X, gamma=problem.gamma)
    K[np.diag_indices_from(K)] += problem.alpha
    weights = cho_solve(cho_factor(K), problem.targets()[:n_rows])
    return rbf_kernel(problem.X_test.astype(np.float64), X, gamma=problem.gamma) @ weights


def measure(problem: Problem, counts: list[int], n_exact: int) -> list[list[str]]:
    some = problem.X_test[:KERNEL_ROWS].astype(np.float64)
    K = rbf_kernel(some, gamma=problem.gamma)
    exact = exact_predictions(problem, n_exact)
    rows = []
    for count in counts:
        for name, choose in METHODS.items():
            landmarks, seconds = timed(lambda choose=choose, count=count: choose(problem, count))
            Z = features(problem, problem.X_test, landmarks)
            kernel_error = np.linalg.norm(Z[: len(some)] @ Z[: len(some)].T - K) / np.linalg.norm(K)
            change = np.linalg.norm(Z @ ridge(problem, landmarks, n_exact) - exact) / np.linalg.norm(exact)
            error = problem.error(Z @ ridge(problem, landmarks, len(problem.X)))
            numbers = [f"{kernel_error:.4f}", f"{change:.3f}", f"{error:.4f}", f"{seconds:.2f}"]
            rows.append([name, str(count), *numbers])
            print(problem.name, *rows[-1], sep="  ", flush=True)
    return rows


def cost_by_rows(sizes: list[int], counts: list[int]) -> str:
    """Return the cost of K-means and of signatures as rows grow, on the first set, and the ratio."""
    problem = problems(sizes[-1], 1000)[0]
    head = ["rows", "count", "k-means, CPU s", "signatures, nearest, CPU s", "ratio"]
    rows = []
    for size in sizes:
        part = replace(problem, X=problem.X[:size])
        for count in counts:
            _, rival = timed(lambda part=part, count=count: METHODS["k-means"](part, count))
            _, ours = timed(lambda part=part, count=count: METHODS["signatures, nearest"](part, count))
            rows.append([f"{size:,}", str(count), f"{rival:.2f}", f"{ours:.2f}", f"1/{rival / ours:.0f}"])
            print(problem.name, *rows[-1], sep="  ", flush=True)
    return f"**Cost of landmarks by rows, {problem.name}**\n\n{table(head, rows)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows and landmarks, in a minute")
    parser.add_argument("--write", action="store_true", help="put the tables into the documentation")
    options = parser.parse_args()
    by = machine()
    counts = [50, 200] if options.quick else [50, 100, 200, 500, 1000, 2000]
    n_rows, n_test, n_exact = (5_000, 2_000, 2_000) if options.quick else (20_000, 5_000, 5_000)
    text = [f"At most {n_rows:,} training and {n_test:,} test rows; change in prediction on {n_exact:,} training rows."]
    head = [
        "landmarks",
        "count",
        "kernel error",
        "change in prediction",
        "test error",
        "CPU seconds to choose",
    ]
    for problem in problems(n_rows, n_test):
        text += [
            f"**{problem.name}** ({len(problem.X):,} x {problem.X.shape[1]}, gamma {problem.gamma})",
            table(head, measure(problem, counts, n_exact)),
        ]
        if options.write:  # after each set: a run that is cut short keeps what it has measured
            write_page("landmarks", TITLE, text, by, " --write")
    sizes, cost_counts = ([5_000, 10_000], [200]) if options.quick else ([20_000, 60_000, 200_000], [500, 1000])
    text.append(cost_by_rows(sizes, cost_counts))
    if options.write:
        write_page("landmarks", TITLE, text, by, " --write")


if __name__ == "__main__":
    main()
