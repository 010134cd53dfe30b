"""Noise: rows that belong to no cluster, by their outlier scores."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.compress.outliers import OutlierScores
from dc2.compress.populate import Lookup, with_noise
from dc2.errors import InputError, ParameterError
from dc2.model_file import saved_record
from dc2.sources import Block

__all__ = ["Belonging", "LabelsWithNoise", "NoisePlan", "Outliers"]


@dataclass(frozen=True)
class NoisePlan:
    """How much is noise, checked.

    Attributes
    ----------
    share : Fraction
        Share of the rows, by weight: exactly the decimal that was written.
    min_cluster_share : float
        Clusters with a smaller share of the weight are noise too.
    """

    share: Fraction
    min_cluster_share: float

    @classmethod
    def of(cls, noise: Any, min_cluster_share: Any) -> NoisePlan:
        """Check the parameters ``noise`` and ``min_cluster_share``, or raise.

        Examples
        --------
        >>> NoisePlan.of(0.05, None)
        NoisePlan(share=Fraction(1, 20), min_cluster_share=0.0)
        """
        least = 0.0 if min_cluster_share is None else float(_share("min_cluster_share", min_cluster_share))
        return cls(_share("noise", noise), least)

    def most(self, weight: float) -> float:
        """Return the largest weight that noise may have among rows of this total weight."""
        exact = self.share * Fraction(weight)
        nearest = float(exact)
        return nearest if Fraction(nearest) <= exact else float(np.nextafter(nearest, 0.0))


def _share(name: str, value: Any) -> Fraction:
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_) or not 0 <= float(value) < 1:
        raise ParameterError(f"{name} must be a share from 0 up to, but not including, 1, such as 0.05; got {value!r}.")
    return Fraction(str(value))


@saved_record
@dataclass(frozen=True, eq=False)
class Outliers:
    """What a fit knows about rows that lie far out.

    Attributes
    ----------
    typical : float
        The distance of a typical row to its neighbourhood: the unit of scores.
    min_cluster_share : float
        Clusters with a smaller share of the weight are noise.
    threshold : float or None
        Rows with a higher score are noise; None if no noise was asked for.
    noise_weights : ndarray of shape (n_ids,), float64, or None
        The weight of the training rows that are noise by their score, for each number that the router gives.
    """

    typical: float
    min_cluster_share: float = 0.0
    threshold: float | None = None
    noise_weights: NDArray[np.float64] | None = None

    def check(self) -> None:
        """Raise if rows could not be scored; called when read from a model file."""
        threshold, noise = self.threshold, self.noise_weights
        is_sound = (
            isinstance(self.typical, float)
            and 0 < self.typical < np.inf
            and isinstance(self.min_cluster_share, float)
            and 0 <= self.min_cluster_share < 1
            and (threshold is None) == (noise is None)
            and (threshold is None or (isinstance(threshold, float) and 0 <= threshold <= 1))
            and (noise is None or (noise.ndim == 1 and noise.dtype == np.float64 and bool((noise >= 0).all())))
        )
        if not is_sound:
            raise InputError("the parts of Outliers do not fit together.")

    def is_noise(self, scores: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which rows are noise, by their scores."""
        return np.zeros(len(scores), bool) if self.threshold is None else scores > self.threshold

    def belongs(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how much rows belong to any cluster: 1 up to the threshold, then less, down to 0 at score 1."""
        if self.threshold is None or self.threshold >= 1:
            return np.ones(len(scores))
        return np.minimum((1.0 - scores) / (1.0 - self.threshold), 1.0)


@dataclass(frozen=True, eq=False)
class LabelsWithNoise:
    """Labels of the rows of a block: what is looked up, or -1 for noise."""

    lookup: Lookup
    scores_of: OutlierScores
    outliers: Outliers

    def __call__(self, block: Block) -> NDArray[np.int32]:
        """Return the label of each row."""
        labels: NDArray[np.int32] = with_noise(self.lookup(block), self.outliers.is_noise(self.scores_of(block)))
        return labels


@dataclass(frozen=True, eq=False)
class Belonging:
    """How much the rows of a block belong to any cluster."""

    scores_of: OutlierScores
    outliers: Outliers

    def __call__(self, block: Block) -> NDArray[np.float64]:
        """Return a number from 0 to 1 for each row."""
        return self.outliers.belongs(self.scores_of(block))
