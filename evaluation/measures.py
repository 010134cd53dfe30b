"""The figures that the paper's claims are judged by, from the tables of a run: a number for each data set."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

from evaluation.accuracy import SWEPT
from evaluation.distortion import VARIANTS as PARTITIONS
from evaluation.store import Row, Store
from evaluation.summary import Summary, numbers, pick, slope, title_of

__all__ = [
    "SENSORS",
    "SMALL_NOISE",
    "Measure",
    "above_floor",
    "distortion_ratios",
    "gaps_to_kmeans",
    "laplacian_shrinks",
    "laplacian_slopes",
    "loss_within_bound",
    "lost_points",
    "partition_times",
    "radius_left",
    "small_noise",
    "spreads_of_rivals",
    "time_over",
    "time_over_fastest",
    "time_over_slowest",
]

Measure = Callable[[Store], dict[str, float]]

SENSORS = ("ht_sensor", "gas_sensor")
SMALL_NOISE = 0.1  # of the data's own standard deviation: the theorem is about small noise
_CLUMPS = ("separated", "overlapping")
_DEEPEST = 8  # nearly all leaves are at least this deep; beyond that, a few deep ones decide


def small_noise(rows: Iterable[Row]) -> list[Row]:
    """Return the rows whose noise is small beside the spread of the data."""
    return [row for row in rows if float(row["sigma2"]) <= SMALL_NOISE**2 * float(row["variance"])]


def laplacian_slopes(store: Store) -> dict[str, float]:
    """Return the slope of log ||L~ - L||^2 over log sigma^2 for small noise, Gaussian kernel."""
    rows, found = store.table("theorem").rows, {}
    for name in _CLUMPS:
        for perturbation in ("noise", "signatures"):
            some = small_noise(pick(rows, data_set=name, variant=f"gaussian, {perturbation}"))
            fitted = slope(numbers(some, "sigma2"), numbers(some, "laplacian2"))
            if fitted is not None:
                found[f"{title_of(name, rows)}, {perturbation}"] = fitted
    return found


def loss_within_bound(store: Store) -> dict[str, float]:
    """Return the share, in percent, of perturbations whose loss is at most ||L~ - L||^2, Gaussian kernel."""
    rows = pick(store.table("theorem").rows, kernel="gaussian")
    found = {}
    for name in dict.fromkeys(row["data_set"] for row in rows):
        some = pick(rows, data_set=name)
        within = sum(float(row["loss"]) <= float(row["laplacian2"]) for row in some)
        found[title_of(name, rows)] = 100 * within / len(some)
    return found


def laplacian_shrinks(store: Store) -> dict[str, float]:
    """Return ||L~ - L||^2 with the most signatures over the same with the fewest, Gaussian kernel."""
    rows, found = store.table("theorem").rows, {}
    for name in _CLUMPS:
        some = Summary(pick(rows, data_set=name, variant="gaussian, signatures"))
        levels = sorted(set(numbers(some.rows, "level")))
        if len(levels) > 1:
            few, many = (some.mean("laplacian2", level=f"{level:.6g}") for level in (levels[0], levels[-1]))
            if few and many is not None:
                found[f"{title_of(name, rows)}, {levels[0]:.0f} to {levels[-1]:.0f} signatures"] = many / few
    return found


def radius_left(store: Store) -> dict[str, float]:
    """Return the mean radius at depth 8 over that of the root, 1 where it does not fall with every level."""
    rows, found = store.table("radius").rows, {}
    for name in dict.fromkeys(row["data_set"] for row in rows):
        some = Summary(pick(rows, data_set=name))
        by_depth = [some.mean("relative", depth=depth) for depth in range(_DEEPEST + 1)]
        means = [value for value in by_depth if value is not None]
        shrinks = all(after < before for before, after in pairwise(means))
        found[title_of(name, rows)] = means[-1] if shrinks else 1.0
    return dict(sorted(found.items(), key=lambda pair: pair[1]))


def distortion_ratios(*, sensors: bool) -> Measure:
    """Return the measure: distortion by sampling over that by projection."""

    def measure(store: Store) -> dict[str, float]:
        summary, found = Summary(store.table("distortion").rows), {}
        for name in SENSORS if sensors else summary.sets(scored=True):
            for variant in PARTITIONS:
                ratio = summary.mean("ratio", data_set=name, variant=variant)
                if ratio is not None:
                    found[f"{summary.title(name)}, {variant}"] = ratio
        return found

    return measure


def _oracles(summary: Summary, name: str) -> list[float]:
    """Return the accuracies of the methods whose bandwidths are chosen by true labels, those that were run."""
    found = [summary.mean("accuracy", data_set=name, variant=one, selection="oracle") for one in SWEPT]
    return [value for value in found if value is not None]


def _by_set(store: Store, points: Callable[[Summary, str, list[float]], float | None]) -> dict[str, float]:
    """Return a number of points of accuracy for every scored set on which bandwidths were searched."""
    summary, found = Summary(store.table("accuracy").rows), {}
    for name in summary.sets(scored=True):
        oracles = _oracles(summary, name)
        value = points(summary, name, oracles) if oracles else None
        if value is not None:
            found[summary.title(name)] = 100 * value
    return found


def above_floor(store: Store) -> dict[str, float]:
    """Return how many points the best oracle stands above putting all rows into one cluster."""
    return _by_set(store, lambda summary, name, oracles: _less(max(oracles), summary.mean("floor", data_set=name)))


def gaps_to_kmeans(store: Store) -> dict[str, float]:
    """Return how many points K-means stands below the lowest oracle."""
    return _by_set(
        store,
        lambda summary, name, oracles: _less(min(oracles), summary.mean("accuracy", data_set=name, variant="K-means")),
    )


def spreads_of_rivals(store: Store) -> dict[str, float]:
    """Return how many points lie between the highest and the lowest oracle."""
    return _by_set(store, lambda summary, name, oracles: max(oracles) - min(oracles) if len(oracles) > 1 else None)


def _less(value: float, other: float | None) -> float | None:
    return None if other is None else value - other


def _times(store: Store) -> dict[str, dict[str, float]]:
    """Return the median seconds of every method, by data set."""
    summary, found = Summary(store.table("accuracy").rows), {}
    for name in summary.sets():
        seconds = {
            method: summary.median("seconds", data_set=name, variant=method, selection="no labels")
            for method in ("K-means", *SWEPT)
        }
        found[summary.title(name)] = {key: value for key, value in seconds.items() if value is not None}
    return found


def time_over(method: str, other: str) -> Measure:
    """Return the measure: the seconds of one method over those of another."""
    return lambda store: {
        title: times[method] / times[other]
        for title, times in _times(store).items()
        if method in times and other in times
    }


def time_over_fastest(store: Store) -> dict[str, float]:
    """Return the seconds of K-means over those of the fastest of all."""
    return {
        title: times["K-means"] / min(times.values())
        for title, times in _times(store).items()
        if "K-means" in times and len(times) > 1
    }


def time_over_slowest(store: Store) -> dict[str, float]:
    """Return the seconds of KASP over those of the slowest other method."""
    return {
        title: times["KASP"] / max(value for method, value in times.items() if method != "KASP")
        for title, times in _times(store).items()
        if "KASP" in times and len(times) > 1
    }


def partition_times(column: str) -> Measure:
    """Return the measure: seconds with 3 partitions by projection over those with 1."""

    def measure(store: Store) -> dict[str, float]:
        summary, found = Summary(store.table("partitions").rows), {}
        for name in summary.sets():
            one, three = (
                summary.median(column, data_set=name, variant=f"projection {n}", selection="no labels") for n in (1, 3)
            )
            if one and three:
                found[summary.title(name)] = three / one
        return found

    return measure


def lost_points(divide: str, *, sensors: bool) -> Measure:
    """Return the measure: points of accuracy (oracle) that 3 partitions lose against 1."""

    def measure(store: Store) -> dict[str, float]:
        summary, found = Summary(store.table("partitions").rows), {}
        for name in SENSORS if sensors else summary.sets(scored=True):
            one, three = (
                summary.mean("accuracy", data_set=name, variant=variant, selection="oracle")
                for variant in ("projection 1", f"{divide} 3")
            )
            if one is not None and three is not None:
                found[summary.title(name)] = 100 * (one - three)
        return found

    return measure
