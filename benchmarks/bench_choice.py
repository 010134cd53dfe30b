"""How well the number of clusters is found, and used when given, on families of data sets drawn by seed.

Run ``python benchmarks/bench_choice.py [--seeds 3] [--half report] [--families moons rings] [--minutes 60] [--peers]``.
The page is written by a run over all families; one that ends before its last data set says so.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from typing import Any

import numpy as np
import suite_families  # noqa: F401 (adds families)
from common import machine, table, write_page
from families import FAMILIES, HALVES, Instance, instance
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from dc2 import DC2Clustering, RPFCluster
from dc2.graph import NeighborGraph

Labels = NDArray[Any]
Row = dict[str, Any]
AUTO, GIVEN, RPF = "DC2Clustering", "DC2Clustering, k", "RPFCluster, k"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", nargs="+", choices=list(FAMILIES), metavar="NAME")
    parser.add_argument("--half", choices=("choose", "report"))
    parser.add_argument("--seeds", type=int, default=3, help="data sets of each family")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--scale", type=float, default=1.0, help="factor on the numbers of rows")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--methods", nargs="+", help="only these methods, by name")
    parser.add_argument("--peers", action="store_true", help="other methods too, as far as they are installed")
    parser.add_argument("--sets", action="store_true", help="also print a line for each data set")
    parser.add_argument("--waver", action="store_true", help="also fit data sets again after small changes")
    parser.add_argument("--minutes", type=float, help="begin no data set after this time")
    given = parser.parse_args()
    tasks = [
        (name, seed, given.scale)
        for seed in range(given.first_seed, given.first_seed + given.seeds)
        for name in given.families or FAMILIES
        if given.half in (None, HALVES[name])
    ]
    names = given.methods or [AUTO, GIVEN, RPF, *(peers() if given.peers else ())]
    by = machine()
    end = time.time() + 60 * given.minutes if given.minutes else float("inf")
    by_set = _run(measured, [(*task, names, given.waver, end) for task in tasks], given.jobs)
    rows = [row for one in by_set for row in one]
    done = sum(bool(one) for one in by_set)
    if given.sets:
        for row in rows:
            print(f"{row['set']:28} k {row['k']:4} {row['method']:18} {row['found']:4} ARI {row['ari']:6.3f}")
    parts = report(rows, names)
    if given.waver:
        parts.append(_wavering(rows))
    if done < len(tasks):
        parts.insert(0, f"**Not complete**: the time was up after {done} of {len(tasks)} data sets.")
    print("\n\n".join(parts))
    if not (given.families or given.half):
        title = "The number of clusters, found and given, on families of data sets"
        options = f" --seeds {given.seeds} --first-seed {given.first_seed} --scale {given.scale:g}"
        options += f" --methods {' '.join(map(repr, given.methods))}" if given.methods else " --peers" * given.peers
        options += " --waver" * given.waver
        options += f" --minutes {given.minutes:g}" if given.minutes else ""
        write_page("choice", title, parts, by, options)


def _run(work: Callable[[Any], Any], tasks: Iterable[Any], jobs: int) -> list[Any]:
    tasks = list(tasks)
    if jobs == 1:
        return [work(task) for task in tasks]
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(work, tasks))


# --- methods ---------------------------------------------------------------------------------------------------------


def methods() -> dict[str, Callable[[NDArray[Any], int], Labels]]:
    """Return every method by name; those with ", k" or " k" in their names are given the number of clusters."""
    return {
        AUTO: lambda X, k: DC2Clustering(random_state=0, n_jobs=1).fit(X).labels_,
        GIVEN: lambda X, k: DC2Clustering(k, random_state=0, n_jobs=1).fit(X).labels_,
        RPF: lambda X, k: RPFCluster(k, random_state=0, n_jobs=1).fit(X).labels_,
        **{name: run for name, run in _peers().items() if name in peers()},
    }


def peers() -> list[str]:
    """Return the names of the other methods that are installed."""
    needs = {"PLSCAN": "fast_hdbscan", "EVoC": "evoc", "genieclust, k": "genieclust"}
    return [name for name in _peers() if name not in needs or find_spec(needs[name])]


def _peers() -> dict[str, Callable[[NDArray[Any], int], Labels]]:
    return {
        "K-means, k": _kmeans,
        "genieclust, k": _genie,
        "GaussianMixture, BIC": _mixture,
        "HDBSCAN": _hdbscan,
        "PLSCAN": _plscan,
        "EVoC": _evoc,
    }


def _kmeans(X: NDArray[Any], k: int) -> Labels:
    from sklearn.cluster import KMeans

    return KMeans(k, n_init=10, random_state=0).fit_predict(X)


def _genie(X: NDArray[Any], k: int) -> Labels:
    from genieclust import Genie

    return Genie(n_clusters=k).fit_predict(X)


def _mixture(X: NDArray[Any], k: int) -> Labels:
    """Return the Gaussian mixture with the best BIC: 1 to 10 clusters, then ever larger steps."""
    from sklearn.mixture import GaussianMixture

    best, most = None, len(X) // (2 * X.shape[1] + 2)
    for number in (*range(1, 11), 12, 15, 20, 30, 50, 100):
        if number <= max(most, 1):
            model = GaussianMixture(number, random_state=0, reg_covar=1e-4).fit(X)
            bic = model.bic(X)
            if best is not None and bic > best[0] and number > best[2] + 5:
                break
            if best is None or bic < best[0]:
                best = bic, model, number
    return best[1].predict(X)


def _hdbscan(X: NDArray[Any], k: int) -> Labels:
    from sklearn.cluster import HDBSCAN

    return HDBSCAN(copy=True).fit_predict(X)


def _plscan(X: NDArray[Any], k: int) -> Labels:
    from fast_hdbscan import PLSCAN

    return PLSCAN().fit_predict(X)


def _evoc(X: NDArray[Any], k: int) -> Labels:
    from evoc import EVoC

    return EVoC(random_state=0).fit_predict(np.ascontiguousarray(X, np.float32))


# --- scores ----------------------------------------------------------------------------------------------------------


def ari(one: Instance, labels: Labels) -> float:
    """Return the ARI with the acceptable labelling that fits best, over rows that are not noise in the truth."""
    scored = one.y > 0
    return max(_ari(y[scored], labels[scored]) for y in one.accept)


def _ari(truth: Labels, labels: Labels) -> float:
    return float(adjusted_rand_score(truth, labels))


def measured(task: tuple[str, int, float, list[str], bool, float]) -> list[Row]:
    """Run methods on one data set; return nothing if the time is up."""
    family, seed, scale, names, waver, end = task
    if time.time() > end:
        return []
    one = instance(family, seed, scale)
    available = methods()
    rows = []
    for name in names:
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                labels = np.asarray(available[name](one.X, one.k))
            except Exception as error:  # other methods may fail on some data; ours must not
                if "dc2" in type(error).__module__ or name in (AUTO, GIVEN, RPF):
                    raise
                labels = np.zeros(len(one.X), dtype=np.int64)
        found = len(np.unique(labels[labels >= 0]))
        rows.append(
            {
                "set": one.name,
                "family": family,
                "half": one.half,
                "method": name,
                "k": one.k,
                "numbers": one.numbers,
                "found": found,
                "ari": ari(one, labels),
                "seconds": time.process_time() - start,
                "wavers": wavering(one, labels) if waver and name == AUTO else {},
            }
        )
    return rows


def report(rows: list[Row], names: list[str]) -> list[str]:
    """Return a table of means by method, and one by family."""
    return [
        "ARI is with the acceptable labelling that fits best; rows of noise are not scored. A number is right if it is "
        "that of an acceptable labelling. Rules were developed on the half `choose`; the least evidence was set with "
        "both in view, on other draws.",
        *(
            f"**Half `{half}`**\n\n{_by_method([row for row in rows if row['half'] == half], names)}"
            for half in ("choose", "report")
            if any(row["half"] == half for row in rows)
        ),
        f"**By family**\n\n{_by_family(rows, names)}",
    ]


def _by_method(rows: list[Row], names: list[str]) -> str:
    head = ["method", "sets", "ARI", "k right", "one, wrongly", "too few", "too many", "clusters where none are"]
    lines = []
    for name in names:
        own = [row for row in rows if row["method"] == name]
        with_clusters = [row for row in own if max(row["numbers"]) > 1]
        without = [row for row in own if max(row["numbers"]) == 1]
        mean = f"{np.mean([row['ari'] for row in with_clusters]):.3f}" if with_clusters else ""
        shares = ["", "", "", "", ""]
        if not name.endswith(", k"):
            wrong_one = [row["found"] <= 1 and 1 not in row["numbers"] for row in with_clusters]
            shares = [
                _share(row["found"] in row["numbers"] for row in with_clusters),
                _share(wrong_one),
                _share(row["found"] < min(row["numbers"]) for row in with_clusters),
                _share(row["found"] > max(row["numbers"]) for row in with_clusters),
                _share(row["found"] > 1 for row in without),
            ]
        lines.append([name, f"{len(with_clusters)} + {len(without)}", mean, *shares])
    return table(head, lines)


def _share(values: Iterable[bool]) -> str:
    values = list(values)
    return f"{np.mean(values):.0%}" if values else ""


def _by_family(rows: list[Row], names: list[str]) -> str:
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        found[row["family"], row["method"]].append(row)
    families = dict.fromkeys(row["family"] for row in rows)
    head = ["family", "half", "clusters", *names, *(["k right", "found"] if AUTO in names else [])]
    lines = []
    for family in families:
        first = found[family, names[0]]
        line = [
            family.replace("_", " "),
            first[0]["half"],
            " ".join("/".join(map(str, row["numbers"])) for row in first),
        ]
        line += [f"{np.mean([row['ari'] for row in found[family, name]]):.3f}" for name in names]
        if AUTO in names:
            own = found[family, AUTO]
            right = _share(row["found"] in row["numbers"] for row in own)
            line += [right, " ".join(str(row["found"]) for row in own)]
        lines.append(line)
    return table(head, lines)


# --- wavering --------------------------------------------------------------------------------------------------------


def wavering(one: Instance, labels: Labels) -> dict[str, float]:
    """Return the ARI between the clusters of a data set and those of the same rows, changed a little."""
    rng, n, X = np.random.default_rng(one.seed), len(one.X), one.X
    order, dropped = rng.permutation(n), np.sort(rng.permutation(n)[max(1, n // 100) :])
    rotation = np.linalg.qr(rng.normal(size=(X.shape[1], X.shape[1])))[0]
    model = DC2Clustering(random_state=0, n_jobs=1).fit(X)
    assert np.array_equal(model.labels_, labels)
    m = model.similarity_.n_neighbors
    everything = np.arange(n)
    changed = {
        "another seed": (X, everything, {"random_state": 1}),
        "another order": (X[order], order, {}),
        "1% of rows dropped": (X[dropped], dropped, {}),
        "a rotation": ((X @ rotation).astype(np.float32), everything, {}),
        "one neighbour more": (X, everything, {"similarity": NeighborGraph(m + 1)}),
        "one neighbour fewer": (X, everything, {"similarity": NeighborGraph(max(m - 1, 2))}),
    }
    return {
        change: _ari(labels[rows], DC2Clustering(n_jobs=1, **{"random_state": 0} | options).fit(Y).labels_)
        for change, (Y, rows, options) in changed.items()
    }


def _wavering(rows: list[Row]) -> str:
    wavered = [row for row in rows if row["wavers"]]
    changes = list(wavered[0]["wavers"])
    by_family: dict[str, list[float]] = defaultdict(list)
    for row in wavered:
        by_family[row["family"]] += row["wavers"].values()
    worst = sorted(by_family, key=lambda family: np.mean(by_family[family]))[:8]
    lines = [[change, f"{np.mean([row['wavers'][change] for row in wavered]):.3f}"] for change in changes]
    lines.append(["all", f"{np.mean([value for values in by_family.values() for value in values]):.3f}"])
    families = [[family.replace("_", " "), f"{np.mean(by_family[family]):.3f}"] for family in worst]
    return "\n\n".join(
        [
            "**Wavering**: ARI of the default with itself, between the data and the same data after a small change",
            table(["change", "ARI"], lines),
            "Families with the lowest means",
            table(["family", "ARI"], families),
        ]
    )


if __name__ == "__main__":
    main()
