"""Random projection trees: where cuts fall, what leaves hold, and that every row finds its leaf again."""

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dc2 import RPTree
from dc2.errors import InputError, ParameterError

CUTS = ["median", "mean", "uniform", "quantile"]


def normal_rows(n_rows: int, width: int, dtype: Any = np.float64, seed: int = 0) -> NDArray[Any]:
    return np.random.default_rng(seed).standard_normal((n_rows, width)).astype(dtype)


ODD_VALUES = st.sampled_from([0.0, -0.0, 1.0, -1.0, 1.5, 5e-324, -3e-310, 1e-45, 1e30, -1e30, 1e9, 1e9 + 1, 1 / 3])


@st.composite
def odd_rows(draw: Any) -> NDArray[Any]:
    """Small arrays with duplicates, constant columns, subnormal and huge values."""
    n_rows, width = draw(st.integers(1, 12)), draw(st.integers(1, 5))
    values = draw(st.lists(ODD_VALUES, min_size=n_rows * width, max_size=n_rows * width))
    return np.array(values).reshape(n_rows, width).astype(draw(st.sampled_from([np.float32, np.float64])))


def same_tree(a: RPTree, b: RPTree) -> bool:
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ("directions", "thresholds", "children"))


# --- leaves --------------------------------------------------------------------------------------------------------


@given(X=odd_rows(), cut=st.sampled_from(CUTS), sharpen=st.sampled_from([0, 2]), seed=st.integers(0, 99))
@settings(max_examples=200)
def test_with_leaves_enough_every_distinct_row_has_its_own(X, cut, sharpen, seed):
    tree = RPTree.grow(X, max_leaves=len(X), cut=cut, sharpen=sharpen, rng=seed)
    distinct = np.unique(X, axis=0, return_inverse=True)[1].ravel()
    pairs = set(zip(tree.apply(X).tolist(), distinct.tolist(), strict=True))
    assert tree.n_leaves == len(pairs) == distinct.max() + 1


@given(X=odd_rows(), max_leaves=st.integers(1, 15), cut=st.sampled_from(CUTS))
def test_there_are_as_many_leaves_as_asked_for_or_as_distinct_rows(X, max_leaves, cut):
    tree = RPTree.grow(X, max_leaves=max_leaves, cut=cut, rng=0)
    assert tree.n_leaves == min(max_leaves, len(np.unique(X, axis=0)))
    assert np.unique(tree.apply(X)).tolist() == list(range(tree.n_leaves))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_rows", [64, 100, 333])
def test_median_cuts_leave_nodes_of_a_level_that_differ_by_one_row_at_most(n_rows, dtype):
    X = normal_rows(n_rows, 5, dtype)
    tree = RPTree.grow(X, max_leaves=16, cut="median", sharpen=0, rng=0)
    assert tree.depth == 4
    leaf = tree.apply(X)
    for depth in range(5):
        sizes = np.bincount(tree.cut_at(depth)[leaf])
        assert len(sizes) == 2**depth
        assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize("cut", CUTS)
def test_leaf_size_splits_every_node_that_has_so_many_rows_and_no_other(cut):
    X = normal_rows(500, 3)
    tree = RPTree.grow(X, leaf_size=20, cut=cut, rng=1)
    leaf = tree.apply(X)
    assert np.bincount(leaf).max() < 20
    for depth in range(tree.depth):
        above, below = tree.cut_at(depth), tree.cut_at(depth + 1)
        for node in range(above.max() + 1):
            was_split = len(np.unique(below[above == node])) > 1
            assert was_split == (np.count_nonzero(above[leaf] == node) >= 20)


def test_max_leaves_splits_the_largest_node_first():
    X = normal_rows(400, 4)
    few, more = (RPTree.grow(X, max_leaves=m, cut="uniform", rng=3) for m in (9, 10))
    sizes, parts = np.bincount(few.apply(X)), few.apply(X) * 100 + more.apply(X)
    split = [leaf for leaf in range(9) if len(np.unique(parts[parts // 100 == leaf])) == 2]
    assert split == [sizes.argmax()]


@pytest.mark.parametrize("n_leaves", [1, 2, 7, 50])
def test_depths_are_those_of_a_binary_tree(n_leaves):
    tree = RPTree.grow(normal_rows(300, 3), max_leaves=n_leaves, cut="uniform", rng=0)
    assert len(tree.leaf_depths) == tree.n_leaves == n_leaves
    assert np.sum(0.5**tree.leaf_depths) == 1.0
    assert tree.depth == tree.leaf_depths.max()
    np.testing.assert_array_equal(tree.cut_at(0), 0)
    np.testing.assert_array_equal(tree.cut_at(tree.depth), np.arange(n_leaves))


def test_leaves_count_from_left_to_right():
    tree = RPTree.grow(normal_rows(200, 3), max_leaves=12, cut="uniform", rng=0)
    for depth in range(tree.depth + 1):
        assert np.all(np.isin(np.diff(tree.cut_at(depth)), [0, 1]))


# --- cuts ----------------------------------------------------------------------------------------------------------


def root_projection(tree: RPTree, X: NDArray[Any]) -> NDArray[Any]:
    return X @ tree.directions[0]


@pytest.mark.parametrize("seed", range(5))
def test_each_cut_falls_where_its_name_says(seed):
    X = np.random.default_rng(seed).exponential(size=(1000, 4))
    roots = {cut: RPTree.grow(X, max_leaves=2, cut=cut, rng=seed) for cut in CUTS}
    p = root_projection(roots["mean"], X)
    below = {cut: np.mean(root_projection(tree, X) <= tree.thresholds[0]) for cut, tree in roots.items()}
    assert below["median"] == 0.5
    assert below["mean"] == np.mean(p <= p.mean())
    assert 0.25 <= below["quantile"] <= 0.75
    assert 0 < below["uniform"] < 1


def test_uniform_cuts_are_spread_over_the_range_and_quantile_cuts_over_its_middle():
    X = np.linspace(0, 1, 1001)[:, None]
    for cut, low, high in (("uniform", 0.0, 1.0), ("quantile", 0.25, 0.75)):
        trees = [RPTree.grow(X, max_leaves=2, cut=cut, rng=seed) for seed in range(200)]
        places = np.array([abs(tree.thresholds[0]) for tree in trees])
        assert low <= places.min() < low + 0.05
        assert high - 0.05 < places.max() <= high
        assert abs(places.mean() - 0.5) < 0.1


def test_directions_are_unit_vectors_drawn_at_each_node():
    tree = RPTree.grow(normal_rows(500, 6), max_leaves=100, rng=0)
    np.testing.assert_allclose(np.linalg.norm(tree.directions, axis=1), 1.0, rtol=1e-12)
    cosines = tree.directions @ tree.directions.T
    assert np.abs(cosines[~np.eye(99, dtype=bool)]).max() < 0.9999
    assert np.abs(tree.directions.mean(axis=0)).max() < 0.2


def test_sharpening_turns_directions_towards_the_rows_principal_axis():
    X = normal_rows(2000, 8) * np.array([5, 1, 1, 1, 1, 1, 1, 1])
    alignment = [
        np.mean([abs(RPTree.grow(X, max_leaves=2, sharpen=s, rng=i).directions[0, 0]) for i in range(30)])
        for s in (0, 1, 4)
    ]
    assert alignment[0] < 0.5 < alignment[1] < alignment[2]
    assert alignment[2] > 0.99


def test_more_candidates_find_a_direction_of_no_less_spread():
    X = normal_rows(300, 6) * np.arange(1, 7)
    for seed in range(10):
        spread = [root_projection(RPTree.grow(X, max_leaves=2, n_candidates=c, rng=seed), X).var() for c in (1, 4, 16)]
        assert spread[0] <= 1.00001 * spread[1] <= 1.0001 * spread[2]


# --- routing -------------------------------------------------------------------------------------------------------


@given(n_rows=st.integers(1, 60), width=st.integers(1, 20), seed=st.integers(0, 99), data=st.data())
@settings(max_examples=50)
def test_any_rows_are_routed_as_they_are_among_all(n_rows, width, seed, data):
    X = normal_rows(n_rows, width, data.draw(st.sampled_from([np.float32, np.float64])), seed)
    tree = RPTree.grow(X, leaf_size=4, cut="mean", sharpen=1, rng=seed)
    rows = data.draw(st.lists(st.integers(0, n_rows - 1), min_size=1, max_size=80))
    np.testing.assert_array_equal(tree.apply(X[rows]), tree.apply(X)[rows])


@pytest.mark.parametrize("view", [np.asfortranarray, lambda X: X[::-1][::-1], lambda X: np.repeat(X, 2, 1)[:, ::2]])
def test_the_layout_of_memory_does_not_matter(view):
    X = normal_rows(200, 7, np.float32)
    laid_out = view(X)
    laid_out.flags.writeable = False
    tree = RPTree.grow(X, max_leaves=20, rng=0)
    assert same_tree(RPTree.grow(laid_out, max_leaves=20, rng=0), tree)
    np.testing.assert_array_equal(tree.apply(laid_out), tree.apply(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_tree_works_in_the_dtype_of_its_rows(dtype):
    X = normal_rows(100, 3, dtype)
    tree = RPTree.grow(X, max_leaves=10, rng=0)
    assert tree.directions.dtype == tree.thresholds.dtype == dtype
    assert tree.apply(X).dtype == np.int32
    np.testing.assert_array_equal(tree.apply(X.astype(np.float64)), tree.apply(X))


def test_lists_integers_and_frames_are_rows_too():
    pd = pytest.importorskip("pandas")
    X = np.random.default_rng(0).integers(-50, 50, (80, 3))
    tree = RPTree.grow(X, max_leaves=9, rng=0)
    for other in (X.tolist(), X.astype(np.float64), pd.DataFrame(X, columns=list("abc"))):
        assert same_tree(RPTree.grow(other, max_leaves=9, rng=0), tree)


def test_a_pickled_tree_is_the_same_tree():
    X = normal_rows(100, 3)
    tree = RPTree.grow(X, max_leaves=10, rng=0)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(tree)).apply(X), tree.apply(X))


def test_the_seed_makes_the_tree():
    X = normal_rows(100, 3)
    grow = lambda rng: RPTree.grow(X, max_leaves=10, rng=rng)  # noqa: E731
    assert same_tree(grow(5), grow(5))
    assert same_tree(grow(np.random.default_rng(5)), grow(np.random.default_rng(5)))
    assert not same_tree(grow(5), grow(6))
    moved = np.random.default_rng(5)
    assert not same_tree(grow(moved), grow(moved))


# --- weights -------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 99), cut=st.sampled_from(CUTS), sharpen=st.sampled_from([0, 2]), data=st.data())
@settings(max_examples=80)
def test_weights_mean_repeats(seed, cut, sharpen, data):
    n_rows, width = data.draw(st.integers(1, 60)), data.draw(st.integers(1, 9))
    n_candidates = data.draw(st.sampled_from([1, 3]))
    limit = data.draw(st.sampled_from([{"max_leaves": 7}, {"leaf_size": 6}]))
    X = normal_rows(n_rows, width, data.draw(st.sampled_from([np.float32, np.float64])), seed)
    weights = np.random.default_rng(seed).integers(0, 4, n_rows)
    weights[0] = 1
    options = {"cut": cut, "sharpen": sharpen, "n_candidates": n_candidates, "rng": seed, **limit}
    weighted = RPTree.grow(X, sample_weight=weights, **options)
    assert same_tree(weighted, RPTree.grow(np.repeat(X, weights, axis=0), **options))


def test_rows_of_no_weight_are_left_out():
    X = normal_rows(100, 3)
    weights = (np.arange(100) % 3 > 0).astype(float)
    weighted = RPTree.grow(X, max_leaves=10, sample_weight=weights, rng=0)
    assert same_tree(weighted, RPTree.grow(X[weights > 0], max_leaves=10, rng=0))


# --- the paper's argument ------------------------------------------------------------------------------------------


def test_the_radius_falls_with_depth():
    X = normal_rows(2000, 4, np.float32) * np.array([3, 2, 1, 1], np.float32)
    tree = RPTree.grow(X, max_leaves=256, rng=0)
    radius = tree.radius_by_depth(X)
    assert len(radius) == tree.depth + 1
    assert np.isclose(radius[0], np.linalg.norm(X - X.mean(axis=0), axis=1).mean())
    assert np.all(np.diff(radius) < 0)
    assert radius[-1] < 0.5 * radius[0]


# --- bad input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"either leaf_size or max_leaves; got leaf_size=None and max_leaves=None"),
        ({"leaf_size": 3, "max_leaves": 4}, r"leaf_size=3 and max_leaves=4"),
        ({"leaf_size": 0}, r"leaf_size must be a finite number above 0; got 0"),
        ({"leaf_size": "many"}, r"leaf_size .*'many'"),
        ({"max_leaves": 0}, r"max_leaves must be a whole number of at least 1; got 0"),
        ({"max_leaves": 2.5}, r"max_leaves .*2\.5"),
        ({"max_leaves": 4, "cut": "middle"}, r"cut must be one of 'median', .*'middle'"),
        ({"max_leaves": 4, "sharpen": -1}, r"sharpen .*-1"),
        ({"max_leaves": 4, "n_candidates": 0}, r"n_candidates .*0"),
        ({"max_leaves": 4, "rng": "lucky"}, r"'lucky'"),
    ],
)
def test_impossible_parameters_are_named(options, message):
    with pytest.raises(ParameterError, match=message):
        RPTree.grow(normal_rows(10, 2), **options)


def test_rows_that_cannot_be_used_are_named():
    X = normal_rows(50, 3)
    tree = RPTree.grow(X, max_leaves=5, rng=0)
    with pytest.raises(InputError, match="X has 2 columns, but the tree was grown on 3"):
        tree.apply(X[:, :2])
    broken = X.copy()
    broken[[4, 7], 1] = np.nan
    for use in (lambda: RPTree.grow(broken, max_leaves=5), lambda: tree.apply(broken)):
        with pytest.raises(InputError, match=r"contains NaN.*column 1 has 2 \(first in row 4\)"):
            use()
    with pytest.raises(InputError, match="too large to be projected as float32"):
        RPTree.grow((X * 1e38).astype(np.float32), max_leaves=5)
    with pytest.raises(InputError, match="0 sample"):
        RPTree.grow(X[:0], max_leaves=5)
    with pytest.raises(InputError, match="zero for all 50 rows"):
        RPTree.grow(X, max_leaves=5, sample_weight=np.zeros(50))
    with pytest.raises(InputError, match="Complex data"):
        RPTree.grow(X.astype(complex), max_leaves=5)


def test_rows_that_do_not_lie_in_memory_are_the_compressors():
    with pytest.raises(InputError, match=r"rows in memory.*Compressor"):
        RPTree.grow(lambda: iter([normal_rows(10, 2)]), max_leaves=2)
