"""Outlier scores: how far out a row lies, the same by any engine."""

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.metrics import roc_auc_score

from dc2 import Compressor, DC2Clustering
from dc2.io import as_source

SMALL = {"n_signatures": 60, "random_state": 0}


def rows(n_rows: int = 1500, dtype: type = np.float64) -> np.ndarray:
    rng = np.random.default_rng(0)
    return (rng.normal(size=(n_rows, 5)) + 8 * rng.integers(0, 3, (n_rows, 1))).astype(dtype)


def moons_in_noise(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    X, _ = make_moons(49 * n_rows // 50, noise=0.06, random_state=0)
    anywhere = np.random.default_rng(0).uniform([-1.5, -1.0], [2.5, 2.0], (n_rows // 50, 2))
    return np.concatenate([X, anywhere]), np.repeat([0, 1], [len(X), len(anywhere)])


def directions(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    middles = rng.normal(size=(40, 128))
    middles /= np.linalg.norm(middles, axis=1, keepdims=True)
    anywhere = n_rows // 20
    own = middles[rng.integers(0, 40, n_rows - anywhere)]
    X = np.concatenate([own + 0.05 * rng.normal(size=own.shape), rng.normal(size=(anywhere, 128))])
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X.astype(np.float32), np.repeat([0, 1], [len(own), anywhere])


@pytest.mark.parametrize(("n_rows", "least"), [(5_000, 0.92), (50_000, 0.94)], ids=["rows are nodes", "compressed"])
def test_rows_anywhere_score_higher_than_rows_of_two_moons(n_rows, least):
    X, strays = moons_in_noise(n_rows)
    assert roc_auc_score(strays, DC2Clustering(2, random_state=0).fit(X).outlier_scores_) >= least


@pytest.mark.parametrize("n_signatures", ["auto", 200], ids=["rows are nodes", "compressed"])
def test_anomalies_in_a_group_score_higher_than_the_rows_around(n_signatures):
    draw = np.random.default_rng(0)
    group = 0.05 * draw.normal(size=(40, 3)) + [6.0, 5.0, -3.0]
    X = np.concatenate([draw.normal(size=(4000, 3)), group])
    scores = DC2Clustering(2, n_signatures=n_signatures, random_state=0).fit(X).outlier_scores_
    assert roc_auc_score(np.arange(4040) >= 4000, scores) > 0.98


def test_whole_weights_score_as_repeats_and_constant_columns_change_nothing():
    X = rows(400)
    weights = np.random.default_rng(1).integers(1, 5, len(X))
    repeated = DC2Clustering(3, noise=0.05, random_state=0).fit(np.repeat(X, weights, axis=0))
    weighted = DC2Clustering(3, noise=0.05, random_state=0).fit(X, sample_weight=weights)
    np.testing.assert_array_equal(weighted.outlier_scores(X), repeated.outlier_scores(X))
    wider = np.column_stack([X, np.full(len(X), 7.0)])
    wide = DC2Clustering(3, random_state=0).fit(wider)
    np.testing.assert_allclose(
        wide.outlier_scores(wider), DC2Clustering(3, random_state=0).fit(X).outlier_scores(X), rtol=0.01
    )


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_random_directions_score_higher_than_clusters_of_directions(metric):
    X, strays = directions(20_000)
    model = DC2Clustering(40, metric=metric, n_signatures=1000, random_state=0).fit(X)
    assert roc_auc_score(strays, model.outlier_scores_) >= 0.99


@pytest.mark.parametrize("parameters", [{}, SMALL], ids=["rows are nodes", "compressed"])
def test_scores_of_ordinary_rows_do_not_pile_up(parameters):
    model = DC2Clustering(3, **{"random_state": 0, **parameters}).fit(rows())
    scores = model.outlier_scores_
    assert scores.dtype == np.float64
    assert 0 < scores.min() < scores.max() < 1
    assert len(np.unique(scores)) == len(scores)
    assert 0.25 < np.median(scores) < 0.4  # a typical row has 1/3


def test_farther_is_higher_without_end():
    model = DC2Clustering(3, **SMALL).fit(rows())
    far = np.outer(10.0 ** np.arange(2, 14), np.ones(5))
    assert (np.diff(model.outlier_scores(far)) > 0).all()
    assert model.outlier_scores(np.full((1, 5), 1e200)).tolist() == [1.0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("parameters", [{}, SMALL, {"compressor": Compressor(populate="leaf"), **SMALL}])
def test_neither_threads_nor_blocks_nor_forms_change_a_score(parameters, dtype, tmp_path):
    X = rows(dtype=dtype)
    parameters = {"n_clusters": 3, "random_state": 0, "scale": "standard", **parameters}
    model = DC2Clustering(n_jobs=1, **parameters).fit(X)
    scores = model.outlier_scores_
    other = DC2Clustering(n_jobs=3, block_bytes=500, **parameters).fit(X)
    assert np.array_equal(other.outlier_scores_, scores)
    assert np.array_equal(other.outlier_scores(X), scores)
    assert np.array_equal(other.score_samples(X), -scores)
    np.save(tmp_path / "rows.npy", X)
    files = DC2Clustering(n_jobs=2, block_bytes=3000, **parameters).fit(tmp_path / "rows.npy")
    for source in (tmp_path / "rows.npy", as_source(lambda: iter([X[:7], X[7:]]))):
        assert np.array_equal(np.concatenate(list(files.outlier_scores(source))), scores)
    with pytest.raises(AttributeError, match=r"outlier_scores\(X\)"):
        _ = files.outlier_scores_


def test_dask_gives_the_scores_and_the_noise_of_rows_in_memory(scheduler):
    array = pytest.importorskip("dask.array")
    X = rows()
    here = DC2Clustering(3, noise=0.1, **SMALL).fit(X)
    chunks = array.from_array(X, chunks=(400, 5))
    there = DC2Clustering(3, noise=0.1, **SMALL).fit(chunks)
    assert there.noise_threshold_ == here.noise_threshold_
    assert np.array_equal(there.noise_weights_, here.noise_weights_)
    lazy = there.outlier_scores(chunks)
    assert lazy.chunks[0] == chunks.chunks[0]
    assert np.array_equal(lazy.compute(), here.outlier_scores_)
    assert np.array_equal(there.score_samples(chunks).compute(), -here.outlier_scores_)
    assert np.array_equal(there.predict(chunks).compute(), here.labels_)


def test_scores_do_not_depend_on_clusters():
    few, many = (DC2Clustering(k, **SMALL).fit(rows()).outlier_scores_ for k in (2, 9))
    assert np.array_equal(few, many)


def test_equal_rows_have_one_score_and_it_is_a_number():
    model = DC2Clustering(1, noise=0.5).fit(np.ones((9, 2)))
    assert model.outlier_scores_.tolist() == [0.0] * 9
    assert model.labels_.tolist() == [0] * 9
    assert model.outlier_scores([[1.0, 2.0]])[0] > 0
