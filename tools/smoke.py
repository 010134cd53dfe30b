"""A minute with an installed dc2: it fits, predicts, saves, loads, and runs on its native core."""

import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import make_moons

import dc2
from dc2 import core


def main() -> None:
    """Run everything once; an assertion that fails is the message."""
    X, y = make_moons(20_000, noise=0.05, random_state=0)
    model = dc2.DC2Clustering(random_state=0).fit(X)
    assert model.n_clusters_ == 2
    assert dc2.clustering_accuracy(y, model.labels_) > 0.99
    assert np.array_equal(model.predict(X), model.labels_)
    one_thread = dc2.DC2Clustering(random_state=0, n_jobs=1).fit(X.astype(np.float32))
    assert one_thread.n_clusters_ == 2
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "moons.dc2")
        assert np.array_equal(dc2.load(Path(folder) / "moons.dc2").predict(X), model.labels_)
    paper = dc2.RPFCluster(2, n_signatures=200, random_state=0).fit(X)
    assert dc2.clustering_accuracy(y, paper.labels_) > 0.95
    if os.environ.get("DC2_CORE") == "native":
        assert core.name == "native", core.reason
    print(json.dumps({"dc2": dc2.__version__, "core": core.name, "python": sys.version.split()[0]}))


if __name__ == "__main__":
    main()
