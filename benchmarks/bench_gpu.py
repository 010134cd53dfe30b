"""A graphics card against a pass over its memory, flash-kmeans, torch and the processor beside it.

Writes `docs/measured/gpu.md`. `python benchmarks/bench_gpu.py`, where a CUDA device, CuPy, torch and flash-kmeans are.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import cupy as cp
import cupyx
import numpy as np
from common import table, write_page

import dc2
from dc2 import Compressor, DC2Clustering
from dc2.compress.signatures import Sums, grids
from dc2.core.gpu import device_scan as scan
from dc2.core.gpu.device import own_device
from dc2.core.reference import Centres, NearestOut, SumsOut

N_SIGNATURES = 1000
RUNS = 3
NARROW, WIDE = (64_000_000, 18, 4), (10_000_000, 768, 16)  # rows, columns, rank
STREAMED_ROWS = 32_000_000


def make_rank_on_card(n_rows: int, width: int, rank: int) -> cp.ndarray:
    """Return rows near a plane, like those of `dc2.datasets.make_rank`, but on the card."""
    rng = cp.random.default_rng(0)
    basis = rng.standard_normal((rank, width), dtype=np.float32)
    X = cp.empty((n_rows, width), np.float32)
    step = 2**26 // width
    for start in range(0, n_rows, step):
        part = X[start : start + step]
        part[:] = np.float32(0.2) * rng.standard_normal(part.shape, dtype=np.float32)
        part += rng.standard_normal((len(part), rank), dtype=np.float32) @ basis
    return X


def best(work: Callable[[], Any], runs: int = RUNS) -> float:
    """Return the seconds of the fastest of several runs, after one to warm up."""
    work()
    seconds = []
    for _ in range(runs):
        cp.cuda.Device().synchronize()
        start = time.perf_counter()
        work()
        cp.cuda.Device().synchronize()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def one_pass(X: cp.ndarray, compressor: Compressor) -> float:
    """Return the seconds of routing and adding up alone, with a tree that is already on the card."""
    router, (n_rows, width) = compressor.router_, X.shape
    sums = Sums.zeros(*router.centres.shape)
    out = SumsOut(grids(np.full(width, 8.0), float(n_rows)), *sums)
    centres = Centres(router.centres, router.neighbor_lists, router.gaps, router.beam)
    job = scan._Scan(own_device(), router.trees[0].arrays, centres, out)
    found, bad = NearestOut(cp.empty(n_rows, np.int32)), cp.zeros(1, np.uint64)
    return best(lambda: job.piece(X, None, found, bad))


def product_and_argmin(X: cp.ndarray, centres: np.ndarray) -> float:
    """Return the seconds of torch's float32 product and argmin: a stand-in for K-means' assignment, not cuML."""
    import torch

    rows, points = torch.from_dlpack(X), torch.from_numpy(centres).cuda()
    squares = (points * points).sum(1)

    def assign() -> None:
        for start in range(0, len(rows), 2**20):
            torch.argmin(squares - 2 * (rows[start : start + 2**20] @ points.T), dim=1)

    return best(assign)


def flash_kmeans(X: cp.ndarray) -> float:
    """Return the seconds of one iteration of flash-kmeans: all rows assigned, all centres moved."""
    import torch
    from flash_kmeans import batch_kmeans_Euclid

    rows = torch.from_dlpack(X)[None]
    centres = rows[:, torch.randperm(len(X), device=rows.device)[:N_SIGNATURES]].contiguous()
    return best(lambda: batch_kmeans_Euclid(rows, N_SIGNATURES, max_iters=1, tol=-1.0, init_centroids=centres.clone()))


def milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.1f} ms"


def compression(shape: tuple[int, int, int], populates: tuple[str, ...]) -> list[list[str]]:
    n_rows, width, _ = shape
    X, name = make_rank_on_card(*shape), f"{n_rows:,} x {width}"
    rows = [[name, "a pass over the memory, `X.sum()`", milliseconds(best(lambda: X.sum()))]]
    for populate in populates:
        how: dict[str, Any] = {"n_signatures": N_SIGNATURES, "populate": populate, "random_state": 0}
        fitted = Compressor(**how).fit(X)
        rows += [
            [name, f"route and add up, {populate}", milliseconds(one_pass(X, fitted))],
            [
                name,
                f"`Compressor.fit`, {populate}",
                milliseconds(best(lambda how=how: Compressor(**how).fit(X))),
            ],
            [
                name,
                f"`Compressor.apply`, {populate}",
                milliseconds(best(lambda fitted=fitted: fitted.apply(X))),
            ],
        ]
        print(rows[-3:], flush=True)
    torch_seconds = product_and_argmin(X, fitted.signatures_.points)
    del fitted
    rows.append([name, "torch: product with 1000 centres and argmin, float32", milliseconds(torch_seconds)])
    rows.append([name, "flash-kmeans: one iteration with 1000 centres, TF32", milliseconds(flash_kmeans(X))])
    return [*rows, *whole_fit(X, name)]


def whole_fit(X: cp.ndarray, name: str) -> list[list[str]]:
    """Time a fit that chooses everything itself, the second of two, and its stages."""
    start, clusterer = 0.0, DC2Clustering(random_state=0)
    for _ in range(2):
        cp.cuda.Device().synchronize()
        start = time.perf_counter()
        clusterer.fit(X)
    seconds = time.perf_counter() - start
    rows = [[name, "`DC2Clustering.fit`, number of clusters not given", milliseconds(seconds)]]
    spent = clusterer._record.stage_seconds
    rows += [[name, f"of which {stage}", milliseconds(spent[stage])] for stage in ("divide", "compress", "conquer")]
    print(rows, flush=True)
    return rows


def streamed() -> list[list[str]]:
    """Time rows that lie on the host: through the card, the copy alone, and the processor."""
    X = cp.asnumpy(make_rank_on_card(STREAMED_ROWS, *NARROW[1:]))
    name, sizes = f"{len(X):,} x {X.shape[1]} on the host", X.nbytes / 1e9
    pinned = cupyx.empty_pinned(X.shape, np.float32)
    pinned[:] = X
    there = cp.empty(X[: 2**21].shape, np.float32)
    rows = []
    for kind, some in (("ordinary", X[: 2**21]), ("pinned", pinned[: 2**21])):
        speed = some.nbytes / 1e9 / best(lambda some=some: there.set(some))
        rows.append([name, f"the copy alone, from {kind} memory", f"{speed:.1f} GB/s"])
    for device, X_there, where in (
        ("cuda", X, "through the card, from ordinary memory"),
        ("cuda", pinned, "through the card, from pinned memory"),
        (None, X, f"on {os.cpu_count()} cores"),
    ):
        fitted = Compressor(N_SIGNATURES, populate="leaf", random_state=0, device=device).fit(X_there)
        seconds = best(lambda fitted=fitted, X_there=X_there: fitted.apply(X_there))
        rows.append([name, f"`Compressor.apply`, leaf, {where}", f"{sizes / seconds:.1f} GB/s"])
        seconds = best(lambda fitted=fitted, X_there=X_there: fitted.fit(X_there), 1)
        rows.append([name, f"`Compressor.fit`, leaf, {where}", milliseconds(seconds)])
        print(rows[-2:], flush=True)
    return rows


def main() -> None:
    rows = []
    for shape, populates in ((WIDE, ("nearest",)), (NARROW, ("leaf", "nearest"))):
        rows += compression(shape, populates)
        cp.get_default_memory_pool().free_all_blocks()
    rows += streamed()
    card = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    by = (
        f"One {card}; CuPy {cp.__version__}, NumPy {np.__version__}, {os.cpu_count()} cores beside it; "
        f"dc2 {dc2.__version__}."
    )
    about = (
        f"Rows near a plane plus noise, float32, on the card unless said otherwise; {N_SIGNATURES} signatures; the "
        f"best of {RUNS} runs after one to warm up; of whole fits by `DC2Clustering` the second of two. "
        "cuML was not there to compare with. torch's product and argmin is the assignment step of K-means in exact "
        "float32; flash-kmeans multiplies in TF32, so near ties may go to another centre, and adds its centres up."
    )
    write_page("gpu", "On the card, measured", [about, table(["rows", "what", "time"], rows)], by)


if __name__ == "__main__":
    main()
