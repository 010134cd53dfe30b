"""DC2 against the full estimator, and against as many random rows: losses, gains, and how many signatures to take.

Run ``python benchmarks/bench_learn.py [--quick] [--write]``; --write puts the table and the plot into docs/measured/.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from common import MEASURED, machine, table, write_page
from learning_data import Problem, problems, timed
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC

from dc2 import DC2, Compressor

TITLE = "DC2 against the full estimator"
PLOT = MEASURED / "learn.svg"
ORANGE, GREEN, BLUE, GREY = "#d55e00", "#009e73", "#0072b2", "#555555"


def estimator_for(problem: Problem) -> Any:
    if problem.classes:
        return SVC(C=10.0, gamma=problem.gamma)
    return KernelRidge(kernel="rbf", gamma=problem.gamma, alpha=problem.alpha)


def on_signatures(problem: Problem, count: int) -> DC2:
    compressor = Compressor(count, populate="nearest", refine=5, n_jobs=1, random_state=0)
    return DC2(estimator_for(problem), compressor=compressor)


def error_and_seconds(model: Any, problem: Problem, n_rows: int) -> tuple[float, float]:
    """Return the test error (wrong classes, or variance not explained) and the CPU seconds of fit."""
    fitted, seconds = timed(lambda: clone(model).fit(problem.X[:n_rows], problem.y[:n_rows]))
    return 1.0 - fitted.score(problem.X_test, problem.y_test), seconds


def against_full(problem: Problem, sizes: list[int], most_full: int, counts: list[int]) -> list[list[str]]:
    rows = []
    for n_rows in sorted({min(size, len(problem.X)) for size in sizes}):
        full = error_and_seconds(estimator_for(problem), problem, n_rows) if n_rows <= most_full else None
        cells = [f"{full[0]:.4f}", f"{full[1]:.1f}"] if full else ["-", "-"]
        for count in counts:
            error, seconds = error_and_seconds(on_signatures(problem, count), problem, n_rows)
            cells += [f"{error:.4f}", f"{seconds:.1f}"]
        rows.append([f"{n_rows:,}", *cells])
        print(problem.name, *rows[-1], sep="  ", flush=True)
    return rows


def gentler(problem: Problem, rows_per_signature: float) -> Any:
    """Return the estimator with regularisation as strong on weighted signatures as on ones that count one each."""
    estimator = estimator_for(problem)
    if problem.classes:
        return estimator.set_params(C=estimator.C / rows_per_signature)
    return estimator.set_params(alpha=estimator.alpha * rows_per_signature)


def by_count(problem: Problem, counts: list[int], most_full: int) -> dict[str, Any]:
    """Return test errors by number of signatures, of as many random rows, and of the full estimator."""
    curves: dict[str, Any] = {"signatures": [], "gentler": [], "random rows": []}
    for count in counts:
        model = on_signatures(problem, count).fit(problem.X, problem.y)
        curves["signatures"].append(1.0 - model.score(problem.X_test, problem.y_test))
        model.estimator_ = gentler(problem, len(problem.X) / count).fit(
            model.signatures_.points, model.signature_target_, sample_weight=model.signatures_.weights
        )
        curves["gentler"].append(1.0 - model.score(problem.X_test, problem.y_test))
        curves["random rows"].append(error_and_seconds(estimator_for(problem), problem, count)[0])
        print(
            problem.name,
            count,
            *(f"{curve}: {errors[-1]:.4f}" for curve, errors in curves.items()),
            flush=True,
        )
    curves["full"] = error_and_seconds(estimator_for(problem), problem, most_full)[0]
    return curves


def draw(found: list[tuple[Problem, dict[str, Any]]], counts: list[int], most_full: int) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(found), figsize=(4.0 * len(found), 3.4), layout="constrained")
    for axis, (problem, curves) in zip(np.atleast_1d(axes), found, strict=True):
        axis.loglog(counts, curves["random rows"], "s--", color=BLUE, ms=4, label="as many random rows")
        axis.loglog(counts, curves["signatures"], "o-", color=ORANGE, ms=4, label=f"DC2 on {len(problem.X):,} rows")
        axis.loglog(
            counts,
            curves["gentler"],
            "^-",
            color=GREEN,
            ms=4,
            label="C or 1/alpha by rows per signature",
        )
        axis.axhline(curves["full"], color=GREY, lw=1, ls=":", label=f"full, {most_full:,} rows")
        axis.set_title(f"{problem.name}, {type(estimator_for(problem)).__name__}", fontsize=10)
        axis.set_xlabel("signatures")
        axis.set_xticks(counts, [str(count) for count in counts], minor=False, fontsize=7)
        axis.minorticks_off()
        ticks = [t for t in (0.02, 0.05, 0.1, 0.2, 0.3, 0.5) if axis.get_ylim()[0] < t < axis.get_ylim()[1]]
        axis.set_yticks(ticks, [f"{tick:.0%}" for tick in ticks])
        axis.grid(alpha=0.3)
        axis.legend(fontsize=7, frameon=False)
    np.atleast_1d(axes)[0].set_ylabel("test error, or variance not explained")
    figure.savefig(PLOT, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows and signatures, in a minute")
    parser.add_argument("--write", action="store_true", help="put table and plot into the documentation")
    options = parser.parse_args()
    by = machine()
    sizes = [1_000, 4_000] if options.quick else [2_000, 10_000, 50_000, 500_000]
    most_full = 1_000 if options.quick else 10_000
    counts = [50, 200] if options.quick else [50, 100, 200, 500, 1000, 2000, 4000]
    shown = counts[-1:] if options.quick else [500, 2000]
    text, found = [], []
    for problem in problems(sizes[-1], 5_000):
        name = type(estimator_for(problem)).__name__
        head = ["rows", f"{name}: error", "CPU s"]
        head += [cell for count in shown for cell in (f"DC2, {count} signatures: error", "CPU s")]
        found.append((problem, by_count(problem, counts, most_full)))
        rows = against_full(problem, sizes, most_full, shown)
        text += [f"**{problem.name}**, {name}", table(head, rows)]
    if options.write:
        draw(found, counts, most_full)
        picture = f"![Test error by number of signatures]({PLOT.name})"
        write_page("learn", TITLE, [*text, picture], by, " --write")


if __name__ == "__main__":
    main()
