"""The figures that the paper's claims are judged by, from the tables of a run, and the data sets they cover."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from evaluation.accuracy import SWEPT
from evaluation.distortion import VARIANTS as PARTITIONS
from evaluation.sets import GENERATED, PAPER_SETS, TITLES
from evaluation.store import Row, Store
from evaluation.summary import Summary, numbers, pick, slope, title_of

__all__ = [
    "NEGLIGIBLE",
    "SENSORS",
    "SMALL_NOISE",
    "Found",
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

SENSORS = ("ht_sensor", "gas_sensor")
SMALL_NOISE = 0.1  # of the data's own standard deviation: the theorem is about small noise
NEGLIGIBLE = 1.0  # points of accuracy
BUSY = 1.5  # processes for each core, ours included
NOT_RUN, SIMULATED = "not run", "simulated"
_CLUMPS = ("separated", "overlapping")
_DEEPEST = 8  # nearly all leaves are at least this deep; beyond that, a few deep ones decide
_SEARCHED = dict.fromkeys(SWEPT, "oracle, not degenerate")


@dataclass(frozen=True)
class Found:
    """A figure for each data set, and the sets that do not count.

    Attributes
    ----------
    figures : dict
        By title.
    excluded : dict
        The reason by title; such a set may still have a figure.
    """

    figures: dict[str, float] = field(default_factory=dict)
    excluded: dict[str, str] = field(default_factory=dict)

    @property
    def counted(self) -> dict[str, float]:
        """The figures that count."""
        return {title: value for title, value in self.figures.items() if title not in self.excluded}

    @property
    def n_wanted(self) -> int:
        """How many there should be."""
        return len(self.figures.keys() | self.excluded.keys())

    def __or__(self, other: Found) -> Found:
        return Found(self.figures | other.figures, self.excluded | other.excluded)


Measure = Callable[[Store], Found]


def _by_set(
    summary: Summary,
    value: Callable[[str], float],
    *,
    sets: Iterable[str] = PAPER_SETS,
    scored: bool = False,
    needs: Mapping[str, str] | None = None,
    suffix: str = "",
) -> Found:
    """Return a figure for each data set that has what it needs: variants, each with a selection of the bandwidth."""
    found = Found()
    for name in sets:
        rows, title = pick(summary.rows, data_set=name), summary.title(name) + suffix
        absent = [one for one, chosen in (needs or {}).items() if not pick(rows, variant=one, selection=chosen)]
        if not rows:
            found.excluded[title] = NOT_RUN
        elif scored and rows[0]["origin"] == SIMULATED:
            found.excluded[TITLES[name] + suffix] = SIMULATED
        elif absent:
            found.excluded[title] = f"no {', '.join(absent)}"
        else:
            found.figures[title] = value(name)
    return found


def _at_floor(summary: Summary, found: Found, best: Callable[[str], float]) -> Found:
    """Exclude sets whose best accuracy is that of one single cluster, or lower: there accuracy says nothing."""
    for name in PAPER_SETS:
        title, floor = summary.title(name), summary.mean("floor", data_set=name)
        if title in found.figures and floor is not None and 100 * (best(name) - floor) < NEGLIGIBLE:
            found.excluded[title] = "at or below the floor"
    return found


def _if_quiet(summary: Summary, found: Found, suffix: str = "") -> Found:
    """Exclude sets whose times were measured while more processes wanted a core than there are cores, and half more."""
    for name in PAPER_SETS:
        rows, title = pick(summary.rows, data_set=name), summary.title(name) + suffix
        cores = re.search(r"of (\d+) cores", rows[0].get("machine", "")) if rows else None
        if title in found.figures and cores and (summary.median("load", data_set=name) or 0) > BUSY * int(cores[1]):
            found.excluded[title] = "busy machine"
    return found


def small_noise(rows: Iterable[Row]) -> list[Row]:
    """Return the rows whose noise is small compared with the spread of the data."""
    return [row for row in rows if float(row["sigma2"]) <= SMALL_NOISE**2 * float(row["variance"])]


def laplacian_slopes(store: Store) -> Found:
    """Return the slope of log ||L~ - L||^2 over log sigma^2 for small noise, Gaussian kernel."""
    rows, found = store.table("theorem").rows, Found()
    for name in _CLUMPS:
        for perturbation in ("noise", "signatures"):
            some = small_noise(pick(rows, data_set=name, variant=f"gaussian, {perturbation}"))
            fitted = slope(numbers(some, "sigma2"), numbers(some, "laplacian2"))
            title = f"{title_of(name, rows)} with {perturbation}"
            if fitted is None:
                found.excluded[title] = "too few of small noise" if some else NOT_RUN
            else:
                found.figures[title] = fitted
    return found


def loss_within_bound(store: Store) -> Found:
    """Return the share, in percent, of perturbations whose loss is at most ||L~ - L||^2, Gaussian kernel."""
    rows = pick(store.table("theorem").rows, kernel="gaussian")

    def within(name: str) -> float:
        some = pick(rows, data_set=name)
        return 100 * sum(float(row["loss"]) <= float(row["laplacian2"]) for row in some) / len(some)

    return _by_set(Summary(rows), within, sets=_CLUMPS)


def laplacian_shrinks(store: Store) -> Found:
    """Return ||L~ - L||^2 with the most signatures over the same with the fewest, Gaussian kernel."""
    summary = Summary(pick(store.table("theorem").rows, variant="gaussian, signatures"))

    def left(name: str) -> float:
        some = Summary(pick(summary.rows, data_set=name))
        levels = sorted(set(numbers(some.rows, "level")))
        few, many = (some.mean("laplacian2", level=f"{level:.6g}") for level in (levels[0], levels[-1]))
        return many / few if few and many is not None else 1.0

    return _by_set(summary, left, sets=_CLUMPS)


def radius_left(store: Store) -> Found:
    """Return the mean radius at depth 8 over that of the root, 1 where it does not fall with every level."""
    summary = Summary(store.table("radius").rows)

    def left(name: str) -> float:
        by_depth = [summary.mean("relative", data_set=name, depth=depth) for depth in range(_DEEPEST + 1)]
        means = [value for value in by_depth if value is not None]
        return means[-1] if all(after < before for before, after in pairwise(means)) else 1.0

    return _by_set(summary, left, sets=(*PAPER_SETS, *GENERATED))


def distortion_ratios(sets: Iterable[str] = PAPER_SETS) -> Measure:
    """Return the measure: distortion by sampling over that by projection."""

    def measure(store: Store) -> Found:
        summary, found = Summary(store.table("distortion").rows), Found()
        for variant in PARTITIONS:

            def ratio(name: str, variant: str = variant) -> float:
                return summary.mean("ratio", data_set=name, variant=variant) or 0.0

            needs = {variant: ""}
            found |= _by_set(summary, ratio, sets=sets, scored=True, needs=needs, suffix=f" with {variant}")
        return found

    return measure


def above_floor(store: Store) -> dict[str, float]:
    """Return how many points the best bandwidth of all is above putting all rows into one cluster."""
    summary = Summary(pick(store.table("accuracy").rows, selection="oracle"))

    def points(name: str) -> float:
        best = max(_accuracies(summary, name, dict.fromkeys(SWEPT, "oracle")))
        return 100 * (best - (summary.mean("floor", data_set=name) or 0.0))

    return _by_set(summary, points, scored=True).figures


def _accuracies(summary: Summary, name: str, wanted: Mapping[str, str]) -> list[float]:
    found = [summary.mean("accuracy", data_set=name, variant=one, selection=by) for one, by in wanted.items()]
    return [value for value in found if value is not None]


def _oracles(store: Store, points: Callable[[list[float], float], float], selection: str, *more: str) -> Found:
    """Return points of accuracy from those of the methods whose bandwidths are searched, and that of K-means."""
    summary = Summary(store.table("accuracy").rows)
    wanted = dict.fromkeys(SWEPT, selection)

    def of(name: str) -> float:
        kmeans = _accuracies(summary, name, {"K-means": "no labels"})
        return 100 * points(_accuracies(summary, name, wanted), kmeans[0] if kmeans else 0.0)

    found = _by_set(summary, of, scored=True, needs=wanted | dict.fromkeys(more, "no labels"))
    return _at_floor(summary, found, lambda name: max(_accuracies(summary, name, wanted)))


def gaps_to_kmeans(selection: str) -> Measure:
    """Return the measure: how many points K-means is below the lowest of the others."""
    return lambda store: _oracles(store, lambda others, kmeans: min(others) - kmeans, selection, "K-means")


def spreads_of_rivals(selection: str) -> Measure:
    """Return the measure: how many points lie between the highest and the lowest."""
    return lambda store: _oracles(store, lambda others, _: max(others) - min(others), selection)


def lost_points(divide: str, sets: Iterable[str] = PAPER_SETS) -> Measure:
    """Return the measure: points of accuracy that 3 partitions lose against 1, best bandwidth not degenerate."""
    wanted = {"projection 1": "oracle, not degenerate", f"{divide} 3": "oracle, not degenerate"}

    def measure(store: Store) -> Found:
        summary = Summary(store.table("partitions").rows)

        def lost(name: str) -> float:
            one, three = _accuracies(summary, name, wanted)
            return 100 * (one - three)

        found = _by_set(summary, lost, sets=sets, scored=True, needs=wanted)
        return _at_floor(summary, found, lambda name: max(_accuracies(summary, name, wanted)))

    return measure


def _times(store: Store, ratio: Callable[[dict[str, float]], float], methods: Iterable[str]) -> Found:
    """Return a ratio of the median seconds of some methods."""
    summary, wanted = Summary(store.table("accuracy").rows), dict.fromkeys(methods, "no labels")

    def of(name: str) -> float:
        seconds = {
            method: summary.median("seconds", data_set=name, variant=method, selection="no labels") or 0.0
            for method in wanted
        }
        return ratio(seconds)

    return _if_quiet(summary, _by_set(summary, of, needs=wanted))


def time_over(method: str, other: str) -> Measure:
    """Return the measure: the seconds of one method over those of another."""
    return lambda store: _times(store, lambda seconds: seconds[method] / seconds[other], (method, other))


def time_over_fastest(kmeans: str) -> Measure:
    """Return the measure: the seconds of K-means over those of the fastest; KASP begins with K-means, so it is not."""
    methods = (kmeans, "RASP", "rpfCluster+(1)", "rpfCluster+(2)")
    return lambda store: _times(store, lambda seconds: seconds[kmeans] / min(seconds.values()), methods)


def time_over_slowest(store: Store) -> Found:
    """Return the seconds of KASP over those of the slowest other method."""
    methods = ("K-means", *SWEPT)
    return _times(store, lambda all_: all_["KASP"] / max(all_[one] for one in methods if one != "KASP"), methods)


def partition_times(column: str) -> Measure:
    """Return the measure: seconds with 2 and 3 partitions by projection over those with 1."""

    def measure(store: Store) -> Found:
        summary, found = Summary(store.table("partitions").rows), Found()
        for n in (2, 3):
            many = f"projection {n}"
            wanted = dict.fromkeys(("projection 1", many), "no labels")

            def ratio(name: str, wanted: dict[str, str] = wanted) -> float:
                one, more = (summary.median(column, data_set=name, variant=v, selection=by) for v, by in wanted.items())
                return more / one if one and more else 1.0

            suffix = f" with {n} partitions"
            part = _if_quiet(summary, _by_set(summary, ratio, needs=wanted, suffix=suffix), suffix)
            cores = min(numbers(summary.rows, "cores"), default=0)
            if column == "seconds" and cores < n:
                part.excluded.update(dict.fromkeys(part.figures, f"fewer than {n} cores"))
            found |= part
        return found

    return measure
