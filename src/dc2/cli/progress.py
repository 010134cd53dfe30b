"""Live bars, one per stage, with rows per second and the time left; nothing where no terminal is."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.text import Text

from dc2.engines.base import Progress as ProgressCallback
from dc2.engines.progress import short_number, time_in_words

__all__ = ["stage_bars"]


@contextmanager
def stage_bars() -> Iterator[ProgressCallback]:
    """Give a progress callback that draws on standard error if that is a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda stage, rows_done, rows_total: None
        return
    with Progress(
        TextColumn("{task.description:<9}"), BarColumn(), _Rows(), _Time(), console=console
    ) as progress:
        bars = _Bars(progress)
        yield bars
        bars.finish()


class _Bars:
    """A line per stage; a stage is over when the next begins."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._lines: dict[str, TaskID] = {}
        self._stage: str | None = None

    def __call__(self, stage: str, rows_done: int, rows_total: int | None) -> None:
        if stage != self._stage:
            self.finish()
            if stage not in self._lines:
                self._lines[stage] = self._progress.add_task(stage, total=rows_total)
            self._stage = stage
        self._progress.update(self._lines[stage], completed=rows_done, total=rows_total)

    def finish(self) -> None:
        """Fill the bar of the stage that ran last."""
        if self._stage is not None:
            line = self._lines[self._stage]
            done = self._progress.tasks[self._progress.task_ids.index(line)].completed or 1
            self._progress.update(line, completed=done, total=done)
            self._progress.stop_task(line)


class _Rows(ProgressColumn):
    """Rows done, and rows per second."""

    def render(self, task: Task) -> Text:
        if task.completed <= 1:  # a stage that does not go row by row
            return Text("")
        speed = task.completed / task.elapsed if task.elapsed else 0.0
        return Text(f"{task.completed:>15,.0f} rows {short_number(speed):>7} rows/s")


class _Time(ProgressColumn):
    """The time left, and in the end the time it took."""

    def render(self, task: Task) -> Text:
        if task.finished:
            return Text(time_in_words(task.finished_time or 0.0))
        left = task.time_remaining
        return Text("" if left is None else f"{time_in_words(left)} left", style="cyan")
