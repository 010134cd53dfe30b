"""Laws of the thread engine."""

import gc
import io
import threading
import time
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dc2 import DC2Clustering
from dc2.engines import ThreadEngine, progress_for
from dc2.engines.engine import StageBars, StageLines
from dc2.errors import ParameterError
from dc2.io import Block, as_source
from dc2.parameters import usable_threads


class CountedSource:
    """A source of one-row blocks that knows how many of its blocks are alive, and whether it was closed."""

    n_features = 1
    feature_names = None
    dtype = np.dtype(np.float64)
    in_memory = False

    def __init__(self, n_rows, breaks_at=None):
        self.n_rows = n_rows
        self.breaks_at = breaks_at
        self.alive = self.most_alive = 0
        self.closed = False
        self.lock = threading.RLock()  # a block may be freed while its own thread counts

    def blocks(self, block_bytes):
        try:
            for row in range(self.n_rows):
                if row == self.breaks_at:
                    raise OSError(f"row {row} cannot be read")
                yield self._counted(Block(row, np.full((1, 1), float(row))))
        finally:
            self.closed = True

    def _counted(self, block):
        with self.lock:
            self.alive += 1
            self.most_alive = max(self.most_alive, self.alive)
        weakref.finalize(block, self._gone)
        return block

    def _gone(self):
        with self.lock:
            self.alive -= 1


def row_number(block):
    return int(block.X[0, 0])


@given(n_rows=st.integers(1, 60), n_jobs=st.integers(1, 5))
@settings(max_examples=30, deadline=None)
def test_results_come_in_block_order_for_any_number_of_threads(n_rows, n_jobs):
    def slow_for_some(block):
        time.sleep(0.0005 * (block.start % 3))
        return row_number(block)

    results = ThreadEngine(n_jobs).map(slow_for_some, CountedSource(n_rows), stage="compress")
    assert list(results) == list(range(n_rows))


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_never_more_than_n_jobs_plus_two_blocks_are_alive(n_jobs):
    source = CountedSource(60)

    def keep(block):
        time.sleep(0.0005)
        return block.start

    assert len(list(ThreadEngine(n_jobs).map(keep, source, stage="compress"))) == 60
    gc.collect()
    assert source.most_alive <= n_jobs + 2
    assert source.alive == 0


@pytest.mark.parametrize("n_jobs", [1, 4])
@pytest.mark.parametrize("bad", [0, 1, 7, 18, 19])
def test_an_error_in_any_block_is_raised_after_the_results_before_it(n_jobs, bad):
    source = CountedSource(20)

    def fail_from_bad_on(block):
        if block.start >= bad:
            raise ValueError(f"block {block.start}")
        return block.start

    results = ThreadEngine(n_jobs).map(fail_from_bad_on, source, stage="compress")
    assert [next(results) for _ in range(bad)] == list(range(bad))
    with pytest.raises(ValueError, match=rf"^block {bad}$"):
        next(results)
    assert source.closed
    assert threads_of_dc2() == 0


@pytest.mark.parametrize("n_jobs", [1, 4])
@pytest.mark.parametrize("breaks_at", [0, 3, 19])
def test_a_source_that_breaks_gives_the_results_before_it_first(n_jobs, breaks_at):
    source = CountedSource(20, breaks_at=breaks_at)
    results = ThreadEngine(n_jobs).map(row_number, source, stage="compress")
    assert [next(results) for _ in range(breaks_at)] == list(range(breaks_at))
    with pytest.raises(OSError, match=f"row {breaks_at}"):
        next(results)
    assert source.closed


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_closing_early_stops_the_threads_and_closes_the_source(n_jobs):
    source = CountedSource(1_000)
    results = ThreadEngine(n_jobs).map(row_number, source, stage="compress")
    assert next(results) == 0
    results.close()
    assert source.closed
    assert threads_of_dc2() == 0
    gc.collect()
    assert source.alive == 0


@pytest.mark.parametrize("n_jobs", [1, 4])
@pytest.mark.parametrize("where", ["reading", "working", "consuming"])
def test_an_interrupt_anywhere_stops_cleanly(n_jobs, where):
    source = CountedSource(1_000)

    class Interrupted(CountedSource):
        def _counted(self, block):
            if where == "reading" and block.start == 5:
                raise KeyboardInterrupt
            return super()._counted(block)

    source = Interrupted(1_000)

    def work(block):
        if where == "working" and block.start == 5:
            raise KeyboardInterrupt
        return block.start

    def consume():
        for result in ThreadEngine(n_jobs).map(work, source, stage="compress"):
            if where == "consuming" and result == 5:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        consume()
    gc.collect()
    assert source.closed
    assert threads_of_dc2() == 0


def test_reading_goes_on_while_the_threads_work():
    reading_went_on = threading.Event()

    class Source(CountedSource):
        def _counted(self, block):
            if block.start == 1:
                reading_went_on.set()
            return super()._counted(block)

    def wait_for_the_reader(block):
        return reading_went_on.wait(timeout=10)

    assert all(ThreadEngine(2).map(wait_for_the_reader, Source(3), stage="compress"))


def test_rows_in_memory_are_cut_the_same_for_any_number_of_threads():
    source = as_source(np.zeros((50_000, 10), np.float32))
    cuts = [
        list(ThreadEngine(n_jobs).map(lambda block: (block.start, len(block.X)), source, stage="compress"))
        for n_jobs in (1, 2, 5)
    ]
    assert cuts[0] == cuts[1] == cuts[2]
    assert len(cuts[0]) >= 16
    assert sum(rows for _, rows in cuts[0]) == 50_000


def test_few_rows_are_not_cut():
    source = as_source(np.zeros((100, 4)))
    assert list(ThreadEngine(4).map(lambda block: len(block.X), source, stage="compress")) == [100]


def test_n_jobs_counts_as_joblib_does(monkeypatch):
    monkeypatch.setattr("joblib.cpu_count", lambda: 8)
    asked = {None: 8, -1: 8, -2: 7, -8: 1, -20: 1, 1: 1, 3: 3, 20: 20}
    assert {n_jobs: usable_threads(n_jobs) for n_jobs in asked} == asked
    with pytest.raises(ParameterError, match="n_jobs is 0"):
        ThreadEngine(0)


def test_a_budget_below_one_byte_is_refused():
    with pytest.raises(ParameterError, match="got 0"):
        ThreadEngine(block_bytes=0)


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("known", [True, False])
def test_progress_counts_rows_up_to_the_total(n_jobs, known):
    source = CountedSource(9)
    source.n_rows, rows = (9, 9) if known else (None, 9)
    source.blocks = lambda block_bytes: CountedSource(rows).blocks(block_bytes)
    calls = []
    engine = ThreadEngine(n_jobs, progress=lambda *call: calls.append(call))
    list(engine.map(row_number, source, stage="divide"))
    total = 9 if known else None
    assert calls[:10] == [("divide", done, total) for done in range(10)]
    assert calls[-1] == ("divide", 9, 9)
    assert len(calls) == 10 if known else 11


def test_a_log_has_a_line_for_each_stage():
    stream = io.StringIO()
    engine = ThreadEngine(2, progress=StageLines(stream))
    for stage in ("divide", "compress"):
        list(engine.map(row_number, CountedSource(50), stage=stage))
    divide, compress = stream.getvalue().splitlines()
    assert divide.startswith("divide ")
    assert compress.startswith("compress ")
    assert "50 rows" in divide
    assert "\r" not in stream.getvalue()


def test_a_log_tells_of_a_stage_that_breaks_and_of_one_that_takes_long(monkeypatch):
    stream = io.StringIO()
    engine = ThreadEngine(2, progress=StageLines(stream))
    with pytest.raises(OSError, match="row 3"):
        list(engine.map(row_number, CountedSource(9, breaks_at=3), stage="divide"))
    assert stream.getvalue().endswith("\n")
    monkeypatch.setattr("dc2.engines.engine.SECONDS_BETWEEN_LINES", 0.0)
    lines = StageLines(stream)
    lines("compress", 20, 50)
    assert "20 rows of 50" in stream.getvalue()


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_bars_are_drawn_on_a_terminal_and_in_a_notebook_and_else_lines(monkeypatch):
    pytest.importorskip("tqdm")
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert progress_for(0) is None
    assert isinstance(progress_for(1), StageLines)
    monkeypatch.setattr("builtins.__IPYTHON__", True, raising=False)
    assert isinstance(progress_for(1), StageBars)
    monkeypatch.delattr("builtins.__IPYTHON__")
    monkeypatch.setattr("sys.stderr", Terminal())
    assert isinstance(progress_for(1), StageBars)
    monkeypatch.setattr("dc2.engines.engine.find_spec", lambda name: None)
    assert isinstance(progress_for(1), StageLines)


def test_bars_show_each_stage_with_its_rows(monkeypatch):
    pytest.importorskip("tqdm")
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    engine = ThreadEngine(2, progress=StageBars())
    for stage in ("divide", "compress"):
        list(engine.map(row_number, CountedSource(50), stage=stage))
    with pytest.raises(OSError, match="row 3"):
        list(engine.map(row_number, CountedSource(9, breaks_at=3), stage="conquer"))
    shown = terminal.getvalue()
    assert all(stage in shown for stage in ("divide", "compress", "conquer"))
    assert "50.0/50.0" in shown
    assert shown.endswith("\n")


def test_verbose_fits_write_a_log(capsys):
    DC2Clustering(verbose=1, random_state=0).fit(np.arange(400.0).reshape(200, 2))
    told = [line.split()[0] for line in capsys.readouterr().err.splitlines()]
    assert told[0] == "divide"
    assert "conquer" in told


def threads_of_dc2():
    return sum(thread.name.startswith("dc2") for thread in threading.enumerate())
