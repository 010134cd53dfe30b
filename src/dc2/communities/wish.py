"""A wish: how many clusters are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

from dc2.errors import ParameterError
from dc2.model_file import saved_record
from dc2.parameters import check_integer


@saved_record
@dataclass(frozen=True)
class Wish:
    """The number of clusters asked for: at least `low` and, unless `high` is None, at most `high`.

    Examples
    --------
    >>> Wish.exactly(3)
    Wish(low=3, high=3)
    >>> Wish.of((2, 50)) == Wish.of(range(2, 51))
    True
    >>> Wish().any_number
    True
    """

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
    def of(cls, n_clusters: Any) -> Wish:
        """Return the wish that a parameter ``n_clusters`` expresses, or raise.

        Parameters
        ----------
        n_clusters : int, "auto", (low, high) or range
        """
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
    def exactly(cls, k: int) -> Wish:
        """Ask for one number only."""
        return cls(k, k)

    @property
    def exact(self) -> bool:
        """Whether only one number will do."""
        return self.low == self.high

    @property
    def any_number(self) -> bool:
        """Whether every number will do."""
        return self.low == 1 and self.high is None

    def allows(self, k: int) -> bool:
        """Tell whether k clusters will do."""
        return self.low <= k and (self.high is None or k <= self.high)
