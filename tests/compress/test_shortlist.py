"""Neighbour lists: the signatures that a row tries from each one, and how many it keeps meanwhile."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import SeedSequence
from sklearn.datasets import make_blobs
from sklearn.metrics import pairwise_distances

from dc2 import Compressor
from dc2.compress.neighbor_lists import LONG_LINKS, signature_router, with_moved_centres, with_neighbor_lists
from dc2.trees import neighbours

NEAR = 6


@pytest.fixture(scope="module")
def far_blobs():
    return make_blobs(6000, centers=25.0 * np.eye(10), random_state=0)[0]


@pytest.fixture(scope="module")
def router(far_blobs):
    return with_neighbor_lists(Compressor(200, random_state=0).fit(far_blobs).router_, NEAR)


def nearest_of(centres, n_near=NEAR):
    """The signatures nearest to each, itself first."""
    distances = pairwise_distances(centres)
    np.fill_diagonal(distances, -1)
    return np.argsort(distances, axis=1, kind="stable")[:, :n_near]


def others_on(router):
    """The list of each signature without itself, which fills up what is empty."""
    own = np.arange(len(router.centres))[:, None]
    return [row[row != n].tolist() for n, row in zip(own, router.neighbor_lists, strict=True)]


def test_a_list_begins_with_its_own_then_the_nearest_and_names_no_other_twice(router):
    np.testing.assert_array_equal(router.neighbor_lists[:, :NEAR], nearest_of(router.centres))
    assert NEAR < router.neighbor_lists.shape[1] <= 2 * NEAR + LONG_LINKS
    assert all(len(set(row)) == len(row) for row in others_on(router))


def test_a_signature_is_listed_by_those_on_whose_lists_it_is_as_far_as_there_is_room(router):
    nearest = nearest_of(router.centres)
    listed_by = [set(np.flatnonzero((nearest[:, 1:] == own).any(axis=1))) for own in range(200)]
    few = [own for own in range(200) if len(listed_by[own] - set(nearest[own])) <= NEAR]
    assert any(not listed_by[own] for own in range(200)) or len(few) > 100
    lists = others_on(router)
    assert all(listed_by[own] <= set(lists[own]) for own in few)


def test_gaps_ascend_and_are_the_distances_to_the_first(router):
    distances = np.take_along_axis(pairwise_distances(router.centres), router.neighbor_lists, axis=1)
    is_empty = np.isinf(router.gaps)
    assert (router.neighbor_lists == router.neighbor_lists[:, :1])[is_empty].all()
    assert (np.diff(np.where(is_empty, 1e9, router.gaps), axis=1) >= 0).all()
    assert (router.gaps <= distances + 1e-12)[~is_empty].all()
    np.testing.assert_allclose(router.gaps[~is_empty], distances[~is_empty], atol=1e-4)


def test_from_every_signature_some_neighbour_leads_to_every_other(router):
    distances = pairwise_distances(router.centres)
    nearest_neighbour = np.stack([distances[row].min(axis=0) for row in router.neighbor_lists])
    others = ~np.eye(200, dtype=bool)
    assert (nearest_neighbour < distances)[others].all()


def test_rows_of_a_leaf_between_far_blobs_find_out_of_it(far_blobs):
    router = Compressor(200, populate="nearest", random_state=0).fit(far_blobs).router_
    distances = pairwise_distances(far_blobs, router.centres)
    found = distances[np.arange(len(far_blobs)), router.assign(far_blobs)]
    assert (found <= 1.5 * distances.min(axis=1)).all()


def test_threads_make_the_same_neighbor_lists(router):
    threaded = with_neighbor_lists(router, NEAR, n_threads=4)
    np.testing.assert_array_equal(threaded.neighbor_lists, router.neighbor_lists)
    np.testing.assert_array_equal(threaded.gaps, router.gaps)


def test_few_signatures_are_all_on_the_list():
    router = with_neighbor_lists(Compressor(5, random_state=0).fit(np.arange(50.0)[:, None]).router_, NEAR)
    assert router.neighbor_lists.shape == (5, 5)


def test_centres_that_move_keep_their_lists_in_a_new_order(router):
    centres = router.centres + np.random.default_rng(0).normal(scale=0.2, size=router.centres.shape)
    moved = with_moved_centres(router, centres, n_threads=2)
    np.testing.assert_array_equal(moved.centres, centres)
    np.testing.assert_array_equal(moved.neighbor_lists[:, 0], np.arange(200))
    np.testing.assert_array_equal(np.sort(moved.neighbor_lists, axis=1), np.sort(router.neighbor_lists, axis=1))
    np.testing.assert_array_equal(np.isinf(moved.gaps).sum(axis=1), np.isinf(router.gaps).sum(axis=1))
    test_gaps_ascend_and_are_the_distances_to_the_first(moved)


def test_lists_of_many_signatures_hold_nearly_all_nearest_and_lead_out_of_every_blob(far_blobs, monkeypatch):
    monkeypatch.setattr(neighbours, "ALL_PAIRS", 0)
    router = with_neighbor_lists(
        Compressor(1000, populate="leaf", random_state=0).fit(far_blobs).router_, NEAR, n_threads=2
    )
    distances = pairwise_distances(router.centres)
    nearest = np.argsort(distances, axis=1)[:, :NEAR]
    found = [np.isin(near, row).mean() for near, row in zip(nearest, router.neighbor_lists, strict=True)]
    assert np.mean(found) >= 0.98
    np.testing.assert_array_equal(router.neighbor_lists[:, 0], np.arange(1000))
    assert all(len(set(row)) == len(row) for row in others_on(router))
    distances = pairwise_distances(far_blobs, router.centres)
    reached = distances[np.arange(len(far_blobs)), router.assign(far_blobs)]
    assert (reached <= 1.5 * distances.min(axis=1)).mean() >= 0.999


@settings(max_examples=30, deadline=None)
@given(n=st.integers(1, 90), seed=st.integers(0, 9))
def test_points_have_lists_and_a_beam_whatever_their_number_and_for_any_threads(n, seed):
    points = np.random.default_rng(seed).normal(size=(n, 7))
    router, _ = signature_router(points, SeedSequence(0))
    linked = with_neighbor_lists(router, NEAR)
    np.testing.assert_array_equal(linked.neighbor_lists[:, :NEAR], nearest_of(router.centres))
    assert all(len(set(row)) == len(row) for row in others_on(linked))
    threaded = with_neighbor_lists(router, NEAR, n_threads=4)
    np.testing.assert_array_equal(threaded.neighbor_lists, linked.neighbor_lists)
    assert threaded.beam == linked.beam
    linked.check()


def recalls(router, rows):
    """The shares of the first, second and third nearest that are found."""
    exact = np.argsort(pairwise_distances(rows, router.centres), axis=1)[:, :3]
    ids, near, _ = router.nearest_and_few(rows, 3)
    first = (ids == exact[:, 0]).mean()
    return np.array([first, *((near == exact[:, place, None]).any(axis=1).mean() for place in (1, 2))])


@pytest.mark.parametrize("directions", [2, 8, 60])
def test_new_rows_find_their_nearest_however_many_directions_they_spread_in(directions):
    rng = np.random.default_rng(0)
    plane = rng.normal(size=(directions, 60))
    X = (rng.normal(size=(9000, directions)) @ plane).astype(np.float32)
    compressed = Compressor(1000, populate="nearest", random_state=0).fit(X[:8000]).router_
    points, _ = signature_router(X[:8000], SeedSequence(0))
    assert (recalls(compressed, X[8000:]) >= 0.95).all()
    assert (recalls(points, X[8000:]) >= 0.95).all()


def test_rows_that_spread_in_more_directions_keep_more_candidates():
    rng = np.random.default_rng(0)
    beams = []
    for directions in (2, 8, 60):
        X = rng.normal(size=(4000, directions)) @ rng.normal(size=(directions, 60))
        beams.append(signature_router(X, SeedSequence(0))[0].beam)
    assert beams[0] < beams[1] < beams[2]
    assert beams[0] <= 4


def test_far_groups_of_points_are_found_from_each_other():
    rng = np.random.default_rng(0)
    far = 100.0 * rng.normal(size=(30, 1, 20))
    groups = (far + rng.normal(size=(30, 100, 20))).reshape(-1, 20)
    router, _ = signature_router(groups, SeedSequence(0))
    rows = (far + rng.normal(size=(30, 20, 20))).reshape(-1, 20)
    assert (recalls(router, rows) >= 0.95).all()
