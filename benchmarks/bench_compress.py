"""Compression: against a pass over the memory, and its distortion against K-means."""

from __future__ import annotations

import os

import numpy as np
from common import Report, Timing, best_of, in_new_process, ratio, with_memory
from public_data import load_covertype, load_mnist

from dc2 import Compressor
from dc2.cluster.fit import StageClock
from dc2.datasets import make_rank

N_SIGNATURES = 1024
KMEANS_STEPS = 25
LEAF, NEAREST = {"populate": "leaf"}, {"populate": "nearest", "refine": 5}
FEWER_STEPS = {"populate": "nearest", "sharpen": 2, "refine": 2}  # the default
DISTORTION_VARIANTS = [
    *(populate | {"sharpen": sharpen} for populate in (LEAF, NEAREST) for sharpen in (0, 2, 4)),
    FEWER_STEPS,
]
# The goals of some variants: at most how much worse than K-means, and in what fraction of its time.
DISTORTION_GOALS = [
    (LEAF | {"sharpen": 2}, 1.5, 20),
    (NEAREST | {"sharpen": 2}, 1.15, 10),
    (FEWER_STEPS, 1.15, 10),
]


def compressed(X: np.ndarray, **parameters: object) -> Compressor:
    """Compress to 1024 signatures."""
    return Compressor(N_SIGNATURES, random_state=0, **parameters).fit(X)


def stages(X: np.ndarray, **parameters: object) -> dict[str, float]:
    """Compress and return the seconds of each stage."""
    clock = StageClock(verbose=0)
    clock.enter("divide")
    compressed(X, verbose=clock, **parameters)
    clock.stop()
    return clock.seconds


def against_memory(X: np.ndarray, name: str, runs: int) -> tuple[list[list[str]], float]:
    """Time compression and two passes over the memory; return rows for the table, and the ratio for the goal."""
    columns = best_of(lambda: X.sum(axis=0), runs)
    plain = best_of(lambda: X.ravel().sum(), runs)
    rows = [
        _row(name, "X.ravel().sum()", plain, columns, plain),
        _row(name, "X.sum(axis=0)", columns, columns, plain),
    ]
    for setting in (LEAF, NEAREST):
        timing = best_of(lambda setting=setting: stages(X, **setting), runs)
        what = ", ".join(["compress", *(f"{name}={value!r}" for name, value in setting.items())])
        rows.append(_row(name, what, timing, columns, plain, timing.result))
        print(rows[-1], flush=True)
        if setting is LEAF:
            reached = timing.seconds / columns.seconds
    return rows, reached


def _row(
    name: str,
    what: str,
    timing: Timing,
    columns: Timing,
    plain: Timing,
    seconds_of: dict[str, float] | None = None,
) -> list[str]:
    parts = ["", ""] if seconds_of is None else [f"{seconds_of[part]:.2f}" for part in ("divide", "compress")]
    relative = [ratio(timing.seconds / limit.seconds) for limit in (columns, plain)]
    return [name, what, f"{timing.seconds:.3f}", f"{timing.cpu_seconds:.3f}", *parts, *relative]


def memory_beyond(n: int, n_features: int, rank: int) -> tuple[int, int]:
    """Return the size of X and the memory that compression needed besides, in bytes."""
    X = make_rank(n, n_features=n_features, rank=rank)
    _, memory = with_memory(lambda: compressed(X, **LEAF))
    return X.nbytes, memory.beyond


def kmeans(X: np.ndarray) -> float:
    """Return the distortion of K-means with 1024 centres, by faiss: 25 steps over all rows."""
    import faiss

    model = faiss.Kmeans(X.shape[1], N_SIGNATURES, niter=KMEANS_STEPS, max_points_per_centroid=len(X), seed=0)
    model.train(X)
    squares, _ = model.index.search(X, 1)
    return float(squares.mean(dtype=np.float64))


def distortions(name: str, X: np.ndarray, report: Report) -> list[list[str]]:
    """Compare distortion and time with K-means, for several sharpening steps and both ways to populate."""
    variance = float(X.var(axis=0, dtype=np.float64).sum())
    rival = best_of(lambda: kmeans(X), 1)
    rows = [[name, "K-means (faiss)", f"{rival.result / variance:.3f}", "", f"{rival.seconds:.2f}", ""]]
    for variant in DISTORTION_VARIANTS:
        fit = best_of(lambda variant=variant: compressed(X, **variant), 2)
        worse = fit.result.distortion_ / rival.result
        share = fit.seconds / rival.seconds
        what = ", ".join(f"{parameter}={value!r}" for parameter, value in variant.items())
        rows.append(
            [
                name, what, f"{fit.result.distortion_ / variance:.3f}", ratio(worse), f"{fit.seconds:.2f}",
                f"1/{1 / share:.0f}",
            ]
        )  # fmt: skip
        print(rows[-1], flush=True)
        for _, reach, part in (goal for goal in DISTORTION_GOALS if goal[0] == variant):
            report.goal(
                f"distortion at {N_SIGNATURES}, {name}, {what}",
                f"<= {reach} x K-means at <= 1/{part} of its time",
                f"{ratio(worse)} at 1/{1 / share:.0f}",
                worse <= reach and share <= 1 / part,
            )
    return rows


def main() -> None:
    report = Report("compress", "Compression")
    n, n_wide, runs = (500_000, 20_000, 2) if report.quick else (8_000_000, 1_000_000, 5)

    X = make_rank(n)
    rows, reached = against_memory(X, f"{n:,} x 18", runs)
    report.goal(f"compress {n:,} x 18 to {N_SIGNATURES}", "<= 4 x `X.sum(axis=0)`", ratio(reached), reached <= 4)
    to_plain = float(rows[2][-1].rstrip("x"))
    report.goal("the same, moonshot", "<= 5 x `X.ravel().sum()`", ratio(to_plain), to_plain <= 5)
    rows += against_memory(make_rank(n_wide, rank=16, n_features=768), f"{n_wide:,} x 768", min(runs, 3))[0]
    report.say(
        "Rows near a plane of 4 dimensions (768 columns: of 16) plus noise, float32. The limit is a pass over the "
        "memory, `X.ravel().sum()`; `X.sum(axis=0)` is what NumPy needs for something of the same shape of result."
    )
    report.table(
        f"{N_SIGNATURES} signatures against passes over the memory",
        ["rows", "what", "seconds", "CPU, s", "divide", "compress", "to X.sum(axis=0)", "to X.ravel().sum()"],
        rows,
    )

    for size, width, rank in ((n, 18, 4), (n_wide, 768, 16)):
        sizes = in_new_process(memory_beyond, size, width, rank)
        report.memory_goal(f"compress, {size:,} x {width}", *sizes)

    sets = {"rank 4": X}
    if os.environ.get("DC2_DATA"):
        few = 20_000 if report.quick else None
        sets["Cover Type"] = np.ascontiguousarray(load_covertype().data[:few], np.float32)
        sets["MNIST"] = np.ascontiguousarray(load_mnist().data[:few], np.float32)
    else:
        report.say("DC2_DATA is not set: Cover Type and MNIST were left out.")
    rows = []
    for name, X in sets.items():
        rows += distortions(f"{name}, {len(X):,} x {X.shape[1]}", X, report)
    report.table(
        f"Distortion at {N_SIGNATURES} signatures, as a share of the variance; K-means: {KMEANS_STEPS} steps over "
        "all rows",
        ["rows", "what", "distortion", "to K-means", "seconds", "time to K-means"],
        rows,
    )
    report.write()


if __name__ == "__main__":
    main()
