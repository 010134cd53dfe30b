"""The rows of a command: files, standard input, their columns, and the engine that reads them."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

import typer

from dc2.cli.error_messages import CommandError
from dc2.cli.options import EngineName, split_names
from dc2.cli.summary import format_size
from dc2.cluster.base import SignatureClusterer
from dc2.io.csv_files import CsvOptions
from dc2.io.paths import find_files
from dc2.io.resolve import UNORDERED, TableSource, as_source, as_table, column_values
from dc2.io.source import Source

MOST_BYTES = 64 * 2**30
SPARE_BYTES = 2**28  # of the disk is left free for others
CHUNK_BYTES = 2**22
# How files of each kind begin; what begins otherwise is CSV.
BEGINNINGS = {
    b"PAR1": ".parquet",
    b"ARROW1": ".arrow",
    b"\x93NUMPY": ".npy",
    b"{": ".jsonl",
    b"\x1f\x8b": ".csv.gz",
    b"\x28\xb5\x2f\xfd": ".csv.zst",
}


@contextmanager
def with_standard_input(data: Sequence[str]) -> Iterator[list[str]]:
    """Give the files to read, with a copy of standard input in place of ``-``; the copy is deleted afterwards."""
    if "-" not in data:
        yield list(data)
        return
    if data.count("-") > 1:
        raise typer.BadParameter("Standard input can be read only once: give - once.")
    with tempfile.TemporaryDirectory(prefix="dc2-") as folder:
        kept = _kept(sys.stdin.buffer, Path(folder))
        yield [str(kept) if name == "-" else name for name in data]


def _kept(stream: BinaryIO, folder: Path) -> Path:
    """Copy a stream to a file whose suffix says what it holds."""
    chunk = stream.read(CHUNK_BYTES)
    if not chunk:
        raise CommandError("Standard input is empty.")
    if _is_binary(chunk):
        raise CommandError(
            "Standard input is neither text nor Parquet, Arrow or .npy. Write it to a file with the right suffix."
        )
    suffix = next((suffix for begins, suffix in BEGINNINGS.items() if chunk.startswith(begins)), ".csv")
    path = folder / f"standard-input{suffix}"
    written = 0
    with open(path, "wb") as sink:
        while chunk:
            written += len(chunk)
            limit = min(MOST_BYTES, written + shutil.disk_usage(folder).free - SPARE_BYTES)
            if written > limit:
                raise CommandError(
                    f"Standard input has more than {format_size(limit)}, for which there is no room in "
                    f"{str(folder.parent)!r}. Write it to a file and name that."
                )
            sink.write(chunk)
            chunk = stream.read(CHUNK_BYTES)
    return path


def _is_binary(chunk: bytes) -> bool:
    """Return whether bytes are of no known format: not text, which in UTF-16 has zeros at every other place."""
    if any(chunk.startswith(begins) for begins in BEGINNINGS):
        return False
    places = {place % 2 for place, byte in enumerate(chunk[:4096]) if byte == 0}
    return len(places) == 2 or (not places and sum(byte < 9 for byte in chunk[:4096]) > 0)


@dataclass(frozen=True)
class ColumnChoice:
    """What columns are for: features, nothing, to stand beside the labels, weights, known labels."""

    columns: Sequence[str] = ()
    drop: Sequence[str] = ()
    ids: Sequence[str] = ()
    weight: str | None = None
    labels: str | None = None

    @classmethod
    def of(cls, wanted: Any) -> ColumnChoice:
        """Return the choice that a command's options make; an option that a command does not have counts as empty."""
        named = []
        for option, field in (("--columns", "columns"), ("--drop", "drop"), ("--id", "id_columns")):
            given = getattr(wanted, field, ())
            named.append(names := split_names(given))
            if given and not names:
                raise typer.BadParameter(f"{option} {given[0]!r}: names no column. Name one, or leave the option out.")
            twice = next((name for name in names if names.count(name) > 1), None)
            if twice is not None:
                raise typer.BadParameter(f"{option} names the column {twice!r} twice.")
        columns, drop, ids = named
        if columns and drop:
            raise typer.BadParameter("Give --columns (those to use) or --drop (those to leave out), not both.")
        labels = getattr(wanted, "label_from", None)
        if labels is not None and labels in columns:
            raise typer.BadParameter(f"--label-from {labels!r}: also in --columns. A column of labels is no feature.")
        return cls(columns, drop, ids, getattr(wanted, "weight", None), labels)


def csv_options(wanted: Any) -> CsvOptions | None:
    """Return how the options of a command say that text files are to be read; None where they say nothing."""
    delimiter = {"tab": "\t", "\\t": "\t"}.get(wanted.delimiter, wanted.delimiter)
    asked = CsvOptions(
        delimiter,
        header=not wanted.no_header,
        encoding=wanted.encoding,
        decimal=wanted.decimal,
        thousands=wanted.thousands,
        na=tuple(wanted.na),
    )
    return None if asked == CsvOptions() else asked


class Rows:
    """The files of a command, the choice of their columns, and the engine that reads them, at its address."""

    def __init__(
        self,
        data: Sequence[str],
        choice: ColumnChoice,
        engine: EngineName = EngineName.threads,
        csv: CsvOptions | None = None,
        address: str | None = None,
    ) -> None:
        files = find_files(data, csv)
        self._data: Any = files
        self._unnamed = all(not file.format.named_columns for file in files)
        self._columns = [self._name(name) for name in choice.columns]
        self._drop = [self._name(name) for name in choice.drop]
        self._weight = choice.weight
        self._open_elsewhere = engine is EngineName.dask
        self._open = _opener(engine)
        self.ids, self._labels = list(choice.ids), choice.labels
        self._unused = [*self._drop, *self.ids, *({self._labels} - {None, *self._drop, *self.ids})] or None
        if self._labels is not None and (self._unnamed or engine in UNORDERED):
            why = "rows of Spark and Ray have no order" if engine in UNORDERED else ".npy files have no named columns"
            raise typer.BadParameter(f"--label-from {self._labels!r}: {why}. Use --engine threads and named columns.")
        self.paths = [file.path for file in files]
        if engine in UNORDERED:
            self._data = frame_of(engine, self.paths, address)

    def to_fit(self) -> Source:
        """Return the features and weights; ids are not read."""
        if self._columns:
            return self._open(self._data, columns=self._columns, sample_weight=self._weight)
        return self._open(self._data, drop=self._unused, sample_weight=self._weight)

    def table_to_fit(self, as_written: Iterable[str] = ()) -> TableSource | None:
        """Return the features and weights as they are, whatever their types; None where columns have no names."""
        if self._unnamed or self._open_elsewhere:
            return None
        unused = None if self._columns else self._unused
        return as_table(
            self._data, columns=self._columns or None, drop=unused, weight=self._weight, texts=list(as_written)
        )

    def labels(self) -> Any:
        """Return the known label of each row, if a column holds them."""
        return None if self._labels is None else column_values(self._data, self._labels)

    def for_model(self, model: SignatureClusterer) -> Source:
        """Return the columns a model was fitted on, and the ids; as they are where it prepares them."""
        names, preparer = getattr(model, "feature_names_in_", None), getattr(model, "preparer_", None)
        if preparer is None:
            return self.like(names)
        if self._unnamed:
            raise typer.BadParameter("The model prepares columns that it knows by name; .npy files have none.")
        table = as_table(
            self._data, columns=list(preparer.columns_in_use), extra=self.ids, texts=preparer.read_as_written
        )
        assert table is not None, "files with named columns are a table"
        return table

    def like(self, feature_names: Sequence[str] | None) -> Source:
        """Return the columns a model was fitted on, and the ids; by position where there are no names."""
        if feature_names is None or self._unnamed:
            return self._open(self._data, columns=self._columns or None, drop=self._drop or None, extra=self.ids)
        return self._open(self._data, columns=list(feature_names), extra=self.ids)

    def first_ids(self, fitted: Source) -> Any:
        """Return the ids of the first few rows, with the types that all of them will have."""
        first = as_table(self._data, columns=fitted.feature_names, extra=self.ids)
        return None if first is None else next((block.extra for block in first.blocks(1)), None)

    def _name(self, name: str) -> Any:
        if not self._unnamed:
            return name
        try:
            return int(name)
        except ValueError:
            raise typer.BadParameter(f"{name!r}: the columns of .npy files are numbers, from 0.") from None


def _opener(engine: EngineName) -> Callable[..., Source]:
    if engine is not EngineName.dask:
        return as_source
    try:
        from dc2.engines.dask_source import dask_files
    except ImportError as error:
        raise ImportError('--engine dask needs Dask, which is not installed: pip install "dc2[dask]"') from error
    return dask_files


def check_engine(engine: EngineName, scheduler: str | None, master: str | None = None) -> None:
    """Raise if a scheduler or master is named for an engine that has none."""
    if scheduler is not None and engine not in (EngineName.dask, EngineName.ray):
        raise typer.BadParameter("--scheduler names a cluster of Dask or Ray: give --engine dask or ray too.")
    if master is not None and engine is not EngineName.spark:
        raise typer.BadParameter("--master names a Spark cluster: give --engine spark too.")


def frame_of(engine: EngineName, paths: Sequence[str], address: str | None) -> Any:
    """Return files as a DataFrame of Spark or a Dataset of Ray, which their workers read."""
    others = [path for path in paths if not path.endswith(".parquet")]
    if others:
        raise typer.BadParameter(f"--engine {engine} reads Parquet, but {others[0]!r} is none. Use --engine dask.")
    read = getattr(import_module(f"dc2.engines.{engine}_engine"), f"{engine}_files")
    try:
        return read(paths, address)
    except ImportError as error:
        raise ImportError(f'--engine {engine} needs what is not installed: pip install "dc2[{engine}]"') from error


@contextmanager
def workers(engine: EngineName, scheduler: str | None, jobs: int | None) -> Iterator[None]:
    """Connect to the Dask cluster at an address, or start one on this machine, until the block ends."""
    if engine is not EngineName.dask:
        yield
        return
    import distributed  # installed, or the files could not have been opened

    from dc2.engines.dask_engine import local_cluster

    with ExitStack() as stack:
        if scheduler is None:
            address: Any = stack.enter_context(local_cluster(jobs))
        else:
            address = scheduler
        try:
            client = distributed.Client(address)
        except (OSError, ValueError) as error:
            raise CommandError(
                f"No Dask scheduler answers at {scheduler!r} ({error}). Check the address, such as tcp://host:8786."
            ) from error
        stack.enter_context(client)
        yield
