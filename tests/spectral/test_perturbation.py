"""The perturbation bound on rows of the user."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from dc2 import Compressor
from dc2.errors import InputError, ParameterError
from dc2.spectral import perturbation_bound

X, _ = make_blobs(300, centers=[[0, 0], [8, 8]], random_state=0)


def test_rows_that_do_not_change_change_nothing():
    bound = perturbation_bound(X, X, random_state=0)
    assert bound.distortion == bound.laplacian_change == bound.loss == bound.rotation_bound == 0
    assert bound.holds
    assert bound.n_rows == 300


def test_the_bound_falls_with_the_distortion_of_signatures():
    found = []
    for n_signatures in (10, 50, 150):
        compressor = Compressor(n_signatures, populate="leaf", random_state=0).fit(X)
        bound = perturbation_bound(X, compressor.transform(X), random_state=0)
        assert bound.distortion == pytest.approx(compressor.distortion_)
        found.append((bound.distortion, bound.laplacian_change, bound.rotation_bound))
    assert np.all(np.diff(found, axis=0) < 0)


def test_the_laplacians_are_those_of_one_sigma():
    rows = X[:100]
    other = rows + np.random.default_rng(0).normal(size=rows.shape)
    bound = perturbation_bound(rows, other, 2, sigma=3.0)
    laplacians = []
    for points in (rows, other):
        K = np.exp(-((points[:, None] - points) ** 2).sum(axis=2) / 3.0)
        root = np.sqrt(K.sum(axis=0))
        laplacians.append(np.eye(len(points)) - K / np.outer(root, root))
    assert bound.laplacian_change == pytest.approx(np.sum((laplacians[1] - laplacians[0]) ** 2))
    eigenvalues = np.linalg.eigvalsh(laplacians[0])
    assert bound.eigengap == pytest.approx(eigenvalues[2] - eigenvalues[1])
    turned = [np.linalg.eigh(L)[1][:, :2] for L in laplacians]
    cosines = np.linalg.svd(turned[0].T @ turned[1], compute_uv=False)
    assert np.sqrt((1 - cosines**2).clip(0).sum()) <= bound.rotation_bound


def test_clusters_that_overlap_break_the_papers_inequality():
    crowded, _ = make_blobs(400, centers=[[0, 0], [2, 0]], random_state=0)
    noise = 0.01 * np.random.default_rng(0).uniform(-1, 1, crowded.shape)
    bound = perturbation_bound(crowded, crowded + noise, sigma=1.0, max_rows=400)
    assert 0 < bound.laplacian_change < 0.001
    assert not bound.holds  # one row of 400 on the other side is more than the bound


def test_a_sample_is_drawn_from_both_alike():
    bound = perturbation_bound(X, X + 1.0, max_rows=50, random_state=0)
    assert bound.n_rows == 50
    assert bound.distortion == pytest.approx(2.0)
    assert bound == perturbation_bound(X, X + 1.0, max_rows=50, random_state=0)


def test_rows_that_do_not_correspond_are_refused():
    with pytest.raises(InputError, match="X_perturbed"):
        perturbation_bound(X, X[:-1])
    with pytest.raises(ParameterError, match="max_rows"):
        perturbation_bound(X, X, max_rows=1)
