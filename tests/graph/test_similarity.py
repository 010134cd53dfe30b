"""Similarities as objects: what a user passes, and what it builds."""

from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence
from sklearn.base import clone

import dc2
from dc2 import KASP, RASP, Compressor, RPFCluster, RPFKernel
from dc2.cluster.dc2_clustering import similarity_recipe
from dc2.errors import ParameterError
from dc2.graph import NeighborGraph
from dc2.graph.nodes import SimilarityRecipe, nodes_at
from dc2.random import seed_sequence
from dc2.spectral import RPF, Gaussian, GaussianKernel
from support.cluster_data import blobs

X, _ = blobs(400, 3)
RECIPES = {"rpf": RPF(n_trees=60), "gaussian": Gaussian(), "graph": NeighborGraph()}
every_recipe = pytest.mark.parametrize("name", RECIPES)


def clusterer(**changes: Any) -> RPFCluster:
    return RPFCluster(**{"n_clusters": 3, "n_signatures": 50, "random_state": 0, **changes})


def nodes(n_nodes: int = 40, node_weights: Any = None) -> Any:
    return nodes_at(X[:n_nodes], np.ones(n_nodes) if node_weights is None else node_weights)


def dense(similarity: Any) -> Any:
    matrix = similarity.matrix()
    return matrix.toarray() if similarity.sparse else matrix


# Recipes


@every_recipe
def test_a_recipe_is_an_object_like_others_in_scikit_learn(name):
    recipe = RECIPES[name]
    assert isinstance(recipe, SimilarityRecipe)
    assert repr(clone(recipe)) == repr(recipe)
    assert similarity_recipe(recipe) is recipe


@pytest.mark.parametrize("estimator", [RPFCluster, RASP, KASP])
def test_its_parameters_can_be_set_from_outside(estimator):
    model = clone(estimator(3, similarity=RPF(), random_state=0)).set_params(similarity__n_trees=7)
    assert model.get_params()["similarity__n_trees"] == 7
    assert model.fit(X).similarity_.n_trees == 7
    other = clone(estimator(3, similarity=Gaussian(), random_state=0)).set_params(similarity__sigma=0.7)
    assert other.fit(X).bandwidth_ == 0.7


@pytest.mark.parametrize(("name", "recipe"), [("rpf", RPF()), ("gaussian", Gaussian())])
@pytest.mark.parametrize("estimator", [RPFCluster, RASP, KASP])
def test_a_name_stands_for_the_object_with_its_defaults(estimator, name, recipe):
    named, given = (
        estimator(3, n_signatures=50, similarity=similarity, random_state=0).fit(X) for similarity in (name, recipe)
    )
    np.testing.assert_array_equal(named.labels_, given.labels_)
    assert named.similarity_.matrix().tobytes() == given.similarity_.matrix().tobytes()
    assert named.bandwidth_ == given.bandwidth_


def test_fitting_leaves_the_recipe_alone():
    recipe = RPF(n_trees=20)
    before = dict(vars(recipe))
    model = clusterer(similarity=recipe).fit(X).recluster(bandwidth=0.05)
    assert model.similarity is recipe
    assert vars(recipe) == before


@pytest.mark.parametrize("wrong", ["cosine", "RPF", RPF, None, 7, np.eye(3), Compressor()])
def test_what_is_no_similarity_is_refused_with_the_names_of_those_there_are(wrong):
    with pytest.raises(ParameterError, match="similarity must be one of 'gaussian', 'rpf'"):
        clusterer(similarity=wrong).fit(X)


# What they build


@pytest.mark.parametrize("weighted", [False, True])
def test_the_rpf_kernel_as_an_estimator_is_that_of_a_recipe(weighted):
    """Same points, same seed, same matrix to the bit; weights of one are none."""
    points = nodes().points
    built = RPF(n_trees=60).build(nodes(), SeedSequence(0), weighted=weighted)
    kernel = RPFKernel(n_trees=60, bandwidth=0.07, random_state=0).fit(points)
    if not weighted:
        assert built.matrix(0.07).tobytes() == kernel.similarity_.tobytes()
    assert built.matrix(0.07).shape == kernel.similarity_.shape


def test_the_rpf_kernel_as_an_estimator_is_that_of_the_clusterer():
    model = clusterer(similarity=RPF(n_trees=60)).fit(X)
    _, kernel_seed, _ = seed_sequence(0).spawn(3)
    points = nodes_at(model.signatures_.points, model.signatures_.weights).points
    kernel = RPFKernel(n_trees=60, bandwidth=model.bandwidth_, random_state=kernel_seed).fit(points)
    assert model.similarity_.matrix().tobytes() == kernel.similarity_.tobytes()


def test_the_gaussian_kernel_as_an_estimator_is_that_of_the_clusterer():
    model = clusterer(similarity="gaussian").fit(X)
    points = nodes_at(model.signatures_.points, model.signatures_.weights).points
    kernel = GaussianKernel().fit(points)
    assert model.bandwidth_ == pytest.approx(kernel.sigma_)
    np.testing.assert_allclose(model.similarity_.matrix(), kernel.similarity_, rtol=1e-6)


@pytest.mark.parametrize("name", ["rpf", "gaussian"])
def test_a_similarity_is_a_kernel_matrix(name):
    similarity = clusterer(similarity=RECIPES[name]).fit(X).similarity_
    matrix = similarity.matrix()
    assert matrix.shape == (len(similarity), len(similarity))
    np.testing.assert_array_equal(matrix, matrix.T)
    np.testing.assert_array_equal(np.diagonal(matrix), 1.0)
    assert (matrix >= 0).all()
    assert (matrix <= 1).all()
    wider = similarity.at(2 * similarity.bandwidth)
    assert (wider.matrix() >= matrix).all()
    np.testing.assert_array_equal(wider.matrix(), similarity.matrix(2 * similarity.bandwidth))


@every_recipe
def test_strength_is_a_share_and_apart_is_a_distance(name):
    model = clusterer(similarity=RECIPES[name]).fit(X)
    some = np.array([3, 0, 17, 49])
    strength = model.similarity_.strength(some)
    apart = model.similarity_.apart(some, model.signatures_.points[some].astype(float))
    for numbers in (strength, apart):
        assert numbers.shape == (4, 4)
        np.testing.assert_allclose(numbers, numbers.T)
        assert (numbers >= 0).all()
    assert (strength <= 1).all()
    np.testing.assert_array_equal(np.diagonal(strength), 1.0)
    np.testing.assert_array_equal(np.diagonal(apart), 0.0)
    if name == "graph":  # a map of them shows where they lie
        return
    alike, far = strength[~np.eye(4, dtype=bool)], apart[~np.eye(4, dtype=bool)]
    assert (np.diff(far[np.argsort(-alike, kind="stable")]) >= -1e-9).all()


@every_recipe
def test_it_says_in_words_what_it_is(name):
    words = clusterer(similarity=RECIPES[name]).fit(X).similarity_.describe()
    assert not words.neighbours[0].islower()
    assert not words.neighbours.endswith(".")
    assert words.meaning.startswith("Alike means: ")
    assert words.meaning.endswith(".")
    assert words.unit
    if name == "rpf":
        assert "60 random trees" in words.neighbours


@every_recipe
def test_it_is_saved_with_the_model(name, tmp_path):
    model = clusterer(similarity=RECIPES[name]).fit(X)
    model.save(tmp_path / "model.dc2")
    again = dc2.load(tmp_path / "model.dc2")
    assert repr(again.similarity) == repr(model.similarity)
    np.testing.assert_array_equal(dense(again.similarity_), dense(model.similarity_))
    assert again.similarity_.describe() == model.similarity_.describe()
    again.recluster(4)
    assert again.predict(X).tobytes() == model.recluster(4).labels_.tobytes()


@every_recipe
@pytest.mark.parametrize("weighted", [False, True])
def test_it_does_not_depend_on_threads(name, weighted):
    one, eight = (clusterer(similarity=RECIPES[name], weighted=weighted, n_jobs=n).fit(X) for n in (1, 8))
    np.testing.assert_array_equal(dense(one.similarity_), dense(eight.similarity_))


# The compressor beside it


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("n_signatures", 70),
        ("scale", "standard"),
        ("metric", "cosine"),
        ("n_jobs", 3),
        ("block_bytes", 12345),
        ("random_state", 5),
        ("verbose", 1),
    ],
)
def test_a_compressor_that_contradicts_its_clusterer_is_refused(name, own):
    model = clusterer(compressor=Compressor(**{name: own}))
    with pytest.raises(ParameterError, match=f"compressor has {name}={own!r}, but the clusterer decides"):
        model.fit(X)
    agreed = clusterer(compressor=Compressor(**{name: own}), **({} if name == "verbose" else {name: own}))
    if name != "verbose":
        np.testing.assert_array_equal(agreed.fit(X).labels_, clusterer(**{name: own}).fit(X).labels_)


def test_no_compressor_is_the_one_with_its_defaults():
    np.testing.assert_array_equal(clusterer().fit(X).labels_, clusterer(compressor=Compressor()).fit(X).labels_)


def test_a_compressor_with_leaves_of_a_size_is_refused_since_the_clusterer_has_a_number():
    with pytest.raises(ParameterError, match="n_signatures=None"):
        clusterer(compressor=Compressor(None, leaf_size=5)).fit(X)


# The paper's settings


def test_the_paper_is_what_it_says():
    model = RPFCluster.paper(3, n_partitions=2, divide="sampling", bandwidth=0.05, n_signatures=50, random_state=0)
    compressor, similarity = model.compressor, model.similarity
    assert (compressor.n_partitions, compressor.divide) == (2, "sampling")
    assert (compressor.cut, compressor.sharpen, compressor.populate) == ("median", 0, "leaf")
    assert compressor.sample_size is None
    assert (similarity.n_trees, similarity.leaf_size, similarity.cut) == (800, 30, "median")
    assert (similarity.bandwidth, model.assign, model.weighted) == (0.05, "ncut", False)
    assert (model.scale, model.metric, model.n_signatures, model.random_state) == (None, "euclidean", 50, 0)
    by_hand = RPFCluster(
        3,
        n_signatures=50,
        similarity=RPF(800, 30, "median", 0.05),
        assign="ncut",
        compressor=Compressor(
            n_partitions=2, divide="sampling", cut="median", sharpen=0, populate="leaf", sample_size=None
        ),
        random_state=0,
    )
    np.testing.assert_array_equal(model.fit(X).labels_, by_hand.fit(X).labels_)
    assert type(model) is RPFCluster


def test_rasp_compresses_as_the_paper_does_with_one_tree():
    rasp = RASP(3, n_signatures=50, random_state=0).fit(X)
    paper = RPFCluster.paper(3, n_signatures=50, random_state=0).fit(X)
    np.testing.assert_array_equal(rasp.signatures_.points, paper.signatures_.points)


def test_leaf_size_is_the_number_of_rows_below_which_the_paper_does_not_divide():
    model = RPFCluster.paper(3, n_signatures=None, leaf_size=20, random_state=0).fit(X)
    assert 10 <= model.signatures_.weights.min() <= model.signatures_.weights.max() < 20
    for wrong in ({"leaf_size": 20}, {"n_signatures": None}, {"compressor": Compressor(None, leaf_size=20)}):
        with pytest.raises(ParameterError, match="n_signatures"):
            RPFCluster(3, **wrong).fit(X)


def test_several_directions_grow_another_forest():
    one, two = (RPFKernel(50, n_candidates=n, random_state=0).fit(X).similarity_ for n in (1, 2))
    assert not np.array_equal(one, two)


def test_clusters_are_numbered_by_their_rows_heaviest_first():
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(c, 0.3, size=(n, 2)) for c, n in ((0, 100), (10, 500), (20, 300))])
    for model in (clusterer(), clusterer(similarity="gaussian"), RASP(3, n_signatures=50, random_state=0)):
        sizes = np.bincount(model.fit(rows).labels_)
        assert (np.diff(sizes) <= 0).all()
