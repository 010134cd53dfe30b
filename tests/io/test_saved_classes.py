"""Laws of what a model file holds: classes register themselves, and what registered nests freely."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

import dc2
from dc2.errors import ModelFileError
from dc2.io.model_file import SaveMixin, saved_model, saved_record


@saved_model
class Recipe(BaseEstimator):
    def __init__(self, n_trees: int = 5, inner: Any = None) -> None:
        self.n_trees = n_trees
        self.inner = inner


@saved_record
@dataclass(frozen=True, eq=False)
class Graph:
    indptr: NDArray[Any]
    data: NDArray[Any]
    facts: dict[Any, Any]
    made_by: Recipe
    inner: Any = None

    def check(self) -> None:
        if self.indptr[-1] != len(self.data):
            raise ValueError("a row of the graph is missing")


@saved_model
class Model(SaveMixin, BaseEstimator):
    def __init__(self, compressor: Any = None, similarity: Any = None, clusters: Any = 2) -> None:
        self.compressor = compressor
        self.similarity = similarity
        self.clusters = clusters

    def fit(self, X: Any, y: Any = None) -> "Model":
        graph = Graph(np.array([0, 2]), np.array([0.5, 0.25]), {"a": np.arange(3), (1, "b"): None}, Recipe(7))
        self.graph_ = Graph(np.array([0]), np.array([]), {}, Recipe(8), (graph, None))
        self.recipe_ = self.similarity
        self.signatures_ = dc2.Signatures(np.zeros((1, 2)), np.ones(1), np.zeros(1))
        self.distortion_ = 0.0
        return self


def again(model: Any, folder: Path) -> Any:
    model.save(folder / "model.dc2")
    return dc2.load(folder / "model.dc2")


def test_parameters_that_are_estimators_come_back_with_theirs(tmp_path: Path) -> None:
    compressor = dc2.Compressor(30, cut="median", random_state=np.random.default_rng(0))
    model = Model(compressor, Recipe(9, Recipe(3)), range(2, 11)).fit([])
    loaded = again(model, tmp_path)
    assert loaded.compressor.get_params() == compressor.get_params() | {"random_state": None}
    assert loaded.similarity.inner.n_trees == 3
    assert loaded.clusters == range(2, 11)
    assert loaded.get_params().keys() == model.get_params().keys()
    assert type(loaded.recipe_) is Recipe


def test_records_nest_freely(tmp_path: Path) -> None:
    graph, nothing = again(Model().fit([]), tmp_path).graph_.inner
    assert nothing is None
    assert graph.data.tolist() == [0.5, 0.25]
    assert graph.facts["a"].tolist() == [0, 1, 2]
    assert graph.facts[1, "b"] is None
    assert graph.made_by.n_trees == 7


def test_an_estimator_that_has_learned_comes_back_learned(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(200, 2))
    model = Model(compressor=dc2.Compressor(20, random_state=0).fit(X)).fit([])
    np.testing.assert_array_equal(again(model, tmp_path).compressor.apply(X), model.compressor.apply(X))


def test_a_record_is_checked_by_its_own_law(tmp_path: Path) -> None:
    model = Model().fit([])
    model.graph_ = Graph(np.array([3]), np.array([]), {}, Recipe())
    with pytest.raises(ModelFileError, match="a row of the graph is missing"):
        again(model, tmp_path)


def test_one_name_means_one_class() -> None:
    class Other:
        pass

    Other.__name__ = "Compressor"
    with pytest.raises(TypeError, match="two classes by Compressor"):
        saved_model(Other)
    with pytest.raises(TypeError, match="not a dataclass"):
        saved_record(Other)
