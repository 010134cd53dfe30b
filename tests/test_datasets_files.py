"""Finding, fetching, unpacking and reading data files."""

import gzip
import hashlib
import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dc2.datasets import DataNotFoundError
from dc2.datasets.archives import plain_files
from dc2.datasets.download import Archive, DataFile, obtain
from dc2.datasets.location import cache_folder, find_file, search_folders
from dc2.datasets.lzw import unlzw
from dc2.datasets.prepare import standardise
from dc2.datasets.text import line_blocks, numeric_blocks, stack
from dc2.errors import SourceError

CONTENT = b"1,2,3\n4,5,6\n"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


def compress(content: bytes, max_width: int = 12, *, clears: bool = False) -> bytes:
    """Unix compress in block mode; with `clears` it forgets its table whenever that is full."""
    letters = {bytes([value]): value for value in range(256)}
    table, word = letters.copy(), b""
    width, known_to_reader = 9, 256  # the reader's table lags one entry behind the writer's
    packed, group = bytearray(b"\x1f\x9d" + bytes([0x80 | max_width])), []

    def flush() -> None:
        bits = sum(code << (width * place) for place, code in enumerate(group))
        packed.extend(bits.to_bytes(width, "little"))
        group.clear()

    def emit(code: int) -> None:
        nonlocal width, known_to_reader
        group.append(code)
        known_to_reader = 256 if code == 256 else min(known_to_reader + 1, 1 << max_width)
        wider = known_to_reader >= 1 << width and width < max_width
        if len(group) == 8 or wider or code == 256:
            flush()
        width = 9 if code == 256 else width + wider

    for byte in content:
        longer = word + bytes([byte])
        if longer in table:
            word = longer
            continue
        emit(table[word])
        word = bytes([byte])
        if len(table) + 1 < 1 << max_width:
            table[longer] = len(table) + 1  # 256 is the code that clears
        elif clears:
            emit(256)
            table = letters.copy()
    if word:
        emit(table[word])
    if group:
        n_bits = width * len(group)
        flush()
        del packed[len(packed) - width + (n_bits + 7) // 8 :]
    return bytes(packed)


@given(content=st.binary(max_size=300), repeats=st.integers(1, 20))
def test_unlzw_undoes_compress(content: bytes, repeats: int) -> None:
    assert unlzw(compress(content * repeats)) == content * repeats


@pytest.mark.parametrize("clears", [False, True])
@pytest.mark.parametrize("max_width", [10, 12, 16])
def test_unlzw_follows_every_change_of_width(max_width: int, clears: bool) -> None:
    content = np.random.default_rng(0).integers(0, 8, 300_000, dtype=np.uint8).tobytes()
    assert unlzw(compress(content, max_width, clears=clears)) == content


@pytest.mark.parametrize("damaged", [b"PK\x03\x04", b"\x1f\x9d\x9f\x00", b"\x1f\x9d\x90\xff\xff\xff"])
def test_unlzw_refuses_what_is_no_sound_z_file(damaged: bytes) -> None:
    with pytest.raises(SourceError, match=r"\.Z file"):
        unlzw(damaged)


def zipped(**files: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "."), content)
    return packed.getvalue()


def tarred(name: str, content: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


@pytest.mark.parametrize(
    ("name", "packed"),
    [
        ("set.zip", zipped(table__data=CONTENT)),
        ("set.zip", zipped(table__data__gz=gzip.compress(CONTENT))),
        ("set.zip", zipped(table__data__Z=compress(CONTENT))),
        ("set.zip", zipped(inner__zip=zipped(table__data=CONTENT))),
        ("set.zip", zipped(inner__tar__gz=tarred("folder/table.data", CONTENT))),
        ("table.data.gz", gzip.compress(CONTENT)),
        ("table.data", CONTENT),
    ],
    ids=["zip", "gz in zip", "Z in zip", "zip in zip", "tar.gz in zip", "gz", "plain"],
)
def test_a_file_is_found_however_it_is_packed(name: str, packed: bytes) -> None:
    found = {inner: stream.read() for inner, stream in plain_files(name, io.BytesIO(packed))}
    assert found == {"table.data": CONTENT}


def archive_at(folder: Path, packed: bytes, file: DataFile) -> Archive:
    folder.mkdir(exist_ok=True)
    (folder / "set.zip").write_bytes(packed)
    return Archive((folder / "set.zip").as_uri(), (file,))


def test_a_missing_file_is_downloaded_once_and_then_found(tmp_path: Path) -> None:
    packed = zipped(table__data=CONTENT, other__txt=b"unwanted")
    archive = archive_at(tmp_path / "web", packed, DataFile("table.data", DIGEST, 2))
    (path,) = obtain(archive, tmp_path / "home", download=True)
    assert path.read_bytes() == CONTENT
    (tmp_path / "web" / "set.zip").unlink()
    assert obtain(archive, tmp_path / "home", download=True) == [path]
    assert [entry.name for entry in (tmp_path / "home").iterdir()] == ["table.data"]


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        (DataFile("table.data", "0" * 64), "SHA-256"),
        (DataFile("table.data", None, 3), "2 lines, not 3"),
        (DataFile("absent.data"), "does not hold absent.data"),
    ],
)
def test_a_download_that_is_not_sound_leaves_nothing_behind(
    tmp_path: Path, file: DataFile, reason: str
) -> None:
    archive = archive_at(tmp_path / "web", zipped(table__data=CONTENT), file)
    with pytest.raises(DataNotFoundError, match=reason):
        obtain(archive, tmp_path / "home", download=True)
    assert list((tmp_path / "home").iterdir()) == []


@pytest.mark.parametrize(
    "packed", [b"no zip at all", zipped(table__data=CONTENT)[:60]], ids=["no zip", "cut short"]
)
def test_a_broken_archive_is_a_failed_download(tmp_path: Path, packed: bytes) -> None:
    archive = archive_at(tmp_path / "web", packed, DataFile("table.data"))
    with pytest.raises(DataNotFoundError, match="download failed"):
        obtain(archive, tmp_path / "home", download=True)


def test_without_network_the_error_names_file_address_and_folder(tmp_path: Path) -> None:
    archive = Archive("http://127.0.0.1:9/set.zip", (DataFile("table.data"),))
    for download in (True, False):
        with pytest.raises(DataNotFoundError) as caught:
            obtain(archive, tmp_path, download=download)
        for part in ("table.data", archive.url, str(tmp_path), "DC2_DATA"):
            assert part in str(caught.value)


def test_folders_are_searched_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DC2_DATA", str(tmp_path / "named"))
    assert search_folders(tmp_path / "given") == [tmp_path / "given"]
    assert search_folders(None) == [tmp_path / "named", cache_folder()]
    monkeypatch.delenv("DC2_DATA")
    assert search_folders(None) == [cache_folder()]


def test_a_file_may_be_plain_or_gzipped(tmp_path: Path) -> None:
    assert find_file(("table.data",), [tmp_path]) is None
    gzipped = tmp_path / "table.data.gz"
    gzipped.write_bytes(gzip.compress(CONTENT))
    assert find_file(("table.data",), [tmp_path]) == gzipped
    (tmp_path / "table.data").write_bytes(CONTENT)
    assert find_file(("table.data",), [tmp_path]) == tmp_path / "table.data"


def test_blocks_of_a_table_join_to_the_whole(tmp_path: Path) -> None:
    table = np.arange(15_003).reshape(-1, 3)
    path = tmp_path / "table.data.gz"
    with gzip.open(path, "wt") as stream:
        np.savetxt(stream, table, fmt="%d", delimiter=",")
    blocks = list(numeric_blocks(path, n_columns=3, delimiter=",", dtype=np.int32))
    assert len(blocks) > 1
    np.testing.assert_array_equal(stack(blocks, path), table)
    assert sum(len(lines) for _, lines in line_blocks(path, skip=1)) == len(table) - 1


@pytest.mark.parametrize("content", ["1 2\n3 four\n", "1 2\n3\n", "1 2 3\n", ""])
def test_a_table_that_is_none_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "broken.txt"
    path.write_text(content)
    with pytest.raises(SourceError, match=r"broken\.txt"):
        stack(numeric_blocks(path, n_columns=2, delimiter=None, dtype=np.float64), path)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_standardised_columns_have_mean_0_and_variance_1(dtype: type) -> None:
    X = np.random.default_rng(0).normal(1000.0, 3.0, size=(40_000, 3)).astype(dtype)
    X[:, 2] = 0.1
    standardise(X)
    np.testing.assert_allclose(X.mean(axis=0, dtype=np.float64), 0, atol=1e-5)
    np.testing.assert_allclose(X[:, :2].std(axis=0, dtype=np.float64), 1, atol=1e-5)
    assert not X[:, 2].any(), "a constant column becomes exactly 0"
