"""Rows of databases and of addresses: SQLite and PostgreSQL by ADBC, and what fsspec reads."""

import contextlib
import functools
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from dc2 import DC2Clustering, as_source
from dc2.errors import PreparationNote, SourceError
from support.table_data import two_groups

TABLE = two_groups()
NUMBERS = "SELECT age, visits FROM customers"


def rows_of(source: Any) -> Any:
    return np.concatenate([block.X for block in source.blocks(2**12)])


def expected() -> Any:
    return DC2Clustering(2, random_state=0).fit(TABLE.drop_columns("customer")).labels_


def sqlite_connection() -> Any:
    return pytest.importorskip("adbc_driver_sqlite.dbapi").connect()


@contextlib.contextmanager
def postgresql_connection(folder: Path) -> Iterator[Any]:
    pgserver = pytest.importorskip("pgserver")
    dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi")
    server = pgserver.get_server(folder, cleanup_mode="delete")
    try:
        with dbapi.connect(server.get_uri()) as connection:
            yield connection
    finally:
        server.cleanup()


def check_database(connection: Any) -> None:
    with connection.cursor() as cursor:
        cursor.adbc_ingest("customers", TABLE, mode="create")
        cursor.execute(NUMBERS)
        source = as_source(cursor.fetch_record_batch())
        assert np.array_equal(rows_of(source), rows_of(source))
        cursor.execute(NUMBERS)
        model = DC2Clustering(2, random_state=0).fit(cursor.fetch_record_batch())
        assert np.array_equal(model.labels_, expected())
        cursor.execute("SELECT * FROM customers")
        with pytest.warns(PreparationNote, match="customer: left out"):
            DC2Clustering(2, random_state=0).fit(cursor.fetch_record_batch())


def test_a_query_of_sqlite_is_read_once_and_gives_the_labels_of_the_table() -> None:
    with sqlite_connection() as connection:
        check_database(connection)


@pytest.mark.slow
def test_a_query_of_postgresql_is_read_once_and_gives_the_labels_of_the_table(tmp_path: Path) -> None:
    with postgresql_connection(tmp_path / "server") as connection:
        check_database(connection)


@pytest.fixture
def memory() -> Iterator[Any]:
    """Files in fsspec's memory instead of a folder, like those of a bucket."""
    fsspec = pytest.importorskip("fsspec")
    filesystem = fsspec.filesystem("memory")
    for number in range(2):
        with filesystem.open(f"/bucket/part{number}.parquet", "wb") as file:
            pq.write_table(TABLE.slice(300 * number, 300), file)
    with filesystem.open("/bucket/_log/part9.parquet", "wb") as file:
        file.write(b"no data")
    yield filesystem
    filesystem.rm("/bucket", recursive=True)


@pytest.mark.parametrize("address", ["memory://bucket", "memory://bucket/*.parquet", "memory://bucket/part?.parquet"])
def test_addresses_that_fsspec_knows_are_read_in_order(memory: Any, address: str) -> None:
    source = as_source(address, drop=["customer"], extra=["customer"])
    assert np.array_equal(rows_of(source), np.column_stack([TABLE["age"], TABLE["visits"]]))
    ids = [name for block in source.blocks(2**12) for name in block.extra["customer"].to_pylist()]
    assert ids == TABLE["customer"].to_pylist()


def test_addresses_that_nobody_knows_or_where_nothing_lies_are_refused(memory: Any) -> None:
    for address in ("nowhere://bucket/a.parquet", "memory://bucket/c.parquet", "memory://bucket/*.csv"):
        with pytest.raises(SourceError, match=r"(?s)(look up|matches).*://bucket"):
            as_source(address)


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder and says nothing."""

    def log_message(self, *arguments: Any) -> None:
        pass


def test_files_of_a_web_server_are_read(tmp_path: Path) -> None:
    pytest.importorskip("aiohttp")
    pytest.importorskip("fsspec")
    pa.csv.write_csv(TABLE, tmp_path / "rows.csv")
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        source = as_source(f"http://127.0.0.1:{server.server_port}/rows.csv", drop=["customer"])
        assert np.array_equal(rows_of(source), np.column_stack([TABLE["age"], TABLE["visits"]]))
    finally:
        server.shutdown()
        server.server_close()
