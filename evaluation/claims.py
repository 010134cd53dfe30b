"""The paper's claims, each with the rule it is judged by, our figures and a verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evaluation import measures
from evaluation.measures import SENSORS, SMALL_NOISE, Measure
from evaluation.store import Store
from evaluation.summary import Summary

__all__ = ["CLAIMS", "Claim", "Judged", "judge_all"]

HOLDS, FAILS, UNTESTABLE, NOT_RUN = "holds", "does not", "cannot be tested offline", "not run"

MUCH = 5.0  # points of accuracy: what "much lower" and "similar" are taken to mean
NEGLIGIBLE = 1.0  # points of accuracy
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
    on_sensors : bool
        Whether the claim is about the two sensor sets, whose stand-ins prove nothing.
    note : callable, optional
        Gives a word of caution from the results.
    """

    text: str
    rule: str
    measure: Measure
    form: str
    holds: Callable[[float], bool]
    enough: Enough = _all
    on_sensors: bool = False
    note: Callable[[Store], str] | None = None

    def judge(self, store: Store) -> Judged:
        """Return the verdict on the results of a run."""
        figures = self.measure(store)
        written = "; ".join(f"{name}: {self.form.format(value)}" for name, value in figures.items())
        if figures and self.note is not None:
            written += self.note(store)
        return Judged(self, written, self._verdict(store, list(figures.values())))

    def _verdict(self, store: Store, figures: list[float]) -> str:
        if self.on_sensors and not _sensors_are_genuine(store):
            return UNTESTABLE
        if not figures:
            return NOT_RUN
        return HOLDS if self.enough(sum(map(self.holds, figures)), len(figures)) else FAILS


@dataclass(frozen=True)
class Judged:
    """A claim, what we measured, and the verdict."""

    claim: Claim
    figure: str
    verdict: str


def judge_all(store: Store) -> list[Judged]:
    """Return all claims, judged, in the order of the paper."""
    return [claim.judge(store) for claim in CLAIMS]


def _sensors_are_genuine(store: Store) -> bool:
    return set(SENSORS) <= set(Summary(store.table("distortion").rows).sets(scored=True))


def _beside_floor(store: Store) -> str:
    """Say so if the accuracies are those of a single cluster."""
    highest = max(measures.above_floor(store).values(), default=NEGLIGIBLE)
    if highest >= NEGLIGIBLE:
        return ""
    return f"; but none is more than {highest:.1f} points above one single cluster"


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
        "mean ratio of distortions above 1 on every set that can be tested",
        measures.distortion_ratios(sensors=False),
        "{:.3f}",
        lambda ratio: ratio > 1,
    ),
    Claim(
        "The ratio is above 1.5 on HT Sensor and Gas Sensor",
        "mean ratio above 1.5 on both, with 2 and 3 partitions",
        measures.distortion_ratios(sensors=True),
        "{:.2f}",
        lambda ratio: ratio > 1.5,
        on_sensors=True,
    ),
    Claim(
        "K-means is much less accurate than the other three on all but one set (bandwidths chosen by true labels)",
        f"at least {MUCH:.0f} points below the lowest of the others on all but one set that can be tested",
        measures.gaps_to_kmeans,
        "{:+.1f} points",
        lambda points: points >= MUCH,
        _all_but_one,
        note=_beside_floor,
    ),
    Claim(
        "RASP, KASP and rpfCluster+ are about equally accurate (bandwidths chosen by true labels)",
        f"within {MUCH:.0f} points of each other on every set that can be tested",
        measures.spreads_of_rivals,
        "{:.1f} points",
        lambda points: points <= MUCH,
        note=_beside_floor,
    ),
    Claim(
        "K-means is the fastest on all sets",
        "with 20 restarts, as in the paper, no other method takes less time; figure: its time over the fastest's",
        measures.time_over_fastest,
        "{:.1f}",
        lambda ratio: ratio <= 1,
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
    Claim(
        "With two partitions it is about as fast as K-means on most sets",
        f"at most {CLOSE} times as long on more than half of the sets; figure: its time over K-means' (20 restarts)",
        measures.time_over("rpfCluster+(2)", "K-means"),
        "{:.2f}",
        lambda ratio: ratio <= CLOSE,
        _most,
    ),
    *(
        Claim(
            f"More partitions take less time, {how}",
            "on more than half of the sets, 3 partitions by projection take less than 1; figure: their time over its",
            measures.partition_times(column),
            "{:.2f}",
            lambda ratio: ratio < 1,
            _most,
        )
        for column, how in (
            ("seconds", "running in parallel"),
            ("seconds_sequential", "even one after the other"),
        )
    ),
    Claim(
        "On HT Sensor and Gas Sensor, partitions by sampling lose accuracy as they grow in number",
        f"3 partitions lose more than {NEGLIGIBLE:.0f} point on both",
        measures.lost_points("sampling", sensors=True),
        "{:+.1f} points",
        lambda points: points > NEGLIGIBLE,
        on_sensors=True,
    ),
    Claim(
        "Partitions by projection lose almost no accuracy",
        f"3 partitions lose at most {NEGLIGIBLE:.0f} point on every set that can be tested",
        measures.lost_points("projection", sensors=False),
        "{:+.1f} points",
        lambda points: points <= NEGLIGIBLE,
    ),
)
