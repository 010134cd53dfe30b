"""A sweep over bandwidths scores what fits at these bandwidths would score."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_blobs, make_moons

from dc2 import clustering_accuracy
from dc2.metrics import contingency_table
from dc2.spectral import Gaussian
from evaluation.fitted import fit
from evaluation.methods import gaussian_similarity, paper_rival, paper_rpf
from evaluation.scores import count_classes, score, score_signatures
from evaluation.sets import DataSet
from evaluation.settings import Settings
from evaluation.sweep import SweepPoint, oracles, sweep, sweep_fit

SMALL = Settings(
    runs=1, n_signatures=60, n_trees=40, forest_leaf_size=8, betas=(10.0, 20.0, 40.0, 80.0),
    sigmas=(0.1, 0.5, 1.0, 5.0, 50.0), max_rows=1500, n_jobs=1,
)  # fmt: skip


def moons(n: int = 1500) -> DataSet:
    X, y = make_moons(n, noise=0.06, random_state=0)
    return DataSet("poker", "regenerated", X.astype(np.float32), y)


def test_a_sweep_keeps_the_order_of_its_bandwidths_and_does_not_depend_on_the_number_of_processes() -> None:
    points, y = make_blobs(520, centers=3, n_features=4, random_state=0)
    counts = count_classes(y, np.arange(len(y)), len(y))
    bandwidths = [0.5, 40.0, 3.0]
    alone = sweep(partial(gaussian_similarity, points), bandwidths, 3, counts, n_jobs=1)
    together = sweep(partial(gaussian_similarity, points), bandwidths, 3, counts, n_jobs=2)
    assert [point.bandwidth for point in alone] == bandwidths
    assert alone == together
    assert alone[1].scores["accuracy"] == 1.0


@given(st.data())
def test_scoring_signatures_equals_scoring_every_row(data: st.DataObject) -> None:
    n, n_signatures = data.draw(st.integers(5, 60)), data.draw(st.integers(2, 8))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    y, ids = rng.integers(0, 3, n), rng.integers(0, n_signatures, n)
    labels = rng.integers(0, 4, n_signatures)
    by_signatures = score_signatures(count_classes(y, ids, n_signatures), labels)
    assert by_signatures == pytest.approx(score(contingency_table(y, labels[ids])))


@pytest.mark.parametrize("name", ["RASP", "KASP", "rpf"])
def test_the_sweep_at_the_bandwidth_of_a_fit_scores_what_the_fit_scores(name: str) -> None:
    data = moons()
    model = paper_rpf(data, 0, SMALL, n_partitions=2) if name == "rpf" else paper_rival(name, data, 0, SMALL)
    fitted = fit(model if name == "rpf" else model.set_params(similarity=Gaussian(0.5)), data)
    bandwidth = 0.05 if name == "rpf" else 0.5
    swept = {point.bandwidth: point.scores for point in sweep_fit(fitted, data, SMALL)}
    assert swept[bandwidth] == pytest.approx({k: v for k, v in fitted.scores(data).items() if k != "floor"})
    assert fitted.scores(data)["accuracy"] == pytest.approx(clustering_accuracy(data.y, fitted.model.labels_))


def test_the_oracle_takes_the_best_accuracy_and_of_equal_ones_the_first() -> None:
    points = [SweepPoint(b, False, {"accuracy": a}) for b, a in ((1.0, 0.4), (2.0, 0.9), (3.0, 0.9))]
    assert oracles(points)["oracle"].bandwidth == 2.0


def test_simulated_data_get_no_scores() -> None:
    data = moons()
    simulated = DataSet("gas_sensor", "simulated", data.X, data.y)
    fitted = fit(paper_rpf(simulated, 0, SMALL, n_partitions=1), simulated)
    assert fitted.scores(simulated) == {}
    assert simulated.floor is None
