"""The requested number of clusters; the verdict: why there are this many, in numbers and as a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

from dc2.errors import ParameterError
from dc2.io.model_file import saved_record
from dc2.parameters import check_integer


@saved_record
@dataclass(frozen=True)
class RequestedClusters:
    """The requested number of clusters: at least `low` and, unless `high` is None, at most `high`."""

    low: int = 1
    high: int | None = None

    def __post_init__(self) -> None:
        check_integer("the smallest number of clusters", self.low, low=1)
        if self.high is not None and check_integer("the largest number of clusters", self.high) < self.low:
            raise ParameterError(
                f"The range of numbers of clusters is upside down: from {self.low} to {self.high}; "
                "put the smaller number first."
            )

    @classmethod
    def of(cls, n_clusters: Any) -> RequestedClusters:
        """Return what ``n_clusters`` (an int, "auto", a pair or a range) requests, or raise."""
        if isinstance(n_clusters, str) and n_clusters == "auto":
            return cls(1, None)
        if isinstance(n_clusters, range):
            if n_clusters.step != 1 or not len(n_clusters):
                raise ParameterError(
                    f"n_clusters={n_clusters!r} holds no consecutive numbers; a range such as range(2, 11) means 2 to "
                    "10 clusters."
                )
            n_clusters = (n_clusters[0], n_clusters[-1])
        if isinstance(n_clusters, tuple | list):
            if len(n_clusters) != 2:
                raise ParameterError(f"n_clusters as a range is a pair (low, high); got {n_clusters!r}.")
            low = check_integer("the first of n_clusters", n_clusters[0], low=1)
            return cls(low, check_integer("the second of n_clusters", n_clusters[1]))
        if not isinstance(n_clusters, Integral):
            raise ParameterError(
                f'n_clusters must be a whole number of at least 1, "auto", or a pair (low, high); got {n_clusters!r}.'
            )
        number = check_integer("n_clusters", n_clusters, low=1)
        return cls(number, number)

    @classmethod
    def exactly(cls, k: int) -> RequestedClusters:
        """Request one number only."""
        return cls(k, k)

    @property
    def exact(self) -> bool:
        """Whether only one number is allowed."""
        return self.low == self.high

    @property
    def any_number(self) -> bool:
        """Whether every number is allowed."""
        return self.low == 1 and self.high is None

    def allows(self, k: int) -> bool:
        """Return whether k clusters are allowed."""
        return self.low <= k and (self.high is None or k <= self.high)


NEARLY_AS_GOOD = 0.75  # in terms of the best score
# Evidence that exceeds the least by less than this is weak: the bootstrap agreement of few resamples, which it follows,
# differs by about half as much between seeds.
WEAK = 0.1


@saved_record
@dataclass(frozen=True)
class NumberEvidence:
    """What supports one number of clusters.

    Attributes
    ----------
    n_clusters : int
    agreement : float
        Bootstrap agreement: the mean adjusted Rand index between the clusters of the rows and of bootstrap samples; NaN
        if it was not measured.
    persistence : float
        The width of the plateau, the range of resolutions with this number of clusters, as a logarithm; 0 if no
        resolution gave this number.
    depth : float
        The mean depth of the density gaps around clusters, 0 to 1.
    crossing : float
        The share of edges that cross between clusters, relative to chance: 1 for clusters drawn by lot.
    evidence : float
        Agreement beyond chance and depth together, 0 to 1.
    score : float
        What the number of clusters is chosen by. Not above 0 if the evidence is not above the least.
    """

    n_clusters: int
    agreement: float
    persistence: float
    depth: float
    crossing: float
    evidence: float
    score: float


@saved_record
@dataclass(frozen=True, repr=False)
class Verdict:
    """Why there are this many clusters; ``print`` shows it as a sentence.

    Attributes
    ----------
    requested : RequestedClusters
        The requested numbers of clusters.
    chosen : NumberEvidence
        The numbers behind the clusters found.
    runner_up : NumberEvidence or None
        The best other number of clusters, whether requested or not; None if there is none, or if `n_clusters` was one
        number.
    least_evidence : float
        The evidence that more than one cluster needs.
    resolution : float
        The resolution of the clusters; NaN if they were merged from finer ones.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from dc2 import DC2Clustering
    >>> X, _ = make_blobs(600, centers=4, n_features=6, random_state=0)
    >>> verdict = DC2Clustering(random_state=0).fit(X).verdict_
    >>> print(verdict)
    4 clusters stand out.
    >>> verdict.chosen.agreement
    1.0
    """

    requested: RequestedClusters
    chosen: NumberEvidence
    runner_up: NumberEvidence | None
    least_evidence: float
    resolution: float

    @property
    def n_clusters(self) -> int:
        """The number of clusters found."""
        return self.chosen.n_clusters

    @property
    def one_cluster(self) -> bool:
        """Whether one cluster was found because no other number has enough evidence."""
        return self.n_clusters == 1 and not self.requested.exact

    @property
    def supported(self) -> bool:
        """Whether the data support this number: one cluster always, more if the evidence is above the least."""
        return self.n_clusters == 1 or self.chosen.evidence > self.least_evidence

    def __str__(self) -> str:
        if self.requested.exact:
            return self._of_given_number()
        if self.requested.any_number:
            return self._of_chosen_number()
        if not self.supported or (self.runner_up and self.chosen.score < NEARLY_AS_GOOD * self.runner_up.score):
            other = self.runner_up
            better = f"; {other.n_clusters} have more support" if other and other.score > self.chosen.score else ""
            return f"{self._clusters} come nearest of the numbers asked for, but do not stand out{better}."
        return f"Of the numbers asked for: {self._of_chosen_number()}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self}>"

    def _repr_html_(self) -> str:
        return f"<p>{self}</p>"

    @property
    def _clusters(self) -> str:
        return f"{self.n_clusters} cluster{'s' if self.n_clusters != 1 else ''}"

    def _of_given_number(self) -> str:
        k = self.requested.low
        if k == 1:
            return "One cluster, as requested."
        agrees = f"bootstrap agreement {self.chosen.agreement:.2f}"
        if not self.supported:
            return f"n_clusters={k}: the data do not support {self._clusters} ({agrees})."
        return f"{self._clusters}, as requested; the data support this number ({agrees})."

    def _of_chosen_number(self) -> str:
        other, chosen = self.runner_up, self.chosen
        if self.one_cluster:
            best = (
                f" The best other number, {other.n_clusters}, has evidence {other.evidence:.2f}; more than "
                f"{self.least_evidence:.2f} is needed."
                if other
                else ""
            )
            return f"No clusters stand out: the rows are one cloud.{best}"
        nearly = other is not None and other.score >= NEARLY_AS_GOOD * chosen.score
        near = f"; {other.n_clusters} is nearly as good" if other and nearly else ""
        if chosen.evidence < min(self.least_evidence + WEAK, 1.0):
            weak = f"the evidence is weak ({chosen.evidence:.2f}; more than {self.least_evidence:.2f} is needed)"
            return f"{self._clusters}, but {weak}{near}."
        return f"{self._clusters}{near}." if near else f"{self._clusters} stand out."
