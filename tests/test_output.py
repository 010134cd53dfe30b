"""Laws of written labels: in row order, whole or not at all."""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

from dc2.errors import InputError, ParameterError
from dc2.output import check_output_path, write_labels

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
    assert text.split() == ['"label"', *map(str, LABELS)]


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
