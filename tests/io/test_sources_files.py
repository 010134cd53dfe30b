"""Laws of rows that come from files."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

from dc2.errors import InputError, InputTypeError, PreparationNote, SourceError
from dc2.io import as_source

WRITERS = {
    ".parquet": pa.parquet.write_table,
    ".arrow": pa.feather.write_feather,
    ".feather": pa.feather.write_feather,
    ".csv": pa.csv.write_csv,
}


def rows_of(source, block_bytes=2**20):
    return np.concatenate([block.X for block in source.blocks(block_bytes)])


@pytest.fixture
def write(tmp_path):
    def write(name, columns):
        path = tmp_path / name
        WRITERS[path.suffix](pa.table(columns), path)
        return path

    return write


@pytest.mark.parametrize("suffix", WRITERS)
class TestFiles:
    """Files of every format behave alike."""

    def test_names_columns_weights_and_ids(self, suffix, write):
        path = write(f"x{suffix}", {"id": ["p", "q"], "y": [1.0, 2.0], "x": [3.0, 4.0], "w": [1.0, 0.5]})
        source = as_source(path, sample_weight="w", extra=["id"])
        assert source.feature_names == ("y", "x")
        assert not source.in_memory
        (block,) = source.blocks(2**20)
        assert block.X.tolist() == [[1, 3], [2, 4]]
        assert block.weights.tolist() == [1, 0.5]
        assert block.extra.to_pydict() == {"id": ["p", "q"]}
        assert rows_of(as_source(str(path), columns=["x"])).tolist() == [[3], [4]]

    def test_row_counts_come_from_metadata_where_there_are_any(self, suffix, write):
        source = as_source(write(f"x{suffix}", {"x": [1.0, 2.0, 3.0]}))
        without_count = suffix in (".arrow", ".feather") and not hasattr(pa.RecordBatchFileReader, "count_rows")
        assert source.n_rows == (None if suffix == ".csv" or without_count else 3)

    def test_text_is_refused_with_file_and_column(self, suffix, write):
        path = write(f"x{suffix}", {"x": [1.0], "name": ["a"]})
        with pytest.raises(InputTypeError, match=rf"x\{suffix}' has columns that are not numeric: 'name'"):
            as_source(path)

    def test_missing_values_are_refused_with_file_column_and_count(self, suffix, write):
        path = write(f"x{suffix}", {"x": [1.0, 2.0, 3.0], "y": [1.0, None, None]})
        with pytest.raises(InputError, match=rf"x\{suffix}' contains missing.*column 'y' has 2 \(first in row 1\)"):
            rows_of(as_source(path))

    def test_no_rows_are_refused(self, suffix, write):
        path = write(f"x{suffix}", {"x": pa.array([], pa.float64())})
        with pytest.raises(InputError, match=r"0 sample\(s\) \(shape=\(0, 1\)\)"):
            list(as_source(path).blocks(100))

    def test_no_columns_left_are_refused(self, suffix, write):
        path = write(f"x{suffix}", {"x": [1.0]})
        with pytest.raises(InputError, match=r"0 feature\(s\)"):
            as_source(path, drop=["x"])

    def test_one_row(self, suffix, write):
        assert rows_of(as_source(write(f"x{suffix}", {"x": [1.5]}))).tolist() == [[1.5]]

    def test_files_with_other_columns_are_refused_with_file_and_column(self, suffix, write, tmp_path):
        write(f"a{suffix}", {"x": [1.0], "y": [1.0]})
        other = write(f"b{suffix}", {"x": [1.0]})
        with pytest.raises(InputError, match=rf"b\{suffix}' has no column 'y'; it has 'x'"):
            as_source(tmp_path / f"*{suffix}")
        WRITERS[suffix](pa.table({"x": [1.0], "y": [1.0], "z": [1.0]}), other)
        with pytest.raises(InputError, match=rf"b\{suffix}' has columns that the first does not have: 'z'"):
            as_source(tmp_path / f"*{suffix}")
        assert rows_of(as_source(tmp_path / f"*{suffix}", columns=["y", "x"])).shape == (2, 2)
        WRITERS[suffix](pa.table({"x": [1.0], "y": ["text"]}), other)
        with pytest.raises(InputTypeError, match=rf"b\{suffix}' has columns that are not numeric: 'y'"):
            as_source(tmp_path / f"*{suffix}")

    def test_the_order_of_columns_may_differ_between_files(self, suffix, write, tmp_path):
        write(f"a{suffix}", {"x": [1.0], "y": [2.0]})
        write(f"b{suffix}", {"y": [4.0], "x": [3.0]})
        assert rows_of(as_source(tmp_path / f"*{suffix}")).tolist() == [[1, 2], [3, 4]]

    def test_integers_and_floats_in_turn_are_promoted_together(self, suffix, write, tmp_path):
        write(f"a{suffix}", {"x": pa.array([1], pa.int8())})
        write(f"b{suffix}", {"x": [0.1]})
        write(f"c{suffix}", {"x": [7]})
        source = as_source(tmp_path / f"*{suffix}")
        assert source.dtype == np.float64
        assert rows_of(source).ravel().tolist() == [1, 0.1, 7]

    def test_a_file_that_is_none_is_refused_by_name(self, suffix, tmp_path):
        (tmp_path / f"x{suffix}").write_bytes(b"")
        with pytest.raises(SourceError, match=rf"Cannot read '.*x\{suffix}' as"):
            as_source(tmp_path / f"x{suffix}")

    def test_a_path_list_keeps_its_order(self, suffix, write):
        late, early = write(f"z{suffix}", {"x": [1.0]}), write(f"a{suffix}", {"x": [2.0]})
        assert rows_of(as_source([late, str(early)])).ravel().tolist() == [1, 2]

    def test_addresses_name_files_as_paths_do(self, suffix, write, tmp_path):
        write(f"a{suffix}", {"x": [1.0]})
        write(f"b{suffix}", {"x": [2.0]})
        for address in (
            f"{tmp_path.as_uri()}/*{suffix}",
            tmp_path.as_uri(),
            [f"{tmp_path.as_uri()}/a{suffix}"],
        ):
            assert rows_of(as_source(address)).ravel().tolist() == [1, 2][: 1 if isinstance(address, list) else 2]


class TestPaths:
    """Paths, globs and folders."""

    def test_a_folder_stands_for_the_data_files_in_it(self, write, tmp_path):
        (tmp_path / "year=2").mkdir()
        write("year=2/a.parquet", {"x": [3.0]})
        write("a.parquet", {"x": [1.0]})
        write("b.csv", {"x": [2.0]})
        write("_hidden.parquet", {"z": [0.0]})
        (tmp_path / "README.txt").write_text("not data")
        assert rows_of(as_source(tmp_path)).ravel().tolist() == [1, 2, 3]

    def test_globs_go_down_folders(self, write, tmp_path):
        (tmp_path / "deep" / "er").mkdir(parents=True)
        write("deep/er/b.parquet", {"x": [2.0]})
        write("deep/a.parquet", {"x": [1.0]})
        for pattern in (f"{tmp_path}/**/*.parquet", f"{tmp_path.as_uri()}/**/*.parquet"):
            assert rows_of(as_source(pattern)).ravel().tolist() == [1, 2]
        assert rows_of(as_source(f"{tmp_path.as_uri()}/*/a.parquet")).ravel().tolist() == [1]

    @pytest.mark.parametrize(
        ("path", "message"),
        [
            ("none.parquet", "no file .*none.parquet"),
            ("none*.parquet", r"No file matches .*none\*"),
            ("empty", "holds no data files"),
            ("notes.txt", "notes.txt.*suffix.*parquet"),
        ],
    )
    def test_what_is_not_there_is_named(self, path, message, tmp_path):
        (tmp_path / "empty").mkdir()
        (tmp_path / "notes.txt").write_text("x")
        with pytest.raises(SourceError, match=message):
            as_source(tmp_path / path)

    @pytest.mark.parametrize("address", ["nowhere://a/b.parquet", "file:///no/such/x.parquet", "file:///no/*.csv"])
    def test_addresses_that_lead_nowhere_are_named(self, address):
        with pytest.raises(SourceError, match=r"nowhere|no/such|no/"):
            as_source(address)

    def test_a_file_whose_name_looks_like_a_glob_is_a_file(self, write):
        assert as_source(write("x[1].parquet", {"x": [1.0]})).n_rows == 1

    def test_without_pyarrow_the_message_says_how_to_get_it(self, tmp_path, monkeypatch):
        (tmp_path / "x.parquet").write_bytes(b"")
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(ImportError, match=r'pip install "dc2\[files\]"'):
            as_source(tmp_path / "x.parquet")

    def test_npy_files_do_not_mix_with_tables(self, write, tmp_path):
        np.save(tmp_path / "a.npy", np.zeros((2, 2)))
        write("b.parquet", {"x": [1.0]})
        with pytest.raises(SourceError, match="do not mix"):
            as_source(tmp_path)

    def test_npy_files_that_cannot_be_used_are_named(self, tmp_path):
        (tmp_path / "x.npy").write_bytes(b"nothing")
        with pytest.raises(SourceError, match=r"x\.npy"):
            as_source(tmp_path / "x.npy")
        np.save(tmp_path / "x.npy", np.zeros(3))
        with pytest.raises(SourceError, match=r"(?s)x\.npy.*Reshape your data"):
            as_source(tmp_path / "x.npy")
        np.save(tmp_path / "x.npy", np.zeros((3, 2)))
        np.save(tmp_path / "y.npy", np.zeros((3, 1)))
        with pytest.raises(InputError, match=r"y\.npy' has 1 columns, but the first has 2"):
            as_source([tmp_path / "x.npy", tmp_path / "y.npy"])
        with pytest.raises(InputTypeError, match="no column names"):
            as_source(tmp_path / "x.npy", sample_weight="w")


class TestCsv:
    """Text has a few laws of its own."""

    def test_later_numbers_may_be_wider_than_the_first(self, tmp_path):
        lines = ["x,y", *["1,2"] * 400_000, "0.5,3"]
        (tmp_path / "x.csv").write_text("\n".join(lines))
        assert rows_of(as_source(tmp_path / "x.csv"))[-1].tolist() == [0.5, 3]

    @pytest.mark.parametrize(
        ("line", "message"),
        [("1,zz", r"'zz' in column 'y', line 500002"), ("1", r"1 values in line 500002, but 2 columns")],
    )
    def test_a_bad_line_is_named(self, line, message, tmp_path):
        (tmp_path / "x.csv").write_text("\n".join(["x,y", *["1000,2000"] * 500_000, line, "1,1"]))
        with pytest.raises(SourceError, match=rf"x\.csv'.*{message}"):
            rows_of(as_source(tmp_path / "x.csv"))

    def test_a_file_without_column_names_is_read_with_a_note(self, tmp_path):
        (tmp_path / "x.csv").write_text("1.5,2\n3,4\n")
        with pytest.warns(PreparationNote, match=r"x\.csv.*header=False"):
            source = as_source(tmp_path / "x.csv")
        assert rows_of(source).tolist() == [[1.5, 2], [3, 4]]

    def test_columns_numbered_by_pandas_are_names(self, tmp_path):
        pd.DataFrame([[1.5, 2], [3, 4]]).to_csv(tmp_path / "x.csv", index=False)
        assert as_source(tmp_path / "x.csv").feature_names == ("0", "1")


def broken_parquet(path):
    """A file whose last row group cannot be read, while its footer can."""
    table = pa.table({"x": np.random.default_rng(0).normal(size=3_000)})
    pa.parquet.write_table(table, path, row_group_size=1_000, use_dictionary=False, compression="snappy")
    group = pa.parquet.read_metadata(path).row_group(2).column(0)
    with open(path, "r+b") as file:
        file.seek(group.data_page_offset)
        file.write(os.urandom(group.total_compressed_size))


def broken_arrow(path):
    table = pa.table({"x": np.random.default_rng(0).normal(size=3_000)})
    pa.feather.write_feather(table, path, chunksize=1_000, compression="lz4")
    with open(path, "r+b") as file:
        content = bytearray(file.read())
        third = content.rindex(b"\x04\x22\x4d\x18")  # where the last packed column begins
        content[third : third + 200] = b"\xff" * 200
        file.seek(0)
        file.write(content)


@pytest.mark.parametrize(("suffix", "make"), [(".parquet", broken_parquet), (".arrow", broken_arrow)])
def test_a_file_that_breaks_half_way_is_named_with_the_place(suffix, make, tmp_path):
    WRITERS[suffix](pa.table({"x": [1.0, 2.0]}), tmp_path / f"a{suffix}")
    make(tmp_path / f"b{suffix}")
    blocks = as_source(tmp_path / f"*{suffix}").blocks(8 * 500)
    good = [next(blocks) for _ in range(4)]
    assert good[0].X[:2].ravel().tolist() == [1, 2]
    with pytest.raises(SourceError, match=rf"b\{suffix}' broke after 2000 rows"):
        list(blocks)


def test_only_the_columns_needed_are_read(tmp_path):
    path = tmp_path / "x.parquet"
    table = pa.table({"x": np.arange(1_000.0), "y": np.random.default_rng(0).normal(size=1_000)})
    pa.parquet.write_table(table, path, use_dictionary=False)
    column = pa.parquet.read_metadata(path).row_group(0).column(1)
    with open(path, "r+b") as file:
        file.seek(column.data_page_offset)
        file.write(b"\xff" * column.total_compressed_size)
    with pytest.raises(SourceError):
        rows_of(as_source(path))
    assert rows_of(as_source(path, columns=["x"])).sum() == sum(range(1_000))


def test_open_files_are_closed_when_a_pass_ends_early(tmp_path):
    pa.parquet.write_table(pa.table({"x": np.arange(1_000.0)}), tmp_path / "x.parquet", row_group_size=10)
    source = as_source(tmp_path / "x.parquet")
    blocks = source.blocks(80)
    next(blocks)
    folder = f"/proc/{os.getpid()}/fd"
    if not os.path.isdir(folder):
        pytest.skip("open files cannot be listed here")

    def open_here():
        return [one for one in os.scandir(folder) if os.path.realpath(one.path).endswith("x.parquet")]

    assert open_here()
    blocks.close()
    del blocks
    assert not open_here()


PEAK_OF_A_PASS = """
import resource, sys
from dc2.io import as_source
list(as_source(sys.argv[1]).blocks(2**20).__next__().X)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
rows = sum(len(block.X) for block in as_source(sys.argv[1]).blocks(2**22))
print(rows, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_memory_stays_bounded_whatever_the_size_of_the_file(suffix, tmp_path):
    """200 MB, read in 4 MB blocks, take well under 100 MB; in Parquet even as a single row group."""
    path = tmp_path / f"x{suffix}"
    part = pa.record_batch({f"c{i}": np.random.default_rng(i).normal(size=100_000) for i in range(10)})
    open_writer = pa.parquet.ParquetWriter if suffix == ".parquet" else pa.ipc.new_file
    with open_writer(path, part.schema) as writer:
        if suffix == ".parquet":
            writer.write_table(pa.Table.from_batches([part] * 25), row_group_size=10_000_000)
        else:
            for _ in range(25):
                writer.write_batch(part)
    done = subprocess.run([sys.executable, "-c", PEAK_OF_A_PASS, str(path)], capture_output=True, text=True, check=True)
    rows, extra_megabytes = map(int, done.stdout.split())
    assert rows == 2_500_000
    assert extra_megabytes < 100


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".npy"])
def test_ten_thousand_small_files_are_one_source(suffix, tmp_path):
    X = np.arange(30_000.0).reshape(10_000, 3)
    for number, row in enumerate(X):
        path = tmp_path / f"{number:05}{suffix}"
        if suffix == ".npy":
            np.save(path, row[None])
        else:
            WRITERS[suffix](pa.table({"a": row[:1], "b": row[1:2], "c": row[2:]}), path)
    np.testing.assert_array_equal(rows_of(as_source(tmp_path / f"*{suffix}"), 24 * 777), X)
