"""Laws of text files in other encodings than UTF-8: read if the option names it, else refused with the line."""

import gzip
import json

import pytest

from dc2 import CsvOptions, as_source
from dc2.errors import ParameterError, SourceError
from dc2.io.resolve import as_table

pytest.importorskip("pyarrow")

HEAD = "größe,ort\n"
LINES = [f"{number},{'Köln' if number == 90 else 'Rome'}\n" for number in range(100)]


def towns(path, csv=None):
    table = as_table(path, csv=csv)
    return [town for block in table.blocks(1000) for town in block.rows.frame.get_column("ort").to_list()]


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-16-le", "utf-8-sig"])
def test_the_encoding_changes_nothing_where_it_is_given(encoding, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes("".join([HEAD, *LINES]).encode(encoding))
    csv = CsvOptions(encoding=encoding)
    assert as_source(path, columns=["größe"], csv=csv).feature_names == ("größe",)
    assert towns(path, csv) == [line.strip().split(",")[1] for line in LINES]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize(
    ("head", "wrong", "byte", "line", "guess"),
    [
        ("x,ort\n", "Köln", "0xf6", 92, "latin-1"),
        ("x,ort\n", "5 €", "0x80", 92, "cp1252"),
        (HEAD, "Köln", "0xf6", 1, "latin-1"),
    ],
)
def test_a_byte_that_is_not_utf8_is_told_with_its_line(pack, head, wrong, byte, line, guess, tmp_path):
    path = tmp_path / ("rows.csv" if pack is bytes else "rows.csv.gz")
    path.write_bytes(pack("".join([head, *LINES]).replace("Köln", wrong).encode(guess)))
    with pytest.raises(SourceError, match=rf"not UTF-8: line {line} has the byte {byte} in .*encoding='{guess}'"):
        towns(path)


def test_a_bad_byte_far_down_is_told_with_its_line(tmp_path, monkeypatch):
    monkeypatch.setattr("dc2.io.csv_files.PIECE_BYTES", 7)  # so that letters are cut through
    monkeypatch.setattr("dc2.io.csv_files.BLOCK_BYTES", 64)
    path = tmp_path / "rows.csv"
    path.write_bytes("".join([HEAD, *LINES]).encode() + b"7,K\xf6ln\n")
    with pytest.raises(SourceError, match=r"line 102 has the byte 0xf6 in .*Köln'"):
        towns(path)


def test_a_column_that_is_not_used_may_be_in_any_encoding(tmp_path):
    (tmp_path / "rows.csv").write_bytes("".join(["x,ort\n", *LINES]).encode("latin-1"))
    source = as_source(tmp_path / "rows.csv", drop=["ort"])
    assert sum(len(block.X) for block in source.blocks(1000)) == len(LINES)


@pytest.mark.parametrize(
    ("encoding", "said"), [("utf-16", "the mark of UTF-16"), ("utf-16-le", "0"), ("utf-16-be", "0")]
)
def test_utf16_is_recognised(encoding, said, tmp_path):
    (tmp_path / "rows.csv").write_bytes("a,b\n1,2\n3,4\n".encode(encoding))
    with pytest.raises(SourceError, match=rf"not UTF-8: .*{said}.*CsvOptions\(encoding='{encoding}'\)"):
        as_source(tmp_path / "rows.csv")


def test_json_lines_that_are_not_utf8_are_refused_with_the_line(tmp_path):
    lines = [json.dumps({"x": number, "ort": "Köln"}, ensure_ascii=False) for number in range(3)]
    (tmp_path / "rows.jsonl").write_bytes("\n".join(lines).encode("latin-1"))
    with pytest.raises(SourceError, match=r"not UTF-8: line 1 has .*iconv -f iso-8859-1"):
        as_table(tmp_path / "rows.jsonl")


def test_an_encoding_that_nobody_knows_is_refused():
    for encoding in ("latin-99", "hex", 8):
        with pytest.raises(ParameterError) as refusal:
            CsvOptions(encoding=encoding)
        assert (refusal.value.parameter, refusal.value.value) == ("encoding", encoding)


@pytest.mark.parametrize("encoding", ["undefined", "utf-16\0", "punycode", "idna", 3])
def test_what_is_no_encoding_of_files_is_refused(encoding):
    with pytest.raises(ParameterError) as refusal:
        CsvOptions(encoding=encoding)
    assert (refusal.value.parameter, refusal.value.value) == ("encoding", encoding)


@pytest.mark.parametrize(
    ("text", "encoding", "says"),
    [
        (b"a,b\n1,2\n", "utf-16", "is not UTF-16: UTF-16 stream does not start with BOM"),
        (b"aaaaaaaaaaaaaaaaaaaa,b\0c\n1,2\n", "utf-8", "a name holds a byte that is 0"),
        (b"a\x81,b\n1,2\n", "cp1252", "0x81.*If it is latin-1"),
    ],
)
def test_a_file_in_another_encoding_than_was_said_is_refused(text, encoding, says, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(text)
    with pytest.raises(SourceError, match=says):
        as_source(path, csv=CsvOptions(encoding=encoding))
