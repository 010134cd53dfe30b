"""The map of rows: deterministic, for as many rows as asked, each where its signatures are."""

import numpy as np
import pandas as pd
import pytest

import dc2
from dc2 import KASP, DC2Clustering, RPFCluster
from dc2.errors import ParameterError
from dc2.spectral import RPF

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 5))[RNG.integers(0, 3, 900)] * 8 + RNG.normal(size=(900, 5))


@pytest.mark.parametrize(
    "model",
    [
        DC2Clustering(random_state=0),
        DC2Clustering(n_signatures=80, scale="standard", random_state=0),
        RPFCluster(3, n_signatures=80, similarity=RPF(50), random_state=0),
        KASP(3, n_signatures=80, random_state=0),
    ],
    ids=["rows", "compressed", "rpf", "kasp"],
)
def test_every_row_has_a_place_a_label_and_layers(model):
    model.fit(X)
    placed = model.map(X)
    assert placed["row"].tolist() == list(range(len(X)))
    np.testing.assert_array_equal(placed["label"], model.labels_)
    assert np.isfinite(placed[["x", "y"]].to_numpy()).all()
    if hasattr(model, "layers_"):
        for layer in range(len(model.layers_)):
            np.testing.assert_array_equal(placed[f"layer_{layer}"], model.labels_of_layer(layer))
    # Clusters that are far apart lie apart.
    xy = placed[["x", "y"]].to_numpy()
    middles = np.array([xy[model.labels_ == k].mean(axis=0) for k in range(model.n_clusters_)])
    nearest = ((xy[:, None] - middles) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == model.labels_).mean() > 0.9


def test_scores_come_along_where_rows_are_scored():
    model = DC2Clustering(random_state=0).fit(X)
    np.testing.assert_array_equal(model.map(X)["score"], model.outlier_scores_)


def test_as_many_rows_are_placed_as_asked_and_always_the_same(tmp_path):
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame.to_parquet(tmp_path / "rows.parquet")
    model = DC2Clustering(random_state=0, n_jobs=1).fit(frame)
    few = model.map(frame, n_rows=50)
    assert len(few) == 50
    pd.testing.assert_frame_equal(few, model.map(frame, n_rows=50))
    pd.testing.assert_frame_equal(few, model.map(tmp_path / "rows.parquet", n_rows=50))
    more = DC2Clustering(random_state=0, n_jobs=3, block_bytes=4000).fit(frame)
    pd.testing.assert_frame_equal(few, more.map(frame, n_rows=50))
    whole = model.map(frame)
    pd.testing.assert_frame_equal(few, whole.loc[few["row"]].reset_index(drop=True))
    with pytest.raises(ParameterError, match="n_rows"):
        model.map(frame, n_rows=0)


def test_without_rows_the_model_draws_what_it_holds(tmp_path):
    model = DC2Clustering(n_signatures=80, random_state=0).fit(X)
    assert len(model.map()) == 80
    model.save(tmp_path / "model.dc2")
    assert len(dc2.load(tmp_path / "model.dc2").map()) == 80


def test_two_columns_are_their_own_map():
    model = DC2Clustering(random_state=0).fit(X[:, :2])
    np.testing.assert_array_equal(model.map(X[:, :2])[["x", "y"]].to_numpy(), X[:, :2])
