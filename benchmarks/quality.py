"""How good the clusters are, beside what people use today, on eight kinds of data.

Run ``python benchmarks/quality.py``, or a part of it, such as ``--sets moons iris --methods KMeans Leiden --seeds 0
1``. Results go to results/quality.jsonl line by line and are not measured again; docs/measured/quality.md is rebuilt
from that file after each run, and by ``--tables-only`` without one.
"""

from __future__ import annotations

import argparse
import contextlib
import platform
import warnings
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from common import machine
from numpy.typing import NDArray
from quality_data import KINDS, Case, cases
from quality_methods import Method, methods
from quality_report import write_tables
from quality_scores import n_classes, scores
from quality_store import Store

ROOT = Path(__file__).parents[1]
SEEDS = (0, 1, 2, 3, 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="only these sets")
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), help="only sets of these kinds")
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="only these methods")
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS, help="0 to 4")
    parser.add_argument("--again", action="store_true", help="measure anew what is chosen")
    parser.add_argument("--tables-only", action="store_true", help="write the tables from what is there")
    parser.add_argument("--results", type=Path, default=ROOT / "results" / "quality.jsonl")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "measured", help="folder of the tables")
    given = parser.parse_args()
    store = Store(given.results)
    if not given.tables_only:
        known = {method.name: method for method in methods()}
        chosen = [known[_known(name, known)] for name in given.methods or known]
        available = {case.name: case for case in cases()}
        sets = [available[_known(name, available)] for name in given.sets or available]
        sets = [case for case in sets if given.kinds is None or case.kind in given.kinds]
        about = {"machine": machine(), "python": platform.python_version()}
        for seed in given.seeds:  # every set once, before any a second time
            for case in sets:
                run_case(case, seed, chosen, store, given.again, about)
    write_tables(store.rows, given.output)


def _known(name: str, known: Collection[str]) -> str:
    if name not in known:
        raise SystemExit(f"{name!r} is unknown; choose from {', '.join(map(repr, known))}.")
    return name


def run_case(case: Case, seed: int, chosen: list[Method], store: Store, again: bool, about: dict[str, str]) -> None:
    """Run every method on one set that is not in the store yet."""
    chosen = [
        method
        for method in chosen
        if (method.finds_k or case.kind != "none")  # with k=1 given there is nothing to do
        and (seed == 0 or case.drawn or method.random)  # otherwise it would only repeat
        and (again or not store.knows(set=case.name, seed=seed, method=method.name, labelling=0))
    ]
    if not chosen:
        return
    X, labellings = case.load(seed)
    n, d = X.shape
    set_columns = {"set": case.name, "kind": case.kind, "rows": n, "columns": d, "seed": seed}
    for method in chosen:
        row = set_columns | {"method": method.name, "date": datetime.now(UTC).strftime("%Y-%m-%d"), **about}
        measured = [
            row | {"labelling": number, "k": n_classes(y)} | result
            for number, y, result in _results(method, X, labellings, seed)
        ]
        store.add(sorted(measured, key=lambda one: -one["labelling"]))  # if the first is there, all are
        best = max(one.get("ari", -1.0) for one in measured)
        seconds = measured[0].get("seconds", 0.0)
        print(f"{case.name:22s} seed {seed} {method.name:25s} ARI {best:6.3f} {seconds:7.2f} s", flush=True)


def _results(
    method: Method, X: NDArray[Any], labellings: list[NDArray[Any]], seed: int
) -> list[tuple[int, NDArray[Any], dict[str, Any]]]:
    """Return the scores for each labelling; methods that need the number of clusters run once for each number."""
    outcomes: dict[int, Any] = {}
    results = []
    for number, y in enumerate(labellings):
        k = 0 if method.finds_k else n_classes(y)
        reason = method.left_out(*X.shape, k)
        if reason is not None:
            results.append((number, y, {"left_out": reason}))
            continue
        if k not in outcomes:
            outcomes[k] = _run(method, X, k, seed)
        outcome = outcomes[k]
        if isinstance(outcome, Exception):
            results.append((number, y, {"left_out": f"failed: {type(outcome).__name__}"}))
            continue
        results.append((number, y, {"seconds": round(outcome.seconds, 3)} | scores(y, outcome.labels)))
    return results


_warm: set[tuple[str, str]] = set()


def _run(method: Method, X: NDArray[Any], k: int, seed: int) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other methods warn of disconnected graphs and of too few steps
        if method.compiled and (method.name, X.dtype.str) not in _warm:
            some = np.random.default_rng(0).permutation(len(X))[:2000]
            with contextlib.suppress(Exception):
                method.run(X[some], k, seed)
            _warm.add((method.name, X.dtype.str))
        try:
            return method.run(X, k, seed)
        except Exception as error:  # if one method fails on some data, the others still run
            return error


if __name__ == "__main__":
    main()
