"""Tests on Spark and Ray themselves; `test_clusters.py` runs them where these are installed."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dc2 import DC2Clustering, as_source
from dc2.errors import InputTypeError, PreparationNote, SourceError

FEATURES = ["a", "b", "c"]
N_ROWS = 3_000


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5, 3))[rng.integers(0, 5, N_ROWS)] * 8 + rng.normal(size=(N_ROWS, 3))
    return pd.DataFrame(X, columns=FEATURES).assign(
        key=np.arange(N_ROWS), weight=rng.integers(1, 3, N_ROWS).astype(float)
    )


def clusterer() -> DC2Clustering:
    return DC2Clustering(n_signatures=60, noise=0.05, random_state=0)


def expected(**options: Any) -> list[int]:
    source = as_source(table(), columns=FEATURES, **{"id": "*", **options})
    return clusterer().fit(source).predict(table()[FEATURES]).tolist()


@pytest.fixture
def parquet(tmp_path: Path) -> str:
    shuffled = table().sample(frac=1, random_state=1)
    (tmp_path / "rows").mkdir()
    for number, part in enumerate(np.array_split(np.arange(N_ROWS), 3)):
        shuffled.iloc[part].to_parquet(tmp_path / "rows" / f"{number}.parquet", index=False)
    return str(tmp_path / "rows")


def labels_of(labelled: Any) -> list[int]:
    frame = labelled.toPandas() if hasattr(labelled, "toPandas") else labelled.to_pandas()
    return frame.sort_values("key")["label"].tolist()


def session(build: Callable[[Any], Any], **settings: Any) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    for name, value in {"spark.ui.enabled": False, "spark.sql.shuffle.partitions": 4, **settings}.items():
        builder = builder.config(name.replace("__", "."), value)
    return build(builder).getOrCreate()


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    started = session(lambda builder: builder.master("local[2]"))
    started.sparkContext.setLogLevel("OFF")
    yield started
    started.stop()


def check_frame(rows: Any, repartitioned: Any) -> None:
    """The same labels as in memory, in the user's own kind of frame, for any partitions."""
    model = clusterer().fit(as_source(rows, columns=FEATURES))
    labelled = model.predict(rows)
    assert type(labelled) is type(rows)
    assert labels_of(labelled) == expected()
    by_key = clusterer().fit(as_source(repartitioned, columns=FEATURES, id="key", sample_weight="weight"))
    assert labels_of(by_key.predict(repartitioned)) == expected(id="key", sample_weight="weight")


def test_spark_gives_the_labels_of_memory(spark: Any, parquet: str, tmp_path: Path) -> None:
    rows = spark.read.parquet(parquet)
    check_frame(rows, rows.repartition(7))
    model = clusterer().fit(as_source(rows, columns=FEATURES))
    written = str(tmp_path / "labels.parquet")
    assert model.predict_to(rows, written, id_columns="key") == N_ROWS
    assert pd.read_parquet(written).sort_values("key")["label"].tolist() == expected()


def test_spark_takes_words_and_lists(spark: Any) -> None:
    words = table().assign(colour=np.array(["red", "green", None])[np.arange(N_ROWS) % 3]).drop(columns="weight")
    rows = spark.createDataFrame(words.astype({"colour": object}).to_dict("records"))
    with pytest.warns(PreparationNote, match="colour"):
        first, second = (DC2Clustering(5, random_state=0).fit(frame) for frame in (rows, rows.repartition(5)))
    assert labels_of(first.predict(rows)) == labels_of(second.predict(rows))
    vectors = spark.createDataFrame([(row,) for row in table()[FEATURES].to_numpy().tolist()], "vec array<double>")
    assert DC2Clustering(n_signatures=60, random_state=0).fit(vectors).n_features_in_ == 3


def with_noise(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give other values each time."""
    for batch in batches:
        noise = pa.array(np.random.default_rng().normal(size=len(batch)))
        yield pa.RecordBatch.from_arrays([batch.column(0), noise], ["a", "b"])


def test_spark_refuses_what_cannot_be_used(spark: Any, parquet: str) -> None:
    rows = spark.read.parquet(parquet)
    with pytest.raises(InputTypeError, match="streaming"):
        clusterer().fit(spark.readStream.format("rate").load())
    with pytest.raises(InputTypeError, match="'m'"):
        clusterer().fit(rows.selectExpr("a", "map('x', b) AS m"))
    with pytest.raises(SourceError, match="same rows"):
        clusterer().fit(rows.select("a", "b").mapInArrow(with_noise, "a double, b double"))
    with pytest.raises(InputTypeError, match="sample_weight"):
        clusterer().fit(rows, sample_weight=np.ones(N_ROWS))


def test_spark_session_that_is_gone_is_named(spark: Any, parquet: str) -> None:
    rows = spark.read.parquet(parquet)
    spark.stop()
    with pytest.raises(SourceError, match="session"):
        clusterer().fit(rows)


def troubled(rows: Any) -> Any:
    """Rows whose first partition kills its executor in every pass, and whose second is slow, when they run first."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        first = context.attemptNumber() == 0
        if context.partitionId() == 0 and first:
            daemon = os.getppid()
            with open(f"/proc/{daemon}/stat", encoding="ascii") as file:
                os.kill(int(file.read().rsplit(")", 1)[1].split()[1]), signal.SIGKILL)
        if context.partitionId() == 1 and first:
            time.sleep(8)
        yield from batches

    return rows.mapInArrow(run, rows.schema)


def test_executors_that_die_or_are_slow_change_nothing(parquet: str) -> None:
    spark = session(
        lambda builder: builder.master("local-cluster[2,1,1024]"),
        spark__speculation=True, spark__speculation__interval="100ms", spark__speculation__quantile=0.3,
        spark__executor__processTreeMetrics__enabled=False, spark__task__maxFailures=8,
        spark__stage__maxConsecutiveAttempts=16,
    )  # fmt: skip
    try:
        rows = spark.read.parquet(parquet)
        model = clusterer().fit(as_source(troubled(rows), columns=FEATURES))
        assert labels_of(model.predict(rows)) == expected()
    finally:
        spark.stop()


def test_connect_gives_the_labels_of_memory(parquet: str) -> None:
    spark = session(lambda builder: builder.remote("local[2]"))
    try:
        rows = spark.read.parquet(parquet)
        check_frame(rows, rows.repartition(7))
    finally:
        spark.stop()


def test_ray_gives_the_labels_of_memory(parquet: str, tmp_path: Path) -> None:
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    rows = ray.data.read_parquet(parquet)
    check_frame(rows, rows.repartition(7))
    model = clusterer().fit(as_source(rows, columns=FEATURES))
    written = str(tmp_path / "labels.parquet")
    assert model.predict_to(rows, written, id_columns="key") == N_ROWS
    assert pd.read_parquet(written).sort_values("key")["label"].tolist() == expected()
    tensors = ray.data.from_numpy(table()[FEATURES].to_numpy())
    assert DC2Clustering(n_signatures=60, random_state=0).fit(tensors).n_features_in_ == 3
    with pytest.raises(SourceError, match="same rows"):
        clusterer().fit(rows.select_columns(FEATURES).random_sample(0.5))
    ray.shutdown()
    with pytest.raises(SourceError, match="session"):
        clusterer().fit(rows)


def dying(folder: Path) -> Callable[[pa.Table], pa.Table]:
    """Rows that kill their worker at the first of every two times that it is given a block: in every pass."""

    def run(rows: pa.Table) -> pa.Table:
        calls = folder / str(rows["key"][0])
        calls.mkdir(exist_ok=True)
        (calls / str(time.time_ns())).touch()
        if len(os.listdir(calls)) % 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return rows

    return run


def test_ray_workers_that_die_in_every_pass_change_nothing(parquet: str, tmp_path: Path) -> None:
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        (tmp_path / "calls").mkdir()
        rows = ray.data.read_parquet(parquet)
        deadly = rows.map_batches(dying(tmp_path / "calls"), batch_format="pyarrow", batch_size=None)
        model = clusterer().fit(as_source(deadly, columns=FEATURES))
        assert len(list((tmp_path / "calls").glob("*/*"))) >= 6
        assert labels_of(model.predict(rows)) == expected()
    finally:
        ray.shutdown()


@pytest.mark.parametrize("engine", [["--engine", "spark", "--master", "local[2]"], ["--engine", "ray"]], ids=str)
def test_command_lets_workers_read_and_write(parquet: str, tmp_path: Path, engine: list[str], capsys: Any) -> None:
    from dc2.cli import main

    out = tmp_path / "labels.parquet"
    with pytest.raises(SystemExit) as stopped:
        main(
            ["cluster", f"{parquet}/*.parquet", *engine, "--columns", "a,b,c", "--id", "key", "-o", str(out), "--json"]
        )
    assert not stopped.value.code
    said = json.loads(capsys.readouterr().out)
    labels = pd.read_parquet(out)
    assert len(labels) == said["rows"] == N_ROWS
    assert set(labels.columns) == {"key", "label"}
