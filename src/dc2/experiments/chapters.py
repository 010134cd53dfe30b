"""The chapters of the report: for each experiment a table, a few words, and its figures."""

from __future__ import annotations

from dc2.experiments.accuracy import METHODS
from dc2.experiments.claims import above_floor, small_noise
from dc2.experiments.document import Chapter, Grid, Part, Picture
from dc2.experiments.ours import VARIANTS
from dc2.experiments.partitions import SCHEMES
from dc2.experiments.sets import GENERATED, TITLES
from dc2.experiments.store import Row, Store
from dc2.experiments.summary import Summary, numbers, pick, slope
from dc2.experiments.theorem import VARIANTS as PERTURBATIONS

__all__ = ["accuracy", "data", "distortion", "ours", "partitions", "theorem", "time"]


def data(store: Store) -> Chapter:
    """Which data, where from, and what one single cluster scores."""
    summary = Summary(store.table("accuracy").rows)
    rows = []
    for name in summary.sets():
        first = pick(summary.rows, data_set=name)[0]
        floor = _percent(summary.mean("floor", data_set=name))
        rows.append([TITLES[name], first["origin"], f"{int(first['n_rows']):,}", first["n_features"], floor])
    head = ["data set", "origin", "rows", "columns", "largest class, %"]
    lead = (
        "A clustering that puts all rows together has the share of the largest class as its accuracy: the floor. An "
        "accuracy near it says nothing, which is why ARI and NMI stand beside it everywhere."
    )
    return Chapter("Data", lead, [Grid("Data sets", head, rows, n_text=2)] if rows else [])


def distortion(store: Store) -> Chapter:
    """Experiment 1."""
    summary = Summary(store.table("distortion").rows)
    head = ["data set", "ratio, 2 partitions", "ratio, 3 partitions", "by sampling, 2", "by projection, 2"]
    parts: list[Part] = []
    for label, names in (
        ("Data sets", summary.sets()),
        ("Curved manifolds of known dimension in 20 columns, generated", GENERATED),
    ):
        rows = []
        for name in names:
            if not pick(summary.rows, data_set=name):
                continue
            ratios = [summary.mean("ratio", data_set=name, n_partitions=n) for n in (2, 3)]
            two = {"data_set": name, "n_partitions": 2}
            means = [summary.mean(f"distortion_{how}", **two) for how in ("sampling", "projection")]
            rows.append(
                [summary.title(name), *(_number(r, 3) for r in ratios), *(_number(m, 4) for m in means)]
            )
        if rows:
            parts.append(Grid(label, head, rows))
    captions = {
        "distortion": "Distortion by sampling over distortion by projection.",
        "intrinsic": "The same on generated manifolds: the fewer dimensions, the more there is to gain.",
    }
    lead = (
        "Distortion (mean squared distance of a row to its signature) when partitions are dealt at random, over the "
        "same when they are cut by projections; the same number of signatures in all."
    )
    return Chapter(
        "Partition by random sampling or projection", lead, parts + _pictures(store, captions, parts)
    )


def accuracy(store: Store) -> Chapter:
    """Experiment 2."""
    summary, sweeps = Summary(store.table("accuracy").rows), store.table("sweep").rows
    parts: list[Part] = []
    for label, selections in (
        ("What a user gets: no labels", ["no labels"]),
        ("Bandwidths chosen by true labels, as in the paper (oracle)", ["oracle", "oracle, not degenerate"]),
    ):
        rows = [
            row
            for name in summary.sets(scored=True)
            for selection in selections
            for method in METHODS
            if (row := _scores(summary, name, method, selection))
        ]
        if rows:
            head = ["data set", "method", "bandwidth by", "accuracy, %", "floor, %", "ARI", "NMI",
                    "largest cluster, %", "bandwidth", "degenerate runs", "runs"]  # fmt: skip
            parts.append(Grid(label, head, rows, n_text=3))
    if sweeps:
        parts.append(
            "The oracle searches β = 10, 11, ..., 80 for 800 trees, shown as b = β/800, for rpfCluster+, and σ = 0.1, "
            "0.2, ..., 1, 2, ..., 200 for RASP and KASP. A degenerate bandwidth is one at which the eigenvectors are "
            "not determined: nearly all signatures fall into one cluster, and the accuracy is near the floor. The "
            "oracle, as the paper's search, takes it where it scores best. "
            f"{len(sweeps):,} bandwidths were clustered and scored, {len(pick(sweeps, degenerate=True)):,} of them "
            f"degenerate; the median search took {_number(summary.median('sweep_seconds'), 1)} s."
        )
    if parts:
        parts.append(
            "K-means is scikit-learn's: Lloyd's steps from k-means++, 20 restarts, at most 200 steps. The paper's is "
            "R's: Hartigan and Wong's steps from random rows, 20 and 200. RASP, KASP and rpfCluster+ have the paper's "
            "parameters; without labels they take the median squared distance as σ, and b = 0.05. 'dc2 defaults' is "
            "RPFCluster with nothing chosen but the number of clusters."
        )
    captions = {
        "accuracy_oracle": "Accuracy, bandwidths chosen by true labels (oracle).",
        "accuracy_no_labels": "Accuracy, no labels used.",
        "sweep": "Accuracy over all bandwidths, first run; crosses are degenerate.",
    }
    return Chapter(
        "Comparison of clustering algorithms",
        _above_the_floor(summary),
        parts + _pictures(store, captions, parts),
    )


def time(store: Store) -> Chapter:
    """Experiment 3."""
    summary = Summary(store.table("accuracy").rows)
    rows = []
    for name in summary.sets():
        fits = {"data_set": name, "selection": "no labels"}
        references = [summary.median("seconds", variant=one, **fits) for one in METHODS[:2]]
        for method in METHODS:
            seconds = summary.median("seconds", variant=method, **fits)
            if seconds is not None:
                ratios = [_number(None if one is None else seconds / one, 2) for one in references]
                runs = str(summary.runs(variant=method, **fits))
                rows.append([summary.title(name), method, _number(seconds, 2), *ratios, runs])
    head = ["data set", "method", "seconds", "/ K-means, 20 restarts", "/ K-means, 1 restart", "runs"]
    parts: list[Part] = [Grid("Seconds of one fit", head, rows, n_text=2)] if rows else []
    lead = (
        "Wall-clock seconds of one fit with a fixed bandwidth, from rows in memory to a label for each, on all cores; "
        "and as a multiple of K-means with 20 restarts, as in the paper, and with one."
    )
    return Chapter("Time", lead, parts + _pictures(store, {"time": "Seconds of one fit."}, parts))


def partitions(store: Store) -> Chapter:
    """Experiment 4."""
    summary = Summary(store.table("partitions").rows)
    columns = ("seconds", "seconds_sequential", "compress_seconds", "compress_seconds_sequential")
    rows = []
    for name in summary.sets():
        for scheme in SCHEMES:
            fits = {"data_set": name, "variant": scheme, "selection": "no labels"}
            best = fits | {"selection": "oracle"}
            if pick(summary.rows, **fits):
                rows.append(
                    [
                        summary.title(name),
                        scheme,
                        *(_percent(summary.mean(column, **best)) for column in ("accuracy", "floor")),
                        *(_number(summary.mean(column, **best), 3) for column in ("ari", "nmi")),
                        _percent(summary.mean("accuracy", **fits)),
                        _number(summary.mean("distortion", **fits), 4),
                        *(_number(summary.median(column, **fits), 2) for column in columns),
                    ]
                )
    head = ["data set", "partitions", "accuracy (oracle), %", "floor, %", "ARI (oracle)", "NMI (oracle)",
            "accuracy (no labels), %", "distortion", "seconds, parallel", "one by one",
            "divide and compress, parallel", "one by one"]  # fmt: skip
    parts: list[Part] = [Grid("By scheme and number of partitions", head, rows, n_text=2)] if rows else []
    captions = {
        "partitions_accuracy": "Accuracy by scheme and number of partitions (oracle).",
        "partitions_time": "Time, partitions in parallel.",
        "partitions_sequential": "Time, partitions one after the other.",
    }
    lead = (
        "rpfCluster+ with partitions by projection and by random sampling, in threads and with one thread. With one "
        "partition there is nothing to divide, and both schemes are the same."
    )
    return Chapter("Schemes and numbers of partitions", lead, parts + _pictures(store, captions, parts))


def theorem(store: Store) -> Chapter:
    """Experiment 5."""
    rows = store.table("theorem").rows
    lines = [
        _perturbed(some, variant, TITLES[name])
        for variant in PERTURBATIONS
        for name in ("separated", "overlapping")
        if (some := pick(rows, variant=variant, data_set=name))
    ]
    head = ["kernel", "perturbed by", "data", "slope of ‖L̃−L‖² over σ²", "slope of the loss over σ²",
            "loss ≤ ‖L̃−L‖²", "largest loss at small σ, %"]  # fmt: skip
    parts: list[Part] = [Grid("Perturbed data", head, lines, n_text=3)] if lines else []
    if lines:
        parts.append(
            "Slopes on logarithmic scales, fitted where σ is at most a tenth of the data's; – where the loss is 0 "
            "nearly everywhere. Where two clumps overlap, points lie on the border itself, and the share of them that "
            "changes sides falls more slowly than σ²: for small σ the loss exceeds ‖L̃−L‖², so the theorem's 'suitable "
            "technical conditions' must exclude such data. The rpf-kernel is not a fixed smooth function of two "
            "points, so the theorem does not speak of it."
        )
    captions = {
        "theorem_noise": "σ², ‖L̃−L‖² and loss with added noise that is symmetric and bounded.",
        "theorem_signatures": "The same where each point is replaced by its signature.",
        "radius": "Mean distance of rows to the centroid of their node in a tree, by depth.",
    }
    lead = (
        "Two clumps in the plane are cut in two by the sign of the second eigenvector; the loss is the share of points "
        "that change sides when the data are perturbed. σ² is the mean squared length of the perturbation."
    )
    return Chapter("The theorem", lead, parts + _pictures(store, captions, parts))


def ours(store: Store) -> Chapter:
    """Experiment 6."""
    summary = Summary(store.table("ours").rows)
    rows = []
    for name in dict.fromkeys(row["data_set"] for row in summary.rows):
        for variant in VARIANTS:
            wanted = {"data_set": name, "variant": variant}
            if pick(summary.rows, **wanted):
                rows.append(
                    [
                        summary.title(name),
                        variant,
                        _number(summary.mean("relative_distortion", **wanted), 3),
                        *(_percent(summary.mean(column, **wanted)) for column in ("accuracy", "floor")),
                        *(_number(summary.mean(column, **wanted), 3) for column in ("ari", "nmi")),
                        _number(summary.median("seconds", **wanted), 2),
                    ]
                )
    head = ["data set", "cut and directions", "distortion / variance", "accuracy, %", "floor, %", "ARI", "NMI",
            "seconds"]  # fmt: skip
    parts: list[Part] = [Grid("Cut rules and sharpening", head, rows, n_text=2)] if rows else []
    lead = (
        "As many signatures from other directions and cuts. 'median, sharpen 0' is the paper's; conquer is ours for "
        "all: b = 0.05, K-means on eigenvectors, no labels; 'dc2 defaults' also chooses the bandwidth. "
        "MNIST, which is not in the paper, has classes that "
        "clusters can find."
    )
    captions = {"ours": "Distortion and NMI by cut rule and sharpening."}
    return Chapter("Ours against the paper's", lead, parts + _pictures(store, captions, parts))


def _scores(summary: Summary, name: str, method: str, selection: str) -> list[str]:
    wanted = {"data_set": name, "variant": method, "selection": selection}
    rows = pick(summary.rows, **wanted)
    if not rows:
        return []
    bandwidths = sorted(set(numbers(rows, "bandwidth")))
    ends = dict.fromkeys(f"{bandwidth:.4g}" for bandwidth in (bandwidths[:1] + bandwidths[-1:]))
    return [
        summary.title(name),
        method,
        selection,
        *(_percent(summary.mean(column, **wanted)) for column in ("accuracy", "floor")),
        *(_number(summary.mean(column, **wanted), 3) for column in ("ari", "nmi")),
        _percent(summary.mean("largest_cluster", **wanted)),
        " to ".join(ends),
        str(len(pick(rows, degenerate=True)) or ""),
        str(summary.runs(**wanted)),
    ]


def _above_the_floor(summary: Summary) -> str:
    """Say how far the best oracle of each set is above the floor."""
    above = [f"{title} {points:+.1f}" for title, points in above_floor(summary).items()]
    if not above:
        return "Accuracy beside the floor that one single cluster reaches, ARI and NMI."
    return (
        "Even with bandwidths chosen by true labels, the best of RASP, KASP and rpfCluster+ stands so many points "
        f"above putting all rows into one cluster: {', '.join(above)}."
    )


def _perturbed(rows: list[Row], variant: str, title: str) -> list[str]:
    kernel, perturbation = variant.split(", ")
    small = small_noise(rows)
    slopes = [slope(numbers(small, "sigma2"), numbers(small, column)) for column in ("laplacian2", "loss")]
    within = sum(float(row["loss"]) <= float(row["laplacian2"]) for row in rows)
    return [
        kernel if kernel == "gaussian" else f"{kernel} (outside the theorem)",
        perturbation,
        title,
        *(_number(value, 2) for value in slopes),
        f"{within} of {len(rows)}",
        _percent(max(numbers(small, "loss"), default=None)),
    ]


def _pictures(store: Store, captions: dict[str, str], parts: list[Part]) -> list[Part]:
    """Return the figures that were drawn, for a chapter that has anything to say."""
    paths = {store.folder / "figures" / f"{name}.png": caption for name, caption in captions.items()}
    return [Picture(path, caption) for path, caption in paths.items() if parts and path.exists()]


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}"
