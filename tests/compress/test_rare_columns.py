"""Columns that few people have: Arrow's views, runs and maps, batches, lists of nothing, nullable booleans."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pytest

from dc2 import DC2Clustering, RPFCluster, as_source
from dc2.errors import InputTypeError, PreparationNote

RNG = np.random.default_rng(0)
GROUP = RNG.integers(0, 3, 120)
NUMBERS = 6.0 * GROUP + RNG.normal(size=120)
WORDS = np.array(["x", "y", "z"])[GROUP]

pytestmark = pytest.mark.filterwarnings("ignore::dc2.errors.PreparationNote")


def runs(values: Any) -> Any:
    """Every value again, as runs of length 1."""
    return pa.RunEndEncodedArray.from_arrays(np.arange(1, len(values) + 1, dtype=np.int32), values)


RARE = {
    "views": (pa.array(WORDS.tolist(), pa.string_view()), WORDS),
    "runs of words": (runs(pa.array(WORDS)), WORDS),
    "runs of numbers": (runs(pa.array(NUMBERS**2)), NUMBERS**2),
}


def given_as(way: str, table: Any, folder: Path) -> Any:
    if way == "table":
        return table
    if way == "batch":
        return table.to_batches()[0]
    with pa.OSFile(str(folder / "rows.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    path = folder / "rows.arrow"
    return path if way == "file" else pa.dataset.dataset(path, format="ipc")


def labels_of(data: Any) -> Any:
    labels = DC2Clustering(3, random_state=0).fit_predict(data)
    return labels if isinstance(labels, np.ndarray) else np.concatenate(list(labels))


@pytest.mark.parametrize("way", ["table", "batch", "file", "dataset"])
@pytest.mark.parametrize("kind", RARE)
def test_views_and_runs_are_the_values_they_stand_for(kind: str, way: str, tmp_path: Path) -> None:
    rare, plain = RARE[kind]
    expected = labels_of(pa.table({"a": NUMBERS, "b": plain}))
    assert np.array_equal(labels_of(given_as(way, pa.table({"a": NUMBERS, "b": rare}), tmp_path)), expected)


def test_a_batch_of_arrow_is_a_table() -> None:
    batch = pa.record_batch({"a": NUMBERS, "b": NUMBERS**2})
    model = RPFCluster(3, n_signatures=20, random_state=0).fit(batch)
    assert list(model.feature_names_in_) == ["a", "b"]
    assert np.array_equal(model.predict(batch), model.labels_)


def test_booleans_with_blanks_are_numbers_with_blanks() -> None:
    truth = pd.array(np.where(GROUP == 1, True, False), dtype="boolean")
    truth[::7] = pd.NA
    as_floats = pd.DataFrame({"a": NUMBERS, "t": truth.to_numpy("float64", na_value=np.nan)})
    assert np.array_equal(labels_of(pd.DataFrame({"a": NUMBERS, "t": truth})), labels_of(as_floats))


@pytest.mark.parametrize(
    "strange",
    [
        pa.array([[("k", 1)]] * 120, pa.map_(pa.string(), pa.int64())),
        pa.array([[[1.0]]] * 120),
        pa.array([[]] * 120, pa.list_(pa.float64(), 0)),
    ],
    ids=["maps", "lists of lists", "lists of nothing"],
)
def test_nested_columns_are_left_out_of_tables_and_refused_among_numbers(strange: Any) -> None:
    table = pa.table({"a": NUMBERS, "strange": strange})
    with pytest.warns(PreparationNote, match="strange"):
        model = DC2Clustering(3, random_state=0).fit(table)
    assert np.array_equal(model.labels_, model.predict(table))
    with pytest.raises(InputTypeError, match="'strange'"):
        as_source(table)
