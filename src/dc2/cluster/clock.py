"""How long each stage of a fit took."""

from __future__ import annotations

import time

from dc2.engines import Verbose
from dc2.engines.progress import progress_for

STAGES = ("divide", "compress", "conquer", "populate")


class StageClock:
    """A progress callback that adds up the seconds of each stage and passes each call on.

    Examples
    --------
    >>> clock = StageClock(verbose=0)
    >>> clock.enter("divide")
    >>> clock("compress", 0, 100)
    >>> clock.stop()
    >>> list(clock.seconds)
    ['divide', 'compress', 'conquer', 'populate']
    """

    def __init__(self, verbose: Verbose) -> None:
        self.seconds = dict.fromkeys(STAGES, 0.0)
        self._told = verbose if callable(verbose) else progress_for(verbose)
        self._stage: str | None = None
        self._since = 0.0

    def __call__(self, stage: str, rows_done: int, rows_total: int | None) -> None:
        """Note the progress of an engine."""
        self._switch(stage)
        if self._told is not None:
            self._told(stage, rows_done, rows_total)

    def enter(self, stage: str) -> None:
        """Begin a stage that no engine reports."""
        self(stage, 0, None)

    def stop(self) -> None:
        """End the last stage."""
        self._switch(None)
        close = getattr(self._told, "close", None)
        if close is not None:
            close()

    def _switch(self, stage: str | None) -> None:
        now = time.perf_counter()
        if self._stage is not None:
            self.seconds[self._stage] += now - self._since
        self._stage, self._since = stage, now
