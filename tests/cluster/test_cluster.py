"""The clusterers: shapes are found, and nothing but the rows and the seed decides how."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from dc2 import KASP, RASP, Compressor, RPFCluster, clustering_accuracy
from dc2.errors import InputError, ParameterError
from dc2.spectral import RPF, Gaussian
from support.cluster_data import RIVAL, SMALL, blobs, every_clusterer, moons, same_partition

# Shapes


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_two_moons_are_found_with_the_defaults(seed):
    X, y = make_moons(200_000, noise=0.08, random_state=seed)
    model = RPFCluster(n_clusters=2, random_state=seed).fit(X)
    assert clustering_accuracy(y, model.labels_) > 0.99


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_two_circles_are_found_with_the_defaults(seed):
    X, y = make_circles(200_000, noise=0.05, factor=0.5, random_state=seed)
    model = RPFCluster(n_clusters=2, random_state=seed).fit(X)
    assert clustering_accuracy(y, model.labels_) > 0.99


@every_clusterer
def test_blobs_that_stand_apart_are_found_by_all(model):
    X, y = blobs()
    # Cuts at the sign of an eigenvector may miss. RASP labels a leaf as a whole, so leaves must be small.
    model = clone(model).set_params(assign="kmeans", n_signatures=300)
    assert clustering_accuracy(y, model.fit_predict(X)) > 0.99


# fit, predict and what they leave


@every_clusterer
def test_fit_predict_is_predict_is_labels(model):
    X, _ = blobs()
    model = clone(model)
    labels = model.fit_predict(X)
    np.testing.assert_array_equal(labels, model.predict(X))
    np.testing.assert_array_equal(labels, model.labels_)
    assert labels.dtype == np.int32
    assert sorted(np.unique(labels)) == [0, 1, 2]


@every_clusterer
def test_fitted_attributes_have_the_shapes_they_promise(model):
    X, _ = blobs()
    model = clone(model).fit(X)
    n = len(model.signatures_)
    assert model.signature_labels_.shape == (n,)
    assert model.signature_labels_.dtype == np.int32
    assert model.embedding_.shape == (n, 3)
    assert (np.diff(model.eigenvalues_) <= 0).all()
    assert model.eigenvalues_[0] == pytest.approx(1.0)
    assert model.distortion_ >= 0
    assert model.n_features_in_ == 2
    assert model.n_rows_in_ == len(X)
    assert set(model.stage_seconds_) == {"divide", "compress", "conquer", "populate"}
    assert model.transform(X[:7]).shape == (7, 3)


@every_clusterer
def test_the_embedding_of_a_row_is_that_of_its_signature(model):
    X, _ = blobs()
    model = clone(model).fit(X)
    for row in model.transform(X[:20]):
        assert (model.embedding_ == row).all(axis=1).any()


def test_a_row_at_a_signature_takes_its_cluster():
    X, _ = moons()
    model = RPFCluster(2, compressor=Compressor(populate="nearest"), **SMALL).fit(X)
    np.testing.assert_array_equal(model.predict(model.signatures_.points), model.signature_labels_)


# What must not matter


@pytest.mark.parametrize("populate", ["leaf", "nearest"])
@pytest.mark.parametrize("n_partitions", [1, 3])
def test_one_thread_equals_eight(populate, n_partitions):
    X, _ = moons(40_000, noise=0.2)
    compressor = Compressor(populate=populate, n_partitions=n_partitions)
    one, eight = (
        RPFCluster(4, compressor=compressor, n_jobs=n_jobs, block_bytes=size, **SMALL)
        for n_jobs, size in ((1, 1 << 24), (8, 1 << 16))
    )
    np.testing.assert_array_equal(one.fit(X).labels_, eight.fit(X).labels_)
    np.testing.assert_array_equal(one.signatures_.points, eight.signatures_.points)
    assert one.bandwidth_ == eight.bandwidth_


@every_clusterer
def test_the_same_seed_gives_the_same_labels(model):
    X, _ = moons()
    np.testing.assert_array_equal(clone(model).fit_predict(X), clone(model).fit_predict(X))


@pytest.mark.parametrize("populate", ["leaf", "nearest"])
def test_float32_and_float64_give_the_same_clusters(populate):
    X, _ = moons(20_000)
    X = X.astype(np.float32)
    model = RPFCluster(2, compressor=Compressor(populate=populate), **SMALL)
    narrow, wide = (clone(model).fit(X.astype(t)) for t in ("f4", "f8"))
    assert adjusted_rand_score(narrow.labels_, wide.labels_) > 0.999
    assert narrow.signatures_.points.dtype == np.float32
    assert wide.signatures_.points.dtype == np.float64


@pytest.mark.parametrize("model", [RPFCluster(3, **SMALL), RPFCluster(3, assign="ncut", **SMALL), RASP(3)])
def test_the_order_of_few_rows_does_not_change_the_partition(model):
    X, _ = blobs(90)
    order = np.random.default_rng(1).permutation(len(X))
    straight, shuffled = clone(model).fit_predict(X), clone(model).fit_predict(X[order])
    assert same_partition(straight[order], shuffled)


def test_columns_in_fortran_order_or_strided_are_the_same_rows():
    X, _ = moons(4000)
    wide = np.zeros((8000, 4))
    wide[::2, ::2] = X
    labels = RPFCluster(2, **SMALL).fit_predict(X)
    np.testing.assert_array_equal(labels, RPFCluster(2, **SMALL).fit_predict(np.asfortranarray(X)))
    np.testing.assert_array_equal(labels, RPFCluster(2, **SMALL).fit_predict(wide[::2, ::2]))


# Weights


@pytest.mark.parametrize("weighted", [False, True])
def test_weights_are_repeats(weighted):
    X, _ = blobs(60)
    repeats = np.random.default_rng(0).integers(1, 5, len(X))
    way = {"weighted": weighted, "similarity": RPF(n_trees=100), "random_state": 0}
    weighed = RPFCluster(3, **way).fit(X, sample_weight=repeats)
    repeated = RPFCluster(3, **way).fit(np.repeat(X, repeats, axis=0))
    assert same_partition(weighed.predict(X), repeated.predict(X))
    assert weighed.signatures_.weights.sum() == repeats.sum()


def test_rows_without_weight_are_not_seen_but_labelled():
    X, _ = blobs(300)
    weights = np.ones(len(X))
    weights[::3] = 0
    model = RPFCluster(3, **SMALL).fit(X, sample_weight=weights)
    without = RPFCluster(3, **SMALL).fit(X[weights > 0])
    assert same_partition(model.predict(X), without.predict(X))
    assert model.labels_.shape == (len(X),)


# Few rows


def test_with_no_more_rows_than_signatures_each_row_is_its_own_signature():
    X, y = moons(300)
    model = RPFCluster(2, random_state=0).fit(X)
    assert len(model.signatures_) == 300
    assert model.distortion_ == 0.0
    assert clustering_accuracy(y, model.labels_) == 1.0


def test_equal_rows_make_as_many_clusters_as_there_are_distinct_ones_and_say_so():
    X = np.repeat([[0.0, 0.0], [5.0, 5.0]], 50, axis=0)
    model = RPFCluster(4, **SMALL)
    with pytest.warns(ConvergenceWarning, match="only 2 distinct"):
        model.fit(X)
    assert model.n_clusters_ == 2
    assert same_partition(model.labels_, np.repeat([0, 1], 50))


@every_clusterer
@pytest.mark.parametrize("n_clusters", [1, 20])
def test_there_are_exactly_as_many_clusters_as_asked_for(model, n_clusters):
    X, _ = moons(500)
    labels = clone(model).set_params(n_clusters=n_clusters).fit(X).signature_labels_
    assert len(np.unique(labels)) == n_clusters


def test_a_handful_of_rows_in_two_pairs_are_two_pairs():
    assert RPFCluster(2, random_state=0).fit_predict([[0.0], [0.1], [5.0], [5.1]]).tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("n_rows", range(2, 9))
def test_as_many_clusters_as_rows_are_found(n_rows):
    assert len(np.unique(RPFCluster(n_rows, random_state=0).fit_predict(np.arange(n_rows)[:, None]))) == n_rows


@pytest.mark.parametrize("seed", [0, 1, 2, 5, 9])
def test_leaves_that_straddle_clusters_are_no_clusters(seed):
    """Their rows find nearer signatures, and a signature that no row came to is not counted."""
    X, y = make_blobs(4000, centers=25.0 * np.eye(10), random_state=seed)
    model = RPFCluster("auto", n_signatures=200, similarity=RPF(n_trees=200), random_state=seed).fit(X)
    assert model.n_clusters_ == 10
    assert adjusted_rand_score(y, model.labels_) == 1.0


@pytest.mark.parametrize(("n_features", "seed"), [(5, 0), (10, 2)])
def test_a_signature_of_two_rows_between_clusters_is_no_cluster(n_features, seed):
    X, y = make_blobs(4000, centers=10, n_features=n_features, random_state=seed)
    model = RPFCluster("auto", random_state=seed).fit(X)
    assert model.n_clusters_ == 10
    assert model.n_clusters_path_["n_clusters"][model.n_clusters_path_["score"].argmax()] == 10
    assert adjusted_rand_score(y, model.labels_) > 0.999


def test_columns_of_one_number_can_be_clustered():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, 3000), rng.normal(7, 1, 2000), rng.normal(15, 0.5, 1000)])[:, None]
    y = np.repeat([0, 1, 2], [3000, 2000, 1000])
    assert clustering_accuracy(y, RPFCluster(3, random_state=0).fit_predict(X)) > 0.99


# Bad input, at once


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_clusters": 0}, "n_clusters must be a whole number of at least 1; got 0"),
        ({"n_clusters": 2.5}, "n_clusters must be a whole number"),
        ({"n_clusters": "many"}, "n_clusters must be a whole number"),
        ({"n_clusters": (5, 2)}, "upside down: from 5 to 2"),
        ({"n_clusters": (1, 2, 3)}, "pair"),
        ({"n_clusters": 200}, "n_signatures=100 cannot make n_clusters=200"),
        ({"similarity": RPF(bandwidth=0)}, "bandwidth must be a finite number above 0; got 0"),
        ({"similarity": RPF(bandwidth=-0.1)}, "bandwidth"),
        ({"similarity": RPF(bandwidth=float("nan"))}, "bandwidth"),
        ({"similarity": RPF(bandwidth="wide")}, "bandwidth"),
        ({"assign": "qr"}, "assign must be one of 'kmeans', 'ncut'"),
        ({"compressor": Compressor(populate="far")}, "populate must be one of"),
        ({"similarity": RPF(n_trees=0)}, "n_trees"),
        ({"similarity": RPF(leaf_size=0)}, "leaf_size"),
        ({"n_signatures": 0}, "n_signatures"),
        ({"similarity": RPF(cut="middle")}, "cut must be one of"),
        ({"similarity": "cosine"}, r"similarity must be one of .*'rpf'.*got 'cosine'"),
        ({"similarity": RPF}, "similarity must be one of"),
        ({"similarity": None}, "similarity must be one of"),
        ({"scale": "unit"}, "scale must be one of"),
        ({"metric": "angle"}, "metric must be one of"),
        ({"n_clusters": range(2, 9, 2)}, "no consecutive numbers"),
        ({"n_clusters": range(5, 5)}, "no consecutive numbers"),
        ({"compressor": "kmeans"}, "compressor must be a dc2.Compressor or None; got 'kmeans'"),
        ({"compressor": Compressor(cut="middle")}, "cut must be one of"),
        ({"compressor": Compressor(sharpen=-1)}, "sharpen"),
        ({"compressor": Compressor(refine=-1)}, "refine"),
        ({"compressor": Compressor(sample_size=0)}, "sample_size"),
    ],
)
def test_impossible_parameters_are_refused_before_the_rows_are_touched(parameters, message):
    class Untouchable:
        def __getattr__(self, name: str) -> object:
            raise AssertionError("the rows were touched")

    with pytest.raises(ParameterError, match=message):
        RPFCluster(**(SMALL | parameters)).fit(Untouchable())


@every_clusterer
def test_fewer_rows_than_clusters_is_an_error(model):
    with pytest.raises(InputError, match="n_samples=2 should be >= n_clusters=3"):
        clone(model).fit(np.eye(2))


@pytest.mark.parametrize("model", [KASP, RASP])
def test_the_rivals_check_sigma(model):
    with pytest.raises(ParameterError, match="sigma"):
        model(2, similarity=Gaussian(sigma=0.0)).fit(np.eye(5))


@every_clusterer
def test_missing_and_infinite_values_are_refused_in_fit_and_predict(model):
    X, _ = blobs(500)
    bad = X.copy()
    bad[321, 1] = np.nan
    with pytest.raises(InputError, match="321"):
        clone(model).fit(bad)
    bad[321, 1] = np.inf
    with pytest.raises(InputError, match="321"):
        clone(model).fit(X).predict(bad)


# The rivals


def test_kasp_centres_are_the_means_of_their_rows():
    X, _ = blobs(2000)
    model = KASP(3, **RIVAL).fit(X)
    nearest = ((X[:, None] - model.signatures_.points) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(model.signature_labels_[nearest], model.labels_)
    assert model.distortion_ == pytest.approx(
        ((X[:, None] - model.signatures_.points) ** 2).sum(axis=2).min(axis=1).mean(), rel=0.05
    )


def test_kasp_above_twenty_thousand_rows_works_in_two_stages():
    X, y = blobs(20_500)
    model = KASP(3, n_signatures=20, assign="kmeans", random_state=0).fit(X)
    assert len(model.signatures_) == 20
    assert clustering_accuracy(y, model.labels_) == 1.0


def test_kasp_has_less_distortion_than_rasp_with_as_many_signatures():
    X, _ = moons(3000, noise=0.2)
    assert KASP(2, **RIVAL).fit(X).distortion_ < RASP(2, **RIVAL).fit(X).distortion_


@pytest.mark.parametrize("seed", range(5))
def test_kasp_does_not_depend_on_the_order_in_memory(seed):
    """Rows in the middle between two centres show a difference in the last bit of a distance."""
    X = np.arange(95.0)[:, None] * np.ones(6)
    model, other = (KASP(5, n_signatures=12, random_state=seed).fit(rows) for rows in (X, np.asfortranarray(X)))
    np.testing.assert_array_equal(other.signatures_.weights, model.signatures_.weights)
    np.testing.assert_array_equal(other.signatures_.spread, model.signatures_.spread)
    np.testing.assert_array_equal(other.labels_, model.labels_)
