"""Nearest neighbours of points among themselves."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits, make_circles, make_moons
from sklearn.metrics import pairwise_distances

from dc2 import core
from dc2.core import neighbours_reference as reference
from dc2.core.reference import EMPTY
from dc2.errors import InputError, ParameterError
from dc2.trees import neighbours
from dc2.trees.neighbours import nearest_neighbours
from evaluation.data.mnist import load_mnist

native = pytest.importorskip("dc2.core._native")

K = 15


def exact(points, k):
    """All pairs, by the definition: itself first, then by distance, then by id."""
    ids = []
    for own, point in enumerate(points):
        off = points - point
        squared = reference.lanes_dot(off, off)
        squared[own] = -1
        ids.append(np.lexsort((np.arange(len(points)), squared))[:k])
    return np.array(ids, np.int32)


def recall(points, ids, squared, tried):
    """The share of neighbours that are as near as the true ones."""
    distances = np.sort(pairwise_distances(points[tried].astype(float), points.astype(float)), axis=1)
    farthest = distances[:, ids.shape[1] - 1] * (1 + 1e-5)
    return (np.sqrt(squared[tried, 1:].astype(float)) <= farthest[:, None]).mean()


def assert_lists(points, ids, squared, k):
    """What holds for all lists: itself first, no one twice, sorted by distance and id, true distances."""
    n = len(points)
    assert ids.shape == squared.shape == (n, min(k, n))
    assert ids.dtype == np.int32
    assert squared.dtype == points.dtype
    np.testing.assert_array_equal(ids[:, 0], np.arange(n))
    assert (np.diff(np.sort(ids, axis=1), axis=1) > 0).all()
    ascending = np.diff(squared[:, 1:], axis=1)
    assert ((ascending > 0) | ((ascending == 0) & (np.diff(ids[:, 1:], axis=1) > 0))).all()
    for column in range(ids.shape[1]):
        off = points - points[ids[:, column]]
        np.testing.assert_array_equal(squared[:, column], reference.lanes_dot(off, off))


@pytest.fixture
def by_trees(monkeypatch):
    """Few points are searched as many are."""
    monkeypatch.setattr(neighbours, "ALL_PAIRS", 0)


@given(
    seed=st.integers(0, 2**32), n=st.integers(1, 60), width=st.integers(1, 20), k=st.integers(1, 70),
    dtype=st.sampled_from([np.float32, np.float64]), rounded=st.booleans(),
)  # fmt: skip
def test_few_points_have_exact_neighbours_also_among_duplicates(seed, n, width, k, dtype, rounded):
    points = np.random.default_rng(seed).normal(size=(n, width)).astype(dtype)
    if rounded:
        points = np.round(points)
    ids, squared = nearest_neighbours(points, k, seed=0, n_threads=1)
    assert_lists(points, ids, squared, k)
    np.testing.assert_array_equal(ids, exact(points, k))


def test_one_point_is_its_own_neighbour():
    ids, squared = nearest_neighbours(np.ones((1, 3)), 5, seed=0, n_threads=2)
    assert ids.tolist() == [[0]]
    assert squared.tolist() == [[0.0]]


def shapes():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(40, 128))
    vectors = centres[rng.integers(0, 40, 12_000)] + 0.3 * rng.normal(size=(12_000, 128))
    return {
        "moons": make_moons(12_000, noise=0.05, random_state=0)[0],
        "circles": make_circles(12_000, noise=0.02, factor=0.5, random_state=0)[0].astype(np.float32),
        "digits": load_digits().data,
        "sixteen columns": rng.normal(size=(12_000, 16)),
        "unit vectors": (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32),
    }


@pytest.mark.parametrize("name", shapes())
def test_lists_from_trees_hold_nearly_all_true_neighbours(by_trees, name):
    points = shapes()[name]
    ids, squared = nearest_neighbours(points, K, seed=1, n_threads=2)
    assert_lists(points, ids, squared, K)
    assert recall(points, ids, squared, np.arange(0, len(points), 20)) >= 0.98


@pytest.mark.skipif(not os.environ.get("DC2_DATA"), reason="needs the folder that DC2_DATA names")
@pytest.mark.parametrize("name", ["pendigits", "letter", "satimage", "mnist"])
def test_lists_of_real_tables_and_images_too(by_trees, name):
    if name == "mnist":
        points = load_mnist(download=False).data[:12_000] / np.float32(255)
    else:
        file = Path(os.environ["DC2_DATA"], "real", f"{name}.tsv.gz")
        points = np.loadtxt(file, skiprows=1)[:, :-1]
    ids, squared = nearest_neighbours(points, K, seed=1, n_threads=2)
    assert recall(points, ids, squared, np.arange(0, len(points), 20)) >= 0.98


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_find_the_same_neighbours(by_trees, dtype):
    points = np.random.default_rng(0).normal(size=(5000, 7)).astype(dtype)
    one, four = (nearest_neighbours(points, K, seed=3, n_threads=threads) for threads in (1, 4))
    np.testing.assert_array_equal(one[0], four[0])
    np.testing.assert_array_equal(one[1], four[1])


@pytest.mark.parametrize("rounded", [False, True])
def test_both_cores_find_the_same_neighbours(by_trees, monkeypatch, rounded):
    points = np.random.default_rng(0).normal(size=(700, 5))
    points = np.round(points, 1) if rounded else points
    ours = nearest_neighbours(points, 6, seed=3, n_threads=2)
    for function in ("grow_tree", "link_neighbours", "offer_copies", "offer_groups", "offer_links"):
        monkeypatch.setattr(neighbours.core, function, core.twin(function))
    theirs = nearest_neighbours(points, 6, seed=3, n_threads=1)
    np.testing.assert_array_equal(ours[0], theirs[0])
    np.testing.assert_array_equal(ours[1], theirs[1])


def test_points_that_are_all_the_same_have_the_first_ones_for_neighbours():
    ids, squared = nearest_neighbours(np.ones((50_000, 3), np.float32), 4, seed=0, n_threads=2)
    assert ids[:6].tolist() == [
        [0, 1, 2, 3],
        [1, 0, 2, 3],
        [2, 0, 1, 3],
        [3, 0, 1, 2],
        [4, 0, 1, 2],
        [5, 0, 1, 2],
    ]
    assert (squared == 0).all()


def test_copies_take_nothing_from_the_lists_of_others():
    rng = np.random.default_rng(0)
    alone = rng.normal(size=(30_000, 4))
    crowds = np.repeat(rng.normal(size=(20, 4)), 1000, axis=0)
    points = np.concatenate([alone, crowds])[rng.permutation(50_000)]
    ids, squared = nearest_neighbours(points, K, seed=0, n_threads=2)
    assert_lists(points, ids, squared, K)
    assert recall(points, ids, squared, np.arange(0, len(points), 100)) >= 0.98


def test_zeros_of_both_signs_are_no_trap(by_trees):
    points = np.zeros((20_000, 12)) * np.random.default_rng(0).choice([-1.0, 1.0], (20_000, 12))
    ids, squared = nearest_neighbours(points, 4, seed=0, n_threads=2)
    assert_lists(points, ids, squared, 4)


def test_bad_points_and_numbers_are_refused():
    with pytest.raises(InputError, match="NaN"):
        nearest_neighbours(np.array([[0.0], [np.nan]]), 1, seed=0, n_threads=1)
    with pytest.raises(ParameterError, match="k"):
        nearest_neighbours(np.ones((2, 2)), 0, seed=0, n_threads=1)


# --- the loops, one by one ------------------------------------------------------------------------------------------


def lists_of(points, k):
    ids = np.full((len(points), k), EMPTY, np.int32)
    squared = np.full((len(points), k), np.inf, points.dtype)
    ids[:, 0], squared[:, 0] = np.arange(len(points)), 0
    return ids, squared


@given(
    seed=st.integers(0, 2**32), n=st.integers(2, 80), width=st.integers(1, 300), k=st.integers(1, 9),
    dtype=st.sampled_from([np.float32, np.float64]),
    kind=st.sampled_from(["normal", "rounded", "huge", "tiny", "far", "tails"]),
)  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_both_cores_offer_and_link_alike(seed, n, width, k, dtype, kind):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, width)).astype(dtype)
    points = np.round(points) if kind == "rounded" else points * dtype({"huge": 1e25, "tiny": 1e-25}.get(kind, 1))
    points = points**7 if kind == "tails" else points + dtype(1e6 if kind == "far" else 0)
    lanes = neighbours._in_lanes(points)
    order = rng.permutation(n).astype(np.int32)
    starts = np.array([0, *np.sort(rng.integers(0, n + 1, 3)), n])
    queries = order[: rng.integers(1, n + 1)]
    written = []
    for module in (native, reference):
        ids, squared = lists_of(points, k)
        for groups in (order, order[::-1].copy()):
            module.offer_groups(lanes, width, groups, starts, (n // 3, n), ids, squared)
        before = ids.copy()
        before[::2] = EMPTY
        links, fresh = module.link_neighbours(ids, before, 1 + k)
        module.offer_links(lanes, width, links, fresh, queries, ids, squared, rough=module.rough_copy(points))
        written.append((ids, squared, links, fresh))
    for ours, theirs in zip(*written, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("module", [native, reference], ids=["native", "reference"])
def test_ids_that_name_no_point_are_refused(module):
    points = np.zeros((3, 8))
    ids, squared = lists_of(points, 2)
    order, starts = np.arange(3, dtype=np.int32), np.array([0, 3])
    links, fresh = module.link_neighbours(ids, ids, 2)
    for wrong in (-1, 3):
        with pytest.raises(ValueError, match="order"):
            module.offer_groups(points, 8, np.array([0, 1, wrong], np.int32), starts, (0, 3), ids, squared)
        with pytest.raises(ValueError, match="queries"):
            module.offer_links(points, 8, links, fresh, np.array([wrong], np.int32), ids, squared)
    with pytest.raises(ValueError, match="starts"):
        module.offer_groups(points, 8, order, np.array([0, 5, 3]), (0, 3), ids, squared)
    with pytest.raises(ValueError, match="span"):
        module.offer_groups(points, 8, order, starts, (0, 4), ids, squared)
    with pytest.raises(ValueError, match="lanes"):
        module.offer_groups(points, 9, order, starts, (0, 3), ids, squared)
    with pytest.raises(ValueError, match="links"):
        module.offer_links(points, 8, links + 4, fresh, order, ids, squared)
    with pytest.raises(ValueError, match="near"):
        module.offer_copies(ids, squared, np.array([0, 1, 2, 3]), order, *lists_of(points, 2))


@given(
    n=st.integers(1, 60),
    step=st.integers(1, 4),
    k=st.integers(1, 12),
    most=st.integers(1, 8),
    seed=st.integers(0, 99),
)
@settings(max_examples=100, deadline=None)
def test_both_cores_find_the_same_long_links(n, step, k, most, seed):
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 4, (n, 2)).astype(float)  # many at the same distance
    some = np.arange(0, n, step, dtype=np.int32)
    to_some = np.linalg.norm(points[:, None] - points[some], axis=2)
    first = int(rng.integers(0, n))
    near = np.argsort(np.linalg.norm(points[first:, None] - points, axis=2), axis=1)[:, :k].astype(np.int32)
    ours = native.find_long_links(to_some, some, near, first, most)
    np.testing.assert_array_equal(ours, core.twin("find_long_links")(to_some, some, near, first, most))
    for own, long_links in enumerate(ours, first):
        reached = np.append(near[own - first, 1:], some[long_links[long_links >= 0]])
        trapped = (to_some[reached] >= to_some[own]).all(axis=0) & (to_some[own] > 0)
        assert not trapped.any() or (long_links >= 0).all()
