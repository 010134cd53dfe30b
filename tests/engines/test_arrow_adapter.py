"""The adapter for clusters, driven by a stand-in for `mapInArrow` that runs in this process: no cluster is needed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dc2 import Compressor, DC2Clustering, as_source, versions
from dc2.compress.sampling import take_sample
from dc2.engines import ThreadEngine
from dc2.engines.arrow_adapter import ArrowSource, Task
from dc2.errors import InputError, InputTypeError, MissingValuesError, ParameterError, PreparationNote, SourceError
from dc2.io.frame_columns import table_hashes

FEATURES = ["a", "b", "c"]


@dataclass
class Partitions:
    """A stand-in for a frame of a cluster: tables, on which tasks run one after the other in this process.

    Attributes
    ----------
    parts : list of pyarrow.Table
    repeats : int
        How often each task runs, as speculative copies of a slow task do.
    worker_version : str or None
        The version of dc2 on the workers, if another than here.
    """

    parts: list[pa.Table]
    repeats: int = 1
    worker_version: str | None = None
    system: str = "the stand-in"
    most: int = 0

    @property
    def schema(self) -> pa.Schema:
        return self.parts[0].schema

    def count(self) -> int:
        return sum(len(part) for part in self.parts)

    def first(self, names: Sequence[str]) -> pa.Table:
        return pa.concat_tables(self.parts).select(names)[:1]

    def records(self, names: Sequence[str], task: Task, merge: Task | None, most: int) -> Iterator[pa.RecordBatch]:
        self.most = most
        original = versions.__version__
        versions.__version__ = self.worker_version or original
        try:
            tasks = [number for number in range(len(self.parts)) for _ in range(self.repeats)]
            found = [
                record
                for number in np.random.default_rng(0).permutation(tasks).tolist()
                for record in task(number, self.parts[number].select(names).to_batches(max_chunksize=700))
            ]
        finally:
            versions.__version__ = original
        if merge is None:
            return iter(found)
        groups = [[record for record in found if record["task"][0].as_py() % 3 == group] for group in range(3)]
        return (record for group, records in enumerate(groups) for record in merge(group, records[::-1]))

    def answered(self, task: Task, schema: pa.Schema) -> pa.Table:
        return pa.Table.from_batches(
            [batch for number, part in enumerate(self.parts) for batch in task(number, part.to_batches())], schema
        )

    def write(self, frame: Any, names: Sequence[str], path: str, overwrite: bool) -> int:
        pa.parquet.write_table(frame.select(names), path)
        return len(frame)


def table_of(n_rows: int, seed: int = 0, repeated: bool = False) -> pa.Table:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(5, 3))[rng.integers(0, 5, n_rows)] * 8 + rng.normal(size=(n_rows, 3))
    X = np.rint(X) if repeated else X
    columns = dict(zip(FEATURES, X.T, strict=True))
    return pa.table({**columns, "key": np.arange(n_rows), "weight": rng.integers(0, 3, n_rows).astype(float)})


def cut(table: pa.Table, seed: int, n_parts: int = 5, **how: Any) -> Partitions:
    """A table in partitions of any length, one of them empty, its rows in any order."""
    rng = np.random.default_rng(seed)
    table = table.take(rng.permutation(len(table)))
    cuts = np.sort(rng.integers(0, len(table), n_parts - 2))
    bounds = [0, *cuts.tolist(), len(table), len(table)]
    return Partitions([table[start:stop] for start, stop in pairwise(bounds)], **how)


def labels_by_key(model: Any, table: pa.Table, **options: Any) -> list[int]:
    frame = model._labels_of  # the labels come as a column of the stand-in
    source = ArrowSource(cut(table, 9), columns=FEATURES)
    labelled = source.lazy(frame(source), np.empty(0, np.int32), source).sort_by("key")
    return labelled["label"].to_pylist()


OPTIONS = [
    {},
    {"id": "key"},
    {"sample_weight": "weight"},
    {"id": "key", "sample_weight": "weight"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize(("n_rows", "repeated", "n_signatures"), [(300, False, "auto"), (6_000, True, 80)])
def test_labels_are_those_of_the_same_rows_in_memory_for_any_partitions(
    n_rows, repeated, n_signatures, options
) -> None:
    table = table_of(n_rows, repeated=repeated)
    compressor = Compressor() if n_signatures == "auto" else Compressor(sample_size=900)
    model = DC2Clustering(random_state=0, noise=0.05, n_signatures=n_signatures, compressor=compressor)
    in_memory = as_source(table, columns=FEATURES, **{"id": "*", **options})
    expected = model.fit(in_memory).predict(table.select(FEATURES)).tolist()
    for seed in (1, 2):
        model.fit(ArrowSource(cut(table, seed), columns=FEATURES, **options))
        assert labels_by_key(model, table) == expected
    assert len(set(expected)) > 2


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 400), st.integers(1, 60), st.sampled_from(OPTIONS))
def test_a_sample_depends_neither_on_order_nor_on_partitions(seed, n_rows, size, options) -> None:
    table = table_of(n_rows, seed, repeated=True)
    if "sample_weight" in options and not sum(table["weight"].to_pylist()):
        return
    sources = [
        as_source(table, columns=FEATURES, **{"id": "*", **options}),
        ArrowSource(cut(table, seed), columns=FEATURES, **options),
        ArrowSource(cut(table, seed + 1, repeats=2), columns=FEATURES, **options),
    ]
    engines = [ThreadEngine(1), *(source.own_engine(None) for source in sources[1:])]
    first, *others = (take_sample(source, engine, size, 0) for source, engine in zip(sources, engines, strict=True))
    for other in others:
        assert np.array_equal(first.rows, other.rows)
        assert np.array_equal(first.X, other.X)
        assert (first.n_rows, first.total_weight, first.copies) == (other.n_rows, other.total_weight, other.copies)
        assert np.array_equal(first.weights, other.weights) or first.weights is other.weights is None


def test_equal_rows_are_sampled_as_one_row_with_their_weights_added() -> None:
    rows = np.repeat(np.arange(12.0).reshape(6, 2), [1, 2, 3, 4, 5, 6], axis=0)
    sample = take_sample(as_source(rows, id="*"), ThreadEngine(1), 4, 0)
    assert len(sample.rows) == 4
    assert {row: weight for (row, _), weight in zip(sample.X.tolist(), sample.weights, strict=True)}.items() <= {
        (2.0 * place, place + 1.0) for place in range(6)
    }


def test_signatures_do_not_depend_on_the_tasks_that_ran_twice() -> None:
    table = table_of(900)
    once, twice = (
        Compressor(50, random_state=0).fit(ArrowSource(cut(table, 1, repeats=n), columns=FEATURES)) for n in (1, 2)
    )
    assert np.array_equal(once.signatures_.points, twice.signatures_.points)
    assert once.signatures_.weights.sum() == 900


def test_a_pass_returns_no_more_bytes_than_it_reads() -> None:
    table = table_of(6_000)
    for n_signatures, fewest, most in ((500, 64, 64), (5, 65, 1_000)):
        frame = cut(table, 1)
        Compressor(n_signatures, random_state=0).fit(ArrowSource(frame, columns=FEATURES))
        assert fewest <= frame.most <= most


def test_random_dealing_goes_by_keys_too() -> None:
    table = table_of(900)
    first, second = (
        Compressor(50, n_partitions=4, divide="sampling", random_state=0).fit(
            ArrowSource(cut(table, seed), columns=FEATURES, id="key")
        )
        for seed in (1, 2)
    )
    assert np.array_equal(first.signatures_.points, second.signatures_.points)


def test_tables_with_words_give_the_same_labels_for_any_partitions() -> None:
    table = table_of(900)
    groups = np.array(["red", "green", None])[np.arange(900) % 3]
    table = table.append_column("colour", pa.array(groups.tolist()))
    labels = []
    for seed in (1, 2):
        frame = cut(table.drop_columns(["weight"]), seed)
        source = as_table_of(frame)
        with pytest.warns(PreparationNote, match="colour"):
            model = DC2Clustering(5, random_state=0).fit(source)
        again = model._source(as_table_of(frame))
        labelled = again.remote.lazy(model._labels_of(again), np.empty(0, np.int32), again)
        labels.append(labelled.sort_by("key")["label"].to_pylist())
    assert labels[0] == labels[1]


def as_table_of(frame: Partitions) -> Any:
    from dc2.io.resolve import TableSource

    return TableSource(lambda texts: ArrowSource(frame, mixed=True), lambda: ArrowSource(frame))


def test_rows_that_change_between_passes_are_refused() -> None:
    class Changing(Partitions):
        def records(self, *args: Any) -> Any:
            self.parts = [table_of(len(part), seed=id(part)) for part in self.parts]
            return super().records(*args)

    with pytest.raises(SourceError, match="same rows"):
        Compressor(50, random_state=0).fit(ArrowSource(Changing(cut(table_of(900), 0).parts), columns=FEATURES))


def test_rows_that_get_lost_are_noticed() -> None:
    class Losing(Partitions):
        def count(self) -> int:
            return super().count() + 1

    with pytest.raises(SourceError, match="900 rows after 901"):
        Compressor(50, random_state=0).fit(ArrowSource(Losing(cut(table_of(900), 0).parts), columns=FEATURES))


def test_another_version_on_the_workers_is_refused_by_name() -> None:
    frame = cut(table_of(500), 0, worker_version="0.0.1")
    with pytest.raises(SourceError, match=r"0\.0\.1"):
        DC2Clustering(random_state=0).fit(ArrowSource(frame, columns=FEATURES))


def test_a_broken_system_gives_one_error_that_names_it() -> None:
    class Broken(Partitions):
        def records(self, *args: Any) -> Any:
            raise RuntimeError("ExecutorLostError: exit code 137")

    with pytest.raises(SourceError, match=r"the stand-in .*137"):
        DC2Clustering(random_state=0).fit(ArrowSource(Broken(cut(table_of(500), 0).parts), columns=FEATURES))


def test_bad_input_is_refused_at_once() -> None:
    table = table_of(100)
    nested = table.append_column("place", pa.array([{"x": 1.0}] * 100))
    with pytest.raises(InputTypeError, match="place"):
        ArrowSource(Partitions([nested]), mixed=True)
    with pytest.raises(InputTypeError, match="sample_weight"):
        ArrowSource(Partitions([table]), sample_weight=np.ones(100))
    with pytest.raises(InputError, match="nobody"):
        ArrowSource(Partitions([table]), id="nobody")
    with pytest.raises(InputError, match="0 sample"):
        DC2Clustering().fit(ArrowSource(Partitions([table[:0]]), columns=FEATURES))
    source = ArrowSource(Partitions([table.append_column("label", table["key"])]), columns=FEATURES)
    with pytest.raises(InputError, match="label"):
        source.lazy(len, np.empty(0, np.int32), source)
    source = ArrowSource(Partitions([table]), columns=FEATURES)
    with pytest.raises(ParameterError, match=r"\.parquet"):
        source.write(len, source, "labels.csv", (), "label", True)


def test_missing_values_are_named_with_their_partition() -> None:
    table = table_of(100).set_column(0, "a", pa.array([None, *range(99)], pa.float64()))
    with pytest.raises(MissingValuesError, match="partition 1"):
        DC2Clustering().fit(ArrowSource(Partitions([table_of(10), table]), columns=FEATURES))


def test_lists_of_numbers_are_columns() -> None:
    table = table_of(500)
    vectors = pa.table(
        {"vec": pa.array(np.stack([table[name] for name in FEATURES], axis=1).tolist()), "key": table["key"]}
    )
    labels = DC2Clustering(3, random_state=0).fit(ArrowSource(cut(vectors, 0), columns=["vec"])).n_clusters_
    assert labels == 3


@pytest.mark.parametrize(
    "values",
    [[1, 2, None], [1.5, None, 0.0], ["a", "b", None], [True, False, None], [[1], [2], None], [b"x", b"", None]],
    ids=lambda values: type(values[0]).__name__,
)
def test_hashes_tell_values_of_any_type_apart(values) -> None:
    column = pa.chunked_array([values, values[::-1]])
    hashes = table_hashes([column])
    assert hashes.tolist()[:3] == hashes.tolist()[:2:-1]
    assert len(set(hashes.tolist())) == 3
