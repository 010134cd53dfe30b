"""One rule for columns at prediction: found by name, others ignored, missing ones named."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.datasets import make_moons
from sklearn.svm import SVC

from dc2 import DC2, Compressor, RPFCluster, RPFFeatures, SignatureNystroem, as_source
from dc2.errors import InputTypeError, ParameterError
from dc2.spectral import RPF

FRAME = pd.DataFrame(make_moons(600, noise=0.05, random_state=0)[0], columns=["a", "b"])
WIDER = FRAME.assign(town="x", w=2.0)[["w", "b", "town", "a"]]


def clusterer() -> RPFCluster:
    return RPFCluster(2, n_signatures=50, similarity=RPF(50), random_state=0)


@pytest.fixture(scope="module")
def model() -> RPFCluster:
    return clusterer().fit(FRAME)


def parquet(frame: pd.DataFrame, folder: Any) -> Any:
    frame.to_parquet(folder / "rows.parquet")
    return folder / "rows.parquet"


def csv(frame: pd.DataFrame, folder: Any) -> Any:
    frame.to_csv(folder / "rows.csv", index=False)
    return folder / "rows.csv"


def several(frame: pd.DataFrame, folder: Any) -> Any:
    for number, part in enumerate((frame[:100], frame[100:])):
        part.to_parquet(folder / f"{number}.parquet")
    return [folder / "0.parquet", folder / "1.parquet"]


def polars(frame: pd.DataFrame, folder: Any) -> Any:
    return pytest.importorskip("polars").from_pandas(frame)


FORMS: dict[str, Any] = {
    "frame": lambda frame, folder: frame,
    "arrow": lambda frame, folder: pa.Table.from_pandas(frame, preserve_index=False),
    "polars": polars,
    "parquet": parquet,
    "csv": csv,
    "several": several,
}
every_form = pytest.mark.parametrize("form", FORMS)


def predicted(model: Any, rows: Any) -> Any:
    labels = model.predict(rows)
    return labels if isinstance(labels, np.ndarray) else np.concatenate(list(labels))


def written(model: Any, rows: Any, folder: Any, **options: Any) -> pd.DataFrame:
    model.predict_to(rows, folder / "labels.parquet", **options)
    return pd.read_parquet(folder / "labels.parquet")


@every_form
def test_columns_that_were_not_fitted_are_ignored(model, form, tmp_path):
    rows = FORMS[form](WIDER, tmp_path)
    np.testing.assert_array_equal(predicted(model, rows), model.labels_)
    np.testing.assert_array_equal(written(model, rows, tmp_path)["label"], model.labels_)


@every_form
def test_columns_that_travel_along_may_be_any_of_them(model, form, tmp_path):
    rows = FORMS[form](WIDER, tmp_path)
    table = written(model, rows, tmp_path, id_columns=["town", "b"], column="cluster")
    assert list(table.columns) == ["town", "b", "cluster"]
    np.testing.assert_array_equal(table["cluster"], model.labels_)
    np.testing.assert_allclose(table["b"], FRAME["b"])


@every_form
def test_a_column_that_is_missing_is_named_by_predict_and_predict_to(model, form, tmp_path):
    rows = FORMS[form](WIDER.drop(columns="a").rename(columns={"w": "alpha"}), tmp_path)
    with pytest.raises(ValueError, match=r"\ba\b"):
        predicted(model, rows)
    with pytest.raises(ValueError, match=r"\ba\b"):
        written(model, rows, tmp_path)
    assert not (tmp_path / "labels.parquet").exists()


@pytest.mark.parametrize("form", ["frame", "polars", "parquet", "csv", "several"])
def test_the_order_of_columns_does_not_matter(model, form, tmp_path):
    np.testing.assert_array_equal(predicted(model, FORMS[form](FRAME[["b", "a"]], tmp_path)), model.labels_)


@pytest.mark.parametrize("form", ["frame", "arrow", "polars", "parquet", "csv"])
def test_weights_that_were_fitted_may_be_there_or_not(form, tmp_path):
    weighed = FRAME.assign(w=np.arange(len(FRAME)) % 3 + 1.0)
    model = clusterer().fit(FORMS[form](weighed, tmp_path), sample_weight="w")
    assert list(model.feature_names_in_) == ["a", "b"]
    assert model.signatures_.weights.sum() == weighed["w"].sum()
    labels = predicted(model, FORMS[form](weighed, tmp_path))
    np.testing.assert_array_equal(labels, predicted(model, FORMS[form](FRAME, tmp_path)))
    np.testing.assert_array_equal(written(model, weighed, tmp_path)["label"], labels)


@pytest.mark.parametrize("width", [1, 3])
def test_arrays_must_have_as_many_columns(model, width, tmp_path):
    rows = np.zeros((5, width))
    message = rf"X has {width} features, but RPFCluster is expecting 2 features as input"
    with pytest.warns(UserWarning, match="feature names"), pytest.raises(ValueError, match=message):
        model.predict(rows)
    with pytest.warns(UserWarning, match="feature names"), pytest.raises(ValueError, match=message):
        model.predict_to(rows, tmp_path / "labels.parquet")


def test_the_other_answers_follow_the_same_rule(model):
    np.testing.assert_array_equal(model.predict_proba(WIDER), model.predict_proba(FRAME))
    np.testing.assert_array_equal(model.transform(WIDER), model.transform(FRAME))
    np.testing.assert_array_equal(np.concatenate([labels for labels, _ in model.labelled_blocks(WIDER)]), model.labels_)


@pytest.mark.parametrize(
    "estimator",
    [
        Compressor(30, random_state=0),
        SignatureNystroem(n_components=10, random_state=0),
        RPFFeatures(n_trees=5, n_points=20, random_state=0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_so_do_the_other_estimators(estimator, tmp_path):
    fitted = estimator.fit(FRAME)
    expected, wider = fitted.transform(FRAME), fitted.transform(WIDER)
    assert (expected != wider).sum() == 0
    blocks = list(fitted.transform(parquet(WIDER, tmp_path)))
    assert sum(block.shape[0] for block in blocks) == len(FRAME)
    with pytest.raises(ValueError, match=r"\ba\b"):
        fitted.transform(WIDER.drop(columns="a"))


def test_a_model_of_any_estimator_does_too():
    kinds = (FRAME["b"] > 0.25).to_numpy()
    model = DC2(SVC(), compressor=Compressor(40), random_state=0).fit(FRAME, kinds)
    np.testing.assert_array_equal(model.predict(WIDER), model.predict(FRAME))


def test_a_source_that_is_made_already_keeps_its_columns(model, tmp_path):
    source = as_source(WIDER, columns=["a", "b"])
    np.testing.assert_array_equal(predicted(model, source), model.labels_)
    with pytest.raises(InputTypeError, match="extra="):
        model.predict_to(source, tmp_path / "labels.parquet", id_columns="town")
    swapped = as_source(WIDER, columns=["b", "a"])
    with pytest.raises(ValueError, match="order is not"):
        model.predict(swapped)


# DC2 and its seed


def test_any_estimator_with_a_seed_repeats():
    kinds = (FRAME["b"] > 0.25).to_numpy()
    first, second = (DC2(SVC(), random_state=0).fit(FRAME, kinds) for _ in range(2))
    assert first.signatures_.points.tobytes() == second.signatures_.points.tobytes()
    np.testing.assert_array_equal(first.predict(FRAME), second.predict(FRAME))
    assert first.score(FRAME, kinds) > 0.95


def test_the_seed_of_the_whole_is_the_seed_of_its_compressor():
    kinds = (FRAME["b"] > 0.25).to_numpy()
    outer = DC2(SVC(), compressor=Compressor(40), random_state=7).fit(FRAME, kinds)
    inner = DC2(SVC(), compressor=Compressor(40, random_state=7)).fit(FRAME, kinds)
    assert outer.signatures_.points.tobytes() == inner.signatures_.points.tobytes()


def test_two_seeds_that_differ_are_refused_and_equal_ones_are_not():
    seed = int("70000")
    agreed = DC2(SVC(), compressor=Compressor(40, random_state=int("70000")), random_state=seed)
    agreed.fit(FRAME, FRAME["b"] > 0.25)
    generator = np.random.default_rng(0)
    DC2(SVC(), compressor=Compressor(40, random_state=generator), random_state=generator).fit(FRAME, FRAME["b"] > 0.25)
    with pytest.raises(ParameterError, match=r"random_state=1.*2"):
        DC2(SVC(), compressor=Compressor(40, random_state=2), random_state=1).fit(FRAME, FRAME["b"] > 0.25)
