"""What an experiment is: data sets, pieces of work on each, and rows of results for each piece."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from evaluation.sets import DataSet
from evaluation.settings import Settings

__all__ = ["Experiment", "Results", "Stopwatch", "stopwatch"]

# Rows by the table they belong to.
Results: TypeAlias = Mapping[str, Sequence[Mapping[str, Any]]]


@dataclass(frozen=True)
class Experiment:
    """One experiment of the paper.

    Attributes
    ----------
    name : str
        Name of the experiment and of its main table.
    sets : tuple of str
        The data sets it runs on.
    variants : tuple of str
        What is compared.
    work : callable
        Runs one variant with one seed on one data set: ``work(data, variant, seed, settings)``.
    slow : tuple of str
        Variants that may take longer than all others together.
    seconds : callable or None
        Returns the seconds of one fit of a slow variant; takes the arguments of `work`.
    """

    name: str
    sets: tuple[str, ...]
    variants: tuple[str, ...]
    work: Callable[[DataSet, str, int, Settings], Results]
    slow: tuple[str, ...] = ()
    seconds: Callable[[DataSet, str, int, Settings], float] | None = None


class Stopwatch:
    """Wall-clock seconds of a with block."""

    seconds: float = 0.0


@contextmanager
def stopwatch() -> Iterator[Stopwatch]:
    """Measure a with block.

    Examples
    --------
    >>> with stopwatch() as watch:
    ...     pass
    >>> watch.seconds >= 0
    True
    """
    watch = Stopwatch()
    start = time.perf_counter()
    try:
        yield watch
    finally:
        watch.seconds = time.perf_counter() - start
