"""Laws of written labels: in row order, whole or not at all."""

import csv
import gzip
import os
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dc2.errors import InputError, ParameterError
from dc2.io.outputs import check_columns, check_output_path, check_room, check_target, write_labels

TABLES = {
    ".parquet": pa.parquet.read_table,
    ".arrow": pa.feather.read_table,
    ".feather": pa.feather.read_table,
    ".csv": pa.csv.read_csv,
    ".csv.gz": pa.csv.read_csv,
}
PIECES = [np.array([3, 1], np.int32), np.array([2], np.int32), np.array([0, 0, 7], np.int32)]
LABELS = [3, 1, 2, 0, 0, 7]


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("suffix", TABLES)
class TestTables:
    """Files with columns."""

    def test_labels_come_back_in_row_order(self, suffix, tmp_path):
        path = tmp_path / f"labels{suffix}"
        assert write_labels(path, iter(PIECES)) == 6
        assert TABLES[suffix](path).to_pydict() == {"label": LABELS}
        assert names_in(tmp_path) == [path.name]

    def test_ids_stand_before_labels(self, suffix, tmp_path):
        path = tmp_path / f"labels{suffix}"
        pieces = [(PIECES[0], pa.table({"id": ["a", "b"]})), (PIECES[1], pa.table({"id": ["c"]}))]
        write_labels(path, pieces, column="cluster")
        table = TABLES[suffix](path)
        assert table.column_names == ["id", "cluster"]
        assert table.to_pydict() == {"id": ["a", "b", "c"], "cluster": [3, 1, 2]}

    def test_several_columns_may_be_written(self, suffix, tmp_path):
        path = tmp_path / f"labels{suffix}"
        write_labels(path, [{"label": PIECES[0], "signature": np.array([10, 11])}])
        assert TABLES[suffix](path).to_pydict() == {"label": [3, 1], "signature": [10, 11]}

    @pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
    @pytest.mark.parametrize("after", [0, 1, 3])
    def test_an_error_leaves_what_was_there(self, suffix, tmp_path, error, after):
        path = tmp_path / f"labels{suffix}"
        path.write_bytes(b"what was there")

        def broken():
            yield from PIECES[:after]
            raise error

        with pytest.raises(error):
            write_labels(path, broken())
        assert names_in(tmp_path) == [path.name]
        assert path.read_bytes() == b"what was there"

    def test_an_existing_file_is_replaced(self, suffix, tmp_path):
        path = tmp_path / f"labels{suffix}"
        write_labels(path, [np.zeros(100, int)])
        write_labels(path, PIECES)
        assert TABLES[suffix](path).num_rows == 6

    def test_a_column_of_the_name_of_the_labels_is_refused(self, suffix, tmp_path):
        with pytest.raises(ParameterError, match="column 'label' already"):
            write_labels(tmp_path / f"x{suffix}", [(PIECES[0], pa.table({"label": ["a", "b"]}))])
        assert names_in(tmp_path) == []

    def test_no_labels_are_refused(self, suffix, tmp_path):
        with pytest.raises(InputError, match="no labels"):
            write_labels(tmp_path / f"x{suffix}", [])
        assert names_in(tmp_path) == []


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float64, ">i4"])
def test_npy_files_hold_the_labels_alone(dtype, tmp_path):
    path = tmp_path / "labels.npy"
    assert write_labels(path, (piece.astype(dtype) for piece in PIECES)) == 6
    assert np.load(path).tolist() == LABELS
    assert np.load(path).dtype == dtype
    assert np.load(path, mmap_mode="r").shape == (6,)
    with pytest.raises(ParameterError, match="labels alone"):
        write_labels(path, [(PIECES[0], pa.table({"id": ["a", "b"]}))])
    assert np.load(path).tolist() == LABELS


def test_packed_csv_is_packed(tmp_path):
    write_labels(tmp_path / "labels.csv.gz", PIECES)
    text = gzip.decompress((tmp_path / "labels.csv.gz").read_bytes()).decode()
    assert text.split() == ["label", *map(str, LABELS)]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("labels.xlsx", "suffix should be one of .parquet"),
        ("no/labels.csv", "no such folder"),
        ("x.csv", "is a folder"),
    ],
)
def test_impossible_paths_are_refused_before_any_work(name, message, tmp_path):
    (tmp_path / "x.csv").mkdir()

    def must_not_be_read():
        raise AssertionError
        yield

    with pytest.raises(ParameterError, match=message):
        write_labels(tmp_path / name, must_not_be_read())
    with pytest.raises(ParameterError, match=message):
        check_output_path(tmp_path / name)


# --- CSV --------------------------------------------------------------------------------------------------------------


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"))


@given(
    ids=st.lists(TEXT, min_size=1, max_size=20),
    cut=st.integers(1, 20),
    name=TEXT.filter(lambda name: name not in ("", "label")),
)
def test_text_comes_out_of_csv_as_it_went_in(tmp_path_factory, ids, cut, name):
    path = tmp_path_factory.mktemp("csv") / "labels.csv"
    labels = np.arange(len(ids), dtype=np.int32)
    pieces = [
        (labels[start : start + cut], pa.table({name: ids[start : start + cut]})) for start in range(0, len(ids), cut)
    ]
    assert write_labels(path, pieces) == len(ids)
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert rows == [[name, "label"], *([text, str(label)] for text, label in zip(ids, labels, strict=True))]


def test_csv_has_quotes_only_where_it_needs_them(tmp_path):
    ids = pa.table({"id": ["00000", "9007199254740993", "a b", "a,b", 'a"b', "a\nb", "", None, "1e5"]})
    write_labels(tmp_path / "labels.csv", [(np.zeros(9, np.int32), ids)])
    text = (tmp_path / "labels.csv").read_bytes().decode()
    assert text == 'id,label\n00000,0\n9007199254740993,0\na b,0\n"a,b",0\n"a""b",0\n"a\nb",0\n,0\n,0\n1e5,0\n'


def test_numbers_dates_and_categories_are_written_exactly(tmp_path):
    extra = pa.table(
        {
            "int": pa.array([2**64 - 1, 0], pa.uint64()),
            "float": [0.1, 1e300],
            "flag": [True, None],
            "day": pa.array([1, 2], pa.date32()),
            "kind": pa.array(["x", None]).dictionary_encode(),
        }
    ).slice(0, 2)
    write_labels(tmp_path / "labels.csv", [(np.zeros(2, np.int32), extra)])
    lines = (tmp_path / "labels.csv").read_text().splitlines()
    assert lines[1:] == ["18446744073709551615,0.1,true,1970-01-02,x,0", "0,1e+300,,1970-01-03,,0"]


# --- what can be known before work ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "suffixes"),
    [
        (pa.array([[1, 2]]), [".csv", ".csv.gz"]),
        (pa.array([{"a": 1}]), [".csv", ".csv.gz"]),
        (pa.array([b"\xff"]), [".csv", ".csv.gz"]),
        (pa.array(["text"]), []),
        (pa.array([1.5]), []),
        (pa.array(["text"]).dictionary_encode(), []),
    ],
)
def test_types_that_a_format_cannot_hold_are_told_before_work(column, suffixes):
    for suffix in TABLES:
        if suffix in suffixes:
            with pytest.raises(ParameterError, match=r"Column 'id' is of type .*, which a \.csv.*\.parquet"):
                check_columns(f"labels{suffix}", pa.table({"id": column}))
        else:
            check_columns(f"labels{suffix}", pa.table({"id": column}))


def test_links_and_devices_are_never_replaced(tmp_path):
    target = tmp_path / "precious.csv"
    target.write_text("precious")
    link, dangling, pipe = (tmp_path / f"{name}.csv" for name in ("link", "dangling", "pipe"))
    link.symlink_to(target)
    dangling.symlink_to(tmp_path / "absent.csv")
    os.mkfifo(pipe)
    for path, message in ((link, "a link"), (dangling, "a link"), (pipe, "not a regular file")):
        with pytest.raises(ParameterError, match=message):
            write_labels(path, PIECES)
    assert target.read_text() == "precious"
    assert link.is_symlink()
    assert dangling.is_symlink()
    assert pipe.is_fifo()
    with pytest.raises(ParameterError, match="not a regular file"):
        check_target("/dev/null", "A model")


def test_a_name_may_be_as_long_as_names_can_be(tmp_path):
    longest = tmp_path / ("n" * 251 + ".csv")
    write_labels(longest, PIECES)
    assert names_in(tmp_path) == [longest.name]
    with pytest.raises(ParameterError, match="256 characters"):
        check_output_path(tmp_path / ("n" * 252 + ".csv"))


def test_a_folder_without_rights_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(ParameterError, match="choose another"):
        check_output_path(tmp_path / "labels.csv")


def test_room_for_the_labels_is_looked_for_before_work(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=1000))
    check_room(tmp_path / "labels.npy", 250)
    check_room(tmp_path / "labels.npy", None)
    check_room(tmp_path / "labels.parquet", 10**9)
    for name in ("labels.npy", "labels.arrow", "labels.csv"):
        with pytest.raises(ParameterError, match=r"at least .* bytes, and 1\.0e\+03 are free"):
            check_room(tmp_path / name, 501)
