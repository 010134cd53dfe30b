"""How well the number of clusters is found, and used when given, on families of data sets drawn by seed.

Run ``python benchmarks/bench_families.py [--seeds 3] [--half report] [--families moons rings] [--jobs 2] [--peers]``.
The page is written by a run over all families. With ``--dump FILE.npz`` nothing is scored; instead every partition of
every resolution sweep is stored with its evidence, so that rules of choice can be tried in seconds: see `dump`.
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
from pathlib import Path
from typing import Any

import numpy as np
from common import machine, table, write_page
from families import FAMILIES, HALVES, Instance, instance
from numpy.typing import NDArray

from dc2 import DC2Clustering, RPFCluster
from dc2.graph import communities as graphs
from dc2.graph.density import large_scale_dimension
from dc2.graph.n_clusters import RequestedClusters
from dc2.graph.resolutions import GraphNodes
from dc2.graph.select_k import Evidence, plateaus
from dc2.metrics import adjusted_rand_from_table, contingency_table

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
    parser.add_argument("--dump", type=Path, metavar="FILE.npz")
    given = parser.parse_args()
    tasks = [
        (name, seed, given.scale)
        for name in given.families or FAMILIES
        if given.half in (None, HALVES[name])
        for seed in range(given.first_seed, given.first_seed + given.seeds)
    ]
    if given.dump:
        dump(tasks, given.jobs, given.dump)
        return
    names = given.methods or [AUTO, GIVEN, RPF, *(peers() if given.peers else ())]
    by = machine()
    rows = [row for one in _run(measured, [(*task, names) for task in tasks], given.jobs) for row in one]
    if given.sets:
        for row in rows:
            print(f"{row['set']:28} k {row['k']:4} {row['method']:18} {row['found']:4} ARI {row['ari']:6.3f}")
    parts = report(rows, names)
    print("\n\n".join(parts))
    if not (given.families or given.half or given.methods):
        title = "The number of clusters, found and given, on families of data sets"
        options = f" --seeds {given.seeds} --first-seed {given.first_seed} --scale {given.scale:g}"
        write_page("families", title, parts, by, options + " --peers" * given.peers)


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
    return float(adjusted_rand_from_table(contingency_table(truth, labels)))


def measured(task: tuple[str, int, float, list[str]]) -> list[Row]:
    """Run methods on one data set."""
    family, seed, scale, names = task
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
            }
        )
    return rows


def report(rows: list[Row], names: list[str]) -> list[str]:
    """Return a table of means by method, and one by family."""
    return [
        "ARI is with the acceptable labelling that fits best; rows of noise are not scored. A number is right if it is "
        "that of an acceptable labelling. Constants are chosen on the families of the half `choose`.",
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


# --- dump ------------------------------------------------------------------------------------------------------------


def dump(tasks: list[tuple[str, int, float]], jobs: int, path: Path) -> None:
    """Store every partition of the sweeps with its evidence, as arrays of one entry for each partition.

    ``set`` is the place in ``set_name``, ``set_family``, ``set_half``, ``set_seed``, ``set_k``, ``set_accepts`` (the
    acceptable numbers, as text), ``set_nodes``, ``set_columns``, ``set_dimension`` (at large scale),
    ``set_local_dimension`` and ``set_chosen`` (the number found now). For each partition there are ``resolution``,
    ``n_clusters``, ``plateau`` (a number within its set, or -1), ``width``, ``evaluated`` (whether the present rule
    may look there), ``agreement``, ``depth``, ``crossing``, ``score``, ``ari`` (with the acceptable labelling that
    fits best) and ``ari_main``. ``cluster_mass`` and ``cluster_depth`` hold the share of rows and the depth of each
    cluster; those of partition i are at ``first[i]:first[i + 1]``.
    """
    start = time.time()
    found = _run(examined, tasks, jobs)
    sets = [one for one, _ in found]
    parts = [part | {"set": i} for i, (_, many) in enumerate(found) for part in many]
    arrays = {f"set_{name}": np.array([one[name] for one in sets]) for name in sets[0]}
    flat = [name for name in parts[0] if not name.startswith("cluster_")]
    arrays |= {name: np.array([part[name] for part in parts]) for name in flat}
    for name in ("cluster_mass", "cluster_depth"):
        arrays[name] = np.concatenate([part[name] for part in parts])
    arrays["first"] = np.concatenate([[0], np.cumsum([len(part["cluster_mass"]) for part in parts])])
    np.savez_compressed(path, **arrays)
    print(f"{len(sets)} sets, {len(parts)} partitions in {time.time() - start:.0f} s: {path}")


def examined(task: tuple[str, int, float]) -> tuple[Row, list[Row]]:
    """Return what is known about a data set, and about each partition of its sweep."""
    one = instance(*task)
    nodes, node = nodes_of(one.X)
    result = graphs.find_communities(nodes, RequestedClusters())
    sweep = result.sweep
    evidence = Evidence(nodes, sweep, result.resolution_path)
    places = np.flatnonzero(sweep.n_clusters > 1)
    evidence.agreement(places)
    runs = plateaus(sweep, evidence.below)
    scored = one.y > 0
    parts = []
    for place in range(len(sweep.resolutions)):
        labels = sweep.partitions[place]
        depths = np.zeros(1)
        crossing = 0.0
        if sweep.n_clusters[place] > 1:
            depths, crossing = evidence._density_gaps.of_partition(labels)
        run = next((i for i, plateau in enumerate(runs) if place in plateau.indices), -1)
        parts.append(
            {
                "resolution": float(sweep.resolutions[place]),
                "n_clusters": int(sweep.n_clusters[place]),
                "plateau": run,
                "width": runs[run].width if run >= 0 else 0.0,
                "evaluated": run >= 0 and bool(place in runs[run].examined()),
                "agreement": float(evidence.agreements[place]),
                "depth": float(np.clip(depths, 0, 1).mean()),
                "crossing": crossing,
                "score": float(result.resolution_path["score"][place]),
                "ari": ari(one, labels[node]),
                "ari_main": _ari(one.y[scored], labels[node][scored]),
                "cluster_mass": np.bincount(labels, nodes.node_weights) / nodes.node_weights.sum(),
                "cluster_depth": np.minimum(depths, 10.0),
            }
        )
    return {
        "name": one.name,
        "family": one.family,
        "half": one.half,
        "seed": one.seed,
        "k": one.k,
        "accepts": "/".join(map(str, one.numbers)),
        "rows": len(one.X),
        "columns": one.X.shape[1],
        "nodes": nodes.graph.n_nodes,
        "dimension": large_scale_dimension(nodes.points),
        "local_dimension": evidence._density_gaps.dimension,
        "chosen": result.n_clusters,
        "chosen_ari": ari(one, result.labels[node]),
    }, parts


def nodes_of(X: NDArray[Any]) -> tuple[GraphNodes, NDArray[Any]]:
    """Return the nodes that a fit makes of rows, and the node of each row."""
    seen: list[GraphNodes] = []
    real = graphs.find_communities

    def caught(nodes: GraphNodes, requested: RequestedClusters, before: Any = None) -> Any:
        seen.append(nodes)
        return real(nodes, RequestedClusters.exactly(1), before)

    graphs.find_communities = caught
    try:
        model = DC2Clustering(random_state=0, n_jobs=1).fit(X)
    finally:
        graphs.find_communities = real
    record = model._fitted()
    ids = record.ids if record.signature_of_id is None else record.signature_of_id[record.ids]
    return seen[0], ids


if __name__ == "__main__":
    main()
