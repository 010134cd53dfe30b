"""Laws of sparse rows: up to 4096 columns they are dense rows that take less room; beyond, they are reduced."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

import dc2
from dc2 import KASP, RASP, Compressor, DC2Clustering, RPFCluster, as_source
from dc2.errors import InputError, InputTypeError, PreparationNote
from dc2.io.columns import MOST_COLUMNS, SparseProjection
from dc2.spectral import RPF

FORMATS = ["csr_matrix", "csr_array", "csc_matrix", "coo_array", "lil_matrix", "bsr_array"]
CLUSTERERS: list[Any] = [
    DC2Clustering(3, random_state=0),
    DC2Clustering(3, n_signatures=40, metric="cosine", random_state=0),
    DC2Clustering(3, n_signatures=40, noise=0.1, scale="standard", random_state=0),
    RPFCluster(3, similarity=RPF(n_trees=50), n_signatures=40, random_state=0),
    RASP(3, n_signatures=40, random_state=0),
    KASP(3, n_signatures=40, random_state=0),
]


def counts(n_rows: int = 400, width: int = 60, seed: int = 0) -> tuple[Any, Any]:
    """Return word counts of texts on three topics, and the topic of each."""
    draw = np.random.default_rng(seed)
    topic = draw.integers(0, 3, n_rows)
    rate = np.full((3, width), 0.05)
    for number in range(3):
        rate[number, number::3] = 1.0
    return sp.csr_array(draw.poisson(rate[topic]).astype(np.float32)), topic


def wide_texts(n_rows: int, width: int, seed: int = 0) -> tuple[Any, Any]:
    """Return rows of 60 words each, half of them from the 500 words of their topic."""
    draw = np.random.default_rng(seed)
    topic = draw.integers(0, 5, n_rows)
    own = 500 * topic[:, None] + draw.integers(0, 500, (n_rows, 30))
    words = np.hstack([own, draw.integers(0, width, (n_rows, 30))])
    rows = np.repeat(np.arange(n_rows), 60)
    return sp.csr_array((np.ones(words.size), (rows, words.ravel())), shape=(n_rows, width)), topic


def rows_of(source: Any, block_bytes: int = 2**20) -> Any:
    return np.concatenate([block.X for block in source.blocks(block_bytes)])


@pytest.mark.parametrize("layout", FORMATS)
def test_every_format_gives_the_dense_rows(layout: str) -> None:
    X, _ = counts(50, 20)
    source = as_source(getattr(sp, layout)(X))
    assert (source.n_rows, source.n_features, source.dtype, source.in_memory) == (50, 20, np.float32, True)
    assert np.array_equal(rows_of(source, 400), X.toarray())
    assert np.array_equal(next(source.blocks(400)).take(np.array([4, 2])), X.toarray()[[4, 2]])
    assert np.array_equal(rows_of(as_source(X, columns=[3, -1])), X.toarray()[:, [3, -1]])


@pytest.mark.parametrize("model", CLUSTERERS, ids=lambda model: type(model).__name__)
def test_sparse_rows_have_the_labels_of_dense_rows_to_the_bit(model: Any) -> None:
    X, _ = counts()
    X = X + sp.csr_array(np.eye(*X.shape, dtype=np.float32))  # no row is empty, as cosine wants it
    dense = clone(model).fit(X.toarray())
    sparse = clone(model).fit(X)
    assert np.array_equal(sparse.labels_, dense.labels_)
    assert np.array_equal(sparse.signatures_.points, dense.signatures_.points)
    assert np.array_equal(sparse.predict(X[::-1]), dense.predict(X.toarray()[::-1]))
    assert np.array_equal(dense.predict(X), dense.labels_)
    assert np.array_equal(sparse.transform(X), dense.transform(X.toarray()))
    assert np.array_equal(sparse.predict_proba(X), dense.predict_proba(X.toarray()))


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.sampled_from([np.float32, np.float64, np.int16, np.int64]), st.integers(1, 5000))
def test_compressors_do_not_tell_sparse_from_dense(seed: int, dtype: Any, block_bytes: int) -> None:
    draw = np.random.default_rng(seed)
    X = sp.csr_array(np.where(draw.random((80, 9)) < 0.2, draw.integers(1, 9, (80, 9)), 0).astype(dtype))
    weights = draw.integers(0, 3, 80) + np.eye(80)[0]
    compressor = Compressor(10, random_state=0, block_bytes=block_bytes)
    dense = compressor.fit(X.toarray(), sample_weight=weights).signatures_
    sparse = compressor.fit(X, sample_weight=weights).signatures_
    assert np.array_equal(sparse.points, dense.points)
    assert np.array_equal(sparse.weights, dense.weights)
    streamed = Compressor(10, random_state=0).partial_fit(X[:50]).partial_fit(X[50:])
    whole = Compressor(10, random_state=0).partial_fit(X.toarray())
    assert np.array_equal(streamed.signatures_.points, whole.signatures_.points)


def test_what_is_not_finite_is_named() -> None:
    X, _ = counts(50, 20)
    X[7, 3] = np.nan
    with pytest.raises(InputError, match=r"column 3 has 1 \(first in row 7\)"):
        DC2Clustering(2).fit(X)


def test_what_is_no_matrix_of_numbers_is_refused() -> None:
    with pytest.raises(InputTypeError, match="complex"):
        as_source(sp.csr_array(np.eye(3, dtype=complex)))
    with pytest.raises(InputError, match=r"0 sample\(s\)"):
        as_source(sp.csr_array((0, 3)))
    with pytest.raises(InputError, match="1D array"):
        as_source(sp.coo_array(np.ones(3)))
    with pytest.raises(InputTypeError, match=r"callable are dense.*TruncatedSVD"):
        as_source(lambda: iter([sp.csr_array(np.eye(3))]))


def test_beyond_4096_columns_rows_are_reduced_which_is_announced_and_saved(tmp_path: Path) -> None:
    X, topic = wide_texts(600, 20_000)
    model = DC2Clustering(5, metric="cosine", random_state=0)
    with pytest.warns(PreparationNote, match="20,000 columns, more than 4,096: they are reduced to 1,024"):
        model.fit(X)
    assert adjusted_rand_score(topic, model.labels_) > 0.95
    assert model.n_features_in_ == 20_000
    assert model.signatures_.points.shape[1] == 1024
    assert np.array_equal(model.predict(X), model.labels_)
    assert np.array_equal(model.predict(X.toarray()), model.labels_)
    assert model.summary().shape[0] == 5
    model.save(tmp_path / "model.dc2")
    loaded = dc2.load(tmp_path / "model.dc2")
    assert np.array_equal(loaded.predict(X), model.labels_)
    loaded.predict_to(X, tmp_path / "labels.npy")
    assert np.array_equal(np.load(tmp_path / "labels.npy"), model.labels_)
    with pytest.raises(InputError, match="X has 19999 features, but DC2Clustering is expecting 20000"):
        loaded.predict(X[:, 1:])


@pytest.mark.filterwarnings("ignore::dc2.errors.PreparationNote")
@pytest.mark.parametrize("model", CLUSTERERS, ids=lambda model: type(model).__name__)
def test_every_clusterer_takes_reduced_rows(model: Any) -> None:
    X, _ = wide_texts(300, 5000)
    fitted = clone(model).fit(X)
    assert np.array_equal(fitted.predict(X), fitted.labels_)


@pytest.mark.filterwarnings("ignore::dc2.errors.PreparationNote")
def test_a_compressor_of_reduced_rows_names_its_components() -> None:
    X, _ = wide_texts(300, 5000)
    compressor = Compressor(20, random_state=0).set_output(transform="pandas").fit(X)
    assert compressor.transform(X).columns[-1] == "component 1023"
    blocks = Compressor(20, random_state=0, block_bytes=10_000).fit(X)
    assert np.array_equal(blocks.signatures_.points, compressor.signatures_.points)


def test_4096_columns_are_not_reduced() -> None:
    X, _ = wide_texts(30, MOST_COLUMNS)
    assert Compressor(5, random_state=0).fit(X).signatures_.points.shape[1] == MOST_COLUMNS


@given(st.integers(0, 2**32))
def test_the_projection_nearly_keeps_distances_and_does_not_see_the_format(seed: int) -> None:
    X, _ = wide_texts(20, 30_000, seed)
    projection = SparseProjection(30_000)
    projected, dense = projection.apply(X), X.toarray()
    assert np.array_equal(projection.apply(dense), projected)
    assert np.array_equal(projection.apply(X.tocsc()[3:7]), projected[3:7])
    before = np.linalg.norm(dense[:10] - dense[10:], axis=1)
    after = np.linalg.norm(projected[:10] - projected[10:], axis=1)
    assert np.abs(after / before - 1).max() < 0.2
