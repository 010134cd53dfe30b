"""Which of several choices makes clusters that are more than stray signatures."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice

import numpy as np

from dc2.conquer.bandwidth import Choice
from dc2.spectral import SpectralResult

FEWEST_SIGNATURES = 3  # of a cluster that was not asked for
CHOICES_TRIED = 5


def first_solid(tried: Iterator[tuple[Choice, SpectralResult]]) -> tuple[Choice, SpectralResult]:
    """Return the first of a few choices that makes no cluster of one or two signatures, else the first of all.

    A signature of a few rows between clusters stands apart just as a cluster does. A number that was asked for is the
    only choice.
    """
    first = next(tried)
    for choice, result in chain([first], islice(tried, CHOICES_TRIED - 1)):
        if np.bincount(result.labels).min() >= FEWEST_SIGNATURES:
            return choice, result
    return first
