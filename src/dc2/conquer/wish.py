"""How many clusters are wanted: a number, a range, or whatever the data show."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

from dc2.errors import ParameterError
from dc2.model_file import saved_record
from dc2.parameters import check_integer

__all__ = ["NumberOfClusters", "Wish"]

NumberOfClusters = Any  # int, "auto", (low, high) or range(low, high + 1)


@saved_record
@dataclass(frozen=True)
class Wish:
    """Bounds of the number of clusters.

    Attributes
    ----------
    low : int
    high : int or None
        None: as many as the data show.

    Examples
    --------
    >>> Wish.of(3), Wish.of("auto"), Wish.of((2, 50)) == Wish.of(range(2, 51))
    (Wish(low=3, high=3), Wish(low=1, high=None), True)
    """

    low: int
    high: int | None

    def check(self) -> None:
        """Raise if the bounds are none; called when a wish was read from a model file."""
        high = self.low if self.high is None else self.high
        if type(self.low) is not int or type(high) is not int or not 1 <= self.low <= high:
            raise ParameterError(f"a wish for {self.low!r} to {self.high!r} clusters is none.")

    @property
    def exact(self) -> int | None:
        """The number that is asked for, or None where there is a choice."""
        return self.low if self.low == self.high else None

    @classmethod
    def of(cls, n_clusters: NumberOfClusters) -> Wish:
        """Return the wish that a parameter ``n_clusters`` expresses, or raise."""
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
            high = check_integer("the second of n_clusters", n_clusters[1], low=low)
            return cls(low, high)
        if not isinstance(n_clusters, Integral):
            raise ParameterError(
                f'n_clusters must be a whole number of at least 1, "auto", or a pair (low, high); got {n_clusters!r}.'
            )
        number = check_integer("n_clusters", n_clusters, low=1)
        return cls(number, number)
