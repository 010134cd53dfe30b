"""The core and the public trees refuse arrays that would lead a row astray, before any loop."""

import numpy as np
import pytest

from dc2.core import reference
from dc2.core.reference import Centres, FlatTree, NearestOut
from dc2.errors import InputError
from dc2.trees import RPForest, RPTree

native = pytest.importorskip("dc2.core._native")

BOTH = pytest.mark.parametrize("module", [native, reference], ids=["native", "reference"])
X = np.random.default_rng(0).normal(size=(50, 2))
TREE = RPTree.grow(X, max_leaves=4, rng=0)
SMALL = RPTree(np.eye(2), np.zeros(2), np.array([[1, -1], [-2, -3]], np.int32))

NO_TREES = {
    "a node is its own child": [[0, -1], [-2, -3]],
    "two nodes are each other's child": [[1, -1], [0, -2]],
    "a child beyond the last": [[2, -1], [-2, -3]],
    "a child far beyond": [[2**31 - 1, -1], [-2, -3]],
    "a leaf beyond the last": [[1, -1], [-2, -4]],
    "a leaf far beyond": [[1, -1], [-2, -(2**31)]],
    "a leaf twice": [[1, -1], [-2, -2]],
    "a node twice": [[1, 1], [-1, -2]],
}


def changed_tree(children):
    return FlatTree(SMALL.directions, SMALL.thresholds, np.array(children, np.int32))


@BOTH
@pytest.mark.parametrize("children", NO_TREES.values(), ids=NO_TREES)
def test_scan_refuses_children_that_make_no_tree(module, children):
    ids = np.empty(len(X), np.int32)
    with pytest.raises(ValueError, match="children"):
        module.scan(X, None, changed_tree(children), Centres(X[:0]), None, NearestOut(ids))


@pytest.mark.parametrize("children", NO_TREES.values(), ids=NO_TREES)
def test_a_tree_refuses_children_that_make_no_tree(children):
    with pytest.raises(InputError, match="children make no tree of 2 nodes and 3 leaves"):
        RPTree(*changed_tree(children))


@BOTH
@pytest.mark.parametrize("wrong", [-1, 4, 2**31 - 1])
def test_scan_refuses_neighbor_lists_with_unknown_centres(module, wrong):
    neighbor_lists = np.tile(np.arange(4, dtype=np.int32), (4, 1))
    neighbor_lists[2, 3] = wrong
    centres = Centres(X[:4].copy(), neighbor_lists, np.zeros((4, 4)))
    with pytest.raises(ValueError, match="neighbor_lists"):
        module.scan(X, None, TREE.arrays, centres, None, NearestOut(np.empty(len(X), np.int32)))


@BOTH
@pytest.mark.parametrize("beam", [0, -1, 2**20 + 1])
def test_scan_refuses_a_beam_that_is_none(module, beam):
    centres = Centres(X[:4].copy(), np.zeros((4, 1), np.int32), np.zeros((4, 1)), beam)
    with pytest.raises(ValueError, match="beam"):
        module.scan(X, None, TREE.arrays, centres, None, NearestOut(np.empty(len(X), np.int32)))


@BOTH
def test_scan_refuses_fewer_centres_than_leaves(module):
    neighbor_lists = np.zeros((4, 1), np.int32)
    with pytest.raises(ValueError, match="centres"):
        module.scan(X, None, TREE.arrays, Centres(X[:3].copy(), neighbor_lists, np.zeros((4, 1))), None, NearestOut())


@BOTH
def test_rows_are_numbered_from_zero(module):
    for start, stop in ((-(2**63), 2**63 - 1), (-1, 5)):
        with pytest.raises(ValueError, match="start"):
            module.hash_rows(0, start, stop)
        with pytest.raises(ValueError, match="start"):
            module.sample_rows(0, start, stop, 0)


@BOTH
@pytest.mark.parametrize("wrong", [-1, -(2**31), 2**31 - 1])
def test_shared_leaves_are_counted_of_leaves_only(module, wrong):
    fine, broken = np.zeros((1, 3), np.int32), np.array([[0, wrong, 1]], np.int32)
    for a, b in ((fine, broken), (broken, fine)):
        with pytest.raises(ValueError, match="leaves"):
            module.coleaf_counts(a, b)


def test_a_tree_refuses_arrays_that_do_not_fit_together():
    directions, thresholds, children = SMALL.arrays
    for wrong in (
        (directions[:1], thresholds, children),
        (directions, thresholds[:1], children),
        (directions[0], thresholds, children),
        (directions, thresholds, children[:1]),
    ):
        with pytest.raises(InputError, match="shapes"):
            RPTree(*wrong)
    for wrong in (
        (directions, thresholds.astype(np.float32), children),
        (directions.astype(int), thresholds.astype(int), children),
        (directions, thresholds, children.astype(np.int64)),
    ):
        with pytest.raises(InputError, match="float32"):
            RPTree(*wrong)


def test_a_forest_refuses_leaves_that_its_trees_do_not_have():
    leaves = np.array([[0, 1, 2]], np.int32)
    assert RPForest((SMALL,), leaves).counts(n_jobs=1).tolist() == np.eye(3).tolist()
    for wrong in (-1, 3):
        with pytest.raises(InputError, match="leaves"):
            RPForest((SMALL,), np.array([[0, wrong]], np.int32))
    for wrong_leaves in (leaves[0], leaves.astype(np.int64), np.repeat(leaves, 2, axis=0)):
        with pytest.raises(InputError, match="forest of 1 trees"):
            RPForest((SMALL,), wrong_leaves)
    with pytest.raises(InputError, match="at least one tree"):
        RPForest((), leaves[:0])
    narrow = RPTree(np.ones((1, 1)), np.zeros(1), np.array([[-1, -2]], np.int32))
    with pytest.raises(InputError, match="same columns"):
        RPForest((SMALL, narrow), np.zeros((2, 3), np.int32))
