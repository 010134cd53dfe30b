"""The native core and its NumPy twin are one: same functions, same bits, for any layout, width and dtype."""

import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dc2.compress.neighbor_lists import with_neighbor_lists
from dc2.compress.routing import Router
from dc2.compress.signatures import Sums, grids
from dc2.core import neighbours_reference, reference
from dc2.core.neighbours_reference import squared_distances_of_pairs
from dc2.core.reference import Centres, GrowRule, NearestOut, SumsOut, lanes_dot
from dc2.trees import RPTree

native = pytest.importorskip("dc2.core._native")

SEEDS = st.integers(0, 2**64 - 1)
DTYPES = st.sampled_from([np.float32, np.float64])
KINDS = st.sampled_from(["normal", "rounded", "huge", "tiny", "subnormal", "far", "constant"])
LAYOUTS = st.sampled_from(["C", "F", "strided", "reversed", "read-only", "offset"])


def make_rows(seed: int, n_rows: int, width: int, dtype: Any, kind: str) -> NDArray[Any]:
    """Ordinary rows, rows with equal values and duplicates, and rows at the limits of the dtype."""
    X = np.random.default_rng(seed).standard_normal((n_rows, width))
    if kind == "rounded":
        X = np.round(X)
    elif kind == "huge":
        X *= 1e30
    elif kind == "tiny":
        X *= 1e-30
    elif kind == "subnormal":
        X *= 8 * float(np.finfo(dtype).smallest_subnormal)
    elif kind == "far":
        X = 1e9 + 1e3 * X
    elif kind == "constant":
        X[:] = X[0]
    return X.astype(dtype)


def laid_out(X: NDArray[Any], layout: str) -> NDArray[Any]:
    """The same values in another order of memory."""
    n_rows, width = X.shape
    if layout == "F":
        return np.asfortranarray(X)
    if layout == "strided":
        wide = np.full((2 * n_rows, 3 * width), np.nan, X.dtype)
        wide[::2, 1::3] = X
        return wide[::2, 1::3]
    if layout == "reversed":
        return X[::-1, ::-1].copy()[::-1, ::-1]
    if layout == "offset":
        wide = np.full((n_rows, width + 1), np.nan, X.dtype)
        wide[:, 1:] = X
        return wide[:, 1:]
    copy = X.copy()
    copy.flags.writeable = layout != "read-only"
    return copy


def assert_same_bits(ours: Any, theirs: Any) -> None:
    """Arrays agree in dtype, shape and every bit but the sign of zero."""
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert (a + 0).tobytes() == (b + 0).tobytes()


def make_weights(seed: int, n_rows: int, kind: str) -> NDArray[np.float64] | None:
    rng = np.random.default_rng(seed)
    if kind == "none":
        return None
    whole = rng.integers(1, 6, n_rows).astype(np.float64)
    if kind == "zeros":
        whole[rng.random(n_rows) < 0.3] = 0.0
    return whole if kind != "fractions" else whole * 0.3


@given(
    seed=SEEDS, n_rows=st.integers(1, 120), width=st.integers(1, 40), dtype=DTYPES, kind=KINDS, layout=LAYOUTS,
    weights=st.sampled_from(["none", "whole", "fractions"]), leaf_size=st.sampled_from([0.0, 5.0, 30.0]),
    max_leaves=st.sampled_from([1, 2, 7, 50, 2**62]), cut=st.sampled_from(reference.CUTS),
    sharpen=st.sampled_from([0, 1, 2, 4]), n_candidates=st.sampled_from([1, 3]), n_threads=st.sampled_from([1, 3]),
)  # fmt: skip
@settings(max_examples=250)
def test_both_cores_grow_the_same_tree(
    seed,
    n_rows,
    width,
    dtype,
    kind,
    layout,
    weights,
    leaf_size,
    max_leaves,
    cut,
    sharpen,
    n_candidates,
    n_threads,
):
    X = make_rows(seed, n_rows, width, dtype, kind)
    options = (
        make_weights(seed, n_rows, weights), seed, GrowRule(leaf_size, max_leaves, cut, sharpen, n_candidates),
        reference.NORMAL_TABLE, n_threads,
    )  # fmt: skip
    assert_same_bits(native.grow_tree(laid_out(X, layout), *options), reference.grow_tree(X, *options))


@pytest.mark.parametrize("cut", reference.CUTS)
def test_threads_that_work_ahead_grow_the_same_tree(cut):
    X = make_rows(2, 40_000, 30, np.float32, "normal")
    X[::7] = np.round(X[::7])
    options = (None, 3, GrowRule(0.0, 3000, cut, 1), reference.NORMAL_TABLE)
    alone = native.grow_tree(X, *options)
    for n_threads in (2, 5):
        assert_same_bits(native.grow_tree(X, *options, n_threads), alone)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weights", ["none", "whole", "fractions"])
def test_both_cores_estimate_the_covariance_of_a_large_node_from_the_same_rows(dtype, weights):
    X = make_rows(1, 3000, 11, dtype, "normal")
    options = (make_weights(1, 3000, weights), 7, GrowRule(0.0, 12, "mean", 3, 2), reference.NORMAL_TABLE)
    assert_same_bits(native.grow_tree(X, *options), reference.grow_tree(X, *options))


@given(seed=SEEDS, n_rows=st.integers(1, 40), width=st.integers(1, 9), dtype=DTYPES, kind=KINDS, layout=LAYOUTS)
def test_both_cores_hash_the_same_values_of_rows(seed, n_rows, width, dtype, kind, layout):
    X = make_rows(seed, n_rows, width, dtype, kind)
    hashes = native.hash_contents(laid_out(X, layout))
    assert_same_bits([hashes], [reference.hash_contents(X)])
    assert_same_bits([hashes], [native.hash_contents(np.where(X == 0, -X, X))])


@given(seed=SEEDS, width=st.integers(1, 40), dtype=DTYPES, kind=KINDS, count=st.integers(0, 50))
def test_both_cores_take_the_same_distances_of_pairs(seed, width, dtype, kind, count):
    rng = np.random.default_rng(seed)
    A, B = make_rows(seed, 30, width, dtype, kind), make_rows(seed + 1, 20, width, dtype, kind)
    pairs = rng.integers(0, 30, count).astype(np.int32), rng.integers(0, 20, count).astype(np.int32)
    ours, theirs = np.empty(count), np.empty(count)
    with np.errstate(over="ignore"):
        native.pair_squares(A, pairs[0], B, pairs[1], ours)
        neighbours_reference.pair_squares(A, pairs[0], B, pairs[1], theirs)
        assert_same_bits([ours], [theirs])
        assert_same_bits([squared_distances_of_pairs(A, pairs[0], B, pairs[1], 3)], [theirs])
    np.testing.assert_allclose(ours, ((A.astype(float)[pairs[0]] - B[pairs[1]]) ** 2).sum(axis=1))


def scanned(module: Any, X: Any, weights: Any, router: Router, few: int | None, add: bool) -> tuple[NDArray[Any], ...]:
    """Everything one scan writes."""
    n_rows, width = X.shape
    magic = grids(np.ptp(X.astype(np.float64), axis=0), float(n_rows)) if add else None
    sums = Sums.zeros(len(router.centres), width) if add else None
    ids = np.full(n_rows, -1, np.int32)
    near_ids = near_distances = None
    if few is not None:
        near_ids, near_distances = np.full((n_rows, few), -1, np.int32), np.zeros((n_rows, few), X.dtype)
    tree = router.trees[0]
    out = None if sums is None or magic is None else SumsOut(magic, *sums)
    bad = module.scan(
        X, weights, tree.arrays, Centres(router.centres, router.neighbor_lists, router.gaps, router.beam), out,
        NearestOut(ids, near_ids, near_distances),
    )  # fmt: skip
    written = [np.array(bad), ids]
    written += [] if sums is None else [sums.counts, sums.totals, sums.reach]
    written += [] if near_ids is None or near_distances is None else [near_ids, near_distances]
    return tuple(written)


def make_router(X: NDArray[Any], max_leaves: int, seed: int, n_near: int | None, beam: int = 1) -> Router:
    """A tree on the rows, with the mean of each leaf for a centre."""
    *arrays, leaf = reference.grow_tree(X, None, seed % 2**63, GrowRule(0.0, max_leaves, "mean", 1))
    m = len(arrays[1]) + 1
    sums = np.stack([np.bincount(leaf, column, m) for column in X.T.astype(np.float64)], axis=1)
    centres = (sums / np.bincount(leaf, minlength=m)[:, None]).astype(X.dtype)
    router = Router((RPTree(*arrays),), centres)
    return router if n_near is None else replace(with_neighbor_lists(router, n_near), beam=beam)


@given(
    seed=SEEDS, n_rows=st.integers(1, 100), width=st.integers(1, 40), dtype=DTYPES, kind=KINDS, layout=LAYOUTS,
    weights=st.sampled_from(["none", "whole", "fractions", "zeros"]), max_leaves=st.sampled_from([1, 2, 9, 40]),
    n_near=st.sampled_from([None, 1, 4, 32]), beam=st.sampled_from([1, 2, 5, 64]), few=st.sampled_from([None, 1, 3]),
    add=st.booleans(),
)  # fmt: skip
@settings(max_examples=250)
def test_both_cores_route_add_up_and_find_the_nearest_alike(
    seed, n_rows, width, dtype, kind, layout, weights, max_leaves, n_near, beam, few, add
):
    X = make_rows(seed, n_rows, width, dtype, kind)
    router = make_router(X, max_leaves, seed, n_near, beam)
    few = None if router.neighbor_lists is None or few is None else min(few, router.neighbor_lists.shape[1])
    w = make_weights(seed, n_rows, weights)
    with np.errstate(over="ignore"):
        ours = scanned(native, laid_out(X, layout), w, router, few, add)
        assert_same_bits(ours, scanned(reference, X, w, router, few, add))


@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("weights", ["none", "fractions"])
@pytest.mark.parametrize("width", [5, 8, 40])
def test_both_cores_agree_where_rows_are_worked_on_leaf_by_leaf(width, weights, layout):
    X = make_rows(5, 5000, width, np.float32, "normal")
    *arrays, leaf = native.grow_tree(X, None, 5, GrowRule(0.0, 2500, "mean", 1), reference.NORMAL_TABLE)
    centres = X[np.unique(leaf, return_index=True)[1]]
    router = replace(with_neighbor_lists(Router((RPTree(*arrays),), centres), 4), beam=4)  # a wide one takes minutes
    w = make_weights(5, 5000, weights)
    ours = scanned(native, laid_out(X, layout), w, router, 3, True)
    assert_same_bits(ours, scanned(reference, X, w, router, 3, True))


@given(seed=SEEDS, width=st.integers(1, 20), dtype=DTYPES, cut=st.sampled_from(reference.CUTS))
@settings(max_examples=40)
def test_a_row_is_routed_to_the_leaf_it_grew(seed, width, dtype, cut):
    X = make_rows(seed, 200, width, dtype, "normal")
    *tree, leaf = native.grow_tree(X, None, seed, GrowRule(0.0, 60, cut, 2), reference.NORMAL_TABLE)
    ids = np.empty(200, np.int32)
    native.scan(X, None, tree, Centres(X[:0]), None, NearestOut(ids))
    np.testing.assert_array_equal(ids, leaf)


@pytest.mark.parametrize("width", [5, 40])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gaps_save_time_and_nothing_else(dtype, width):
    for kind in ("normal", "far", "huge", "subnormal"):
        X = make_rows(3, 2000, width, dtype, kind)
        for beam in (1, 8):
            router = make_router(X, 300, 3, 32, beam)
            blind = replace(router, gaps=np.zeros_like(router.gaps))
            for few in (None, 1, 5):
                ours = scanned(native, X, None, router, few, False)
                assert_same_bits(ours, scanned(native, X, None, blind, few, False))


@given(seed=SEEDS, dtype=DTYPES, kind=KINDS, width=st.sampled_from([3, 40]), beam=st.integers(1, 12))
@settings(max_examples=40)
def test_neither_the_order_of_lists_nor_repeats_change_what_is_found(seed, dtype, kind, width, beam):
    X = make_rows(seed, 60, width, dtype, kind)
    router = make_router(X, 40, seed, 6, beam)
    rng = np.random.default_rng(seed)
    mixed = np.concatenate([router.neighbor_lists, rng.permuted(router.neighbor_lists, axis=1)], axis=1)
    mixed = rng.permuted(mixed, axis=1)
    other = replace(router, neighbor_lists=mixed, gaps=np.zeros(mixed.shape, dtype))
    few = min(3, router.neighbor_lists.shape[1])
    for module in (native, reference):
        with np.errstate(over="ignore"):
            assert_same_bits(scanned(module, X, None, router, few, False), scanned(module, X, None, other, few, False))


@pytest.mark.parametrize("beam", [1, 3, 8])
def test_a_row_ends_where_no_list_of_those_it_holds_names_a_nearer_one(beam):
    X = make_rows(4, 500, 6, np.float64, "far")
    router = make_router(X, 40, 4, 8, beam)
    (_, leaf) = scanned(native, X, None, Router(router.trees, router.centres), None, False)
    (_, ids, near, distances) = scanned(native, X, None, router, beam, False)
    squares = ((X[:, None] - router.centres) ** 2).sum(axis=2)
    own = np.take_along_axis(squares, leaf[:, None], axis=1)[:, 0]
    held = np.take_along_axis(squares, near, axis=1)
    np.testing.assert_array_equal(near[:, 0], ids)
    np.testing.assert_allclose(distances, held, rtol=1e-12)
    assert (np.diff(held, axis=1) >= 0).all()
    assert np.all(held[:, 0] <= own)
    assert np.mean(held[:, 0] == squares.min(axis=1)) > np.mean(own == squares.min(axis=1))
    for place in range(beam):
        listed = router.neighbor_lists[near[:, place]]
        is_held = (listed[:, :, None] == near[:, None]).any(axis=2)
        assert (is_held | (np.take_along_axis(squares, listed, axis=1) >= held[:, -1:])).all()


def test_the_nearest_does_not_depend_on_how_many_are_asked_for():
    X = make_rows(5, 3000, 10, np.float32, "normal")
    router = make_router(X, 400, 5, 8, 2)
    (_, alone) = scanned(native, X, None, router, None, False)
    for few in (1, 2, 7):
        (_, ids, near, distances) = scanned(native, X, None, router, few, False)
        np.testing.assert_array_equal(ids, alone)
        off = X - router.centres[ids]
        assert (distances[:, 0] <= lanes_dot(off, off)).all()
        assert all(len(set(row)) == few for row in near.tolist())


@given(seed=SEEDS, start=st.integers(0, 2**40), count=st.integers(0, 300), limit=SEEDS)
def test_both_cores_hash_and_sample_alike(seed, start, count, limit):
    hashes = reference.hash_rows(seed, start, start + count)
    rows = reference.sample_rows(seed, start, start + count, limit)
    assert_same_bits([native.hash_rows(seed, start, start + count)], [hashes])
    assert_same_bits([native.sample_rows(seed, start, start + count, limit)], [rows])
    assert rows.tolist() == [start + i for i, value in enumerate(hashes.tolist()) if value <= limit]


@given(seed=st.integers(0, 2**32), n=st.integers(1, 30), m=st.integers(1, 30), trees=st.integers(1, 9))
def test_both_cores_count_shared_leaves_alike(seed, n, m, trees):
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(0, 7, (trees, points)).astype(np.int32) for points in (n, m))
    counts = native.coleaf_counts(a, b)
    assert_same_bits([counts], [reference.coleaf_counts(a, b)])
    assert counts.tolist() == [[sum(a[t, i] == b[t, j] for t in range(trees)) for j in range(m)] for i in range(n)]


@pytest.mark.parametrize("module", [native, reference], ids=["native", "reference"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("max_leaves", [1, 8])
def test_rows_that_are_not_finite_are_counted_wherever_they_hide(module, dtype, max_leaves):
    X = make_rows(0, 100, 11, dtype, "normal")
    router = make_router(X, max_leaves, 0, None)
    broken = X.copy()
    for row, value in ((0, np.nan), (13, np.inf), (14, -np.inf), (99, np.nan)):
        broken[row, row % 11] = value
    assert scanned(module, X, None, router, None, False)[0] == 0
    assert scanned(module, broken, None, router, None, False)[0] == 4


@pytest.mark.parametrize("module", [native, reference], ids=["native", "reference"])
@pytest.mark.parametrize("max_leaves", [1, 8])
def test_no_rows_are_no_work(module, max_leaves):
    X = make_rows(0, 50, 3, np.float32, "normal")
    assert scanned(module, X[:0], None, make_router(X, max_leaves, 0, 4), 1, False)[0] == 0


DIGEST = """
import hashlib, importlib.util, sys
import numpy as np
spec = importlib.util.spec_from_file_location("_native", sys.argv[1])
_native = importlib.util.module_from_spec(spec)
spec.loader.exec_module(_native)
table = np.linspace(-3, 3, 4096, dtype=np.float32)
digest = hashlib.sha256()
for dtype in (np.float32, np.float64):
    for width in (1, 3, 8, 13, 18, 24, 31, 40, 100):
        X = np.random.default_rng(width).standard_normal((700, width)).astype(dtype)
        *tree, leaf = _native.grow_tree(X, None, 5, (0.0, 60, "mean", 2, 1), table)
        centres = X[np.unique(leaf, return_index=True)[1]]
        lists = np.tile(np.arange(60, dtype=np.int32), (60, 1))
        magic = np.full((2, width + 2), 1.5 * 2.0**32)
        magic[1] *= 2.0**-20
        counts, totals, reach = np.zeros(60, np.int64), np.zeros((2, 60, width + 2)), np.zeros(60)
        ids, near, distances = np.zeros(700, np.int32), np.zeros((700, 3), np.int32), np.zeros((700, 3), dtype)
        _native.scan(X, None, tree, (centres, lists, np.zeros((60, 60), dtype), 4), (magic, counts, totals, reach),
                     (ids, near, distances))
        for array in (*tree, leaf, counts, totals, reach, ids, near, distances, _native.hash_contents(X)):
            digest.update(array.tobytes())
print(_native.simd_level(), digest.hexdigest())
"""


def test_every_instruction_set_gives_the_same_bits():
    """As far as this processor has them: each variant of the loops is asked for in a process of its own."""
    results = {}
    for level in ("baseline", "avx2", "avx512"):
        command = [sys.executable, "-c", DIGEST, native.__file__]
        done = subprocess.run(command, env=os.environ | {"DC2_SIMD": level}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        used, digest = done.stdout.split()
        results[used] = digest
    assert "baseline" in results
    assert len(set(results.values())) == 1, results
