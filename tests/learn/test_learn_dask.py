"""Kernel learning on Dask collections: the same as for rows in memory, computed on demand, where the rows are."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.cluster import AgglomerativeClustering
from sklearn.decomposition import KernelPCA
from sklearn.kernel_ridge import KernelRidge
from sklearn.manifold import SpectralEmbedding
from sklearn.neighbors import KernelDensity
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC

from dc2 import DC2, Compressor, RPFFeatures, SignatureNystroem
from dc2.errors import InputTypeError
from support.learn_data import CRESCENT, MOONS, small

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

ROWS = da.from_array(MOONS, chunks=(700, 2))
FRAME = dd.from_pandas(pd.DataFrame(MOONS, columns=["a", "b"]), npartitions=4)


@pytest.mark.parametrize(
    ("estimator", "method"),
    [
        (AgglomerativeClustering(2, linkage="single"), "predict"),
        (KernelPCA(2, kernel="rbf", gamma=2), "transform"),
        (SpectralEmbedding(2, affinity="rbf", random_state=0), "transform"),
        (KernelRidge(kernel="rbf"), "predict"),
        (SVC(), "decision_function"),
        (LabelSpreading(gamma=30), "predict_proba"),
        (KernelDensity(bandwidth=0.2), "score_samples"),
    ],
)
@pytest.mark.parametrize("data", [ROWS, FRAME], ids=["array", "frame"])
def test_lazy_predictions_equal_those_for_rows_in_memory(estimator: Any, method: str, data: Any) -> None:
    in_memory = DC2(estimator, compressor=small()).fit(MOONS, CRESCENT)
    model = DC2(estimator, compressor=small()).fit(data, CRESCENT)
    assert np.array_equal(model.signatures_.points, in_memory.signatures_.points)
    answers = getattr(model, method)(data)
    expected = getattr(in_memory, method)(MOONS)
    assert isinstance(answers, da.Array)
    assert (answers.dtype, answers.ndim) == (expected.dtype, expected.ndim)
    assert answers.numblocks[0] == data.npartitions
    assert np.allclose(answers.compute(), expected)


@pytest.mark.parametrize("features", [RPFFeatures(20, n_points=100), SignatureNystroem(n_components=50)])
@pytest.mark.parametrize("data", [ROWS, FRAME], ids=["array", "frame"])
def test_lazy_features_equal_those_of_rows_in_memory(features: Any, data: Any) -> None:
    model = clone(features).set_params(random_state=0, n_jobs=1)
    expected = model.fit_transform(MOONS)
    lazy = model.fit_transform(data)
    assert isinstance(lazy, da.Array)
    assert lazy.dtype == expected.dtype
    assert lazy.shape[1] == expected.shape[1] == len(model.get_feature_names_out())
    # Products of other shapes may round otherwise, and an inverse root magnifies that by up to 1 / sqrt(50 * 2^-52).
    assert np.abs(lazy.compute() - expected).max() < 1e-8


@pytest.mark.parametrize("target", [da.from_array(CRESCENT, chunks=700), FRAME["a"] > 0.5])
def test_targets_may_be_dask_collections(target: Any) -> None:
    lazy = DC2(SVC(), compressor=small()).fit(ROWS, target)
    in_memory = DC2(SVC(), compressor=small()).fit(MOONS, np.asarray(target))
    assert np.array_equal(lazy.signature_target_, in_memory.signature_target_)
    assert np.array_equal(lazy.predict(ROWS).compute(), in_memory.predict(MOONS))


class AtMost(TransformerMixin, BaseEstimator):
    """Transforms so many rows at a time and no more."""

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def fit(self, X: Any, y: Any = None) -> Any:
        return self

    def transform(self, X: Any) -> Any:
        assert len(X) <= self.rows
        return X


def test_a_chunk_is_answered_within_the_budget_of_memory() -> None:
    budget = 64 * 8 * 100  # a kernel of 64 rows and 100 signatures
    model = DC2(AtMost(64), compressor=small(100, block_bytes=budget)).fit(ROWS)
    assert np.array_equal(model.transform(ROWS).compute(), MOONS)


@pytest.mark.parametrize(
    "model",
    [
        DC2(KernelPCA(2), compressor=small()),
        DC2(SpectralEmbedding(2, affinity="rbf"), compressor=small()),
        SignatureNystroem(n_components=20),
    ],
)
def test_a_container_asked_for_does_not_bring_the_rows_here(model: Any) -> None:
    assert isinstance(model.set_output(transform="pandas").fit_transform(ROWS), da.Array)
    assert isinstance(model.fit_transform(MOONS[:500]), pd.DataFrame)


def test_what_needs_all_rows_at_once_is_refused() -> None:
    clusterer = DC2(AgglomerativeClustering(2), compressor=small()).fit(ROWS)
    with pytest.raises(AttributeError, match="rows in memory"):
        _ = clusterer.labels_
    classifier = DC2(SVC(), compressor=Compressor(50, random_state=0)).fit(ROWS, CRESCENT)
    with pytest.raises(InputTypeError, match="DaskSource"):
        classifier.score(ROWS, CRESCENT)
