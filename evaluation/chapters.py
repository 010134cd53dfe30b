"""The chapters of the report: for each experiment a table, a short text and its figures."""

from __future__ import annotations

from itertools import product

from evaluation import cells
from evaluation.accuracy import METHODS, RESTARTS
from evaluation.cells import grid, mean, median, number, percent, runs
from evaluation.distortion import VARIANTS as PARTITIONS
from evaluation.document import Chapter, Part, Picture
from evaluation.measures import above_floor, small_noise
from evaluation.ours import VARIANTS
from evaluation.partitions import SCHEMES
from evaluation.sets import GENERATED
from evaluation.store import Store
from evaluation.summary import Summary, numbers, pick, slope
from evaluation.theorem import VARIANTS as PERTURBATIONS

__all__ = ["accuracy", "data", "distortion", "ours", "partitions", "theorem", "time"]

_SET_AND_METHOD = {"data_set": "data set", "variant": "method"}
_ON_SLOPES = (
    "Slopes on logarithmic scales, fitted where σ is at most a tenth of the data's; – where the loss is 0 nearly "
    "everywhere. Where two clumps overlap, points lie on the border itself, and the share of them that changes sides "
    "falls more slowly than σ²: for small σ the loss exceeds ‖L̃−L‖², so the theorem's 'suitable technical conditions' "
    "must exclude such data. The rpf-kernel is not a fixed smooth function of two points, so the theorem does not "
    "apply to it."
)


def data(store: Store) -> Chapter:
    """The data, their origin, and the score of one single cluster."""
    summary = Summary(store.table("accuracy").rows)
    lines = [{"data_set": name, "origin": pick(summary.rows, data_set=name)[0]["origin"]} for name in summary.sets()]
    columns = {
        "rows": cells.count("n_rows"),
        "columns": cells.count("n_features"),
        "largest class, %": percent("floor"),
    }
    lead = (
        "A clustering that puts all rows together has the share of the largest class as its accuracy: the floor. An "
        "accuracy near it says nothing, so ARI and NMI are shown as well."
    )
    named = {"data_set": "data set", "origin": "origin"}
    return Chapter("Data", lead, grid("Data sets", summary, lines, named, columns))


def distortion(store: Store) -> Chapter:
    """Experiment 1."""
    summary = Summary(store.table("distortion").rows)
    columns = {
        "ratio": mean("ratio", 3),
        "by sampling": mean("distortion_sampling", 4),
        "by projection": mean("distortion_projection", 4),
    }
    named = {"data_set": "data set", "variant": "partitions"}
    parts: list[Part] = []
    for label, names in (
        ("Data sets", summary.sets()),
        ("Curved manifolds of known dimension in 20 columns, generated", GENERATED),
    ):
        lines = [{"data_set": name, "variant": variant} for name, variant in product(names, PARTITIONS)]
        parts += grid(label, summary, lines, named, columns)
    captions = {
        "distortion": "Figure 2 of the paper: distortion by sampling over distortion by projection.",
        "intrinsic": "The same on generated manifolds: the fewer dimensions, the more there is to gain.",
    }
    lead = (
        "Distortion (mean squared distance of a row to its signature) with partitions by random sampling, over that "
        "with partitions by projection; the same number of signatures in all."
    )
    return _chapter(store, "Partition by random sampling or projection", lead, parts, captions)


def accuracy(store: Store) -> Chapter:
    """Experiment 2."""
    summary, sweeps = Summary(store.table("accuracy").rows), store.table("sweep").rows
    columns = {
        "accuracy, %": percent("accuracy"),
        "floor, %": percent("floor"),
        "ARI": mean("ari", 3),
        "NMI": mean("nmi", 3),
        "clusters": mean("n_clusters", 1),
        "largest cluster, %": percent("largest_cluster"),
        "bandwidth": cells.bandwidths,
        "degenerate runs": cells.degenerate,
        "runs": runs,
    }
    parts: list[Part] = []
    for label, selections in (
        ("What a user gets: no labels", ["no labels"]),
        ("Bandwidths chosen by true labels, as in the paper (oracle)", ["oracle", "oracle, not degenerate"]),
    ):
        lines = [
            {"data_set": name, "variant": method, "selection": selection}
            for name, selection, method in product(summary.sets(scored=True), selections, METHODS)
        ]
        parts += grid(label, summary, lines, _SET_AND_METHOD | {"selection": "bandwidth by"}, columns)
    if sweeps:
        parts.append(
            "The oracle searches β = 10, 11, ..., 80 for 800 trees, shown as b = β/800, for rpfCluster+, and σ = 0.1, "
            "0.2, ..., 1, 2, ..., 200 for RASP and KASP. A degenerate bandwidth is one at which the eigenvectors are "
            "not determined: nearly all signatures fall into one cluster, and the accuracy is near the floor. The "
            "oracle, as the paper's search, takes it where it scores best. "
            f"{len(sweeps):,} bandwidths were clustered and scored, {len(pick(sweeps, degenerate=True)):,} of them "
            f"degenerate; the median search took {number(summary.median('sweep_seconds'), 1)} s."
        )
    if parts:
        parts.append(
            "K-means is scikit-learn's: Lloyd's steps from k-means++, 20 restarts, at most 200 steps. The paper's is "
            "R's: Hartigan and Wong's steps from random rows, 20 and 200. RASP, KASP and rpfCluster+ have the paper's "
            "parameters; without labels they take the median squared distance as σ, and b = 0.05. RPFCluster and "
            "DC2Clustering are dc2's own, with nothing chosen but the number of clusters, or not even that. Nyström "
            "spectral (Fowlkes and others, 2004) and landmark spectral clustering (Chen and Cai, 2011) are not in the "
            "paper; they have as many uniform rows as landmarks as the others have signatures."
        )
    captions = {
        "accuracy_oracle": "Figure 3 of the paper: accuracy, bandwidths chosen by true labels (oracle).",
        "accuracy_no_labels": "Accuracy, no labels used.",
        "sweep": "Accuracy over all bandwidths, first run; crosses are degenerate.",
    }
    above = [f"{title} {points:+.1f}" for title, points in above_floor(store).items()]
    lead = (
        "Even with bandwidths chosen by true labels, the best of RASP, KASP and rpfCluster+ is so many points "
        f"above putting all rows into one cluster: {', '.join(above)}."
        if above
        else "Accuracy, the floor (one single cluster), ARI and NMI."
    )
    return _chapter(store, "Comparison of clustering algorithms", lead, parts, captions)


def time(store: Store) -> Chapter:
    """Experiment 3."""
    summary = Summary(pick(store.table("accuracy").rows, selection="no labels"))

    def over(reference: str) -> cells.Cell:
        def write(summary: Summary, wanted: dict[str, str]) -> str:
            own = summary.median("seconds", **wanted)
            other = summary.median("seconds", **wanted | {"variant": reference})
            return number(own / other if own and other else None, 2)

        return write

    columns = {"seconds": median("seconds", 2)}
    columns |= {f"/ {name}": over(name) for name in RESTARTS} | {"runs": runs}
    lines = [{"data_set": name, "variant": method} for name, method in product(summary.sets(), METHODS)]
    lead = (
        "Wall-clock seconds of one fit with a fixed bandwidth, from rows in memory to a label for each, on all cores; "
        "and as a multiple of K-means with 20 restarts, as in the paper, and with one."
    )
    parts = grid("Seconds of one fit", summary, lines, _SET_AND_METHOD, columns)
    return _chapter(store, "Time", lead, parts, {"time": "Figure 4 of the paper: seconds of one fit."})


def partitions(store: Store) -> Chapter:
    """Experiment 4."""
    summary = Summary(store.table("partitions").rows)

    def of(selection: str, cell: cells.Cell) -> cells.Cell:
        return lambda summary, wanted: cell(summary, wanted | {"selection": selection})

    columns = {
        "accuracy (oracle), %": of("oracle", percent("accuracy")),
        "accuracy (oracle, not degenerate), %": of("oracle, not degenerate", percent("accuracy")),
        "floor, %": of("oracle", percent("floor")),
        "ARI (oracle)": of("oracle", mean("ari", 3)),
        "NMI (oracle)": of("oracle", mean("nmi", 3)),
        "accuracy (no labels), %": of("no labels", percent("accuracy")),
        "distortion": mean("distortion", 4),
        "seconds, parallel": median("seconds", 2),
        "seconds, sequential": median("seconds_sequential", 2),
        "divide and compress, parallel": median("compress_seconds", 2),
        "divide and compress, sequential": median("compress_seconds_sequential", 2),
    }
    lines = [{"data_set": name, "variant": scheme} for name, scheme in product(summary.sets(), SCHEMES)]
    named = {"data_set": "data set", "variant": "partitions"}
    captions = {
        "partitions_accuracy": "Figure 5 of the paper: accuracy by scheme and number of partitions (oracle).",
        "partitions_time": "Figure 6 of the paper: time, partitions in parallel.",
        "partitions_sequential": "Figure 7 of the paper: time, partitions one after the other.",
    }
    lead = (
        "rpfCluster+ with partitions by projection and by random sampling: in parallel, with a thread for each "
        "partition, and one after the other on one thread. With one partition there is nothing to divide, and both "
        "schemes are the same."
    )
    parts = grid("By scheme and number of partitions", summary, lines, named, columns)
    return _chapter(store, "Schemes and numbers of partitions", lead, parts, captions)


def theorem(store: Store) -> Chapter:
    """Experiment 5."""
    summary = Summary(store.table("theorem").rows)

    def slope_of(column: str) -> cells.Cell:
        def write(summary: Summary, wanted: dict[str, str]) -> str:
            small = small_noise(pick(summary.rows, **wanted))
            return number(slope(numbers(small, "sigma2"), numbers(small, column)), 2)

        return write

    def within(summary: Summary, wanted: dict[str, str]) -> str:
        rows = pick(summary.rows, **wanted)
        return f"{sum(float(row['loss']) <= float(row['laplacian2']) for row in rows)} of {len(rows)}"

    def largest_loss(summary: Summary, wanted: dict[str, str]) -> str:
        losses = numbers(small_noise(pick(summary.rows, **wanted)), "loss")
        return number(100 * max(losses) if losses else None, 1)

    columns = {
        "slope of ‖L̃−L‖² over σ²": slope_of("laplacian2"),
        "slope of the loss over σ²": slope_of("loss"),
        "loss ≤ ‖L̃−L‖²": within,
        "largest loss at small σ, %": largest_loss,
    }
    lines = [
        {"variant": variant, "data_set": name} for variant, name in product(PERTURBATIONS, ("separated", "overlapping"))
    ]
    named = {"variant": "kernel, perturbed by", "data_set": "data"}
    parts = grid("Perturbed data", summary, lines, named, columns)
    if parts:
        parts.append(_ON_SLOPES)
    captions = {
        "theorem_noise": "σ², ‖L̃−L‖² and loss with added noise that is symmetric and bounded.",
        "theorem_signatures": "The same where each point is replaced by its signature.",
        "radius": "Mean distance of rows to the centroid of their node in a tree, by depth.",
    }
    lead = (
        "Two clumps in the plane are cut in two by the sign of the second eigenvector; the loss is the share of points "
        "that change sides when the data are perturbed. σ² is the mean squared length of the perturbation."
    )
    return _chapter(store, "The theorem", lead, parts, captions)


def ours(store: Store) -> Chapter:
    """Experiment 6."""
    summary = Summary(store.table("ours").rows)
    names = dict.fromkeys(row["data_set"] for row in summary.rows)
    columns = {
        "distortion / variance": mean("relative_distortion", 3),
        "accuracy, %": percent("accuracy"),
        "floor, %": percent("floor"),
        "ARI": mean("ari", 3),
        "NMI": mean("nmi", 3),
        "seconds": median("seconds", 2),
    }
    lines = [{"data_set": name, "variant": variant} for name, variant in product(names, VARIANTS)]
    named = {"data_set": "data set", "variant": "cut and directions"}
    lead = (
        "As many signatures from other directions and cuts. 'median, sharpen 0' is the paper's; conquer is ours for "
        "all: b = 0.05, K-means on eigenvectors, no labels; 'RPFCluster' also chooses the bandwidth. MNIST, which is "
        "not in the paper, has classes that clusters can find."
    )
    parts = grid("Cut rules and sharpening", summary, lines, named, columns)
    captions = {"ours": "Distortion and NMI by cut rule and sharpening."}
    return _chapter(store, "Ours against the paper's", lead, parts, captions)


def _chapter(store: Store, title: str, lead: str, parts: list[Part], captions: dict[str, str]) -> Chapter:
    """Add the figures that were drawn, unless the chapter is empty."""
    paths = {store.folder / "figures" / f"{name}.png": caption for name, caption in captions.items()}
    pictures = [Picture(path, caption) for path, caption in paths.items() if parts and path.exists()]
    return Chapter(title, lead, [*parts, *pictures])
