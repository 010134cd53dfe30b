"""Laws of kernel features: SignatureNystroem and RPFFeatures."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import make_moons
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from dc2 import Compressor, RPFFeatures, SignatureNystroem
from dc2.errors import ParameterError
from dc2.learn.nystroem import inverse_root

X, Y = make_moons(3_000, noise=0.1, random_state=0)


def nystroem(**parameters: Any) -> SignatureNystroem:
    return SignatureNystroem(**{"gamma": 2.0, "n_components": 60, "n_jobs": 1, "random_state": 0} | parameters)


def forest(**parameters: Any) -> RPFFeatures:
    return RPFFeatures(**{"n_trees": 40, "n_points": 200, "n_jobs": 1, "random_state": 0} | parameters)


# -- SignatureNystroem --------------------------------------------------------------------------------------------


def test_inner_products_of_features_are_the_nystroem_kernel() -> None:
    model = nystroem().fit(X)
    S = model.components_
    assert np.array_equal(S, Compressor(60, populate="nearest", refine=5, random_state=0).fit(X).signatures_.points)
    to_landmarks = rbf_kernel(X[:50], S, gamma=2.0)
    expected = to_landmarks @ np.linalg.pinv(rbf_kernel(S, gamma=2.0), hermitian=True) @ to_landmarks.T
    Z = model.transform(X[:50])
    assert np.allclose(Z @ Z.T, expected, atol=1e-6)
    assert np.allclose(Z @ Z.T, rbf_kernel(X[:50], gamma=2.0), atol=0.05)


def test_a_linear_model_on_the_features_is_a_kernel_machine() -> None:
    few, y = X[:200], X[:200, 0] ** 2
    ridge = Ridge(alpha=0.1, fit_intercept=False, solver="cholesky")
    ours = make_pipeline(nystroem(n_components=1_000), ridge).fit(few, y).predict(few)
    assert np.allclose(ours, KernelRidge(alpha=0.1, kernel="rbf", gamma=2.0).fit(few, y).predict(few), atol=1e-5)
    model = make_pipeline(nystroem(), LogisticRegression()).fit(X, Y)
    assert model.score(X, Y) > 0.98


def test_features_of_a_file_come_in_blocks_for_partial_fit(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", X)
    path = str(tmp_path / "rows.npy")
    model = nystroem(block_bytes=50_000).fit(path)
    blocks = list(model.transform(path))
    assert len(blocks) > 10
    assert np.allclose(np.concatenate(blocks), nystroem().fit(X).transform(X))
    machine = SGDClassifier(random_state=0)
    start = 0
    for Z in blocks:
        machine.partial_fit(Z, Y[start : start + len(Z)], classes=[0, 1])
        start += len(Z)
    assert machine.score(np.concatenate(blocks), Y) > 0.95


def test_features_keep_the_dtype_and_float32_is_as_good() -> None:
    wide, narrow = nystroem().fit_transform(X), nystroem().fit_transform(X.astype(np.float32))
    assert (wide.dtype, narrow.dtype) == (np.float64, np.float32)
    assert np.allclose((wide[:99] ** 2).sum(axis=1), (narrow[:99] ** 2).sum(axis=1), atol=1e-3)


def test_columns_are_named_and_fall_in_importance() -> None:
    pytest.importorskip("pandas")
    model = nystroem(n_components=5).set_output(transform="pandas").fit(X)
    frame = model.transform(X)
    assert list(frame.columns) == [f"signaturenystroem{number}" for number in range(5)]
    assert (np.diff(model.eigenvalues_) <= 0).all()


@pytest.mark.parametrize(
    ("kernel", "parameters"),
    [("linear", {}), ("poly", {"degree": 2, "coef0": 1}), ("laplacian", {}), ("cosine", {})],
)
def test_kernels_by_name_take_their_parameters(kernel: str, parameters: dict[str, Any]) -> None:
    assert nystroem(kernel=kernel, **parameters).fit_transform(X[:100]).shape[0] == 100


def test_a_kernel_may_be_a_function() -> None:
    def product(a: np.ndarray, b: np.ndarray, power: int) -> float:
        return float(a @ b) ** power

    model = nystroem(kernel=product, kernel_params={"power": 2}, gamma=None).fit(X[:50])
    Z = model.transform(X[:20])
    assert np.allclose(Z @ Z.T, (X[:20] @ X[:20].T) ** 2)
    assert Z.shape[1] == 3  # all that a quadratic of two columns spans


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 1_000))
def test_the_inverse_root_inverts_what_is_not_rounding(n: int, rank: int, seed: int) -> None:
    A = np.random.default_rng(seed).normal(size=(n, min(n, rank)))
    K = A @ A.T
    root, eigenvalues = inverse_root(K)
    assert root.shape == (n, len(eigenvalues)) == (n, min(n, rank))
    assert np.allclose(root.T @ K @ root, np.eye(len(eigenvalues)), atol=1e-6)


def test_a_kernel_that_is_zero_everywhere_leaves_one_zero_feature() -> None:
    assert nystroem(kernel="linear").fit_transform(np.zeros((3, 2))).tolist() == [[0.0], [0.0], [0.0]]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "gauss"}, "kernel must be one of .*'rbf'"),
        ({"kernel": "precomputed"}, "kernel must be one of"),
        ({"gamma": -1.0}, "gamma must be a finite number above 0; got -1.0"),
        ({"n_components": 0}, "n_components must be .* at least 1"),
        ({"kernel": max}, "kernel_params"),
    ],
)
def test_impossible_kernels_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        nystroem(**parameters).fit(X)


# -- RPFFeatures --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("grow_on", ["signatures", "sample"])
def test_inner_products_are_the_share_of_trees_that_put_rows_together(grow_on: Any) -> None:
    model = forest(grow_on=grow_on).fit(X)
    points = model.compressor_.signatures_.points
    Z, S = model.transform(X[:30]), model.transform(points)
    assert np.allclose((Z @ S.T).toarray(), model.forest_.share(X[:30]))
    assert np.allclose((S @ S.T).toarray(), model.forest_.share())
    assert np.allclose((Z @ Z.T).diagonal(), 1.0)


def test_features_are_sparse_with_one_entry_per_tree() -> None:
    Z = forest().fit_transform(X.astype(np.float32))
    assert sparse.issparse(Z)
    assert (Z.format, Z.dtype, Z.indices.dtype) == ("csr", np.float32, np.int32)
    assert (np.diff(Z.indptr) == 40).all()
    assert Z.has_sorted_indices
    assert Z.shape[1] == len(forest().fit(X).get_feature_names_out())


def test_a_sample_for_the_forest_consists_of_rows() -> None:
    points = forest(grow_on="sample").fit(X).compressor_.signatures_.points
    assert {tuple(point) for point in points} <= {tuple(row) for row in X}


def test_a_linear_machine_on_leaf_indicators_learns_what_is_not_linear() -> None:
    assert make_pipeline(forest(), LinearSVC()).fit(X, Y).score(X, Y) > 0.98


def test_leaf_indicators_of_a_file_come_in_blocks(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", X)
    path = str(tmp_path / "rows.npy")
    blocks = list(forest(block_bytes=100_000).fit(path).transform(path))
    assert len(blocks) > 5
    assert (sparse.vstack(blocks) != forest().fit(X).transform(X)).nnz == 0


@pytest.mark.parametrize("parameters", [{"n_trees": 0}, {"n_points": 0}, {"grow_on": "rows"}, {"leaf_size": -1.0}])
def test_impossible_forests_are_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=next(iter(parameters))):
        forest(**parameters).fit(X)
