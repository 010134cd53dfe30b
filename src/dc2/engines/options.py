"""How a run is done: threads, memory, progress. None of it changes a result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dc2.engines.base import DEFAULT_BLOCK_BYTES, Progress
from dc2.parameters import check_choice

__all__ = ["RunOptions", "Verbose"]

DEVICES = (None, "cuda")

Verbose = int | Progress
"""0 is silent, 1 shows the stages, a callable is told the progress."""


@dataclass(frozen=True)
class RunOptions:
    """The options of a run, which travel as one.

    Attributes
    ----------
    n_jobs : int or None
        Number of threads; None and -1 take every core.
    block_bytes : int
        Budget for one block of rows, in bytes.
    verbose : int or callable
        0 is silent, 1 shows the stages, a callable is told the progress.
    device : "cuda" or None
        Where rows that lie on the host are worked on: "cuda" sends them through a graphics card.

    Examples
    --------
    >>> RunOptions(n_jobs=2).block_bytes
    16777216
    """

    n_jobs: int | None = None
    block_bytes: int = DEFAULT_BLOCK_BYTES
    verbose: Verbose = 0
    device: str | None = None

    @classmethod
    def of(cls, estimator: Any) -> RunOptions:
        """Return the options that are parameters of an estimator."""
        device = getattr(estimator, "device", None)
        check_choice("device", device, DEVICES)
        return cls(estimator.n_jobs, estimator.block_bytes, estimator.verbose, device)
