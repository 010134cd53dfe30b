"""KernelClassifier beside Nystroem with ridge regression, HistGradientBoosting and xRFM, with nothing set.

Run ``python benchmarks/bench_kernel_machines.py [NAME ...] [--methods METHOD ...] [--parquet ROWS] [--cuda ROWS]
[--write]``; --write puts the tables into docs/measured/. What was measured is kept, so sets, methods and machines may
be measured one at a time; NAME "none" measures no set.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import MB, MEASURED, in_new_process, machine, table, with_memory, write_page
from kernel_data import SPLITS, Split
from pyarrow.parquet import ParquetFile
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

from dc2 import KernelClassifier, KernelRegressor

TITLE = "Kernel machines"
STORE = MEASURED / "kernel-machines.json"
FACTORS = (0.25, 0.5, 1.0, 2.0)
RIDGES = (1e-3, 1e-1, 1e1)
SEARCHED = 10_000
PARQUET, CUDA = "Parquet", "CUDA"
READS, ROWS_PER_FILE = 20, 500_000
MOST_CENTRES = 2000
"""More centres would not fit beside all features of Cover Type in memory: Nystroem makes them all at once."""


def ours(split: Split) -> tuple[Any, float, dict[str, Any]]:
    start = time.process_time()
    model = KernelClassifier(random_state=0).fit(split.X, split.y)
    seconds = time.process_time() - start
    chosen = {
        "kernel": model.kernel_, "metric": model.metric_, "n_centres": model.n_centres_, "n_parts": model.n_parts_
    }  # fmt: skip
    return model, seconds, chosen


def columns(split: Split) -> Any:
    """As people prepare columns: numbers standardised, words one-hot; pixels as they are."""
    if hasattr(split.X, "columns"):
        words = make_column_selector(dtype_include=object)
        encoder = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=50, sparse_output=False)
        return make_column_transformer((encoder, words), remainder=StandardScaler())
    return "passthrough" if split.name in ("MNIST", "digits") else StandardScaler()


def nystroem(split: Split, n_centres: int) -> tuple[Any, float]:
    """Ridge classification on as many uniform centres; bandwidth and ridge from a quarter of 10,000 rows held out."""
    start = time.process_time()
    count = min(n_centres, MOST_CENTRES, len(split.X))
    prepare = columns(split)
    Z = split.X if prepare == "passthrough" else prepare.fit_transform(split.X)
    Z = np.asarray(Z, np.float32)
    some = np.random.default_rng(0).permutation(len(Z))[:SEARCHED]
    taught, held = train_test_split(some, test_size=0.25, random_state=0)
    few = Z[some[:500]].astype(float)
    median = np.median([((few - row) ** 2).sum(axis=1) for row in few])

    def machine_at(gamma: float, ridge: float, m: int) -> Any:
        return make_pipeline(Nystroem(gamma=gamma, n_components=m, random_state=0), RidgeClassifier(alpha=ridge))

    trials = []
    for factor in FACTORS:
        gamma = 1 / (2 * factor**2 * median)
        for ridge in RIDGES:
            model = machine_at(gamma, ridge, min(1000, len(taught))).fit(Z[taught], split.y[taught])
            trials.append((model.score(Z[held], split.y[held]), gamma, ridge))
    _, gamma, ridge = max(trials)
    model = machine_at(gamma, ridge, count).fit(Z, split.y)
    return (model if prepare == "passthrough" else make_pipeline(prepare, model)), time.process_time() - start


def boosting(split: Split) -> tuple[Any, float]:
    start = time.process_time()
    kinds = {"categorical_features": "from_dtype"} if hasattr(split.X, "columns") else {}
    model = HistGradientBoostingClassifier(random_state=0, **kinds)
    X = _categories(split.X) if kinds else split.X
    model.fit(X, split.y)
    return model, time.process_time() - start


def _categories(X: Any) -> Any:
    return X.astype(dict.fromkeys(X.select_dtypes(include="object").columns, "category"))


def xrfm(split: Split) -> tuple[Any, float]:
    """Fit with a fifth of the rows held out for its own choices."""
    import torch  # of the environment of rivals, as the next
    from xrfm import xRFM

    torch.set_num_threads(1)
    start = time.process_time()
    prepare = columns(split)
    X = split.X if prepare == "passthrough" else prepare.fit_transform(split.X)
    X = np.asarray(X, np.float32)
    order = np.random.default_rng(0).permutation(len(X))
    train, held = order[len(X) // 5 :], order[: len(X) // 5]
    model = xRFM(device="cpu", random_state=0, verbose=False)
    model.fit(X[train], split.y[train], X[held], split.y[held])
    seconds = time.process_time() - start

    class Predictor:
        def score(self, X: Any, y: np.ndarray) -> float:
            rows = np.asarray(X if prepare == "passthrough" else prepare.transform(X), np.float32)
            return float((np.asarray(model.predict(rows)).ravel() == y).mean())

    return Predictor(), seconds


RIVALS: dict[str, Callable[..., tuple[Any, float]]] = {
    "Nystroem + ridge": nystroem, "HistGradientBoosting": boosting, "xRFM": xrfm
}  # fmt: skip
METHODS = ("KernelClassifier", *RIVALS)


def measure(split: Split, methods: Sequence[str], one: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what is measured so far, after each method; `one` was measured before."""
    one |= {"name": split.name, "size": [len(split.X), split.X.shape[1]]}
    found: dict[str, list[float]] = one.setdefault("found", {})
    if "KernelClassifier" in methods:
        model, seconds, one["chosen"] = ours(split)
        n_test = len(split.y_test)
        start = time.process_time()
        found["KernelClassifier"] = [float(model.score(split.X_test, split.y_test)), seconds]
        one["answering"] = (time.process_time() - start) / n_test
        shares = model.predict_proba(split.X_test)
        one["date"] = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
        one["log loss"] = float(-np.log(np.maximum(shares[np.arange(n_test), split.y_test], 1e-12)).mean())
        yield one
    for name in [name for name in RIVALS if name in methods]:
        asked = (split, one["chosen"]["n_centres"]) if name == "Nystroem + ridge" else (split,)
        rival, seconds = RIVALS[name](*asked)
        table = hasattr(split.X, "columns") and name == "HistGradientBoosting"
        X_test = _categories(split.X_test) if table else split.X_test
        found[name] = [float(rival.score(X_test, split.y_test)), seconds]
        yield one


def target(X: Any, noise: Any) -> Any:
    """Return what the rows of the tests of size mean; of NumPy or CuPy."""
    return np.sin(X[:, 0]) * X[:, 1] + X[:, 2] + 0.1 * noise


def on_card(n_rows: int) -> dict[str, Any]:
    """Fit 2000 centres to rows on a graphics card, after a fit of a few that compiles; return times and the error."""
    import cupy as cp

    rng = cp.random.default_rng(0)
    X = cp.empty((n_rows, 18), cp.float32)
    for start in range(0, n_rows, ROWS_PER_FILE):
        X[start : start + ROWS_PER_FILE] = rng.standard_normal(X[start : start + ROWS_PER_FILE].shape, cp.float32)
    y = cp.asnumpy(target(X, rng.standard_normal(n_rows, cp.float32)))
    model = KernelRegressor(n_centres=2000, n_parts=1, random_state=0)
    model.fit(X[:100_000], y[:100_000])
    start, clock = time.process_time(), time.perf_counter()
    model.fit(X, y)
    seconds = [time.process_time() - start, time.perf_counter() - clock]
    X_new = np.random.default_rng(1).normal(size=(20_000, 18)).astype(np.float32)
    score = float(model.score(X_new, target(X_new, 0)))
    card = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    return {"rows": n_rows, "fit": seconds[0], "clock": seconds[1], "score": score, "card": card, "machine": machine()}


def from_parquet(n_rows: int) -> dict[str, Any]:
    """Fit 2000 centres to rows in Parquet files in a process of its own; return times, and memory beyond the start."""
    with tempfile.TemporaryDirectory() as folder:
        rng = np.random.default_rng(0)
        for number, first in enumerate(range(0, n_rows, ROWS_PER_FILE)):
            X = rng.normal(size=(min(ROWS_PER_FILE, n_rows - first), 18)).astype(np.float32)
            y = target(X, rng.normal(size=len(X)))
            pd.DataFrame(X).add_prefix("x").assign(y=y).to_parquet(f"{folder}/rows{number:03}.parquet")
        (read, fit, clock, score), memory = in_new_process(with_memory, partial(_times_from_parquet, folder))
    return {"rows": n_rows, "read": read, "fit": fit, "clock": clock, "score": score, "memory": memory.beyond}


def _times_from_parquet(folder: str) -> tuple[float, float, float, float]:
    files = sorted(Path(folder).glob("*.parquet"))
    start = time.process_time()
    for file in files * READS:
        for batch in ParquetFile(file).iter_batches():
            assert batch.num_rows
    read, clock, start = time.process_time() - start, time.perf_counter(), time.process_time()
    model = KernelRegressor(n_centres=2000, n_parts=1, random_state=0).fit(f"{folder}/*.parquet", "y")
    fit, clock = time.process_time() - start, time.perf_counter() - clock
    X_new = np.random.default_rng(1).normal(size=(20_000, 18)).astype(np.float32)
    return read, fit, clock, float(model.score(X_new, target(X_new, 0)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(SPLITS), help="which sets")
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--cuda", type=int, metavar="ROWS", help="also fit so many rows of 18 columns on a card")
    parser.add_argument("--parquet", type=int, metavar="ROWS", help="also fit so many rows of 18 columns from Parquet")
    parser.add_argument("--write", action="store_true", help="put the table into the documentation")
    parser.add_argument("--store", type=Path, default=STORE, help="where what was measured is kept")
    options = parser.parse_args()
    by = machine()
    stored = json.loads(options.store.read_text()) if options.store.exists() else {}
    for key, n_rows, work in ((PARQUET, options.parquet, from_parquet), (CUDA, options.cuda, on_card)):
        if n_rows:
            stored[key] = work(n_rows)
            print(key, json.dumps(stored[key]), flush=True)
            options.store.write_text(json.dumps(stored, indent=1) + "\n")
    for name in options.names if options.names != ["none"] else []:
        split = SPLITS[name]()
        with threadpool_limits(limits=1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for one in measure(split, options.methods, stored.get(name, {})):
                stored[name] = one
                print(split.name, json.dumps(one), flush=True)
                options.store.write_text(json.dumps(stored, indent=1) + "\n")
    rows = []
    for name, one in stored.items():
        if name in (PARQUET, CUDA):
            continue
        found = [one["found"].get(method) for method in METHODS]
        cells = [f"{pair[0]:.4f} in {pair[1]:,.0f}" if pair else "–" for pair in found]
        chosen = one["chosen"]
        how = [f"{chosen['kernel']}, {chosen['metric']}", f"{chosen['n_centres']:,}, {chosen['n_parts']:,}"]
        size, date = f"{one['size'][0]:,} x {one['size'][1]}", one.get("date", "–")
        rows.append([one["name"], size, *cells, *how, f"{one['log loss']:.3f}", date])
    head = ["set", "training rows", *METHODS]
    head += ["kernel, metric", "centres, parts", "log loss", "measured"]
    print(table(head, rows))
    if options.write:
        note = (
            "Accuracy on test rows, and processor seconds of everything before (one BLAS thread; boosting has its "
            "own threads). Nystroem has as many uniform centres as the machine of all rows, at most 2000; its "
            "bandwidth and ridge are the best of twelve on held-out rows. Boosting and xRFM have their defaults; xRFM "
            "gets a fifth of the training rows to hold out. "
            "One seed. Sets may have been measured on different days; those without a date are of dc2 before fits "
            "of many rows iterated and probabilities had a floor. A dash is a method that did not finish or run."
        )
        missing = [name for name in SPLITS if name not in stored]
        parts = [f"**Not measured: {', '.join(missing)}.**"] if missing else []
        parts += [note, table(head, rows)]
        if PARQUET in stored:
            one = stored[PARQUET]
            parts.append(
                f"**From Parquet:** `KernelRegressor(n_centres=2000, n_parts=1)` on {one['rows']:,} x 18 rows in "
                f"files: {one['fit']:,.0f} processor seconds ({one['clock']:,.0f} on the clock). Reading the files "
                f"{READS} times: {one['read']:,.1f} processor seconds. Memory beyond that of the process before: "
                f"{one['memory'] / MB:,.0f} MB. R² of new rows: {one['score']:.4f}."
            )
        if CUDA in stored:
            one = stored[CUDA]
            parts.append(
                f"**On a card ({one['card']}):** the same on {one['rows']:,} rows there: {one['clock']:,.1f} seconds "
                f"on the clock, {one['fit']:,.1f} processor seconds. R² of new rows: {one['score']:.4f}. "
                f"{one['machine']}"
            )
        write_page("kernel-machines", TITLE, parts, by, " --write")


if __name__ == "__main__":
    main()
