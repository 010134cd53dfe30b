"""The verdict: why there are this many clusters, in numbers and as a sentence."""

from __future__ import annotations

from dataclasses import dataclass

from dc2.communities.wish import Wish
from dc2.model_file import saved_record

__all__ = ["Verdict"]

PERSISTS = 3.0  # in terms of the plateau of a cloud of many dimensions, in the logarithm of resolutions
NEARLY_AS_GOOD = 0.75  # in terms of the best score


@saved_record
@dataclass(frozen=True)
class Verdict:
    """Why there are this many clusters; ``str`` says it in a sentence.

    Attributes
    ----------
    n_clusters : int
        The number of clusters found.
    wish : Wish
        The numbers asked for.
    score, runner_up_score : float
        The scores of the chosen number and of the next best; 0 where there is none.
    bar : float
        The score needed for more than one cluster.
    runner_up : int
        The next best number of clusters; 0 where there is none.
    one_cluster : bool
        Whether one cluster was answered because no number reached the bar.
    agreement : float
        How well partitions of resampled rows agree with the chosen one: 1 if they are all the same; NaN if this was
        not measured.
    depth : float
        The mean depth of the valleys around its clusters, between 0 and 1.
    crossing : float
        How many ties cross between its clusters, as a share of what chance would give.
    persistence : float
        The width of its plateau, in the logarithm of resolutions; 0 if no resolution gave that number.
    resolution : float
        The resolution at which it was found; NaN if it was merged from finer clusters.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from dc2 import DC2Clustering
    >>> X, _ = make_blobs(600, centers=4, n_features=6, random_state=0)
    >>> print(DC2Clustering(random_state=0).fit(X).verdict_)
    4 clusters stand out.
    """

    n_clusters: int
    wish: Wish
    score: float
    bar: float
    runner_up: int
    runner_up_score: float
    one_cluster: bool
    agreement: float
    depth: float
    crossing: float
    persistence: float
    resolution: float

    @property
    def shows(self) -> bool:
        """Whether a given number k persists for longer than in a cloud, where its plateau is about 1/k wide."""
        return self.persistence * self.n_clusters > PERSISTS

    def __str__(self) -> str:
        if self.wish.exact:
            return self._of_given_number()
        if self.wish.any_number:
            return self._of_chosen_number()
        if self.score < self.bar:
            return f"{self._clusters} come nearest of the numbers asked for, but do not stand out."
        return f"Of the numbers asked for: {self._of_chosen_number()}"

    @property
    def _clusters(self) -> str:
        return f"{self.n_clusters} cluster{'s' if self.n_clusters != 1 else ''}"

    def _of_given_number(self) -> str:
        if self.n_clusters == 1:
            return "One cluster, as asked for."
        if not self.shows:
            return f"{self._clusters}, as asked for, but this number does not show in the data."
        return f"{self._clusters}, as asked for; the number persists."

    def _of_chosen_number(self) -> str:
        if self.one_cluster:
            other = f" The best other number, {self.runner_up}, does not persist." if self.runner_up else ""
            return f"No clusters stand out: the rows are one cloud.{other}"
        if self.runner_up and self.runner_up_score >= NEARLY_AS_GOOD * self.score:
            return f"{self._clusters}; {self.runner_up} is nearly as good."
        return f"{self._clusters} stand out."
