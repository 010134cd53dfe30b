"""Laws of columns whose values are lists of numbers, such as embeddings."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

import dc2
from dc2 import DC2Clustering, TablePreparer, as_source
from dc2.errors import InputError, InputTypeError, PreparationNote
from dc2.io.frame_columns import vector_matrix

DTYPES = [np.float16, np.float32, np.float64, np.int8]


def rows_of(source: Any, block_bytes: int = 2**20) -> Any:
    return np.concatenate([block.X for block in source.blocks(block_bytes)])


def embeddings(n_rows: int = 600, width: int = 48, dtype: Any = np.float16) -> tuple[Any, Any]:
    X, group = make_blobs(n_rows, width, centers=3, cluster_std=2.0, random_state=0)
    return X.astype(dtype), group


def arrow_list(X: Any, kind: str = "list") -> Any:
    flat = pa.array(np.ascontiguousarray(X).ravel())
    if kind == "fixed":
        return pa.FixedSizeListArray.from_arrays(flat, X.shape[1])
    offsets = np.arange(len(X) + 1) * X.shape[1]
    if kind == "large":
        return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), flat)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), flat)


def arrow_backed(X: Any) -> Any:
    return pa.table({"vec": arrow_list(X)}).to_pandas(types_mapper=pd.ArrowDtype)


CONTAINERS = {
    "pyarrow list": lambda X: pa.table({"vec": arrow_list(X)}),
    "pyarrow fixed size list": lambda X: pa.table({"vec": arrow_list(X, "fixed")}),
    "pyarrow large list": lambda X: pa.table({"vec": arrow_list(X, "large")}),
    "polars list": lambda X: pl.from_arrow(pa.table({"vec": arrow_list(X)})),
    "polars array": lambda X: pl.DataFrame({"vec": X}),
    "pandas objects": lambda X: pd.DataFrame({"vec": list(X)}),
    "pandas by arrow": arrow_backed,
}


def write(X: Any, folder: Path, suffix: str) -> str:
    path = folder / f"rows{suffix}"
    table = pa.table({"vec": arrow_list(X)})
    if suffix == ".parquet":
        pq.write_table(table, path, row_group_size=100)
    elif suffix == ".jsonl":
        path.write_text("".join(json.dumps({"vec": row.tolist()}) + "\n" for row in X))
    else:
        pa.feather.write_feather(table, str(path), chunksize=100)
    return str(path)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("make", CONTAINERS.values(), ids=CONTAINERS)
def test_lists_are_the_rows_of_the_array(make: Any, dtype: Any) -> None:
    X, _ = embeddings(50, 7, dtype)
    source, array = as_source(make(X)), as_source(X)
    assert source.feature_names == tuple(f"vec[{place}]" for place in range(7))
    assert (source.n_features, source.dtype) == (7, array.dtype)
    assert np.array_equal(rows_of(source, block_bytes=400), X)
    first = next(as_source(make(X)).blocks(400))
    assert np.array_equal(first.take(np.array([3, 1])), X[[3, 1]])


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".feather", ".jsonl"])
def test_files_of_lists_give_the_labels_of_the_array(suffix: str, tmp_path: Path) -> None:
    X, group = embeddings()
    X = X.astype(np.float64) if suffix == ".jsonl" else X
    path = write(X, tmp_path, suffix)
    model = DC2Clustering(3, n_signatures=50, random_state=0, metric="cosine")
    labels = np.concatenate(list(model.fit_predict(path)))
    assert np.array_equal(labels, DC2Clustering(**model.get_params()).fit_predict(X))
    assert adjusted_rand_score(group, labels) == 1.0
    model.save(tmp_path / "model.dc2")
    assert np.array_equal(dc2.load(tmp_path / "model.dc2").predict(CONTAINERS["polars list"](X)), labels)


def test_a_list_in_one_piece_is_not_copied() -> None:
    X, _ = embeddings(50, 7, np.float32)
    for kind in ("list", "fixed"):
        table = pa.table({"vec": arrow_list(X, kind)})
        values = table.column("vec").chunk(0).values.to_numpy()
        assert np.shares_memory(next(as_source(table).blocks(2**20)).X, values)
        frame = next(as_source(table)._open_pieces(10))  # type: ignore[attr-defined]
        assert np.shares_memory(vector_matrix(frame.get_column("vec")[5:9], 7), values)


@pytest.mark.parametrize("make", [pa.table, pl.DataFrame], ids=["pyarrow", "polars"])
def test_lists_and_numbers_stand_side_by_side_in_the_order_of_the_columns(make: Any) -> None:
    frame = make({"a": [[1.0, 2.0], [3.0, 4.0]], "n": [5, 6], "b": [[7], [8]]})
    source = as_source(frame)
    assert source.feature_names == ("a[0]", "a[1]", "n", "b[0]")
    assert rows_of(source).tolist() == [[1, 2, 5, 7], [3, 4, 6, 8]]
    assert rows_of(as_source(frame, columns=["b", "a"])).tolist() == [[7, 1, 2], [8, 3, 4]]
    assert rows_of(as_source(frame, columns=["a[0]", "a[1]"])).tolist() == [[1, 2], [3, 4]]
    assert next(as_source(frame).blocks(2**20)).take(np.array([1])).tolist() == [[3, 4, 6, 8]]


RAGGED = [[1.0, 2.0], [3.0, 4.0], [5.0], [6.0, 7.0]]
WITH_GAP = [[1.0, 2.0], [3.0, 4.0], None, [6.0, 7.0]]


@pytest.mark.parametrize(("lists", "what"), [(RAGGED, "a list of 1"), (WITH_GAP, "no list")])
@pytest.mark.parametrize("make", [pd.DataFrame, pa.table, pl.DataFrame], ids=["pandas", "pyarrow", "polars"])
def test_lists_that_do_not_fit_are_refused_with_the_first_row(make: Any, lists: Any, what: str) -> None:
    with pytest.raises(InputError, match=rf"X has {what}.* in column 'vec', row 2, but lists of 2"):
        as_source(make({"vec": lists}))


@pytest.mark.parametrize("lists", [RAGGED, WITH_GAP], ids=["ragged", "gap"])
def test_in_files_the_row_is_numbered_from_the_start(lists: Any, tmp_path: Path) -> None:
    table = pa.table({"vec": pa.array([[0.0, 0.0]] * 150 + lists, pa.list_(pa.float32()))})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=100)
    with pytest.raises(InputError, match=r"rows\.parquet.*column 'vec', row 152"):
        DC2Clustering(2).fit(tmp_path / "rows.parquet")


def test_numbers_missing_in_a_list_are_named() -> None:
    frame = pa.table({"vec": [[1.0, 2.0], [3.0, None], [4.0, 5.0]]})
    with pytest.raises(InputError, match=r"'vec\[1\]' has 1 \(first in row 1\)"):
        DC2Clustering(1, prepare=None).fit(frame)
    with pytest.raises(InputError, match="NaN or infinity in the list of row 1"):
        DC2Clustering(1).fit(frame)


def test_lists_of_words_and_lists_of_lists_are_not_numbers() -> None:
    for lists in ([["a"], ["b"]], [[[1.0]], [[2.0]]]):
        for make in (pa.table, pd.DataFrame):
            with pytest.raises(InputTypeError, match="not numeric: 'vec'"):
                as_source(make({"vec": lists}))


def test_files_may_hold_lists_of_several_types(tmp_path: Path) -> None:
    X, _ = embeddings(120, 5)
    pq.write_table(pa.table({"vec": arrow_list(X[:50])}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"vec": arrow_list(X[50:].astype(np.float32))}), tmp_path / "b.parquet")
    source = as_source(str(tmp_path / "*.parquet"))
    assert source.dtype == np.float32
    assert np.array_equal(rows_of(source, block_bytes=700), X)


def test_datasets_streams_and_callables_give_the_same_rows(tmp_path: Path) -> None:
    X, _ = embeddings(120, 5)
    table = pa.table({"vec": arrow_list(X)})
    pq.write_table(table, tmp_path / "rows.parquet")
    for data in (
        pa.dataset.dataset(tmp_path / "rows.parquet"),
        pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=30)),
        pl.scan_parquet(tmp_path / "rows.parquet"),
        lambda: iter([table.slice(0, 70), table.slice(70)]),
    ):
        assert np.array_equal(rows_of(as_source(data), block_bytes=700), X)


def test_dask_works_on_lists(tmp_path: Path) -> None:
    dd = pytest.importorskip("dask.dataframe")
    from dc2.engines.dask_source import dask_files

    X, _ = embeddings()
    path = write(X, tmp_path, ".parquet")
    model = DC2Clustering(3, n_signatures=50, random_state=0)
    expected = DC2Clustering(**model.get_params()).fit_predict(X)
    assert np.array_equal(model.fit(dask_files(path)).predict(CONTAINERS["polars array"](X)), expected)
    frame = dd.from_pandas(arrow_backed(X), npartitions=3)
    assert np.array_equal(model.fit(frame).predict(frame).compute(), expected)


def test_the_command_line_takes_embeddings_beside_ids_and_texts(tmp_path: Path) -> None:
    main = pytest.importorskip("dc2.cli").main
    X, group = embeddings()
    table = pa.table({"id": np.arange(len(X)), "title": [f"t {row}" for row in range(len(X))], "vec": arrow_list(X)})
    pq.write_table(table, tmp_path / "rows.parquet")
    for number, columns in enumerate((["--id", "id"], ["--id", "id", "--columns", "vec"])):
        labels, model = str(tmp_path / f"{number}.csv"), str(tmp_path / f"{number}.dc2")
        arguments = ["cluster", str(tmp_path / "rows.parquet"), "-k", "3", "--metric", "cosine", *columns]
        for line in (
            [*arguments, "-o", labels, "--model", model],
            ["predict", model, arguments[1], "-o", labels, "-f"],
        ):
            with pytest.raises(SystemExit) as stop:
                main(line)
            assert not stop.value.code
        assert adjusted_rand_score(group, pd.read_csv(labels)["label"]) == 1.0


def test_lists_are_numbers_to_the_preparation() -> None:
    X, _ = embeddings(dtype=np.float32)
    model = DC2Clustering(3, n_signatures=50, random_state=0)
    plain = model.fit_predict(X)
    for make in CONTAINERS.values():
        assert np.array_equal(model.fit_predict(make(X)), plain)
        assert not hasattr(model, "preparer_")


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_words_beside_lists_are_prepared_and_lists_alone_stay_as_they_are(kind: str, tmp_path: Path) -> None:
    X, _ = embeddings(dtype=np.float32)
    columns = {"title": [f"text {number}" for number in range(len(X))], "vec": list(X)}
    table = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[kind](columns)
    model = DC2Clustering(3, n_signatures=50, random_state=0, metric="cosine")
    with pytest.warns(PreparationNote, match=r"title: left out: text.*\n.*vec: lists of 48 numbers, taken as they"):
        model.fit(table)
    assert np.array_equal(model.labels_, DC2Clustering(**model.get_params()).fit_predict(X))
    model.save(tmp_path / "model.dc2")
    assert np.array_equal(dc2.load(tmp_path / "model.dc2").predict(table), model.labels_)


def test_lists_and_numbers_and_categories_are_prepared_together() -> None:
    X, group = embeddings(dtype=np.int8)
    price = 100.0 * group + np.random.default_rng(0).normal(0, 10, len(X))
    table = pd.DataFrame({"vec": list(X), "price": price, "shop": np.array(["a", "b", "c"])[group]})
    preparer = TablePreparer().fit(table)
    rows = preparer.transform(table)
    assert preparer.get_feature_names_out()[:5].tolist() == ["price", "shop=a", "shop=b", "shop=c", "vec[0]"]
    assert rows.shape == (len(X), 4 + 48)
    assert "scaled together" in preparer.decisions_["vec"]
    assert 0.5 < np.median(np.linalg.norm(rows[:, 4:] - np.median(rows[:, 4:], axis=0), axis=1)) < 2
    assert np.array_equal(preparer.transform(table[100:200]), rows[100:200])
    with pytest.raises(InputError, match="row 1, but lists of 48"):
        preparer.transform(table[:2].assign(vec=[X[0], X[1, :3]]))


def test_arrays_and_npy_files_of_halves_are_worked_on_as_float32(tmp_path: Path) -> None:
    X, group = embeddings()
    np.save(tmp_path / "rows.npy", X)
    model = DC2Clustering(3, n_signatures=50, random_state=0)
    labels = np.concatenate(list(model.fit_predict(tmp_path / "rows.npy")))
    assert as_source(tmp_path / "rows.npy").dtype == np.float32
    assert np.array_equal(labels, model.fit_predict(X))
    assert adjusted_rand_score(group, labels) == 1.0
