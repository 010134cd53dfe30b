"""The best clusters of each row and their shares: in memory, in blocks and in files."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dc2 import DC2Clustering, as_source
from dc2.cli import main
from dc2.cluster.inspection import best_clusters
from dc2.errors import ParameterError

rng = np.random.default_rng(0)
X = np.concatenate([rng.normal(size=(80, 2)) + at for at in ([0, 0], [4, 0], [0, 4], [4, 4])])


@pytest.fixture(scope="module", params=[{}, {"noise": 0.1, "min_cluster_share": 0.01}], ids=["all", "noise"])
def model(request):
    return DC2Clustering(4, random_state=0, **request.param).fit(X)


@pytest.mark.parametrize("top", [1, 3, 5])
def test_the_best_are_the_largest_shares_and_add_up_to_one_with_the_rest(model, top):
    shares, best = model.predict_proba(X), model.predict_proba(X, top=top)
    assert best["share"].sum(axis=1) + best["rest"] == pytest.approx(1.0)
    largest = np.zeros((len(X), top))
    largest[:, : min(top, 4)] = -np.sort(-shares, axis=1)[:, :top]
    np.testing.assert_allclose(best["share"], largest, atol=1e-12)
    there = best["share"] > 0
    rows = np.broadcast_to(np.arange(len(X))[:, None], there.shape)
    np.testing.assert_allclose(shares[rows[there], best["cluster"][there]], best["share"][there], atol=1e-12)
    assert (best["cluster"][~there] == -1).all()


@given(st.data())
def test_a_cluster_is_named_once(data):
    width, top = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 5))
    labels = np.array([data.draw(st.lists(st.integers(-1, 3), min_size=width, max_size=width))])
    shares = np.array([data.draw(st.lists(st.floats(0.01, 1), min_size=width, max_size=width))])
    shares /= shares.sum()
    (best,) = best_clusters(labels, shares, top)
    named = best["cluster"][best["cluster"] >= 0]
    assert len(set(named.tolist())) == len(named) == min(top, len(set(labels[labels >= 0].tolist())))
    assert (np.diff(best["share"]) <= 0).all()
    assert best["share"].sum() + best["rest"] == pytest.approx(1.0)


def test_blocks_give_the_same(model):
    blocks = list(model.set_params(block_bytes=512).predict_proba(as_source(lambda: iter([X[:100], X[100:]])), top=2))
    assert len(blocks) > 1
    np.testing.assert_array_equal(np.concatenate(blocks), model.predict_proba(X, top=2))


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_files_have_the_labels_and_the_same_shares(tmp_path, suffix, model):
    counted = []
    target = tmp_path / f"labels{suffix}"
    assert model.predict_to(X, target, top=2, seen=lambda labels: counted.append(len(labels))) == len(X) == sum(counted)
    frame = pd.read_parquet(target) if suffix == ".parquet" else pd.read_csv(target)
    assert list(frame) == ["label", "cluster_1", "share_1", "cluster_2", "share_2", "share_rest"]
    best = model.predict_proba(X, top=2)
    assert np.array_equal(frame["label"], model.predict(X))
    assert np.array_equal(frame[["cluster_1", "cluster_2"]], best["cluster"])
    np.testing.assert_allclose(frame[["share_1", "share_2"]], best["share"])


def test_the_command_line_writes_them(tmp_path):
    pd.DataFrame(X, columns=["a", "b"]).to_parquet(tmp_path / "X.parquet")
    DC2Clustering(4, random_state=0).fit(tmp_path / "X.parquet").save(tmp_path / "model.dc2")
    arguments = [str(tmp_path / name) for name in ("model.dc2", "X.parquet", "labels.parquet")]
    with pytest.raises(SystemExit, match="0"):
        main(["predict", *arguments[:2], "-o", arguments[2], "--top", "1"])
    assert "share_rest" in pd.read_parquet(arguments[2])


@pytest.mark.parametrize("top", [0, 6, 2.0])
def test_other_numbers_are_refused(model, top, tmp_path):
    with pytest.raises(ParameterError, match="top"):
        model.predict_proba(X, top=top)
    with pytest.raises(ParameterError, match="top"):
        model.predict_to(X, tmp_path / "labels.npy", top=1)
    assert not list(tmp_path.iterdir())
