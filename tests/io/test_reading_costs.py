"""Laws of what reading a model costs: never the square of its signatures, and under a gigabyte for 100,000 of them."""

import json
import subprocess
import sys

import numpy as np
import pytest

from dc2 import DC2Clustering
from dc2.compress import Signatures
from dc2.graph import communities as stability
from dc2.report import layout
from dc2.report import profiles as quality
from dc2.report.cluster_statistics import MOST_DRAWN

GIGABYTE = 2**30

PROGRAM = """
import json, sys
from pathlib import Path
import matplotlib
matplotlib.use("Agg")
import dc2
from dc2.cli.describe import model_facts
from dc2.report import ClusterProfileDisplay, SignatureMapDisplay

def most_memory():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024

file = Path(sys.argv[1])
most = {}
model = dc2.load(file)
for name, read in {
    "plots": lambda: (SignatureMapDisplay.from_estimator(model), ClusterProfileDisplay.from_estimator(model)),
    "map": model.map,
    "save": lambda: model.save(file.with_name("again.dc2")),
    "summary": model.summary,
    "report": lambda: model.report(file.with_suffix(".html")),
    "info": lambda: model_facts(file),
}.items():
    read()
    most[name] = most_memory()
print(json.dumps(most))
"""


def signatures(n: int, d: int = 5) -> Signatures:
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=6, size=(20, d))
    points = (rng.normal(size=(n, d)) + centres[rng.integers(20, size=n)]).astype(np.float32)
    return Signatures(points, rng.integers(1, 30, n).astype(float), np.ones(n))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells of the most memory a process has held")
def test_a_model_of_100_000_signatures_is_read_within_a_gigabyte(tmp_path):
    """A square of signatures would take 40 GB in float32."""
    file = tmp_path / "model.dc2"
    DC2Clustering(20, random_state=0).fit_signatures(signatures(100_000)).save(file)
    told = subprocess.run([sys.executable, "-c", PROGRAM, str(file)], check=True, stdout=subprocess.PIPE, text=True)
    most = json.loads(told.stdout)
    assert all(memory < GIGABYTE for memory in most.values()), most
    assert file.with_suffix(".html").stat().st_size < 2_000_000


def test_signatures_are_compared_in_pairs_among_two_thousand_only(monkeypatch, tmp_path):
    """What costs the square is given so many, however many the model holds."""
    compared = []

    def noting(function, place):
        def noted(*given, **options):
            compared.append(len(given[place]))
            return function(*given, **options)

        return noted

    model = DC2Clustering(5, random_state=0).fit_signatures(signatures(MOST_DRAWN + 500))
    kind = type(model.similarity_)
    monkeypatch.setattr(kind, "strength", noting(kind.strength, 1))
    monkeypatch.setattr(kind, "apart", noting(kind.apart, 1))
    monkeypatch.setattr(quality, "pairwise_distances", noting(quality.pairwise_distances, 1))
    monkeypatch.setattr(layout.TSNE, "fit_transform", noting(layout.TSNE.fit_transform, 1))
    model.report(tmp_path / "report.html")
    assert len(compared) >= 4
    assert max(compared) <= MOST_DRAWN


def test_resampled_graphs_are_held_at_once_only_while_they_are_small(monkeypatch):
    model = DC2Clustering(5, random_state=0).fit_signatures(signatures(400))
    threads = []
    pool = stability.ThreadPoolExecutor
    monkeypatch.setattr(stability, "ThreadPoolExecutor", lambda n: threads.append(n) or pool(n))
    few = model.set_params(n_jobs=4).stability_
    assert threads == [4]
    monkeypatch.setattr(stability, "EDGES_AT_ONCE", 2 * len(model.similarity_.graph.indices))
    again = DC2Clustering(5, random_state=0, n_jobs=4).fit_signatures(signatures(400))
    np.testing.assert_array_equal(again.stability_, few)
    assert threads[-1] == 2
