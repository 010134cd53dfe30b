"""Finding, fetching, unpacking and reading data files."""

import gzip
import hashlib
import io
import tarfile
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dc2.errors import SourceError
from evaluation.data import DataNotFoundError
from evaluation.data.archives import plain_files
from evaluation.data.bounded import bounded
from evaluation.data.download import Archive, DataFile, obtain
from evaluation.data.location import cache_folder, find_file, search_folders
from evaluation.data.lzw import unlzw
from evaluation.data.standardise import standardise
from evaluation.data.text import line_blocks, numeric_blocks, stack

CONTENT = b"1,2,3\n4,5,6\n"
DIGEST = hashlib.sha256(CONTENT).hexdigest()
PLENTY = 1_000_000


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
    assert unlzw(compress(content * repeats), PLENTY) == content * repeats


@pytest.mark.parametrize("clears", [False, True])
@pytest.mark.parametrize("max_width", [10, 12, 16])
def test_unlzw_follows_every_change_of_width(max_width: int, clears: bool) -> None:
    content = np.random.default_rng(0).integers(0, 8, 300_000, dtype=np.uint8).tobytes()
    assert unlzw(compress(content, max_width, clears=clears), PLENTY) == content


@pytest.mark.parametrize("damaged", [b"", b"\x1f\x9d", b"PK\x03\x04", b"\x1f\x9d\x9f\x00", b"\x1f\x9d\x90\xff\xff\xff"])
def test_unlzw_refuses_what_is_no_sound_z_file(damaged: bytes) -> None:
    with pytest.raises(SourceError, match=r"\.Z file"):
        unlzw(damaged, PLENTY)


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
    found = {inner: stream.read() for inner, stream in plain_files(name, io.BytesIO(packed), PLENTY)}
    assert found == {"table.data": CONTENT}


BOMB = b"0" * 100_000


@pytest.mark.parametrize(
    ("name", "packed"),
    [
        ("set.zip", zipped(table__data=BOMB)),
        ("table.data.gz", gzip.compress(BOMB)),
        ("table.data.Z", compress(BOMB)),
        ("set.zip", zipped(inner__zip=zipped(table__data=BOMB))),
        ("set.tar.gz", tarred("table.data", BOMB)),
    ],
    ids=["zip", "gz", "Z", "zip in zip", "tar.gz"],
)
def test_nothing_unpacks_to_more_than_is_allowed(name: str, packed: bytes) -> None:
    files = plain_files(name, io.BytesIO(packed), 50_000)
    with pytest.raises(SourceError, match="more than the 50,000 bytes"):
        [stream.read() for _, stream in files]


@given(content=st.binary(max_size=100), spare=st.integers(-3, 3))
def test_a_bounded_stream_gives_all_or_raises(content: bytes, spare: int) -> None:
    stream = bounded(io.BytesIO(content), len(content) + spare, "stream")
    if spare < 0 and content:
        with pytest.raises(SourceError, match="stream unpacks"):
            stream.read()
    elif spare >= 0:
        assert stream.read() == content


class Web:
    """A folder that is served over HTTP."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.port = folder, port

    def archive(self, packed: bytes, file: DataFile, max_bytes: int = PLENTY) -> Archive:
        (self.folder / "set.zip").write_bytes(packed)
        return Archive(f"http://127.0.0.1:{self.port}/set.zip", (file,), max_bytes)


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *what: object) -> None:
        pass


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    folder = tmp_path / "web"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))  # seconds between looks at shutdown
        thread.start()
        yield Web(folder, server.server_port)
        server.shutdown()
        thread.join()


def test_a_missing_file_is_downloaded_once_and_then_found(web: Web, tmp_path: Path) -> None:
    packed = zipped(table__data=CONTENT, other__txt=b"unwanted")
    archive = web.archive(packed, DataFile("table.data", DIGEST, 2))
    (path,) = obtain(archive, tmp_path / "home", download=True)
    assert path.read_bytes() == CONTENT
    (web.folder / "set.zip").unlink()
    assert obtain(archive, tmp_path / "home", download=True) == [path]
    assert [entry.name for entry in (tmp_path / "home").iterdir()] == ["table.data"]


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        (DataFile("table.data", "0" * 64), "SHA-256"),
        (DataFile("table.data", None, 3), "2 lines, not 3"),
        (DataFile("absent.data"), r"does not hold absent\.data"),
    ],
)
def test_a_download_that_is_not_sound_leaves_nothing_behind(
    web: Web, tmp_path: Path, file: DataFile, reason: str
) -> None:
    archive = web.archive(zipped(table__data=CONTENT), file)
    with pytest.raises(DataNotFoundError, match=reason):
        obtain(archive, tmp_path / "home", download=True)
    assert list((tmp_path / "home").iterdir()) == []


def test_a_first_download_is_pinned_and_a_later_one_must_be_the_same(web: Web, tmp_path: Path) -> None:
    file = DataFile("table.data", n_lines=2)
    (path,) = obtain(web.archive(zipped(table__data=CONTENT), file), tmp_path / "home", download=True)
    assert (tmp_path / "home" / "sha256.txt").read_text() == f"{DIGEST}  table.data\n"
    path.unlink()
    other = web.archive(zipped(table__data=CONTENT.replace(b"1", b"9")), file)
    with pytest.raises(DataNotFoundError, match=f"not {DIGEST}"):
        obtain(other, tmp_path / "home", download=True)
    obtain(web.archive(zipped(table__data=CONTENT), file), tmp_path / "home", download=True)


@pytest.mark.parametrize(
    ("packed", "reason"),
    [
        (b"no zip at all", "not a zip file"),
        (zipped(table__data=CONTENT)[:60], "not a zip file"),
        (zipped(table__data=BOMB), "more than the 50,000 bytes"),
        (zipped(table__data__Z=b"\x1f\x9d"), r"damaged \.Z file"),
    ],
    ids=["no zip", "cut short", "bomb", "two bytes"],
)
def test_a_broken_archive_is_a_failed_download(web: Web, tmp_path: Path, packed: bytes, reason: str) -> None:
    archive = web.archive(packed, DataFile("table.data"), max_bytes=50_000)
    with pytest.raises(DataNotFoundError, match=f"download failed: .*{reason}"):
        obtain(archive, tmp_path / "home", download=True)


def test_without_network_the_error_names_file_address_and_folder(tmp_path: Path) -> None:
    archive = Archive("http://127.0.0.1:9/set.zip", (DataFile("table.data"),), PLENTY)
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
