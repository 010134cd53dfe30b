"""Files of an S3-like store: read from a server on this machine, by pyarrow (s3://) and by fsspec (s3a://)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from dc2 import DC2Clustering, as_source
from dc2.cli import main
from dc2.errors import SourceError
from support.table_data import two_groups

server = pytest.importorskip("moto.server")
s3fs = pytest.importorskip("s3fs")

TABLE = two_groups()
ROWS = np.column_stack([TABLE["age"], TABLE["visits"]])
SCHEMES = pytest.mark.parametrize("scheme", ["s3", "s3a"])


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """The name of a bucket with two parts of a table, something that is no data, and a file of texts."""
    started = server.ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    started.start()
    host, port = started.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "no_proxy": "127.0.0.1",
        }.items():
            patch.setenv(name, value)
        store = s3fs.S3FileSystem(skip_instance_cache=True)
        store.mkdir("shop")
        for number in range(2):
            with store.open(f"shop/year/part{number}.parquet", "wb") as file:
                pq.write_table(TABLE.slice(300 * number, 300), file)
        store.pipe("shop/year/_log/part9.parquet", b"no data")
        with store.open("shop/rows.csv", "wb") as file:
            pyarrow.csv.write_csv(TABLE, file)
        try:
            yield "shop"
        finally:
            s3fs.S3FileSystem.clear_instance_cache()
            started.stop()


def rows_of(source: Any) -> NDArray[Any]:
    return np.concatenate([block.X for block in source.blocks(2**12)])


@SCHEMES
@pytest.mark.parametrize("path", ["year", "year/*.parquet", "*/part?.parquet", "rows.csv"])
def test_files_of_a_bucket_are_read_in_order(bucket: str, scheme: str, path: str) -> None:
    source = as_source(f"{scheme}://{bucket}/{path}", drop=["customer"], extra=["customer"])
    np.testing.assert_array_equal(rows_of(source), ROWS)
    ids = [name for block in source.blocks(2**12) for name in block.extra["customer"].to_pylist()]
    assert ids == TABLE["customer"].to_pylist()


@SCHEMES
@pytest.mark.parametrize("path", ["year/part7.parquet", "year/*.csv"])
def test_where_nothing_lies_is_said(bucket: str, scheme: str, path: str) -> None:
    with pytest.raises(SourceError, match=rf"{scheme}://shop/year"):
        as_source(f"{scheme}://{bucket}/{path}")


@SCHEMES
def test_a_bucket_that_is_not_there_is_said(bucket: str, scheme: str) -> None:
    with pytest.raises(SourceError, match=rf"{scheme}://nowhere"):
        as_source(f"{scheme}://nowhere/*.parquet")


@SCHEMES
def test_the_command_line_takes_addresses(bucket: str, scheme: str, tmp_path: Path) -> None:
    labels = tmp_path / "labels.arrow"
    address = f"{scheme}://{bucket}/year/*.parquet"
    with pytest.raises(SystemExit, match="0"):
        main(["cluster", address, "-k", "2", "--id", "customer", "-o", str(labels)])
    model = DC2Clustering(2, scale="standard", random_state=0).fit(ROWS)
    found = pyarrow.feather.read_table(labels)
    assert found["customer"].to_pylist() == TABLE["customer"].to_pylist()
    np.testing.assert_array_equal(found["label"], model.labels_)
