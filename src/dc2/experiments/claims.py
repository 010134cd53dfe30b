"""The paper's claims, each with the rule it is judged by, our figure and a verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

from dc2.experiments.accuracy import SWEPT
from dc2.experiments.distortion import PARTITIONS
from dc2.experiments.store import Row, Store
from dc2.experiments.summary import Summary, numbers, pick, slope, title_of

__all__ = ["Claim", "above_floor", "judge_all", "small_noise"]

HOLDS, FAILS, UNTESTABLE, NOT_RUN = "holds", "does not", "cannot be tested offline", "not run"

MUCH = 0.05  # of accuracy: what "much lower" and "similar" are taken to mean
NEGLIGIBLE_LOSS = 0.01  # of accuracy
CLOSE = 1.5  # ratio of times
SENSORS = ("ht_sensor", "gas_sensor")
SMALL_NOISE = 0.1  # of the data's own standard deviation: where the theorem speaks


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, how it is judged, what we measured, and the verdict."""

    text: str
    rule: str
    figure: str
    verdict: str


def judge_all(store: Store) -> list[Claim]:
    """Return all claims in the order of the paper."""
    distortion = Summary(store.table("distortion").rows)
    accuracy = Summary(store.table("accuracy").rows)
    partitions = Summary(store.table("partitions").rows)
    theorem, radius = store.table("theorem").rows, store.table("radius").rows
    return [
        _laplacian(theorem),
        _loss(theorem),
        _error_vanishes(theorem),
        _radius_vanishes(radius),
        _ratio_above_one(distortion),
        _ratio_of_sensors(distortion),
        _kmeans_is_less_accurate(accuracy),
        _rivals_are_alike(accuracy),
        _kmeans_is_fastest(accuracy),
        _kasp_is_slowest(accuracy),
        _like_rasp(accuracy),
        _two_partitions_beat_rasp(accuracy),
        _two_partitions_near_kmeans(accuracy),
        _more_partitions_are_faster(partitions, "seconds", "running in parallel"),
        _more_partitions_are_faster(partitions, "seconds_sequential", "even one after the other"),
        _sampling_loses_on_sensors(partitions),
        _projections_lose_nothing(partitions),
    ]


# --- the theorem -----------------------------------------------------------------------------------------------------


def small_noise(rows: Iterable[Row]) -> list[Row]:
    """Return the rows whose noise is small beside the spread of the data."""
    return [row for row in rows if float(row["sigma2"]) <= SMALL_NOISE**2 * float(row["variance"])]


def _laplacian(rows: list[Row]) -> Claim:
    by_kind = {
        f"{title_of(name, rows)}, {perturbation}": slope(numbers(some, "sigma2"), numbers(some, "laplacian2"))
        for name in ("separated", "overlapping")
        for perturbation in ("noise", "signatures")
        for some in [small_noise(pick(rows, data_set=name, kernel="gaussian", perturbation=perturbation))]
    }
    slopes = {kind: value for kind, value in by_kind.items() if value is not None}
    return Claim(
        "‖L̃ − L‖² is at most of the order of σ² + σ⁴ (Theorem 1, Gaussian kernel)",
        f"fitted slope of log ‖L̃ − L‖² over log σ², where σ is at most {SMALL_NOISE} of the data's, is at least 0.9",
        _list(slopes, "{:.2f}"),
        _verdict(slopes, lambda value: value >= 0.9),
    )


def _loss(rows: list[Row]) -> Claim:
    measured = pick(rows, kernel="gaussian")
    broken = [row for row in measured if float(row["loss"]) > float(row["laplacian2"])]
    where = sorted({title_of(row["data_set"], rows) for row in broken})
    figure = f"{len(measured) - len(broken)} of {len(measured)} perturbations" + (
        f"; exceptions on {', '.join(where)}" if where else ""
    )
    return Claim(
        "The loss of a cut in two is at most ‖L̃ − L‖² (Theorem 1, 'under suitable technical conditions')",
        "so in every perturbation measured with the Gaussian kernel",
        figure if measured else "",
        NOT_RUN if not measured else FAILS if broken else HOLDS,
    )


def _error_vanishes(rows: list[Row]) -> Claim:
    shrunk = {}
    for name in ("separated", "overlapping"):
        some = Summary(pick(rows, data_set=name, variant="gaussian, signatures"))
        levels = sorted(set(numbers(some.rows, "level")))
        if len(levels) > 1:
            few, many = (some.mean("laplacian2", level=f"{level:.6g}") for level in (levels[0], levels[-1]))
            if few and many is not None:
                shrunk[f"{title_of(name, rows)}, {levels[0]:.0f} to {levels[-1]:.0f} signatures"] = many / few
    return Claim(
        "With more signatures the bound vanishes",
        "‖L̃ − L‖² with the most signatures is less than a tenth of that with the fewest",
        _list(shrunk, "× {:.2g}"),
        _verdict(shrunk, lambda value: value < 0.1),
    )


def _radius_vanishes(rows: list[Row]) -> Claim:
    left = {}
    for name in dict.fromkeys(row["data_set"] for row in rows):
        # Beyond the depth that nearly all leaves have, a few deep leaves decide.
        some = [row for row in pick(rows, data_set=name) if int(row["depth"]) <= 8]
        by_depth = [Summary(some).mean("relative", depth=depth) for depth in range(9)]
        means = [value for value in by_depth if value is not None]
        shrinks = all(after < before for before, after in pairwise(means))
        left[title_of(name, rows)] = means[-1] if shrinks else 1.0
    shortest = dict(sorted(left.items(), key=lambda pair: pair[1]))
    figure = "" if not left else f"left at depth 8: {_list(shortest, '{:.2f}')}"
    return Claim(
        "The radius of tree leaves vanishes with depth",
        "the mean radius falls with each of 8 levels, on every set",
        figure,
        _verdict(left, lambda value: value < 1.0),
    )


# --- distortion ------------------------------------------------------------------------------------------------------


def _ratios(summary: Summary, names: Iterable[str]) -> dict[str, float]:
    found = {}
    for name in names:
        for n_partitions in PARTITIONS:
            ratio = summary.mean("ratio", data_set=name, n_partitions=n_partitions)
            if ratio is not None:
                found[f"{summary.title(name)}, {n_partitions}"] = ratio
    return found


def _ratio_above_one(summary: Summary) -> Claim:
    ratios = _ratios(summary, summary.sets(scored=True))
    return Claim(
        "Partitions by random sampling have more distortion than by projection, on all sets, with 2 and 3 partitions",
        "mean ratio of distortions above 1 on every set that can be tested",
        _list(ratios, "{:.3f}"),
        _verdict(ratios, lambda ratio: ratio > 1),
    )


def _ratio_of_sensors(summary: Summary) -> Claim:
    return _on_sensors(
        summary,
        "The ratio is above 1.5 on HT Sensor and Gas Sensor",
        "mean ratio above 1.5 on both, with 2 and 3 partitions",
        _ratios(summary, SENSORS),
        lambda ratio: ratio > 1.5,
        "{:.2f}",
    )


# --- accuracy --------------------------------------------------------------------------------------------------------


def _oracles(summary: Summary, name: str) -> list[float]:
    """Return the accuracies of the methods whose bandwidths are chosen by true labels, those that were run."""
    found = [summary.mean("accuracy", data_set=name, variant=one, selection="oracle") for one in SWEPT]
    return [value for value in found if value is not None]


def above_floor(summary: Summary) -> dict[str, float]:
    """Return, by data set, how many points the best oracle stands above putting all rows into one cluster."""
    above = {}
    for name in summary.sets(scored=True):
        found = _oracles(summary, name)
        floor = summary.mean("floor", data_set=name)
        if found and floor is not None:
            above[summary.title(name)] = 100 * (max(found) - floor)
    return above


def _beside_floor(summary: Summary, figure: str) -> str:
    """Add to a figure that the accuracies it speaks of are those of a single cluster, where they are."""
    above = above_floor(summary)
    if not above or max(above.values()) >= 100 * NEGLIGIBLE_LOSS:
        return figure
    return f"{figure}; but none is more than {max(above.values()):.1f} points above one single cluster"


def _kmeans_is_less_accurate(summary: Summary) -> Claim:
    gaps = {}
    for name in summary.sets(scored=True):
        kmeans = summary.mean("accuracy", data_set=name, variant="K-means")
        others = _oracles(summary, name)
        if kmeans is not None and others:
            gaps[summary.title(name)] = 100 * (min(others) - kmeans)
    lower = sum(gap >= 100 * MUCH for gap in gaps.values())
    return Claim(
        "K-means is much less accurate than the other three on all but one set (bandwidths chosen by true labels)",
        f"at least {100 * MUCH:.0f} points below the lowest of the others on all but one set that can be tested",
        _beside_floor(summary, _list(gaps, "{:+.1f} points")),
        NOT_RUN if not gaps else HOLDS if lower >= len(gaps) - 1 else FAILS,
    )


def _rivals_are_alike(summary: Summary) -> Claim:
    spreads = {}
    for name in summary.sets(scored=True):
        found = _oracles(summary, name)
        if len(found) > 1:
            spreads[summary.title(name)] = 100 * (max(found) - min(found))
    return Claim(
        "RASP, KASP and rpfCluster+ are about equally accurate (bandwidths chosen by true labels)",
        f"within {100 * MUCH:.0f} points of each other on every set that can be tested",
        _beside_floor(summary, _list(spreads, "{:.1f} points")),
        _verdict(spreads, lambda spread: spread <= 100 * MUCH),
    )


# --- time ------------------------------------------------------------------------------------------------------------


def _times(summary: Summary, name: str) -> dict[str, float]:
    found = {
        method: summary.median("seconds", data_set=name, variant=method, selection="no labels")
        for method in ("K-means", *SWEPT)
    }
    return {method: value for method, value in found.items() if value is not None}


def _time_ratios(summary: Summary, method: str, other: str) -> dict[str, float]:
    ratios = {}
    for name in summary.sets():
        times = _times(summary, name)
        if method in times and other in times:
            ratios[summary.title(name)] = times[method] / times[other]
    return ratios


def _kmeans_is_fastest(summary: Summary) -> Claim:
    behind = {}
    for name in summary.sets():
        times = _times(summary, name)
        if "K-means" in times and len(times) > 1:
            behind[summary.title(name)] = times["K-means"] / min(times.values())
    return Claim(
        "K-means is the fastest on all sets",
        "with 20 restarts, as in the paper, no other method takes less time; figure: its time over the fastest's",
        _list(behind, "{:.1f}"),
        _verdict(behind, lambda ratio: ratio <= 1),
    )


def _kasp_is_slowest(summary: Summary) -> Claim:
    ahead = {}
    for name in summary.sets():
        times = _times(summary, name)
        if "KASP" in times and len(times) > 1:
            ahead[summary.title(name)] = times["KASP"] / max(
                time for method, time in times.items() if method != "KASP"
            )
    slower = sum(ratio > 1 for ratio in ahead.values())
    return Claim(
        "KASP is the slowest on almost all sets",
        "on all but one; figure: its time over the slowest other's",
        _list(ahead, "{:.1f}"),
        NOT_RUN if not ahead else HOLDS if slower >= len(ahead) - 1 else FAILS,
    )


def _like_rasp(summary: Summary) -> Claim:
    ratios = _time_ratios(summary, "rpfCluster+(1)", "RASP")
    return Claim(
        "rpfCluster+ with one partition takes about as long as RASP",
        f"within a factor of {CLOSE} on every set; figure: its time over RASP's",
        _list(ratios, "{:.2f}"),
        _verdict(ratios, lambda ratio: 1 / CLOSE <= ratio <= CLOSE),
    )


def _two_partitions_beat_rasp(summary: Summary) -> Claim:
    ratios = _time_ratios(summary, "rpfCluster+(2)", "RASP")
    return Claim(
        "With two partitions it is faster than RASP",
        "on every set; figure: its time over RASP's",
        _list(ratios, "{:.2f}"),
        _verdict(ratios, lambda ratio: ratio < 1),
    )


def _two_partitions_near_kmeans(summary: Summary) -> Claim:
    ratios = _time_ratios(summary, "rpfCluster+(2)", "K-means")
    near = sum(ratio <= CLOSE for ratio in ratios.values())
    return Claim(
        "With two partitions it is about as fast as K-means on most sets",
        f"at most {CLOSE} times as long on more than half of the sets; figure: its time over K-means' (20 restarts)",
        _list(ratios, "{:.2f}"),
        NOT_RUN if not ratios else HOLDS if 2 * near > len(ratios) else FAILS,
    )


# --- partitions ------------------------------------------------------------------------------------------------------


def _more_partitions_are_faster(summary: Summary, column: str, how: str) -> Claim:
    ratios = {}
    for name in summary.sets():
        one, three = (
            summary.median(column, data_set=name, variant=f"projection {n}", selection="no labels")
            for n in (1, 3)
        )
        if one and three:
            ratios[summary.title(name)] = three / one
    faster = sum(ratio < 1 for ratio in ratios.values())
    return Claim(
        f"More partitions take less time, {how}",
        "on more than half of the sets, 3 partitions by projection take less than 1; figure: their time over its",
        _list(ratios, "{:.2f}"),
        NOT_RUN if not ratios else HOLDS if 2 * faster > len(ratios) else FAILS,
    )


def _lost_points(summary: Summary, divide: str, names: Iterable[str]) -> dict[str, float]:
    lost = {}
    for name in names:
        one, three = (
            summary.mean("accuracy", data_set=name, variant=variant, selection="oracle")
            for variant in ("projection 1", f"{divide} 3")
        )
        if one is not None and three is not None:
            lost[summary.title(name)] = 100 * (one - three)
    return lost


def _sampling_loses_on_sensors(summary: Summary) -> Claim:
    return _on_sensors(
        summary,
        "On HT Sensor and Gas Sensor, partitions by sampling lose accuracy as they grow in number",
        f"3 partitions lose more than {100 * NEGLIGIBLE_LOSS:.0f} point on both",
        _lost_points(summary, "sampling", SENSORS),
        lambda lost: lost > 100 * NEGLIGIBLE_LOSS,
        "{:+.1f} points",
    )


def _projections_lose_nothing(summary: Summary) -> Claim:
    lost = _lost_points(summary, "projection", summary.sets(scored=True))
    return Claim(
        "Partitions by projection lose almost no accuracy",
        f"3 partitions lose at most {100 * NEGLIGIBLE_LOSS:.0f} point on every set that can be tested",
        _list(lost, "{:+.1f} points"),
        _verdict(lost, lambda points: points <= 100 * NEGLIGIBLE_LOSS),
    )


# --- words -----------------------------------------------------------------------------------------------------------


def _on_sensors(
    summary: Summary,
    text: str,
    rule: str,
    figures: dict[str, float],
    holds: Callable[[float], bool],
    form: str,
) -> Claim:
    """Judge a claim on the two sensor sets, if they are the genuine ones."""
    genuine = set(SENSORS) <= set(summary.sets(scored=True))
    return Claim(text, rule, _list(figures, form), _verdict(figures, holds) if genuine else UNTESTABLE)


def _list(figures: dict[str, float], form: str) -> str:
    return "; ".join(f"{name}: {form.format(value)}" for name, value in figures.items())


def _verdict(figures: dict[str, float], holds: Callable[[float], bool]) -> str:
    if not figures:
        return NOT_RUN
    return HOLDS if all(holds(value) for value in figures.values()) else FAILS
