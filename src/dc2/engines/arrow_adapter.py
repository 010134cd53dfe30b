"""Any cluster: work on iterators of Arrow record batches that returns small results as bytes, or rows with answers.

A system needs `RemoteFrame`: a way to map a function from record batches to record batches over its partitions.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Protocol, TypeVar

import cloudpickle
import narwhals as nw
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dc2 import versions
from dc2.core.reference import hash_at
from dc2.engines.engine import DEFAULT_BLOCK_BYTES, Progress, reported
from dc2.errors import InputError, InputTypeError, NamesParameter, ParameterError, SourceError
from dc2.io.frame_columns import TableRows, table_hashes
from dc2.io.frames import FrameLayout
from dc2.io.resolve import with_keys
from dc2.io.source import Block, Source, listed, row_hashes

R = TypeVar("R")
Batches = Iterable[pa.RecordBatch]
Records = Iterator[pa.RecordBatch]
Task = Callable[[int, Batches], Records]
"""Work on one partition, which has a number: a task that runs twice has the same number, and counts once."""

RECORDS = pa.schema([("task", pa.int64()), ("piece", pa.int32()), ("pieces", pa.int32()), ("data", pa.binary())])
PIECE_BYTES = 8 * 2**20
JOINED_AT_ONCE = 8
FEWEST_TASKS = 64  # however large their results are: a task for each thread of a small cluster


class RemoteFrame(Protocol):
    """Rows that another system holds."""

    system: str
    schema: pa.Schema

    def count(self) -> int:
        """Return the number of rows."""

    def first(self, names: Sequence[str]) -> pa.Table:
        """Return these columns of the first rows."""

    def records(self, names: Sequence[str], task: Task, merge: Task | None, most: int) -> Iterator[pa.RecordBatch]:
        """Run a task on these columns of every partition; return its records, merged where they arise if possible.

        More than `most` tasks would return more bytes than they read.
        """

    def answered(self, task: Task, schema: pa.Schema) -> Any:
        """Return the system's own kind of frame, lazily: what a task makes of every partition."""

    def write(self, frame: Any, names: Sequence[str], path: str, overwrite: bool) -> int:
        """Write columns of the system's own kind of frame to Parquet, and return the number of rows."""


# --- what runs on the workers -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Job:
    """What is done with the rows of a task; `rows` is the part of `source` that is given them."""

    function: Callable[[Block], Any]
    merge: Callable[[Sequence[Any]], Any] | None
    source: Any
    rows: ArrowSource
    block_bytes: int

    def joined(self, results: list[Any], most: int = 1) -> list[Any]:
        """Return the results, as one if they can be merged and are more than `most`."""
        return results if self.merge is None or len(results) <= most else [self.merge(results)]


@dataclass(eq=False)
class Outcome:
    """What comes of some tasks: results or an error, the number of rows, and the sum of their hashes."""

    results: list[Any] = field(default_factory=list)
    n_rows: int = 0
    checksum: int = 0
    error: Exception | None = None

    def add(self, other: Outcome, job: _Job) -> None:
        """Add what comes of other tasks."""
        self.results = job.joined([*self.results, *other.results], JOINED_AT_ONCE)
        self.n_rows += other.n_rows
        self.checksum = (self.checksum + other.checksum) % 2**64
        self.error = min((e for e in (self.error, other.error) if e is not None), key=str, default=None)


def run_task(payload: bytes, version: str, task: int, batches: Batches, *, merges: bool = False) -> Records:
    """Yield the records of a task that maps a function over its rows, or merges the records of others."""
    try:
        job = _opened(payload, version)
        outcome = _merged(job, batches) if merges else _mapped(job, batches)
        outcome.results = job.joined(outcome.results)
    except NamesParameter as error:  # the rows or the version: to try again would not help
        error.args = (str(error) if merges else f"In partition {task}: {error}",)
        outcome = Outcome(error=error)
    yield from _packed(task, outcome)


def answer_task(payload: bytes, version: str, task: int, batches: Batches, *, name: str) -> Records:
    """Yield the rows of a task with an answer for each."""
    job = _opened(payload, version)
    for table in _grouped(batches, job.block_bytes):
        job.rows.pieces = [table]
        answers = np.concatenate([job.function(block) for block in job.source.blocks(2**62)])
        yield from table.append_column(name, _arrow(answers)).combine_chunks().to_batches()


def outcomes_in(batches: Batches) -> Iterator[Outcome]:
    """Yield what records carry, each task once, in whatever order its pieces come."""
    waiting: dict[int, dict[int, bytes]] = {}
    done: set[int] = set()
    for batch in batches:
        for record in batch.to_pylist():
            if record["task"] in done:
                continue
            pieces = waiting.setdefault(record["task"], {})
            pieces[record["piece"]] = record["data"]
            if len(pieces) == record["pieces"]:
                done.add(record["task"])
                del waiting[record["task"]]
                yield pickle.loads(b"".join(pieces[place] for place in range(len(pieces))))
    if waiting:
        raise SourceError(f"partition {min(waiting)}: its results did not arrive whole. Fit again.")


def _opened(payload: bytes, version: str) -> _Job:
    if version != versions.__version__:
        raise SourceError(
            f"the worker has dc2 {versions.__version__}, but the work comes from dc2 {version}. Install the same "
            "version everywhere and restart the workers."
        )
    job: _Job = pickle.loads(payload)
    return job


def _mapped(job: _Job, batches: Batches) -> Outcome:
    job.rows.pieces = _grouped(batches, job.block_bytes)
    outcome = Outcome()
    for block in job.source.blocks(2**62):
        outcome.add(Outcome([job.function(block)], block.n_rows, job.rows.checksum), job)
    return outcome


def _merged(job: _Job, batches: Batches) -> Outcome:
    total = Outcome()
    for outcome in outcomes_in(batches):
        total.add(outcome, job)
    return total


def _grouped(batches: Batches, block_bytes: int) -> Iterator[pa.Table]:
    """Yield the rows of batches in tables of about so many bytes; empty batches are passed over."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
        if sum(part.nbytes for part in waiting) >= block_bytes:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


def _packed(task: int, outcome: Outcome) -> Iterator[pa.RecordBatch]:
    data = cloudpickle.dumps(outcome)
    pieces = [data[start : start + PIECE_BYTES] for start in range(0, len(data), PIECE_BYTES)]
    for number, piece in enumerate(pieces):
        values = {"task": [task], "piece": [number], "pieces": [len(pieces)], "data": [piece]}
        yield pa.RecordBatch.from_pydict(values, schema=RECORDS)


def _arrow(answers: NDArray[Any]) -> pa.Array:
    flat = pa.array(answers.ravel())
    if answers.ndim == 1:
        return flat
    return pa.ListArray.from_arrays(np.arange(len(answers) + 1, dtype=np.int32) * answers.shape[1], flat)


# --- what runs where the model is fitted ------------------------------------------------------------------------


class ArrowSource:
    """Rows that another system holds; they have no order, so keys identify them."""

    in_memory = False

    def __init__(
        self,
        frame: RemoteFrame,
        *,
        columns: Sequence[str] | None = None,
        drop: Sequence[str] | None = None,
        sample_weight: Any = None,
        extra: Sequence[str] = (),
        id: str | None = None,  # noqa: A002
        mixed: bool = False,
    ) -> None:
        if not (sample_weight is None or isinstance(sample_weight, str)):
            raise InputTypeError(
                f"sample_weight is a {type(sample_weight).__name__}, but rows of {frame.system} have no order that it "
                "could follow. Put the weights into a column, and name that."
            )
        self.frame, self._id, self._extra = frame, id or "*", list(extra)
        self.pieces: Iterable[pa.Table] | None = None
        self.checksum = 0
        self._first_pass: tuple[int, int] | None = None
        travelling = [*extra] if self._id in ("*", *extra) else [*extra, self._id]
        self.layout = FrameLayout(
            nw.from_native(frame.schema.empty_table()).schema, columns, drop, sample_weight, travelling, mixed=mixed,
            first_rows=lambda names: nw.from_native(frame.first(names)),
        )  # fmt: skip
        nested = [name for name in self._needed if _is_nested(frame.schema.field(name).type)]
        if nested:
            raise InputTypeError(
                f"X has columns of maps or structs: {listed(nested)}. Select their parts as columns of their own, or "
                "leave them out."
            )
        self.n_features: int = self.layout.n_features
        self.feature_names: tuple[str, ...] | None = self.layout.feature_names
        self.dtype = self.layout.dtype
        self._n_rows: int | None = None
        if self.n_features == 0:
            raise InputError("Found array with 0 feature(s) (shape=(n, 0)) while a minimum of 1 is required.")

    @property
    def _needed(self) -> list[str]:
        return self.layout.needed_columns

    @property
    def remote(self) -> ArrowSource:
        """What brings the engine; a source that prepares these rows has it too."""
        return self

    @property
    def n_rows(self) -> int:
        """Number of rows, counted when first needed."""
        if self._n_rows is None:
            self._n_rows = self._asked("count", self.frame.count)
            if not self._n_rows:
                raise InputError(
                    f"Found array with 0 sample(s) (shape=(0, {self.n_features})) while a minimum of 1 is required."
                )
        return self._n_rows

    def blocks(self, block_bytes: int) -> Iterator[Block]:
        """Start a pass over the rows of a task; elsewhere the rows are brought here."""
        start = 0
        if self.pieces is None:
            for outcome in self.outcomes(_itself, self, "read"):
                for block in outcome.results:
                    yield replace(block, start=start)
                    start += block.n_rows
            return
        for table in self.pieces:
            block = self.layout.block(self.layout.checked(table, "X", start), start)
            block = with_keys(block, self._id, self._extra)
            self.checksum = int(hash_at(0, self._contents(block)).sum())
            start = block.stop
            yield block

    def _contents(self, block: Block) -> NDArray[Any]:
        if self._id == "*" and block.keys is not None:
            return block.keys
        if isinstance(block.rows, TableRows):
            return table_hashes(block.rows.frame.to_arrow().columns)
        return row_hashes(block.X)

    def own_engine(self, progress: Progress | None) -> ArrowEngine:
        """Return the engine that works where the rows are."""
        return ArrowEngine(self, progress)

    def outcomes(
        self,
        function: Callable[[Block], Any],
        source: Any,
        stage: str,
        merge: Callable[[Sequence[Any]], Any] | None = None,
        result_bytes: int = 0,
    ) -> Iterator[Outcome]:
        """Map a function over the rows of a source that is or prepares this one, and yield what comes of tasks."""
        job = _Job(function, merge, source, self, max(DEFAULT_BLOCK_BYTES, result_bytes // 2))
        mapped = _sent(run_task, job)
        merged = None if merge is None else _sent(run_task, job, merges=True)
        n_rows, checksum = 0, 0
        row_bytes = self.n_features * self.dtype.itemsize
        most = max(FEWEST_TASKS, self.n_rows * row_bytes // max(result_bytes, 1))
        records = self._asked(stage, lambda: self.frame.records(self._needed, mapped, merged, most))
        outcomes = outcomes_in(records)
        while (outcome := self._asked(stage, lambda: next(outcomes, None))) is not None:
            if outcome.error is not None:
                raise outcome.error
            n_rows, checksum = n_rows + outcome.n_rows, (checksum + outcome.checksum) % 2**64
            yield outcome
        self._check_same(n_rows, checksum)

    def _check_same(self, n_rows: int, checksum: int) -> None:
        """Raise if a pass gave other rows than those counted, or than the first pass."""
        if (n_rows, checksum) == (self._first_pass or (self.n_rows, checksum)):
            self._first_pass = n_rows, checksum
            return
        differs = (
            f"{n_rows} rows after {self.n_rows}" if n_rows != self.n_rows else f"other values in its {n_rows} rows"
        )
        raise SourceError(
            f"a pass over the rows of {self.frame.system} gave {differs} in the pass before, but every pass must give "
            "the same rows. Where they are sampled, drawn at random or read from data that change, write them to files "
            "or cache them first."
        )

    def _asked(self, stage: str, ask: Callable[[], R]) -> R:
        """Return what the system answers, or raise what kept it from that."""
        try:
            return ask()
        except NamesParameter:
            raise
        except Exception as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            causes = [line for line in lines if "Error" in line or "Exception" in line] or lines or [repr(error)]
            raise SourceError(
                f"{self.frame.system} could not finish a pass over the rows ({stage}): {causes[-1][:500]}. Check that "
                f"its session is alive and that its workers have memory and dc2 {versions.__version__}."
            ) from error

    def lazy(
        self, function: Callable[[Block], Any], like: NDArray[Any], source: Source, column: str | None = None
    ) -> Any:
        """Return the system's own kind of frame, with what the function makes of every row as one more column."""
        name = column or ("values" if like.ndim > 1 else "label" if like.dtype.kind in "iu" else "score")
        if name in self.frame.schema.names:
            raise InputError(f"X has a column {name!r} already. Rename it, so that the new column can have this name.")
        answered = _sent(answer_task, _Job(function, None, source, self, DEFAULT_BLOCK_BYTES), name=name)
        return self.frame.answered(answered, self.frame.schema.append(pa.field(name, _arrow(like[:0]).type)))

    def write(
        self,
        function: Callable[[Block], NDArray[np.int32]],
        source: Source,
        path: str,
        names: Sequence[str],
        column: str,
        overwrite: bool,
    ) -> int:
        """Let the workers write the label of every row beside chosen columns, all by default; return how many."""
        if not path.endswith(".parquet"):
            raise ParameterError(f"path={path!r}: workers write a folder of Parquet. Let its name end in .parquet.")
        labelled = self.lazy(function, np.empty(0, np.int32), source, column)
        kept = [*(names or self._extra or self.frame.schema.names), column]
        return self._asked("populate", lambda: self.frame.write(labelled, kept, path, overwrite))

    def __getstate__(self) -> dict[str, Any]:
        # The rows stay where they are.
        return {name: value for name, value in self.__dict__.items() if name not in ("frame", "pieces")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, pieces=None)


def _sent(work: Callable[..., Records], job: _Job, **options: Any) -> Task:
    """Return a task with a job as bytes, which only the version of dc2 that made them opens."""
    return partial(work, cloudpickle.dumps(job), versions.__version__, **options)


def _itself(block: Block) -> Block:
    return block


def _is_nested(kind: pa.DataType) -> bool:
    return bool(pa.types.is_map(kind) or pa.types.is_struct(kind))


class ArrowEngine:
    """Map a function over the rows of another system, where they are."""

    shares_memory: ClassVar[bool] = False

    def __init__(self, rows: ArrowSource, progress: Progress | None = None) -> None:
        self._rows, self.progress = rows, progress

    def map(
        self,
        function: Callable[[Block], R],
        source: Any,
        *,
        stage: str,
        merge: Callable[[Sequence[R]], R] | None = None,
        result_bytes: int = 0,
    ) -> Iterator[R]:
        """Yield ``function(block)`` for blocks of all rows, in no order; with `merge`, for groups of blocks."""
        outcomes = self._rows.outcomes(function, source, stage, merge, result_bytes)
        counted = ((outcome.n_rows, outcome) for outcome in outcomes)
        for outcome in reported(counted, self.progress, stage, self._rows.n_rows):
            yield from outcome.results
