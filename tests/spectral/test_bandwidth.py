"""The choice of a bandwidth and of a number of clusters, from eigenvalues alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.datasets import make_blobs

from dc2 import RPFCluster, load
from dc2.errors import ParameterError
from dc2.spectral import RPF, normalized_affinity
from dc2.spectral.conquer import FALLBACK, WEAK, Spectra, choose_bandwidth, choose_n_clusters
from dc2.spectral.conquer import spectra as spectra_at
from dc2.spectral.rpf import BANDWIDTHS, RPFSimilarity, rpf_similarity
from dc2.trees import RPForest

N_TREES = 400


def counts_of(n_clusters: int, n_points: int = 240) -> np.ndarray:
    centres = 20.0 * np.arange(n_clusters)[:, None] * [1.0, 0.0]
    X, _ = make_blobs(n_points, centers=centres, random_state=0)
    return RPForest.grow(X, N_TREES, cut="quantile", rng=0).counts()


def spectra(counts, n_eigenvalues, weights, n_jobs=None, bandwidths=BANDWIDTHS) -> Spectra:
    return spectra_at(RPFSimilarity(counts.astype(np.uint16), N_TREES), bandwidths, n_eigenvalues, weights, n_jobs)


def spectra_of(n_clusters: int, n_eigenvalues: int = 20) -> Spectra:
    counts = counts_of(n_clusters)
    return spectra(counts, n_eigenvalues, np.ones(len(counts)))


any_spectra = st.integers(3, 30).flatmap(
    lambda n: arrays(np.float64, (len(BANDWIDTHS), n), elements=st.floats(-1.0, 1.0)).map(
        lambda values: Spectra(np.array(BANDWIDTHS), -np.sort(-values, axis=1))
    )
)


def test_spectra_are_the_leading_eigenvalues_of_the_normalized_similarity():
    counts = counts_of(3)
    found = spectra(counts, 7, np.ones(len(counts)))
    assert found.eigenvalues.shape == (len(BANDWIDTHS), 7)
    for bandwidth, eigenvalues in zip(found.bandwidths, found.eigenvalues, strict=True):
        affinity = normalized_affinity(rpf_similarity(counts, N_TREES, bandwidth), np.ones(len(counts)))
        np.testing.assert_allclose(eigenvalues, np.linalg.eigvalsh(affinity)[::-1][:7], atol=1e-10)


def test_spectra_do_not_depend_on_the_number_of_threads():
    counts = counts_of(3)
    one, eight = (spectra(counts, 7, np.ones(len(counts)), n_jobs) for n_jobs in (1, 8))
    np.testing.assert_array_equal(one.eigenvalues, eight.eigenvalues)


def test_a_weight_is_so_many_repeats_of_a_point():
    counts = counts_of(2, 40)
    repeats = np.random.default_rng(0).integers(1, 4, len(counts))
    index = np.repeat(np.arange(len(counts)), repeats)
    weighed = spectra(counts, 10, repeats.astype(float))
    repeated = spectra(counts[np.ix_(index, index)], 10, np.ones(len(index)))
    np.testing.assert_allclose(weighed.eigenvalues, repeated.eigenvalues, atol=1e-10)


@given(any_spectra)
def test_relative_gaps_are_finite_and_never_negative(found):
    gaps = found.relative_gaps()
    assert gaps.shape == (len(BANDWIDTHS), found.eigenvalues.shape[1] - 1)
    assert np.isfinite(gaps).all()
    assert (gaps >= 0).all()


@given(any_spectra, st.integers(0, 40))
def test_a_bandwidth_is_one_of_those_considered_and_its_gap_at_least_half_of_the_best(found, n_clusters):
    bandwidth, scores = choose_bandwidth(found, n_clusters)
    assert scores.shape == (len(BANDWIDTHS),)
    assert bandwidth in BANDWIDTHS
    if scores.max() > WEAK:
        assert scores[BANDWIDTHS.index(bandwidth)] >= scores.max() / 2
    else:
        assert bandwidth == FALLBACK


@given(any_spectra, st.integers(1, 10), st.integers(0, 20))
def test_a_number_of_clusters_lies_between_its_bounds_and_has_the_best_score(found, low, more):
    number, scores = choose_n_clusters(found, low, low + more)
    assert low <= number <= low + more
    assert scores.shape == (more + 1,)
    assert scores[number - low] == scores.max()


@pytest.mark.parametrize("n_clusters", [2, 3, 5, 8])
def test_clusters_that_stand_apart_are_counted(n_clusters):
    number, _ = choose_n_clusters(spectra_of(n_clusters), 1, 15)
    assert number == n_clusters


def test_points_without_clusters_are_one():
    points = np.random.default_rng(0).normal(size=(400, 2))
    counts = RPForest.grow(points, N_TREES, cut="quantile", rng=0).counts()
    candidates = RPFSimilarity(counts.astype(np.uint16), N_TREES).bandwidths_for_counting
    counting = spectra(counts, 27, np.ones(400), bandwidths=candidates)
    number, _ = choose_n_clusters(counting, 1, 26)
    assert number == 1


def test_the_paper_searches_beta_from_10_to_80_again_in_a_loaded_model(tmp_path):
    X, _ = make_blobs(600, centers=3, random_state=0)
    model = RPFCluster.paper(3, n_signatures=60, random_state=0).fit(X)
    betas = 800 * model.bandwidth_path_["bandwidth"]
    np.testing.assert_allclose(betas, np.arange(10, 81))
    assert model.bandwidth_ in model.bandwidth_path_["bandwidth"]
    model.save(tmp_path / "model.dc2")
    loaded = load(tmp_path / "model.dc2").recluster(2, bandwidth="auto")
    np.testing.assert_array_equal(loaded.bandwidth_path_["bandwidth"], model.bandwidth_path_["bandwidth"])


@pytest.mark.parametrize("bandwidth", [[], [0.1, -0.1], [0.1, np.inf], "best"])
def test_a_bandwidth_that_is_not_positive_is_refused(bandwidth):
    with pytest.raises(ParameterError):
        RPFCluster(2, similarity=RPF(bandwidth=bandwidth)).fit(np.eye(5))


def test_without_a_gap_the_candidate_nearest_to_the_fallback_is_taken():
    found = Spectra(np.array([0.01, 0.03, 0.2]), np.ones((3, 5)))
    assert choose_bandwidth(found, 2)[0] == 0.03


def test_a_gap_at_the_wrong_place_does_not_choose_the_bandwidth():
    """Three clusters have a large gap after 3; asked for 2, the bandwidth follows the gap after 2."""
    found = spectra_of(3)
    _, scores = choose_bandwidth(found, 2)
    np.testing.assert_array_equal(scores, found.relative_gaps()[:, 1])


def test_one_cluster_or_more_than_there_are_eigenvalues_leave_the_fallback():
    found = spectra_of(3, n_eigenvalues=5)
    for n_clusters in (1, 5, 6):
        assert choose_bandwidth(found, n_clusters)[0] == FALLBACK


@pytest.mark.parametrize("n_rows", [1, 2, 3, 20, 31, 200])
def test_few_points_are_not_cut_into_many_clusters(n_rows):
    X = np.random.default_rng(0).normal(size=(n_rows, 2))
    model = RPFCluster("auto", similarity=RPF(20), random_state=0).fit(X)
    most = model.n_clusters_path_["n_clusters"][-1] if hasattr(model, "n_clusters_path_") else model.n_clusters_
    assert model.n_clusters_ <= most <= max(1, n_rows // 2)
