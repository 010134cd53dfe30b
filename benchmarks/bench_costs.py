"""How cost grows: time and memory of a fit against rows, columns, signatures and threads, with tables and plots."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
from common import ROOT, Report, in_new_process, megabytes, with_memory

from dc2 import DC2Clustering
from dc2.errors import ClustersDoNotShowWarning

IMAGES = ROOT / "docs" / "images"
STAGES = ("divide", "compress", "conquer", "populate")
ROWS = (1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
COLUMNS = (2, 5, 20, 100, 500, 2000)
SIGNATURES = (1000, 4000, 16_000, 64_000, 100_000)


@dataclass(frozen=True)
class Cost:
    """The time and memory of one fit."""

    seconds: float
    stages: tuple[float, ...]
    beyond: int


def blobs(n: int, d: int) -> np.ndarray:
    """Return ten blobs, float32, made block by block."""
    rng = np.random.default_rng(0)
    centres = rng.normal(0, 4, (10, d)).astype(np.float32)
    X = np.empty((n, d), np.float32)
    for start in range(0, n, 1_000_000):
        part = X[start : start + 1_000_000]
        rng.standard_normal(out=part, dtype=np.float32)
        part += centres[rng.integers(0, 10, len(part))]
    return X


def cost_of(n: int, d: int, n_signatures: int | str, n_jobs: int | None) -> Cost:
    """Fit blobs in this process, which does nothing else."""
    X = blobs(n, d)
    model = DC2Clustering(10, n_signatures=n_signatures, n_jobs=n_jobs, random_state=0)
    warnings.simplefilter("ignore", ClustersDoNotShowWarning)  # however many blobs show
    model.fit(X[:2000])  # loads what is imported late
    start = time.perf_counter()
    _, memory = with_memory(lambda: model.fit(X))
    seconds = time.perf_counter() - start
    return Cost(seconds, tuple(model.stage_seconds_[stage] for stage in STAGES), memory.beyond)


def grow(report: Report, what: str, values: Sequence[int], settings: Sequence[tuple]) -> None:
    """Measure one row of fits, and show them as a table and a plot."""
    costs = [in_new_process(cost_of, *setting) for setting in settings]
    rows = [
        [
            f"{value:,}",
            f"{cost.seconds:.2f}",
            *(f"{part:.2f}" for part in cost.stages),
            megabytes(cost.beyond),
        ]
        for value, cost in zip(values, costs, strict=True)
    ]
    report.table(f"Time and memory against {what}", [what, "seconds", *STAGES, "memory beyond rows"], rows)
    if not report.quick:
        _plot(what, values, costs)
        report.say(f"![Seconds and memory of a fit against {what}](../images/costs-{what}.svg)")


def _plot(what: str, values: Sequence[int], costs: Sequence[Cost]) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    for number, stage in enumerate(STAGES[:3]):
        left.plot(values, [max(cost.stages[number], 1e-3) for cost in costs], "o-", label=stage)
    left.plot(values, [cost.seconds for cost in costs], "k.--", label="whole fit")
    left.set(xscale="log", yscale="log", xlabel=what, ylabel="seconds")
    left.legend(frameon=False)
    right.plot(values, [max(cost.beyond, 2**20) / 2**20 for cost in costs], "o-")
    right.set(xscale="log", yscale="log", xlabel=what, ylabel="MB beyond the rows")
    figure.savefig(IMAGES / f"costs-{what}.svg", metadata={"Date": None})
    plt.close(figure)


def main() -> None:
    report = Report("costs", "How cost grows")
    rows = ROWS[:3] if report.quick else ROWS
    columns = COLUMNS[:3] if report.quick else COLUMNS
    signatures = SIGNATURES[:2] if report.quick else SIGNATURES
    n = 20_000 if report.quick else 200_000
    grow(report, "rows", rows, [(value, 5, "auto", None) for value in rows])
    grow(report, "columns", columns, [(n, value, "auto", None) for value in columns])
    grow(report, "signatures", signatures, [(10 * n, 5, value, None) for value in signatures])
    grow(report, "threads", (1, 2), [(10 * n, 18, "auto", value) for value in (1, 2)])
    report.write()


if __name__ == "__main__":
    main()
