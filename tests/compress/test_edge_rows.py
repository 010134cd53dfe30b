"""The rows that make edges: all of them if the sample is too small; blocks, threads and sources change nothing."""

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import make_blobs

from dc2 import Compressor, DC2Clustering
from dc2.graph.neighbor_graph import shared_rows_graph

N_ROWS = 6000
X = make_blobs(N_ROWS, n_features=24, centers=6, cluster_std=4.0, random_state=0)[0].astype(np.float32)


def fitted(rows: Any = X, weights: NDArray[np.float64] | None = None, n_signatures: int = 300, **how: Any) -> Any:
    model = DC2Clustering(n_signatures=n_signatures, compressor=Compressor(sample_size=1000), random_state=0, **how)
    return model.fit(rows, sample_weight=weights)


def edges(model: Any) -> tuple[NDArray[Any], ...]:
    graph = model.similarity_.graph
    return graph.indptr, graph.indices, graph.weights, graph.near, graph.row_weights


def same(a: Any, b: Any) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(edges(a), edges(b), strict=True))


@pytest.fixture(scope="module")
def model() -> Any:
    return fitted()


def test_every_row_makes_edges(model: Any) -> None:
    record = model._fitted()
    near, _ = record.router.nearest_few(X, model.similarity_.n_neighbors)
    expected = shared_rows_graph(near, None, len(record.signatures))
    assert len(model.similarity_.graph.near) == N_ROWS
    assert np.array_equal(model.similarity_.graph.matrix().toarray(), expected.matrix().toarray())


def test_the_nearest_node_of_a_row_is_its_signature(model: Any) -> None:
    assert np.array_equal(model.similarity_.graph.near[:, 0], model._fitted().ids)


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
@pytest.mark.parametrize("block_bytes", [10_000, 2**24])
def test_threads_and_blocks_change_nothing(model: Any, n_jobs: int, block_bytes: int) -> None:
    other = fitted(n_jobs=n_jobs, block_bytes=block_bytes)
    assert same(model, other)
    assert np.array_equal(model.labels_, other.labels_)


def test_files_make_the_same_edges(model: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", X)
    assert same(model, fitted(str(tmp_path / "rows.npy"), block_bytes=20_000))


@pytest.mark.parametrize("chunk", [700, 2500])
def test_dask_makes_the_same_edges(model: Any, chunk: int) -> None:
    other = fitted(da.from_array(X, chunks=(chunk, -1)))
    assert same(model, other)


def test_beyond_enough_rows_for_each_signature_some_rows_make_edges() -> None:
    few = fitted(n_signatures=10)
    made = few.similarity_.graph.near
    assert 256 * 10 <= len(made) < 1.2 * 256 * 10
    assert same(few, fitted(n_signatures=10, block_bytes=10_000, n_jobs=2))


def test_weights_count_and_rows_of_weight_0_make_no_edges() -> None:
    weights = np.arange(N_ROWS) % 3 / 1.0
    weighed = fitted(weights=weights)
    assert np.array_equal(weighed.similarity_.graph.row_weights, weights[weights > 0])
    assert same(weighed, fitted(weights=weights, block_bytes=10_000, n_jobs=2))


def test_members_are_rows_of_their_own_signature(model: Any) -> None:
    record = model._fitted()
    rows_of_member = (record.members[:, None, :8] == X[None, :, :8]).all(axis=2)
    found, row = np.nonzero(rows_of_member)
    assert len(np.unique(found)) > 0.9 * len(record.members)
    assert np.array_equal(record.ids[row], found)


def test_predict_repeats_the_fit(model: Any) -> None:
    assert np.array_equal(model.predict(X), model.labels_)
