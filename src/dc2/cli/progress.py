"""The stages as bars on a terminal; nothing where there is no terminal."""

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager

from dc2.engines.base import Progress
from dc2.engines.progress import StageBars

__all__ = ["stage_bars"]


@contextmanager
def stage_bars() -> Iterator[Progress]:
    """Give a progress callback that draws on standard error if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda stage, rows_done, rows_total: None
        return
    with closing(StageBars()) as bars:
        yield bars
