"""ClusterStatistics: a number that is shown in several places is the same everywhere."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import dc2
from dc2 import KASP, RASP, Compressor, DC2Clustering, RPFCluster, Signatures
from dc2.cli import main
from dc2.report import ClusterStatistics, write_report
from dc2.report.cluster_statistics import variance_kept
from dc2.report.page import percent
from dc2.spectral import RPF
from support.cluster_data import blobs

X, _ = blobs(600, 3)


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """What a command prints as JSON."""
    with pytest.raises(SystemExit) as stop:
        main([*arguments, "--json"])
    assert not stop.value.code
    facts: dict[str, Any] = json.loads(capsys.readouterr().out)
    return facts


@pytest.mark.parametrize("n_signatures", [1, 2, 40, 1000])
def test_the_variance_kept_is_one_number_wherever_it_is_told(n_signatures, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(X, columns=["a", "b", "c"]).to_parquet("rows.parquet")
    number = ("--signatures", str(n_signatures), "--scale", "none")
    files = ("--model", "model.dc2", "--report", "report.html")
    fitted = told(capsys, "cluster", "rows.parquet", "-k", str(min(n_signatures, 3)), *number, *files)
    model = dc2.load("model.dc2")
    kept = ClusterStatistics.of(model).variance_kept
    assert variance_kept(model.signatures_) == kept
    assert fitted["variance_kept"] == kept
    assert told(capsys, "info", "model.dc2")["variance_kept"] == kept
    compressed = told(capsys, "compress", "rows.parquet", *number, "-o", "s.parquet", "--model", "compressor.dc2")
    assert compressed["variance_kept"] == variance_kept(dc2.load("compressor.dc2").signatures_)
    assert percent(kept) in Path("report.html").read_text(encoding="utf-8")
    assert kept == pytest.approx(1 - model.distortion_ / X.var(axis=0).sum(), abs=1e-6)
    if n_signatures == 1:
        assert kept == 0.0
    if n_signatures == 1000:
        assert kept == 1.0


@given(
    arrays(np.float64, st.tuples(st.integers(1, 8), st.integers(1, 3)), elements=st.floats(-1e6, 1e6)),
    st.integers(0, 2**31),
)
def test_the_variance_kept_is_a_share_and_all_where_nothing_is_lost(points, seed):
    rng = np.random.default_rng(seed)
    weights, spread = rng.integers(0, 5, len(points)).astype(float), rng.random(len(points))
    assert 0.0 <= variance_kept(Signatures(points, weights, spread)) <= 1.0
    assert variance_kept(Signatures(points, weights, np.zeros(len(points)))) == 1.0


@pytest.mark.parametrize(
    "model",
    [
        RPFCluster(3, n_signatures=40, similarity=RPF(30), random_state=0),
        RPFCluster(3, n_signatures=40, similarity="gaussian", scale="standard", random_state=0),
        RPFCluster(1, n_signatures=1, random_state=0),
        DC2Clustering(3, n_signatures=40, random_state=0),
        DC2Clustering(random_state=0),
        RASP(3, n_signatures=40, random_state=0),
        KASP(3, n_signatures=40, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_facts_of_every_clusterer_fit_together(model, tmp_path):
    facts = ClusterStatistics.of(model.fit(X))
    np.testing.assert_array_equal(facts.sizes, np.bincount(model.labels_))
    assert facts.shares.sum() == pytest.approx(1.0)
    assert (facts.n_rows, facts.unit) == (len(X), "rows")
    shown = len(facts.compared)
    assert facts.strength.shape == (shown, shown)
    assert facts.layouts[0].xy.shape == (shown, 2)
    assert (facts.radii >= 0).all()
    assert (facts.silhouette is None) == (model.n_clusters_ == 1)
    assert facts.similarity_text == model.similarity_.describe()
    write_report(model, tmp_path / "report.html")
    assert facts.similarity_text.neighbours in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_facts_of_signatures_from_elsewhere_count_the_rows_they_stand_for():
    signatures = Compressor(40, random_state=0).fit(X).signatures_
    facts = ClusterStatistics.of(RPFCluster(3, similarity=RPF(30), random_state=0).fit_signatures(signatures))
    assert facts.n_rows == len(X)
    assert not facts.each_row_is_a_signature


def test_a_fact_is_computed_once():
    facts = ClusterStatistics.of(RPFCluster(3, n_signatures=40, similarity=RPF(30), random_state=0).fit(X))
    for name in ("compared", "profile", "strength", "layouts", "silhouette", "radii"):
        assert getattr(facts, name) is getattr(facts, name)
