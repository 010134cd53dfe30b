"""Laws of files that people have: odd text, odd types, odd names, many columns."""

import os
import stat
import threading

import duckdb
import narwhals
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from dc2.engines.threads import ThreadEngine
from dc2.errors import ColumnTypeError, InputError, ParameterError, PreparationNote, SourceError
from dc2.io import CsvOptions, as_source
from dc2.io.outputs import renamed_at_the_end, write_labels
from dc2.io.paths import FileList, find_files
from dc2.io.resolve import as_table
from dc2.tables.column_types import sample_table
from dc2.tables.values import number_of

PIECE = 2**22
"""Text files are parsed in pieces of this size."""


def rows_of(source):
    return np.concatenate([block.X for block in source.blocks(2**20)])


def sampled(path, **options):
    sample = sample_table(as_table(path, **options), ThreadEngine(1))
    return {column.name: column for column in sample.columns}


@pytest.fixture
def text(tmp_path):
    def write(content, name="x.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


class TestListing:
    def test_a_file_named_twice_or_through_links_is_read_once(self, text, tmp_path):
        path = text("x\n1\n2\n")
        (tmp_path / "link.csv").symlink_to(path)
        os.link(path, tmp_path / "hard.csv")
        names = [path, str(path), tmp_path / "link.csv", path.as_uri(), tmp_path / "*x.csv"]
        assert rows_of(as_source(names)).ravel().tolist() == [1, 2]

    def test_a_list_of_files_is_taken_as_it_is(self, text):
        files = find_files(text("x;y\n1;2\n"), CsvOptions(delimiter=";"))
        assert isinstance(files, FileList)
        assert find_files(files) is files
        assert rows_of(as_source(files)).tolist() == [[1, 2]]

    @pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet", ".npy", ".jsonl"])
    def test_names_need_not_be_utf8(self, suffix, tmp_path):
        name = os.fsdecode(os.fsencode(tmp_path / "gr") + b"\xf6\xdfe" + suffix.encode())
        frame, plain = pd.DataFrame({"x": [1.0, 2.0]}), tmp_path / f"plain{suffix}"
        if suffix == ".parquet":
            frame.to_parquet(plain)
        elif suffix == ".npy":
            np.save(plain, frame.to_numpy())
        elif suffix == ".jsonl":
            frame.to_json(plain, orient="records", lines=True)
        else:
            frame.to_csv(plain, index=False)
        os.rename(plain, name)
        assert rows_of(as_source(name)).ravel().tolist() == [1, 2]


class TestTypes:
    @pytest.mark.parametrize("dtype", [pl.Categorical, pl.Enum(["a", "b"])])
    @pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
    def test_categories_of_polars_are_texts(self, dtype, suffix, tmp_path):
        frame = pl.DataFrame({"c": pl.Series(["a", None, "b"], dtype=dtype), "x": [1.0, 2.0, 3.0]})
        path = tmp_path / f"x{suffix}"
        frame.write_parquet(path) if suffix == ".parquet" else frame.write_ipc(path)
        for data in (frame, path):
            words = sampled(data)["c"].values
            assert [words.levels[code] if code >= 0 else None for code in words.codes] == ["a", None, "b"]

    def test_enums_of_duckdb_are_texts(self):
        relation = duckdb.sql("select unnest(['a', null, 'b'])::enum('a', 'b') as c, unnest([1.0, 2.0, 3.0]) as x")
        words = sampled(relation)["c"].values
        assert [words.levels[code] if code >= 0 else None for code in words.codes] == ["a", None, "b"]

    def test_string_views_in_parquet_are_texts(self, tmp_path):
        table = pa.table({"c": pa.array(["a", None, "b"], pa.string_view()), "x": [1.0, 2.0, 3.0]})
        pa.parquet.write_table(table, tmp_path / "x.parquet")
        words = sampled(tmp_path / "x.parquet")["c"].values
        assert [words.levels[code] if code >= 0 else None for code in words.codes] == ["a", None, "b"]
        (block,) = as_source(tmp_path / "x.parquet", columns=["x"], extra=["c"]).blocks(2**20)
        assert block.extra.column("c").to_pylist() == ["a", None, "b"]

    def test_a_wide_file_asks_for_each_column_a_constant_number_of_times(self, tmp_path, monkeypatch):
        width = 300
        pd.DataFrame(np.zeros((2, width))).rename(columns=str).to_parquet(tmp_path / "x.parquet")
        schemas = []
        made = narwhals.DataFrame.schema.fget
        monkeypatch.setattr(narwhals.DataFrame, "schema", property(lambda self: schemas.append(1) or made(self)))
        rows_of(as_source(tmp_path / "x.parquet"))
        assert len(schemas) < 20


class TestJson:
    def test_deep_nesting_is_refused_before_it_is_parsed(self, text):
        for line in ('{"x": ' + "[" * 20_000 + "]" * 20_000 + "}", "[" * 40_000, '{"x":' * 9_000):
            with pytest.raises(SourceError, match=r"x\.jsonl"):
                as_source(text(line + "\n", "x.jsonl"))

    def test_brackets_in_texts_and_in_many_rows_are_no_nesting(self, text):
        path = text('{"x": 1, "t": "' + "[" * 500 + '"}\n' + '{"x": 2, "t": "\\"["}\n' * 100, "x.jsonl")
        assert len(rows_of(as_source(path, columns=["x"]))) == 101

    def test_a_byte_order_mark_is_no_part_of_a_name(self, text):
        for name, content in (("x.jsonl", '\ufeff{"x": 1}\n'), ("x.csv", "\ufeffx\n1\n")):
            assert as_source(text(content, name)).feature_names == ("x",)


class TestCsv:
    def test_an_empty_last_column_without_a_name_is_dropped_with_a_note(self, text):
        path = text("a,b,\n1,2,\n3,4,\n")
        with pytest.warns(PreparationNote, match=r"x\.csv"):
            source = as_source(path)
        assert source.feature_names == ("a", "b")
        assert rows_of(source).tolist() == [[1, 2], [3, 4]]

    def test_a_column_without_a_name_is_not_used_and_this_is_said(self, text):
        with pytest.warns(PreparationNote, match="no name for column 2"):
            source = as_source(text("a,,b\n1,5,2\n"))
        assert rows_of(source).tolist() == [[1.0, 2.0]]
        with pytest.raises(SourceError, match="names no column"):
            as_source(text(",\n1,2\n"))

    @pytest.mark.parametrize("early", ["", "1"])
    def test_a_column_is_text_if_a_later_value_is(self, text, early):
        n_rows = PIECE // 10
        path = text("a,b,t\n" + f"{early},1.5,word\n" * n_rows + "AUS,2.5,word\n7,,word\n")
        columns = sampled(path)
        assert columns["a"].reading == "text"
        assert columns["b"].reading == "number"
        source = as_table(path)
        source.widened(lambda: sum(block.n_rows for block in source.blocks(2**24)))
        last = list(source.blocks(2**24))[-1].rows.frame
        assert last["a"].to_list()[-2:] == ["AUS", "7"]

    def test_a_value_that_is_no_number_is_named_with_its_column_and_line(self, text):
        n_rows = PIECE // 4
        path = text('a,b\n1,"2"\n\n' + "3,4\n" * n_rows + "5,many\n")
        with pytest.raises(ColumnTypeError, match=rf"(?s)'many' in column 'b', line {n_rows + 4}\b") as raised:
            rows_of(as_source(path))
        assert raised.value.columns == ("b",)

    def test_numbers_as_people_write_them(self, text):
        path = text('a;b;c\n1.103,5;-999;2\n"12";3,25;n.v.\n')
        options = CsvOptions(delimiter=";", decimal=",", thousands=".", na=("-999", "n.v."))
        frame = next(as_table(path, csv=options).blocks(2**20)).rows.frame
        assert frame["a"].to_list() == [1103.5, 12.0]
        assert frame["b"].to_list() == [None, 3.25]
        assert frame["c"].to_list() == [2.0, None]
        english = text('a,b\n"1,103",2\n"-1,234,567.5",NA\n', "e.csv")
        frame = next(as_table(english, csv=CsvOptions(thousands=",")).blocks(2**20)).rows.frame
        assert frame["a"].to_list() == [1103.0, -1234567.5]
        assert frame["b"].to_list() == [2.0, None]

    def test_a_comma_that_groups_no_three_digits_is_no_thousands_mark(self, text):
        assert not as_table(text('a\n"1,5"\n'), csv=CsvOptions(thousands=",", delimiter=";")).is_numeric

    @pytest.mark.parametrize(
        "options", [{"decimal": "x"}, {"thousands": "."}, {"thousands": "1"}, {"na": "x"}, {"delimiter": "§"}]
    )
    def test_impossible_options_are_refused(self, options):
        with pytest.raises(ParameterError, match=next(iter(options))):
            CsvOptions(**options)

    def test_line_breaks_in_quotes_are_part_of_a_text(self, text):
        n_rows = PIECE // 20
        path = text("a,t\n" + '1,"two\nlines, one value"\n' * n_rows)
        blocks = list(as_source(path, columns=["a"], extra=["t"]).blocks(2**24))
        assert sum(block.n_rows for block in blocks) == n_rows
        assert set(blocks[-1].extra.column("t").to_pylist()) == {"two\nlines, one value"}

    def test_a_ragged_line_is_named(self, text):
        with pytest.raises(InputError, match=r"x\.csv.* 3 values in line 3, but 2 columns"):
            rows_of(as_source(text("a,b\n1,2\n3,4,5\n6,7\n")))

    def test_underscores_make_no_number(self):
        assert np.isnan(number_of("1_2"))
        assert number_of("12") == 12


class TestOutputs:
    def test_a_replaced_file_keeps_its_permissions(self, tmp_path):
        path = tmp_path / "labels.csv"
        for mode in (0o600, 0o640):
            path.touch()
            path.chmod(mode)
            write_labels(path, [np.array([0, 1])])
            assert stat.S_IMODE(path.stat().st_mode) == mode

    def test_a_file_that_appears_meanwhile_is_kept_without_overwrite(self, tmp_path):
        path = tmp_path / "labels.csv"

        def pieces():
            path.write_text("someone else's")
            yield np.array([0, 1])

        with pytest.raises(ParameterError, match=r"labels\.csv"):
            write_labels(path, pieces(), overwrite=False)
        assert path.read_text() == "someone else's"
        assert os.listdir(tmp_path) == ["labels.csv"]

    def test_one_of_several_writers_succeeds_without_overwrite(self, tmp_path):
        path, together, done = tmp_path / "x.txt", threading.Barrier(8), []

        def write(number):
            try:
                with renamed_at_the_end(path, overwrite=False) as temporary:
                    temporary.write_text(str(number))
                    together.wait()
                done.append(number)
            except ParameterError:
                pass

        threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [str(number) for number in done] == [path.read_text()]
        assert os.listdir(tmp_path) == ["x.txt"]
