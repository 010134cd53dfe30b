"""The paper's claims, each with the rule it is judged by, our figures and a verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evaluation import measures
from evaluation.measures import NEGLIGIBLE, NOT_RUN, SENSORS, SMALL_NOISE, Found, Measure
from evaluation.store import Store

__all__ = ["CLAIMS", "Claim", "Judged", "judge_all"]

HOLDS, FAILS, UNTESTABLE = "holds", "does not hold", "cannot be tested here"

MUCH = 5.0  # points of accuracy: what "much lower" and "similar" are taken to mean
CLOSE = 1.5  # ratio of times

Enough = Callable[[int, int], bool]  # of so many that hold, among so many


def _all(holding: int, measured: int) -> bool:
    return holding == measured


def _all_but_one(holding: int, measured: int) -> bool:
    return holding >= max(1, measured - 1)


def _most(holding: int, measured: int) -> bool:
    return 2 * holding > measured


@dataclass(frozen=True)
class Claim:
    """A claim of the paper and how it is judged.

    Attributes
    ----------
    text : str
        What the paper says.
    rule : str
        The condition under which we say that it holds.
    measure : callable
        Gives a figure for each data set from the results.
    form : str
        How a figure is written.
    holds : callable
        Whether a figure agrees with the claim.
    enough : callable
        Whether the number of agreeing figures, among all, is enough.
    note : measure, optional
        More figures to show, and what they are.
    """

    text: str
    rule: str
    measure: Measure
    form: str
    holds: Callable[[float], bool]
    enough: Enough = _all
    note: tuple[str, Measure] | None = None

    def judge(self, store: Store) -> Judged:
        """Return the verdict on the results of a run."""
        found = self.measure(store)
        written = self._written(found)
        if self.note is not None and written:
            label, more = self.note
            written += f"; {label}: {self._written(more(store)) or '–'}"
        return Judged(self, written, _coverage(found), self._verdict(found))

    def _written(self, found: Found) -> str:
        return "; ".join(f"{name}: {self.form.format(value)}" for name, value in found.figures.items())

    def _verdict(self, found: Found) -> str:
        counted = found.counted
        agreeing = [name for name, value in counted.items() if self.holds(value)]
        if not found.figures and set(found.excluded.values()) <= {NOT_RUN}:
            return NOT_RUN
        if 2 * len(counted) < max(1, found.n_wanted):
            return UNTESTABLE
        if self.enough(len(agreeing), len(counted)):
            return HOLDS if len(counted) == found.n_wanted else f"{HOLDS} where tested"
        return f"{HOLDS} only for {', '.join(agreeing)}" if agreeing else FAILS


@dataclass(frozen=True)
class Judged:
    """A claim, what we measured, what that covers, and the verdict."""

    claim: Claim
    figure: str
    coverage: str
    verdict: str


def judge_all(store: Store) -> list[Judged]:
    """Return all claims, judged, in the order of the paper."""
    return [claim.judge(store) for claim in CLAIMS]


def _coverage(found: Found) -> str:
    """Say how many figures count, and why the others do not."""
    by_reason: dict[str, list[str]] = {}
    for title, reason in found.excluded.items():
        by_reason.setdefault(reason, []).append(title)
    reasons = [f"{reason}: {', '.join(titles)}" for reason, titles in by_reason.items()]
    return "; ".join([f"{len(found.counted)} of {found.n_wanted}", *reasons])


_RESTARTED = (("K-means", "20 restarts, as in the paper"), ("K-means, 1 restart", "one restart"))

CLAIMS = (
    Claim(
        "‖L̃ − L‖² is at most of the order of σ² + σ⁴ (Theorem 1, Gaussian kernel)",
        f"fitted slope of log ‖L̃ − L‖² over log σ², where σ is at most {SMALL_NOISE} of the data's, is at least 0.9",
        measures.laplacian_slopes,
        "{:.2f}",
        lambda slope: slope >= 0.9,
    ),
    Claim(
        "The loss of a cut in two is at most ‖L̃ − L‖² (Theorem 1, 'under suitable technical conditions')",
        "so in every perturbation measured with the Gaussian kernel; figure: in how many",
        measures.loss_within_bound,
        "{:.0f} %",
        lambda percent: percent == 100,
    ),
    Claim(
        "With more signatures the bound vanishes",
        "‖L̃ − L‖² with the most signatures is less than a tenth of that with the fewest",
        measures.laplacian_shrinks,
        "× {:.2g}",
        lambda left: left < 0.1,
    ),
    Claim(
        "The radius of tree leaves vanishes with depth",
        "the mean radius falls with each of 8 levels, on every set; figure: what is left of it",
        measures.radius_left,
        "{:.2f}",
        lambda left: left < 1,
    ),
    Claim(
        "Partitions by random sampling have more distortion than by projection, on all sets, with 2 and 3 partitions",
        "mean ratio of distortions above 1 on every set",
        measures.distortion_ratios(),
        "{:.3f}",
        lambda ratio: ratio > 1,
    ),
    Claim(
        "The ratio is above 1.5 on HT Sensor and Gas Sensor",
        "mean ratio above 1.5 on both, with 2 and 3 partitions",
        measures.distortion_ratios(SENSORS),
        "{:.2f}",
        lambda ratio: ratio > 1.5,
    ),
    Claim(
        "K-means is much less accurate than the other three on all but one set (bandwidths chosen by true labels)",
        f"at least {MUCH:.0f} points below the lowest of the others on all but one set; of bandwidths that are not "
        f"degenerate; a set counts if the best is {NEGLIGIBLE:.0f} point above one single cluster",
        measures.gaps_to_kmeans("oracle, not degenerate"),
        "{:+.1f} points",
        lambda points: points >= MUCH,
        _all_but_one,
        ("with degenerate bandwidths", measures.gaps_to_kmeans("oracle")),
    ),
    Claim(
        "RASP, KASP and rpfCluster+ are about equally accurate (bandwidths chosen by true labels)",
        f"within {MUCH:.0f} points of each other on every set; of bandwidths that are not degenerate; a set counts as "
        "above",
        measures.spreads_of_rivals("oracle, not degenerate"),
        "{:.1f} points",
        lambda points: points <= MUCH,
        note=("with degenerate bandwidths", measures.spreads_of_rivals("oracle")),
    ),
    *(
        Claim(
            f"K-means is the fastest on all sets ({how})",
            "no other method takes less time; figure: its time over the fastest's",
            measures.time_over_fastest(method),
            "{:.1f}",
            lambda ratio: ratio <= 1,
        )
        for method, how in _RESTARTED
    ),
    Claim(
        "KASP is the slowest on almost all sets",
        "on all but one; figure: its time over the slowest other's",
        measures.time_over_slowest,
        "{:.1f}",
        lambda ratio: ratio > 1,
        _all_but_one,
    ),
    Claim(
        "rpfCluster+ with one partition takes about as long as RASP",
        f"within a factor of {CLOSE} on every set; figure: its time over RASP's",
        measures.time_over("rpfCluster+(1)", "RASP"),
        "{:.2f}",
        lambda ratio: 1 / CLOSE <= ratio <= CLOSE,
    ),
    Claim(
        "With two partitions it is faster than RASP",
        "on every set; figure: its time over RASP's",
        measures.time_over("rpfCluster+(2)", "RASP"),
        "{:.2f}",
        lambda ratio: ratio < 1,
    ),
    *(
        Claim(
            f"With two partitions it is about as fast as K-means on most sets ({how})",
            f"at most {CLOSE} times as long on more than half of the sets; figure: its time over K-means'",
            measures.time_over("rpfCluster+(2)", method),
            "{:.2f}",
            lambda ratio: ratio <= CLOSE,
            _most,
        )
        for method, how in _RESTARTED
    ),
    *(
        Claim(
            f"More partitions take less time, {how}",
            "2 and 3 partitions by projection take less than 1 in more than half of all cases; figure: their time "
            "over its",
            measures.partition_times(column),
            "{:.2f}",
            lambda ratio: ratio < 1,
            _most,
        )
        for column, how in (
            ("seconds", "running in parallel with a core for each partition"),
            ("seconds_sequential", "even one after the other on one core"),
        )
    ),
    Claim(
        "On HT Sensor and Gas Sensor, partitions by sampling lose accuracy as they grow in number",
        f"3 partitions lose more than {NEGLIGIBLE:.0f} point on both",
        measures.lost_points("sampling", SENSORS),
        "{:+.1f} points",
        lambda points: points > NEGLIGIBLE,
    ),
    Claim(
        "Partitions by projection lose almost no accuracy",
        f"3 partitions lose at most {NEGLIGIBLE:.0f} point on every set; a set counts as above",
        measures.lost_points("projection"),
        "{:+.1f} points",
        lambda points: points <= NEGLIGIBLE,
    ),
)
