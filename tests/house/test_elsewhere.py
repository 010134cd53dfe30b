"""The recipes of "Take the clusters elsewhere" run: with the library where it is small, with a stand-in where not."""

import os
import re
import subprocess
import sys
from abc import ABC, abstractmethod
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs

from dc2 import DC2Clustering

PAGE = Path(__file__).parents[2] / "docs" / "elsewhere.md"
RECIPES = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
OWN = [recipe for recipe in RECIPES if not recipe.startswith("# ")]
vectors, _ = make_blobs(600, 8, centers=4, cluster_std=0.3, random_state=0)


def recipe(library: str) -> str:
    """The recipe that begins with the name of a library."""
    (found,) = (text for text in RECIPES if text.startswith(f"# {library}\n"))
    return found


def run(code: str, **names: object) -> dict[str, object]:
    """The names after a recipe."""
    exec(compile(code, PAGE.name, "exec"), names := {"DC2Clustering": DC2Clustering, **names})
    return names


def test_recipes_of_dc2_alone() -> None:
    names = run("\n".join(OWN))
    assert names["best"]["cluster"].shape == (150, 2)
    told = re.findall(r"^\| \d \| (.*?) \| (\d\.\d+) \| (\d\.\d+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    rules = names["model"].explain()
    found = zip(rules["rule"], rules["precision"], rules["coverage"], strict=True)
    assert told == [(rule, f"{precision:.3f}", f"{coverage:.3f}") for rule, precision, coverage in found]


def test_neighbours_in_a_pipeline() -> None:
    far = np.concatenate([vectors, [vectors.max(axis=0) + 9.0]])
    assert run(recipe("RPNeighbors"), vectors=far)["is_outlier"][-1]


def test_a_vector_index() -> None:
    pytest.importorskip("hnswlib")
    names = run(recipe("hnswlib"), vectors=vectors)
    model, index, cluster, own = (names[name] for name in ("model", "index", "cluster", "own"))
    assert model.n_clusters_ == 4
    found, _ = index.knn_query(vectors[:1], k=5, filter=lambda number: cluster[number] == own)
    assert {cluster[number] for number in found[0].tolist()} == {own}


def test_toponymy_by_a_stand_in_for_its_clusterer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Toponymy needs a language model. The stand-in has the abstract methods of 0.5.4 and is called as it calls."""

    class Clusterer(ABC):
        @abstractmethod
        def fit(self, clusterable_vectors, embedding_vectors, layer_class, **layer_kwargs): ...

        @abstractmethod
        def fit_predict(self, clusterable_vectors, embedding_vectors, layer_class, **layer_kwargs): ...

    def centroids(labels, rows):
        return np.array([rows[labels == k].mean(axis=0) for k in range(labels.max() + 1)])

    def layer_class(labels, centroid_vectors, layer_id, verbose, show_progress_bar):
        return labels, centroid_vectors, layer_id

    module = ModuleType("toponymy.clustering")
    module.Clusterer, module.centroids_from_labels = Clusterer, centroids
    monkeypatch.setitem(sys.modules, "toponymy", ModuleType("toponymy"))
    monkeypatch.setitem(sys.modules, "toponymy.clustering", module)
    nested, _ = make_blobs(900, centers=[[i, j] for i in (0, 50) for j in (0, 5, 10)], cluster_std=0.3, random_state=0)
    clusterer = run(recipe("Toponymy"))["clusterer"]
    layers, tree = clusterer.fit_predict(nested, nested, layer_class, verbose=False, show_progress_bar=False)
    assert [number for _, _, number in layers] == list(range(len(layers)))
    assert all(len(centroid_vectors) == labels.max() + 1 for labels, centroid_vectors, _ in layers)
    assert len(layers) > 1
    children = [child for below in tree.values() for child in below]
    assert sorted(children) == [(n, k) for labels, _, n in layers for k in range(labels.max() + 1)]
    for (layer, parent), below in tree.items():
        if layer < len(layers):
            for lower, child in below:
                assert set(layers[layer][0][layers[lower][0] == child].tolist()) == {parent}


def test_datamapplot_by_a_stand_in_for_its_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """DataMapPlot has many dependencies. The stand-in takes places and layers of texts, as the function of 0.7.3."""
    given = []
    module = ModuleType("datamapplot")
    module.create_interactive_plot = lambda coordinates, *layers: given.append((coordinates, layers))
    monkeypatch.setitem(sys.modules, "datamapplot", module)
    model = run(recipe("DataMapPlot"), frame=pd.DataFrame(vectors))["model"]
    ((coordinates, layers),) = given
    assert coordinates.shape == (600, 2)
    assert [len(set(layer.tolist())) for layer in layers] == [int(of.max()) + 1 for of in model.layers_]
    assert all(isinstance(name, str) for layer in layers for name in layer[:5])


@pytest.mark.slow
def test_bertopic_finds_the_topics(tmp_path: Path) -> None:
    """BERTopic itself, without its heavy dependencies: embeddings are given, and HDBSCAN is only named."""
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(tmp_path / "lib"), "bertopic"]
    if subprocess.run(install, capture_output=True, check=False).returncode:
        pytest.skip("bertopic cannot be installed here")
    words = ["cats dogs pets", "stars planets moons", "bread butter cheese", "chess go poker"]
    code = f"""
import sys, types
sys.modules["hdbscan"] = types.ModuleType("hdbscan")
sys.modules["hdbscan"].HDBSCAN = type("HDBSCAN", (), {{}})
import numpy as np
from sklearn.datasets import make_blobs
from dc2 import DC2Clustering
embeddings, truth = make_blobs(400, 8, centers=4, cluster_std=0.3, random_state=0)
documents = [f"{{text}} number {{i % 9}}" for i, text in enumerate(np.array({words})[truth])]
{recipe("BERTopic")}
assert len(set(zip(found, truth.tolist()))) == 4 == len(set(found))
told = topics.get_topic(found[0])
assert told[0][0] in documents[0] or told[1][0] in documents[0]
again, _ = topics.transform(documents[:20], embeddings[:20])
assert list(again) == list(found[:20])
"""
    places = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(tmp_path / "lib")])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": places},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
