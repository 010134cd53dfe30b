"""The report: the table of claims, then each experiment with what was measured."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from dc2.experiments.accuracy import METHODS
from dc2.experiments.claims import judge_all, small_noise
from dc2.experiments.document import Chapter, Document, Grid, Part, Picture, to_html, to_markdown
from dc2.experiments.ours import VARIANTS
from dc2.experiments.partitions import SCHEMES
from dc2.experiments.sets import GENERATED, TITLES
from dc2.experiments.settings import Settings
from dc2.experiments.store import Store, versions, write_whole
from dc2.experiments.summary import Summary, numbers, pick, slope, title_of
from dc2.report.page import write_page

__all__ = ["build", "write_docs", "write_reports"]

SELECTIONS = ("no labels", "oracle", "oracle, not degenerate")

SIMULATED = (
    "Simulated sets have the size and kind of the genuine ones, which were not to be had; they serve for time and "
    "distortion, and no accuracy is shown for them. Poker Hand is regenerated: uniformly random deals with the exact "
    "rule for the class, as UCI's rows are."
)


def write_reports(store: Store, settings: Settings) -> Path:
    """Write ``report.html`` and ``report.md`` into the folder of a store."""
    document = build(store, settings)
    write_whole(store.folder / "report.md", to_markdown(document, store.folder))
    return write_page(store.folder / "report.html", to_html(document))


def write_docs(store: Store, path: Path, settings: Settings) -> None:
    """Write the report as one Markdown file without figures."""
    write_whole(path, to_markdown(build(store, settings), None))


def build(store: Store, settings: Settings) -> Document:
    """Put the report together from the tables of a store."""
    chapters = [
        _claims(store),
        _data(store),
        _distortion(store),
        _accuracy(store),
        _time(store),
        _partitions(store),
        _theorem(store),
        _ours(store),
    ]
    return Document(
        "The paper's evaluation, repeated", _intro(store, settings), [c for c in chapters if c.parts]
    )


def _intro(store: Store, settings: Settings) -> list[str]:
    tables = {
        name: Summary(store.table(name).rows)
        for name in ("distortion", "accuracy", "partitions", "theorem", "ours")
    }
    runs = ", ".join(f"{name} {summary.runs()}" for name, summary in tables.items() if summary.rows)
    size = (
        "All rows of every set"
        if settings.max_rows is None
        else f"At most {settings.max_rows:,} rows of each set, so this is a quick look and not the paper's evaluation"
    )
    machine = (
        f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, {versions()}"
    )
    return [
        "Every experiment of the DC² paper, with the paper's parameters, on the data that could be had. Written by "
        "`python -m dc2.experiments`.",
        f"{size}; {settings.n_signatures} signatures, {settings.n_trees} trees. Runs (seeds) per experiment: {runs}; "
        "the paper has 100. Scores are means over runs, times medians.",
        f"Machine: {machine}. Times depend on it and on what else it did; compare them with each other only.",
        SIMULATED,
    ]


def _claims(store: Store) -> Chapter:
    claims = judge_all(store)
    rows = [[claim.text, claim.rule, claim.figure or "–", claim.verdict] for claim in claims]
    counts = ", ".join(
        f"{verdict} {sum(claim.verdict == verdict for claim in claims)}"
        for verdict in dict.fromkeys(claim.verdict for claim in claims)
    )
    grid = Grid("The paper's claims", ["claim", "judged by", "our figure", "verdict"], rows, n_text=4)
    return Chapter("The paper's claims", f"What the paper says, and what we measured: {counts}.", [grid])


def _data(store: Store) -> Chapter:
    rows = []
    for summary in (Summary(store.table(name).rows) for name in ("accuracy",)):
        for name in summary.sets():
            first = pick(summary.rows, data_set=name)[0]
            floor = summary.mean("floor", data_set=name)
            rows.append(
                [
                    TITLES[name],
                    f"{int(first['n_rows']):,}",
                    first["n_features"],
                    _share(floor),
                    first["origin"],
                ]
            )
    grid = Grid("Data sets", ["data set", "rows", "columns", "largest class, %", "origin"], rows)
    return Chapter("Data", "A clustering that puts all rows together has the share of the largest class as accuracy: "
                   "the floor. A score near it says nothing.", [grid] if rows else [])  # fmt: skip


def _distortion(store: Store) -> Chapter:
    summary = Summary(store.table("distortion").rows)
    parts: list[Part] = []
    for label, names in (("Data sets", summary.sets()), ("Generated data", GENERATED)):
        rows = [
            [
                title_of(name, summary.rows),
                *(_number(summary.mean("ratio", data_set=name, n_partitions=n), 3) for n in (2, 3)),
                *(_number(summary.mean(f"distortion_{how}", data_set=name, n_partitions=2), 4)
                  for how in ("sampling", "projection")),
            ]
            for name in names
            if pick(summary.rows, data_set=name)
        ]  # fmt: skip
        head = [
            "data set",
            "ratio, 2 partitions",
            "ratio, 3",
            "distortion by sampling, 2",
            "by projection, 2",
        ]
        if rows:
            parts.append(Grid(label, head, rows))
    parts += _pictures(store, {
        "distortion": "Distortion by sampling over distortion by projection.",
        "intrinsic": "The same on curved manifolds of known dimension in 20 columns: fewer dimensions, more gain.",
    })  # fmt: skip
    return Chapter(
        "Partition by random sampling or projection",
        "Mean squared distance of a row to its signature when partitions are dealt at random, over the same when they "
        "are cut by projections.",
        parts,
    )


def _accuracy(store: Store) -> Chapter:
    summary = Summary(store.table("accuracy").rows)
    rows = []
    for name in summary.sets(scored=True):
        for selection in SELECTIONS:
            for method in METHODS:
                wanted = {"data_set": name, "variant": method, "selection": selection}
                if not pick(summary.rows, **wanted):
                    continue
                degenerate = [row.get("degenerate") for row in pick(summary.rows, **wanted)].count("True")
                means = [
                    summary.mean(column, **wanted)
                    for column in ("accuracy", "floor", "ari", "nmi", "largest_cluster")
                ]
                rows.append([
                    summary.title(name), method, selection,
                    _share(means[0]), _share(means[1]), _number(means[2], 3), _number(means[3], 3), _share(means[4]),
                    _bandwidth(summary, wanted), f"{degenerate} of {summary.runs(**wanted)}" if degenerate else "",
                ])  # fmt: skip
    head = ["data set", "method", "bandwidth chosen by", "accuracy, %", "floor, %", "ARI", "NMI", "largest cluster, %",
            "bandwidth", "degenerate"]  # fmt: skip
    sweeps = store.table("sweep").rows
    parts: list[Part] = []
    if rows:
        seconds = summary.median("sweep_seconds")
        parts = [
            Grid("Accuracy", head, rows, n_text=3),
            "K-means is scikit-learn's (Lloyd, 20 starts by k-means++, at most 200 iterations); the paper's is R's "
            "(Hartigan and Wong, 20 random starts, 200). 'Oracle' selects the bandwidth by the true labels, as the "
            "paper does: rpf-kernel β = 10, 11, ..., 80 for 800 trees, shown as b = β/800; Gaussian σ = 0.1, ..., 1 by "
            "0.1 and to 200 by 1. 'No labels' is what a user gets: b = 0.05, or σ = the median squared distance. A "
            "degenerate bandwidth is one at which the eigenvectors are not determined; the oracle takes it where it "
            "scores best, and it scores near the floor because nearly all rows fall into one cluster.",
            f"{len(sweeps):,} bandwidths were clustered and scored, {len(pick(sweeps, degenerate=True)):,} of them "
            f"degenerate; the median sweep took {_number(seconds, 1)} s.",
        ]
        parts += _pictures(store, {
            "accuracy_oracle": "Accuracy, bandwidths chosen by true labels (oracle).",
            "accuracy_no_labels": "Accuracy, no labels used.",
            "sweep": "Accuracy over all bandwidths, first run.",
        })  # fmt: skip
    return Chapter("Comparison of clustering algorithms",
                   "Accuracy beside the floor that one single cluster reaches, ARI and NMI.", parts)  # fmt: skip


def _time(store: Store) -> Chapter:
    summary = Summary(store.table("accuracy").rows)
    rows = []
    for name in summary.sets():
        base = [
            summary.median("seconds", data_set=name, variant=one, selection="no labels")
            for one in METHODS[:2]
        ]
        for method in METHODS:
            wanted = {"data_set": name, "variant": method, "selection": "no labels"}
            seconds = summary.median("seconds", **wanted)
            if seconds is not None:
                ratios = [_number(seconds / one, 2) if one else "–" for one in base]
                rows.append(
                    [summary.title(name), method, _number(seconds, 2), *ratios, str(summary.runs(**wanted))]
                )
    head = ["data set", "method", "seconds", "of K-means' 20 restarts", "of K-means' 1 restart", "runs"]
    parts: list[Part] = [Grid("Time", head, rows, n_text=2)] if rows else []
    if rows:
        parts += _pictures(store, {"time": "Seconds of one fit, on a logarithmic scale."})
    return Chapter("Time", "Wall-clock seconds of one fit with a fixed bandwidth, from rows in memory to a label for "
                   "each, on all cores.", parts)  # fmt: skip


def _partitions(store: Store) -> Chapter:
    summary = Summary(store.table("partitions").rows)
    rows = []
    for name in summary.sets():
        for scheme in SCHEMES:
            fitted = {"data_set": name, "variant": scheme, "selection": "no labels"}
            best = {"data_set": name, "variant": scheme, "selection": "oracle"}
            if pick(summary.rows, **fitted):
                times = [summary.median(column, **fitted) for column in (
                    "seconds", "seconds_sequential", "compress_seconds", "compress_seconds_sequential")]  # fmt: skip
                rows.append([
                    summary.title(name), scheme, _share(summary.mean("accuracy", **best)),
                    _share(summary.mean("floor", **best)), _number(summary.mean("ari", **best), 3),
                    _number(summary.mean("nmi", **best), 3), _share(summary.mean("accuracy", **fitted)),
                    _number(summary.mean("distortion", **fitted), 4), *(_number(time, 2) for time in times),
                ])  # fmt: skip
    head = ["data set", "partitions", "accuracy (oracle), %", "floor, %", "ARI (oracle)", "NMI (oracle)",
            "accuracy (no labels), %", "distortion", "seconds, parallel", "one by one",
            "of it division, parallel", "one by one"]  # fmt: skip
    parts: list[Part] = [Grid("Partitions", head, rows, n_text=2)] if rows else []
    if rows:
        parts += _pictures(store, {
            "partitions_accuracy": "Accuracy by scheme and number of partitions.",
            "partitions_time": "Time, partitions in parallel.",
            "partitions_sequential": "Time, partitions one after the other.",
        })  # fmt: skip
    return Chapter("Schemes and numbers of partitions", "rpfCluster+ with partitions by projection and by random "
                   "sampling, in threads and with one thread.", parts)  # fmt: skip


def _theorem(store: Store) -> Chapter:
    rows = store.table("theorem").rows
    lines = []
    for kernel, perturbation in (
        ("gaussian", "noise"),
        ("gaussian", "signatures"),
        ("rpf", "noise"),
        ("rpf", "signatures"),
    ):
        for name in ("separated", "overlapping"):
            some = pick(rows, kernel=kernel, perturbation=perturbation, data_set=name)
            if not some:
                continue
            small = small_noise(some)
            slopes = [
                slope(numbers(small, "sigma2"), numbers(small, column)) for column in ("laplacian2", "loss")
            ]
            within = sum(float(row["loss"]) <= float(row["laplacian2"]) for row in some)
            lines.append([
                f"{kernel}{'' if kernel == 'gaussian' else ' (outside the theorem)'}", perturbation, TITLES[name],
                *(_number(value, 2) for value in slopes), f"{within} of {len(some)}",
                _share(max(numbers(small, "loss"), default=None)),
            ])  # fmt: skip
    head = ["kernel", "perturbation", "data", "slope of ‖L̃−L‖² over σ²", "slope of the loss over σ²",
            "loss ≤ ‖L̃−L‖²", "largest loss at small σ, %"]  # fmt: skip
    parts: list[Part] = [Grid("The theorem", head, lines, n_text=3)] if lines else []
    if lines:
        parts.append(
            "Slopes are fitted where σ is at most a tenth of the data's. Where two clumps overlap, points lie on the "
            "border itself, and the share that changes sides grows like σ (a slope of about 0.5 over σ²), which for "
            "small σ is more than σ²: the theorem's 'suitable technical conditions' must exclude such data."
        )
        parts += _pictures(store, {
            "theorem_noise": "σ², ‖L̃−L‖² and loss with added noise that is symmetric and bounded.",
            "theorem_signatures": "The same where each point is replaced by its signature.",
            "radius": "Mean distance to the centroid of a tree's node, by depth.",
        })  # fmt: skip
    return Chapter("The theorem", "k = 2 by the sign of the second eigenvector; the loss is the share of points that "
                   "change sides when the data are perturbed.", parts)  # fmt: skip


def _ours(store: Store) -> Chapter:
    summary = Summary(store.table("ours").rows)
    rows = []
    for name in dict.fromkeys(row["data_set"] for row in summary.rows):
        for variant in VARIANTS:
            wanted = {"data_set": name, "variant": variant}
            if pick(summary.rows, **wanted):
                rows.append([
                    summary.title(name), variant, _number(summary.mean("relative_distortion", **wanted), 3),
                    _share(summary.mean("accuracy", **wanted)), _share(summary.mean("floor", **wanted)),
                    _number(summary.mean("ari", **wanted), 3), _number(summary.mean("nmi", **wanted), 3),
                    _number(summary.median("seconds", **wanted), 2),
                ])  # fmt: skip
    head = [
        "data set",
        "cut and directions",
        "distortion / variance",
        "accuracy, %",
        "floor, %",
        "ARI",
        "NMI",
        "seconds",
    ]
    parts: list[Part] = [Grid("Ours against the paper's", head, rows, n_text=2)] if rows else []
    if rows:
        parts += _pictures(store, {"ours": "Distortion and NMI by cut rule and sharpening."})
    return Chapter("Ours against the paper's", "As many signatures from other cuts. 'median, sharpen 0' is the "
                   "paper's; conquer is ours for all: b = 0.05, K-means on eigenvectors, no labels.", parts)  # fmt: skip


def _pictures(store: Store, captions: dict[str, str]) -> list[Part]:
    paths = {store.folder / "figures" / f"{name}.png": caption for name, caption in captions.items()}
    return [Picture(path, caption) for path, caption in paths.items() if path.exists()]


def _bandwidth(summary: Summary, wanted: dict[str, str]) -> str:
    found = sorted(set(numbers(pick(summary.rows, **wanted), "bandwidth")))
    return "" if not found else f"{found[0]:.4g}" if len(found) == 1 else f"{found[0]:.4g} to {found[-1]:.4g}"


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"
