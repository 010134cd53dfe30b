"""Whole fits with ever more threads: which stages shrink."""

from __future__ import annotations

import os
import warnings

from common import Report, best_of, ratio

from dc2 import DC2Clustering
from dc2.datasets import make_rank
from dc2.errors import ClustersDoNotShowWarning

LEAST = 9  # times as fast on 16 cores


def main() -> None:
    warnings.simplefilter("ignore", ClustersDoNotShowWarning)  # rank-4 rows have no clusters
    report = Report("threads", "Threads")
    X = make_rank(200_000 if report.quick else 16_000_000)
    cores = os.cpu_count() or 1
    rows, alone = [], 0.0
    for threads in [n for n in (1, 2, 4, 8, 16, 32, 64) if n <= cores]:
        fit = best_of(lambda threads=threads: DC2Clustering(2, random_state=0, n_jobs=threads).fit(X), 2)
        alone = alone or fit.seconds
        stages = fit.result.stage_seconds_
        rows.append(
            [
                str(threads), f"{fit.seconds:.2f}",
                *(f"{stages[stage]:.2f}" for stage in ("divide", "compress", "conquer")), ratio(alone / fit.seconds),
            ]
        )  # fmt: skip
        if threads == 16:
            faster = alone / fit.seconds
            report.goal("16 threads against one", f"{LEAST}x", ratio(faster), faster >= LEAST)
    report.say(f"`DC2Clustering(2)` on {len(X):,} x {X.shape[1]} rows near a four-dimensional plane, in memory.")
    report.table("Fit by threads", ["threads", "seconds", "divide", "compress", "conquer", "against one"], rows)
    report.write()


if __name__ == "__main__":
    main()
