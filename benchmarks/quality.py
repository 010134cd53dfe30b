"""How good the clusters are, beside what people use today: a table by set, ranks and means, quality against seconds.

Run ``python benchmarks/quality.py [--quick] [--fresh] [--again NAME]``. Scores go to results/quality.csv row by
row, so that a run that was broken off goes on where it was; the page docs/quality.md is written from that file.
--quick takes small sets and writes no page.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from quality_data import SEEDS, Case, cases
from quality_methods import Method, Outcome, methods
from quality_report import write_page

from dc2.metrics import accuracy_from_table, adjusted_rand_from_table, contingency_table, nmi_from_table

ROOT = Path(__file__).parents[1]
COLUMNS = ("set", "group", "rows", "columns", "labelling", "k", "seed", "method", "ari", "nmi", "accuracy", "seconds",
           "k_found", "left_out")  # fmt: skip
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small sets, one seed, no page")
    parser.add_argument("--fresh", action="store_true", help="forget what an earlier run has measured")
    parser.add_argument("--again", metavar="NAME", help="measure methods anew whose name starts so")
    parser.add_argument("--group", help="only sets of one group, such as generated")
    parser.add_argument("--page-only", action="store_true", help="write the page from what is there")
    arguments = parser.parse_args()
    store = ROOT / "results" / ("quality-quick.csv" if arguments.quick else "quality.csv")
    if not arguments.page_only:
        rows = Store(store, fresh=arguments.fresh, without=arguments.again)
        chosen = [case for case in cases(arguments.quick) if arguments.group in (None, case.group)]
        for seed in SEEDS:  # every set once, before any a second time
            for case in chosen:
                if seed in case.seeds:
                    run_case(case, seed, rows)
    if not arguments.quick:
        write_page(Store(store).rows, ROOT / "docs" / "quality.md")


class Store:
    """Rows of results in a CSV file."""

    def __init__(self, path: Path, fresh: bool = False, without: str | None = None) -> None:
        self.path = path
        self.rows: list[Row] = []
        if path.exists() and not fresh:
            with path.open(newline="") as file:
                self.rows = list(csv.DictReader(file))
        if without is not None:
            self.rows = [row for row in self.rows if not row["method"].startswith(without)]
        path.parent.mkdir(exist_ok=True)
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, restval="")
            writer.writeheader()
            writer.writerows(self.rows)
        self._known = {self._key(row) for row in self.rows}

    @staticmethod
    def _key(row: Row) -> tuple[str, ...]:
        return tuple(str(row[name]) for name in ("set", "k", "seed", "method"))

    def knows(self, **key: Any) -> bool:
        return self._key(key) in self._known

    def add(self, rows: list[Row]) -> None:
        with self.path.open("a", newline="") as file:
            csv.DictWriter(file, COLUMNS, restval="").writerows(rows)
        self.rows += rows


def run_case(case: Case, seed: int, store: Store) -> None:
    """Run every method on one set that is not in the store yet."""
    X, labellings = case.load(seed)
    n, d = X.shape
    for k in sorted({n_classes(y) for y in labellings}):
        same_k = [(number, y) for number, y in enumerate(labellings) if n_classes(y) == k]
        for method in methods():
            if store.knows(set=case.name, k=k, seed=seed, method=method.name):
                continue
            about = {"set": case.name, "group": case.group, "rows": n, "columns": d, "k": k, "seed": seed}
            about["method"] = method.name
            reason = method.left_out(n, d, k)
            if reason is not None:
                store.add([about | {"labelling": number, "left_out": reason} for number, _ in same_k])
                continue
            outcome = run(method, X, k, seed)
            measured = {"seconds": f"{outcome.seconds:.3f}", "k_found": outcome.n_clusters}
            scored = [about | measured | {"labelling": number} | scores(y, outcome) for number, y in same_k]
            store.add(scored)
            best = max(float(row["ari"]) for row in scored)
            print(
                f"{case.name:20s} k={k:<3d} {method.name:25s} ARI {best:.3f}  {outcome.seconds:6.2f} s",
                flush=True,
            )


def run(method: Method, X: NDArray[Any], k: int, seed: int) -> Outcome:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers warn of graphs in pieces and of steps that ran out
        return method.run(X, k, seed)


def scores(y: NDArray[Any], outcome: Outcome) -> Row:
    """Score the labels, or the best of several, without the rows that are marked as noise."""
    kept = y > 0
    tables = [contingency_table(y[kept], labels[kept]) for labels in outcome.labels]
    best = max(tables, key=adjusted_rand_from_table)
    return {
        "ari": f"{adjusted_rand_from_table(best):.4f}",
        "nmi": f"{nmi_from_table(best):.4f}",
        "accuracy": f"{accuracy_from_table(best):.5f}",
    }


def n_classes(y: NDArray[Any]) -> int:
    return len(np.unique(y[y > 0]))


if __name__ == "__main__":
    main()
