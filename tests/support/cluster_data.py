"""Rows with shapes, and every clusterer with small parameters, for the tests of clusterers."""

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score

from dc2 import KASP, RASP, Compressor, RPFCluster
from dc2.spectral import RPF

SMALL = {"n_signatures": 100, "similarity": RPF(n_trees=100), "random_state": 0}
RIVAL = {"n_signatures": 30, "random_state": 0}


def moons(n_rows: int = 5000, noise: float = 0.05, seed: int = 0) -> tuple[NDArray, NDArray]:
    return make_moons(n_rows, noise=noise, random_state=seed)


def blobs(n_rows: int = 2000, n_features: int = 2) -> tuple[NDArray, NDArray]:
    centres = 10.0 * np.eye(3, n_features)
    return make_blobs(n_rows, centers=centres, cluster_std=0.8, random_state=0)


def same_partition(a: NDArray, b: NDArray) -> bool:
    return bool(adjusted_rand_score(a, b) == 1.0)


def clusterers() -> list:
    return [
        pytest.param(RPFCluster(3, **SMALL), id="RPFCluster"),
        pytest.param(RPFCluster(3, similarity="gaussian", **RIVAL), id="RPFCluster-gaussian"),
        pytest.param(
            RPFCluster(3, compressor=Compressor(populate="leaf"), assign="ncut", **SMALL),
            id="RPFCluster-ncut",
        ),
        pytest.param(
            RPFCluster(3, compressor=Compressor(n_partitions=3), weighted=True, **SMALL),
            id="RPFCluster-partitions",
        ),
        pytest.param(KASP(3, assign="kmeans", **RIVAL), id="KASP"),
        pytest.param(RASP(3, **RIVAL), id="RASP"),
    ]


every_clusterer = pytest.mark.parametrize("model", clusterers())
