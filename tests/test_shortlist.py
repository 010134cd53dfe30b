"""Shortlists: where a row may walk from each signature."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import SeedSequence
from sklearn.datasets import make_blobs
from sklearn.metrics import pairwise_distances

from dc2 import Compressor
from dc2.compress.lookup import signature_router
from dc2.compress.shortlists import EXITS, with_links, with_moved_centres, with_shortlist
from dc2.trees import neighbours

NEAR = 6


@pytest.fixture(scope="module")
def far_blobs():
    return make_blobs(6000, centers=25.0 * np.eye(10), random_state=0)[0]


@pytest.fixture(scope="module")
def router(far_blobs):
    return with_shortlist(Compressor(200, random_state=0).fit(far_blobs).router_, NEAR)


def test_a_shortlist_begins_with_its_own_then_the_nearest_and_names_none_twice(router):
    distances = pairwise_distances(router.centres)
    np.testing.assert_array_equal(router.shortlist[:, 0], np.arange(200))
    nearest = np.sort(np.argsort(distances, axis=1)[:, :NEAR], axis=1)
    np.testing.assert_array_equal(np.sort(router.shortlist[:, :NEAR], axis=1), nearest)
    assert router.shortlist.shape == (200, NEAR + EXITS)
    assert all(len(set(row)) == len(row) for row in router.shortlist.tolist())


def test_gaps_ascend_and_are_the_distances_to_the_first(router):
    distances = np.take_along_axis(pairwise_distances(router.centres), router.shortlist, axis=1)
    assert (np.diff(router.gaps, axis=1) >= 0).all()
    assert (router.gaps <= distances + 1e-12).all()
    np.testing.assert_allclose(router.gaps, distances, atol=1e-4)


def test_from_every_signature_some_neighbour_leads_to_every_other(router):
    distances = pairwise_distances(router.centres)
    nearest_neighbour = np.stack([distances[row].min(axis=0) for row in router.shortlist])
    others = ~np.eye(200, dtype=bool)
    assert (nearest_neighbour < distances)[others].all()


def test_rows_of_a_leaf_between_far_blobs_walk_out_of_it(far_blobs):
    router = Compressor(200, populate="nearest", random_state=0).fit(far_blobs).router_
    distances = pairwise_distances(far_blobs, router.centres)
    found = distances[np.arange(len(far_blobs)), router.assign(far_blobs)]
    assert (found <= 1.5 * distances.min(axis=1)).all()


def test_threads_make_the_same_shortlists(router):
    threaded = with_shortlist(router, NEAR, n_threads=4)
    np.testing.assert_array_equal(threaded.shortlist, router.shortlist)
    np.testing.assert_array_equal(threaded.gaps, router.gaps)


def test_few_signatures_are_all_on_the_list():
    router = with_shortlist(Compressor(5, random_state=0).fit(np.arange(50.0)[:, None]).router_, NEAR)
    assert router.shortlist.shape == (5, 5)


def test_centres_that_move_keep_their_lists_in_a_new_order(router):
    centres = router.centres + np.random.default_rng(0).normal(scale=0.2, size=router.centres.shape)
    moved = with_moved_centres(router, centres, n_threads=2)
    np.testing.assert_array_equal(moved.centres, centres)
    np.testing.assert_array_equal(moved.shortlist[:, 0], np.arange(200))
    np.testing.assert_array_equal(np.sort(moved.shortlist, axis=1), np.sort(router.shortlist, axis=1))
    distances = np.take_along_axis(pairwise_distances(centres), moved.shortlist, axis=1)
    assert (np.diff(moved.gaps, axis=1) >= 0).all()
    assert (moved.gaps <= distances + 1e-12).all()
    np.testing.assert_allclose(moved.gaps, distances, atol=1e-4)


def test_lists_of_many_signatures_hold_nearly_all_nearest_and_lead_out_of_every_blob(far_blobs, monkeypatch):
    monkeypatch.setattr(neighbours, "ALL_PAIRS", 0)
    router = with_shortlist(Compressor(1000, populate="leaf", random_state=0).fit(far_blobs).router_, NEAR, n_threads=2)
    distances = pairwise_distances(router.centres)
    nearest = np.argsort(distances, axis=1)[:, :NEAR]
    found = [np.isin(near, row).mean() for near, row in zip(nearest, router.shortlist, strict=True)]
    assert np.mean(found) >= 0.98
    np.testing.assert_array_equal(router.shortlist[:, 0], np.arange(1000))
    assert all(len(set(row)) == len(row) for row in router.shortlist.tolist())
    walked = pairwise_distances(far_blobs, router.centres)
    reached = walked[np.arange(len(far_blobs)), router.assign(far_blobs)]
    assert (reached <= 1.5 * walked.min(axis=1)).mean() >= 0.999


@settings(max_examples=30, deadline=None)
@given(n=st.integers(1, 90), n_links=st.integers(NEAR, 20), seed=st.integers(0, 9))
def test_links_begin_with_the_nearest_name_none_twice_and_fill_the_list(n, n_links, seed):
    points = np.random.default_rng(seed).normal(size=(n, 7))
    router, _ = signature_router(points, SeedSequence(0))
    linked = with_links(router, NEAR, n_links)
    distances = pairwise_distances(router.centres)
    np.fill_diagonal(distances, -1)
    np.testing.assert_array_equal(linked.shortlist[:, :NEAR], np.argsort(distances, axis=1)[:, :NEAR])
    assert linked.shortlist.shape == (n, min(n_links, n))
    assert all(len(set(row)) == len(row) for row in linked.shortlist.tolist())
    np.testing.assert_array_equal(with_links(router, NEAR, n_links, n_threads=4).shortlist, linked.shortlist)


def test_a_point_is_linked_to_those_that_list_it_as_far_as_there_is_room():
    points = np.random.default_rng(0).normal(size=(300, 30))
    router, _ = signature_router(points, SeedSequence(0))
    near = with_links(router, NEAR, NEAR).shortlist
    links = with_links(router, NEAR, 80).shortlist
    listed_by = [set(np.flatnonzero((near == point).any(axis=1))) for point in range(300)]
    assert any(len(others) == 1 for others in listed_by)  # on no list but its own
    assert all(others <= set(row) for others, row in zip(listed_by, links.tolist(), strict=True) if len(others) < 70)
