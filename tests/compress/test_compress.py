"""Compression: signatures stand for all rows, and nothing but the rows and the seed decides what they are."""

import itertools
import pickle
from typing import Any

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.base import clone

from dc2 import Signatures, core
from dc2.compress.divide import share_out
from dc2.compress.routing import deal
from dc2.compress.sampling import take_sample
from dc2.core import reference
from dc2.engines import ThreadEngine
from dc2.errors import InputTypeError
from dc2.io import as_source
from support.compress_data import WAYS, assert_same, direct_distortion, fitted, low_rank, way_name


@pytest.fixture(scope="module")
def X() -> NDArray[Any]:
    return low_rank(5000)


# --- nothing but rows and seed decides -----------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS, ids=way_name)
def test_one_thread_equals_eight(X, way):
    assert_same(fitted(X, way, n_jobs=1), fitted(X, way, n_jobs=8))


@pytest.mark.parametrize("way", WAYS, ids=way_name)
def test_blocks_of_4_kilobytes_equal_blocks_of_64_megabytes(X, way):
    assert_same(fitted(X, way, block_bytes=4096), fitted(X, way, block_bytes=2**26))


@pytest.mark.parametrize("way", WAYS, ids=way_name)
def test_rows_that_come_in_pieces_give_the_same_signatures(X, way):
    cuts = np.sort(np.random.default_rng(1).integers(1, len(X), 12))
    streamed = fitted(lambda: iter(np.split(X, cuts)), way, block_bytes=10_000)
    whole = fitted(X, way)
    assert_same(streamed, whole, labels=False)
    blocks = list(streamed.apply(lambda: iter(np.split(X, cuts))))
    np.testing.assert_array_equal(np.concatenate(blocks), whole.apply(X))
    with pytest.raises(AttributeError, match="labels_"):
        _ = streamed.labels_


@pytest.mark.parametrize("way", WAYS, ids=way_name)
def test_the_numpy_core_gives_the_same_fit(X, way, monkeypatch):
    native = fitted(X[:1500], way)
    for name in ("coleaf_counts", "grow_tree", "hash_rows", "sample_rows", "scan"):
        monkeypatch.setattr(core, name, core.twin(name))
    twin = fitted(X[:1500], way)
    assert_same(native, twin)
    np.testing.assert_array_equal(native.apply(X), twin.apply(X))


@pytest.mark.parametrize("way", WAYS, ids=way_name)
def test_the_layout_of_memory_does_not_matter(X, way):
    whole = fitted(X, way)
    frozen = X.copy()
    frozen.flags.writeable = False
    wide = np.zeros((2 * len(X), 3 * X.shape[1]), X.dtype)
    wide[::2, ::3] = X
    for laid_out in (np.asfortranarray(X), frozen, wide[::2, ::3], X[::-1].copy()[::-1], X.astype(">f4")):
        assert_same(fitted(laid_out, way), whole)


def test_rows_inside_a_structured_array_are_rows(X):
    records = np.zeros(len(X), dtype=[("row", np.float32, 7), ("flag", np.int8)])
    records["row"] = X
    assert_same(fitted(records["row"]), fitted(X))


@pytest.mark.parametrize("random_state", [3, np.random.RandomState(3), np.random.default_rng(3)], ids=type)
def test_the_seed_decides(X, random_state):
    first = fitted(X, random_state=pickle.loads(pickle.dumps(random_state)))
    assert_same(first, fitted(X, random_state=pickle.loads(pickle.dumps(random_state))))
    assert not np.array_equal(first.labels_, fitted(X, random_state=4).labels_)


# --- every row has its signature -----------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [way for way in WAYS if way.get("divide") != "sampling"], ids=way_name)
def test_the_labels_of_fit_are_those_of_apply(X, way):
    compressor = fitted(X, way)
    np.testing.assert_array_equal(compressor.labels_, compressor.apply(X))


@pytest.mark.parametrize("way", WAYS, ids=way_name)
def test_any_rows_are_routed_as_they_are_among_all(X, way):
    compressor = fitted(X, way)
    whole = compressor.apply(X)
    rows = np.random.default_rng(2).integers(0, len(X), 300)
    np.testing.assert_array_equal(compressor.apply(X[rows]), whole[rows])
    np.testing.assert_array_equal(compressor.apply(X[17:18]), whole[17:18])


@pytest.mark.parametrize("divide", ["projection", "sampling"])
@pytest.mark.parametrize("n_partitions", [1, 2, 3, 7])
def test_partitions_cover_every_row_once(X, n_partitions, divide):
    compressor = fitted(X, n_partitions=n_partitions, divide=divide)
    signatures = compressor.signatures_
    assert len(signatures) == 50
    assert signatures.weights.sum() == len(X)
    np.testing.assert_array_equal(np.bincount(compressor.labels_, minlength=50), signatures.weights)
    assert np.isclose(compressor.distortion_, direct_distortion(X, compressor), rtol=1e-9)
    np.testing.assert_allclose(
        signatures.weights @ signatures.points.astype(np.float64) / len(X), X.mean(axis=0), atol=1e-6
    )


def test_partitions_by_projection_are_the_nodes_of_one_tree(X):
    compressor = fitted(X, n_partitions=4, sample_size=None, cut="median", sharpen=0, populate="leaf")
    (tree,) = compressor.router_.trees
    assert tree.n_leaves == 50
    parts = np.bincount(tree.cut_at(2)[compressor.labels_])
    assert parts.tolist() == [1250] * 4


def test_partitions_by_sampling_get_the_rows_dealt_to_them(X):
    compressor = fitted(X, n_partitions=3, divide="sampling")
    router = compressor.router_
    assert [tree.n_leaves for tree in router.trees] == [17, 17, 16]
    part = np.searchsorted(np.cumsum([tree.n_leaves for tree in router.trees]), compressor.labels_, side="right")
    np.testing.assert_array_equal(part, deal(router.deal_seed, np.arange(len(X)), 3))


def test_a_new_row_takes_the_nearest_of_the_signatures_in_every_partition(X):
    compressor = fitted(X, n_partitions=3, divide="sampling")
    router = compressor.router_
    starts = np.cumsum([0, *(tree.n_leaves for tree in router.trees)])
    offered = np.stack([tree.apply(X) + start for tree, start in zip(router.trees, starts, strict=False)], axis=1)
    distances = np.linalg.norm(X[:, None] - router.centres[offered], axis=2)
    chosen = offered[np.arange(len(X)), distances.argmin(axis=1)]
    assert np.mean(chosen == compressor.apply(X)) > 0.999  # float32 distances of the two may tie


def test_nearest_takes_a_row_to_the_nearest_signature_around_its_leaf(X):
    compressor = fitted(X, populate="nearest", refine=0)
    router = compressor.router_
    distances = np.linalg.norm(X[:, None].astype(np.float64) - router.centres, axis=2)
    assert len(router.neighbor_lists) == 50
    assert np.mean(distances.argmin(axis=1) == compressor.labels_) > 0.98


def test_transform_gives_the_signature_of_each_row(X):
    compressor = fitted(X)
    np.testing.assert_array_equal(compressor.transform(X), compressor.signatures_.points[compressor.labels_])
    np.testing.assert_array_equal(fitted(X).fit_transform(X), compressor.transform(X))
    streamed = compressor.transform(lambda: iter(np.array_split(X, 4)))
    np.testing.assert_array_equal(np.concatenate(list(streamed)), compressor.transform(X))


# --- how many, and which -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_partitions", [1, 4])
@pytest.mark.parametrize("n_distinct", [1, 4, 29, 30, 31, 200])
def test_there_are_as_many_signatures_as_asked_for_or_as_distinct_rows(n_partitions, n_distinct):
    X = np.repeat(low_rank(n_distinct), 9, axis=0)
    compressor = fitted(X, n_signatures=30, n_partitions=n_partitions)
    assert len(compressor.signatures_) == min(30, n_distinct)
    assert compressor.signatures_.weights.min() >= 9
    if n_distinct <= 30:
        assert compressor.distortion_ == 0.0
        np.testing.assert_array_equal(compressor.transform(X), X)


def test_partitions_with_few_distinct_rows_leave_their_share_to_the_others():
    rng = np.random.default_rng(0)
    flat, rich = np.repeat(rng.normal(-9, 1, (3, 2)), 200, axis=0), rng.normal(9, 1, (600, 2))
    compressor = fitted(np.concatenate([flat, rich]), n_signatures=40, n_partitions=2)
    assert len(compressor.signatures_) == 40
    assert np.count_nonzero(compressor.signatures_.points[:, 0] < 0) == 3


@given(total=st.integers(1, 200), weights=st.lists(st.integers(1, 1000), min_size=1, max_size=9))
def test_shares_are_whole_proportional_and_none_is_empty(total, weights):
    shares = share_out(total, [float(weight) for weight in weights])
    assert min(shares) >= 1
    assert sum(shares) == max(total, len(weights))
    if total >= sum(weights):
        assert all(abs(s - total * w / sum(weights)) < 1 for s, w in zip(shares, weights, strict=True))


@pytest.mark.parametrize("sample_size", ["auto", None, 1000])
def test_leaf_size_counts_rows_of_the_full_data(X, sample_size):
    options = {"n_signatures": None, "cut": "median", "sharpen": 0, "sample_size": sample_size}
    compressor = fitted(X, leaf_size=200, populate="leaf", **options)
    assert len(compressor.signatures_) == 32  # 5000 / 32 = 156 < 200 <= 5000 / 16
    if sample_size is None:
        assert compressor.signatures_.weights.max() < 200


@pytest.mark.parametrize("way", [{}, {"n_partitions": 3}, {"n_partitions": 3, "divide": "sampling"}], ids=way_name)
def test_a_member_signature_is_one_of_its_rows(X, way):
    compressor = fitted(X, way, signature="member")
    points, labels = compressor.signatures_.points, compressor.labels_
    for signature in range(len(points)):
        assert (X[labels == signature] == points[signature]).all(axis=1).any()
    assert np.isclose(compressor.distortion_, direct_distortion(X, compressor), rtol=1e-6)
    assert compressor.distortion_ > fitted(X, way).distortion_


def test_a_centroid_signature_is_the_mean_of_its_rows(X):
    compressor = fitted(X)
    for signature, point in enumerate(compressor.signatures_.points):
        rows = X[compressor.labels_ == signature].astype(np.float64)
        np.testing.assert_array_equal(point, rows.mean(axis=0).astype(np.float32))
        assert np.isclose(compressor.signatures_.spread[signature], rows.var(axis=0).sum(), rtol=1e-6)


# --- the sample ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 10, 999, 1000, 5000])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_sample_is_the_rows_of_smallest_hash_however_they_are_cut_up(size, weighted):
    X = np.arange(1000.0)[:, None]
    weights = (np.arange(1000) % 3 > 0).astype(float) if weighted else None
    usable = np.flatnonzero(weights > 0) if weights is not None else np.arange(1000)
    hashes = reference.hash_rows(42, 0, 1000)[usable]
    expected = np.sort(usable[np.argsort(hashes)[:size]])
    for block_bytes, n_jobs in ((8, 1), (100, 3), (2**20, 2)):
        for data in (X, lambda: iter(np.array_split(X, 7))):
            source = as_source(data, sample_weight=weights)
            sample = take_sample(source, ThreadEngine(n_jobs, block_bytes), size, seed=42)
            np.testing.assert_array_equal(sample.rows, expected)
            np.testing.assert_array_equal(sample.X, X[expected])
            assert sample.n_rows == 1000
            assert sample.total_weight == (1000 if weights is None else weights.sum())


def test_a_sample_of_all_rows_is_no_sample(X):
    assert_same(fitted(X, sample_size=len(X)), fitted(X, sample_size=None))
    assert_same(fitted(X, sample_size=10 * len(X)), fitted(X, sample_size=None))


def test_a_larger_sample_has_no_more_distortion(X):
    small, large = (fitted(X, sample_size=size, populate="leaf").distortion_ for size in (100, 5000))
    assert large < 0.95 * small


# --- quality, with wide margins ------------------------------------------------------------------------------------


def test_sharpened_directions_have_much_less_distortion_on_low_rank_rows():
    X = low_rank(20_000, 18)
    plain, sharp = (fitted(X, n_signatures=256, sharpen=steps, populate="leaf").distortion_ for steps in (0, 2))
    assert sharp < 0.8 * plain


def test_the_widest_of_several_directions_has_less_distortion():
    X = low_rank(5000, 18)
    one, three = (fitted(X, n_signatures=100, sharpen=0, populate="leaf", n_candidates=n).distortion_ for n in (1, 3))
    assert three < 0.95 * one


def test_the_nearest_signature_has_less_distortion_than_the_leaf():
    X = low_rank(20_000, 18)
    leaf, nearest, refined = (
        fitted(X, way).distortion_
        for way in (
            {"populate": "leaf"},
            {"populate": "nearest", "refine": 0},
            {"populate": "nearest", "refine": 5},
        )
    )
    assert refined < nearest < 0.95 * leaf


def test_more_signatures_have_less_distortion(X):
    distortions = [fitted(X, n_signatures=m).distortion_ for m in (1, 10, 100, 1000)]
    assert np.isclose(distortions[0], X.var(axis=0, dtype=np.float64).sum(), rtol=1e-6)
    assert all(after < 0.7 * before for before, after in itertools.pairwise(distortions))


def test_the_papers_tree_is_one_tree_of_even_leaves(X):
    compressor = fitted(X, n_signatures=64, cut="median", sharpen=0, sample_size=None, populate="leaf")
    assert set(compressor.signatures_.weights) <= {5000 // 64, 5000 // 64 + 1}


# --- signatures ----------------------------------------------------------------------------------------------------


def test_merged_signatures_stand_for_the_rows_of_all(X):
    parts = np.array_split(X, 3)
    compressors = [fitted(part, random_state=i) for i, part in enumerate(parts)]
    merged = Signatures.merge(*(compressor.signatures_ for compressor in compressors))
    assert len(merged) == 150
    assert merged.weights.sum() == len(X)
    total = sum(direct_distortion(p, c) * len(p) for p, c in zip(parts, compressors, strict=True))
    assert np.isclose(merged.distortion, total / len(X), rtol=1e-9)
    np.testing.assert_array_equal(merged.points[50:100], compressors[1].signatures_.points)
    assert merged.points.dtype == np.float32
    in_a_list = Signatures.merge([compressor.signatures_ for compressor in compressors])
    np.testing.assert_array_equal(in_a_list.points, merged.points)
    with pytest.raises(InputTypeError, match="signatures_"):
        Signatures.merge(compressors)
    alone = Signatures.merge(compressors[0].signatures_)
    assert alone.distortion == compressors[0].distortion_


def test_merged_dtypes_are_the_widest():
    narrow, wide = (Signatures(np.zeros((1, 2), dtype), np.ones(1), np.ones(1)) for dtype in ("f4", "f8"))
    assert Signatures.merge(narrow, wide).points.dtype == np.float64


# --- as an object --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS, ids=way_name)
def test_pickle_and_joblib_keep_the_fit(X, way, tmp_path):
    compressor = fitted(X, way)
    joblib.dump(compressor, tmp_path / "compressor.joblib")
    mapped = joblib.load(tmp_path / "compressor.joblib", mmap_mode="r")
    for copy in (pickle.loads(pickle.dumps(compressor)), mapped):
        assert_same(copy, compressor)
        np.testing.assert_array_equal(copy.apply(X), compressor.apply(X))


def test_a_clone_has_the_parameters_and_not_the_fit(X):
    compressor = fitted(X, n_partitions=2, populate="leaf")
    copy = clone(compressor)
    assert copy.get_params() == compressor.get_params()
    assert not hasattr(copy, "signatures_")
    assert_same(copy.fit(X), compressor)


def test_column_names_are_kept(X):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcdefg"))
    compressor = fitted(frame).set_output(transform="pandas")
    assert_same(compressor, fitted(X))
    assert compressor.feature_names_in_.tolist() == compressor.get_feature_names_out().tolist() == list("abcdefg")
    assert list(compressor.transform(frame).columns) == list("abcdefg")


def test_fitting_does_not_touch_the_rows(X):
    given, weights = X.copy(), np.arange(len(X), dtype=float)
    fitted(given, {"populate": "nearest", "n_partitions": 2}, sample_weight=weights)
    np.testing.assert_array_equal(given, X)
    np.testing.assert_array_equal(weights, np.arange(len(X)))
