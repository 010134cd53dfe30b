"""Laws of text files: separators, names, packing, and ids that come out as they went in."""

import gzip
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dc2 import CsvOptions, RPFCluster
from dc2.engines.dask_source import dask_files
from dc2.errors import InputError, ParameterError, PreparationNote, SourceError
from dc2.io import as_source
from dc2.io.resolve import as_table
from dc2.spectral import RPF

LINES = {
    ".csv": "id,x,y\n007,1,2.5\n8,3,4\n",
    ".tsv": "id\tx\ty\n007\t1\t2.5\n8\t3\t4\n",
    ".jsonl": '{"id": "007", "x": 1, "y": 2.5}\n{"id": "8", "x": 3, "y": 4}\n',
}


def rows_of(source, block_bytes=2**20):
    return np.concatenate([block.X for block in source.blocks(block_bytes)])


def extra_of(source):
    return pa.concat_tables([block.extra for block in source.blocks(2**10)]).to_pydict()


@pytest.mark.parametrize("packed", ["", ".gz", ".zst"])
@pytest.mark.parametrize("suffix", LINES)
@pytest.mark.parametrize("open_files", [as_source, dask_files], ids=["threads", "dask"])
def test_text_of_every_kind_gives_its_rows_and_ids(suffix, packed, open_files, tmp_path):
    path = tmp_path / f"rows{suffix}{packed}"
    pack = {
        "": bytes,
        ".gz": gzip.compress,
        ".zst": lambda text: pa.Codec("zstd").compress(text, asbytes=True),
    }
    path.write_bytes(pack[packed](LINES[suffix].encode()))
    source = open_files(path, extra=["id"])
    assert source.feature_names == ("x", "y")
    assert rows_of(source).tolist() == [[1, 2.5], [3, 4]]
    assert extra_of(source) == {"id": ["007", "8"]}


class TestCsvOptions:
    """Other separators, and files without a line of names."""

    @pytest.mark.parametrize("delimiter", [";", "|", " ", "\t"])
    def test_columns_may_be_separated_by_any_character(self, delimiter, tmp_path):
        (tmp_path / "x.csv").write_text(LINES[".csv"].replace(",", delimiter))
        source = as_source(tmp_path / "x.csv", drop=["id"], csv=CsvOptions(delimiter=delimiter))
        assert rows_of(source).tolist() == [[1, 2.5], [3, 4]]

    @pytest.mark.parametrize("mark", [";", "|", "\t"])
    @pytest.mark.parametrize("suffix", ["csv", "csv.gz"])
    def test_another_separator_and_decimal_commas_are_seen(self, mark, suffix, tmp_path):
        path = tmp_path / f"umsatz.{suffix}"
        text = "kunde;umsatz;rabatt\n1;109,39;0,107\n2;98,10;0,2\n".replace(";", mark).encode()
        path.write_bytes(gzip.compress(text) if suffix.endswith("gz") else text)
        with pytest.warns(PreparationNote, match=r"delimiter=.*decimal=','"):
            source = as_source(str(path))
        assert rows_of(source).tolist() == [[1, 109.39, 0.107], [2, 98.1, 0.2]]

    def test_numbers_in_groups_are_not_taken_for_decimals(self, tmp_path):
        (tmp_path / "x.csv").write_text("x;y\n1,103;2\n12,000;3\n")
        with pytest.warns(PreparationNote, match="delimiter") as notes:
            assert as_table(tmp_path / "x.csv").feature_names == ("x", "y")
        assert "decimal" not in str(notes[0].message)

    def test_options_that_are_given_are_not_guessed(self, tmp_path):
        (tmp_path / "x.csv").write_text("x;y\n1;2\n")
        with pytest.raises(SourceError, match=r"by ';', but '\|' is expected.*CsvOptions\(delimiter=';'\)"):
            as_source(tmp_path / "x.csv", csv=CsvOptions(delimiter="|"))

    def test_a_first_line_of_numbers_is_a_row(self, tmp_path):
        (tmp_path / "x.csv").write_text("1.5,2\n3,-4e1\n")
        with pytest.warns(PreparationNote, match="header=False"):
            source = as_source(tmp_path / "x.csv")
        assert source.feature_names == ("x0", "x1")
        assert rows_of(source).tolist() == [[1.5, 2], [3, -40]]

    @pytest.mark.parametrize("suffix", [".csv", ".tsv"])
    def test_without_a_line_of_names_columns_are_numbered(self, suffix, tmp_path):
        path = tmp_path / f"x{suffix}"
        path.write_text(LINES[suffix].split("\n", 1)[1])
        source = as_source(path, extra=["x0"], csv=CsvOptions(header=False))
        assert source.feature_names == ("x1", "x2")
        assert rows_of(source).tolist() == [[1, 2.5], [3, 4]]
        assert extra_of(source) == {"x0": ["007", "8"]}
        with pytest.raises(InputError, match="no column 'x3'; it has 'x0', 'x1', 'x2'"):
            as_source(path, columns=["x3"], csv=CsvOptions(header=False))

    def test_what_cannot_be_meant_is_refused(self, tmp_path):
        with pytest.raises(ParameterError) as refusal:
            CsvOptions(delimiter="::")
        assert (refusal.value.parameter, refusal.value.value) == ("delimiter", "::")
        with pytest.raises(ParameterError, match="X is not a path"):
            as_source(np.zeros((2, 2)), csv=CsvOptions())


# Without line ends, which the CSV of others may lose, and NUL, which no text has.
VALUES = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), max_size=12)


@given(values=st.lists(VALUES, min_size=1, max_size=20))
def test_what_only_travels_comes_out_of_a_csv_file_to_the_letter(values, tmp_path_factory):
    path = tmp_path_factory.mktemp("ids") / "x.csv"
    quoted = ['"' + value.replace('"', '""') + '"' for value in values]
    path.write_text("id,x\n" + "".join(f"{value},1\n" for value in quoted), "utf-8", newline="")
    assert extra_of(as_source(path, extra=["id"])) == {"id": values}


def test_ids_that_look_like_numbers_stay_text(tmp_path):
    ids = ["9007199254740993", "00000", "1.50", "1e5", "NA", "nan", "true", "2020-01-01", "-0", "+1", " 7 "]
    (tmp_path / "x.csv").write_text("id,x\n" + "".join(f"{name},{row}\n" for row, name in enumerate(ids)))
    assert extra_of(as_source(tmp_path / "x.csv", extra=["id"])) == {"id": ids}
    assert extra_of(as_source(tmp_path / "x.csv", columns=["x"], extra=["id"])) == {"id": ids}


def test_ids_reach_the_file_of_labels_to_the_letter(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    ids = [f"{9007199254740993 + row}" for row in range(60)]
    lines = [f"{name},{x!r},{y!r}" for name, (x, y) in zip(ids, X.tolist(), strict=True)]
    (tmp_path / "x.csv").write_text("\n".join(["id,x,y", *lines]))
    model = RPFCluster(2, n_signatures=10, similarity=RPF(20), random_state=0).fit(
        as_source(tmp_path / "x.csv", drop=["id"])
    )
    model.predict_to(tmp_path / "x.csv", tmp_path / "labels.parquet", id_columns="id")
    assert pa.parquet.read_table(tmp_path / "labels.parquet").column("id").to_pylist() == ids


class TestJsonLines:
    """JSON has types, but integers may be followed by floats."""

    def test_lines_may_be_many_and_their_keys_in_any_order(self, tmp_path, monkeypatch):
        monkeypatch.setattr("dc2.io.formats.BLOCK_BYTES", 256)
        lines = [f'{{"y": {row}.5, "x": {row}, "more": [{row}]}}' for row in range(500)]
        (tmp_path / "x.jsonl").write_text("\n".join(lines))
        source = as_source(tmp_path / "x.jsonl", columns=["x", "y"])
        assert rows_of(source).tolist() == [[row, row + 0.5] for row in range(500)]

    def test_integers_that_travel_stay_exact(self, tmp_path):
        (tmp_path / "x.jsonl").write_text('{"id": 9007199254740993, "x": 1}\n')
        assert extra_of(as_source(tmp_path / "x.jsonl", extra=["id"])) == {"id": [9007199254740993]}

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ('{"x": 1', "broke after"),
            ('{"x": "one"}', "broke after"),
            ('{"z": 1}', "contains missing values"),
        ],
    )
    def test_a_bad_line_is_an_error_that_names_the_file(self, line, message, tmp_path, monkeypatch):
        monkeypatch.setattr("dc2.io.formats.BLOCK_BYTES", 64)
        (tmp_path / "x.jsonl").write_text('{"x": 1}\n' * 100 + line + "\n")
        with pytest.raises(InputError, match=rf"x\.jsonl' {message}"):
            rows_of(as_source(tmp_path / "x.jsonl"))

    def test_an_empty_file_is_refused(self, tmp_path):
        (tmp_path / "x.jsonl").write_text("")
        with pytest.raises(SourceError, match=r"Cannot read '.*x\.jsonl' as jsonl"):
            as_source(tmp_path / "x.jsonl")


FLIPS = """
import sys, numpy as np, pyarrow as pa
from dc2.errors import InputError, InputTypeError
from dc2.io import as_source
from dc2.io.resolve import as_table
path = sys.argv[1]
whole = open(path, "rb").read()
rng = np.random.default_rng(0)
for bit in rng.choice(8 * len(whole), 400, replace=False):
    damaged = bytearray(whole)
    damaged[bit // 8] ^= 1 << (bit % 8)
    open(path, "wb").write(damaged)
    try:
        for block in as_source(path, extra=["id"]).blocks(2**12):
            block.X.sum()
            block.extra.to_pylist()
    except (InputError, InputTypeError):
        pass
print("still here")
"""


def test_a_damaged_arrow_file_does_not_end_the_process(tmp_path):
    ids = [f"row {row}" for row in range(40)]
    pa.feather.write_feather(pa.table({"id": ids, "x": np.arange(40.0)}), tmp_path / "x.arrow", "uncompressed")
    done = subprocess.run([sys.executable, "-c", FLIPS, str(tmp_path / "x.arrow")], capture_output=True, text=True)
    assert done.stdout.strip() == "still here", done.stderr


@pytest.mark.parametrize("content", [b"", b"nothing", b"\x93NUMPY\x01\x00\xff\xff{", b"x,\xff\n1,2\n"])
@pytest.mark.parametrize("suffix", [".npy", ".csv"])
def test_a_file_that_is_none_is_refused_in_our_words(suffix, content, tmp_path):
    (tmp_path / f"x{suffix}").write_bytes(content)
    with pytest.raises(InputError):
        rows_of(as_source(tmp_path / f"x{suffix}"))


def test_a_glob_through_links_that_lead_in_a_circle_names_each_file_once(tmp_path):
    (tmp_path / "deep").mkdir()
    np.save(tmp_path / "a.npy", np.ones((2, 1)))
    np.save(tmp_path / "deep" / "b.npy", np.ones((3, 1)))
    for name in ("up", "again"):
        (tmp_path / "deep" / name).symlink_to(tmp_path, target_is_directory=True)
    assert as_source(f"{tmp_path}/**/*.npy").n_rows == 5
    assert as_source(f"{tmp_path}/**").n_rows == 5
    assert as_source(f"{tmp_path}/*/*.npy").n_rows == 3
    assert as_source(tmp_path).n_rows == 5
    (tmp_path / "deep" / "c.npy").symlink_to(tmp_path / "a.npy")
    assert as_source(f"{tmp_path}/**/*.npy").n_rows == 5
