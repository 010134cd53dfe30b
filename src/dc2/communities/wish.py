"""A wish: how many clusters are asked for."""

from __future__ import annotations

from dataclasses import dataclass

from dc2.errors import ParameterError


@dataclass(frozen=True)
class Wish:
    """The number of clusters asked for: at least `low`, at most `high`; no limit above if that is None.

    Examples
    --------
    >>> Wish.exactly(3)
    Wish(low=3, high=3)
    >>> Wish().any_number
    True
    """

    low: int = 1
    high: int | None = None

    def __post_init__(self) -> None:
        if self.low < 1:
            raise ParameterError(
                f"The smallest number of clusters is {self.low}, but there is at least one cluster; use 1 or more."
            )
        if self.high is not None and self.high < self.low:
            raise ParameterError(
                f"The range of numbers of clusters is upside down: from {self.low} to {self.high}; "
                "put the smaller number first."
            )

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
        """Tell whether k clusters are as wished."""
        return self.low <= k and (self.high is None or k <= self.high)
