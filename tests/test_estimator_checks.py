"""scikit-learn's own checks, on every estimator in every way it works.

To add an estimator, put it into ESTIMATORS, small enough to fit a handful of rows. A check that must fail goes into
EXPECTED_FAILURES with the reason; the aim is that none is our own.
"""

from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks

from dc2 import KASP, RASP, Compressor, DC2Clustering, GaussianKernel, RPFCluster, RPFKernel
from dc2.kernels import RPF, Gaussian

ESTIMATORS: list[Any] = [
    Compressor(n_signatures=20, random_state=0),
    Compressor(n_signatures=20, populate="leaf", random_state=0),
    Compressor(n_signatures=8, n_partitions=3, random_state=0),
    Compressor(n_signatures=20, signature="member", scale="standard", random_state=0),
    Compressor(n_signatures=None, leaf_size=5, sample_size=None, cut="median", sharpen=0, random_state=0),
    RPFCluster(n_clusters=3, similarity=RPF(n_trees=50), n_signatures=20, random_state=0),
    RPFCluster(n_clusters=3, similarity=Gaussian(), n_signatures=20, random_state=0),
    DC2Clustering(random_state=0),
    DC2Clustering(n_clusters=3, n_signatures=20, random_state=0),
    DC2Clustering(noise=0.1, random_state=0),
    RASP(n_clusters=3, n_signatures=20, random_state=0),
    KASP(n_clusters=3, n_signatures=20, random_state=0),
    RPFKernel(n_trees=20, random_state=0),
    GaussianKernel(),
]

IS_NO_CLASSIFIER = (
    "takes every estimator with predict_proba for a classifier, with a column for each of four classes"
)
SPARSE_CHECKS = dict.fromkeys(
    ("check_estimator_sparse_array", "check_estimator_sparse_matrix"), IS_NO_CLASSIFIER
)

EXPECTED_FAILURES: dict[str, dict[str, str]] = dict.fromkeys(
    ("DC2Clustering", "RPFCluster", "RASP", "KASP"), SPARSE_CHECKS
)


def expected_failures(estimator: Any) -> dict[str, str]:
    """The checks that a class cannot pass, and why."""
    return EXPECTED_FAILURES.get(type(estimator).__name__, {})


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_finds_nothing_wrong(estimator, check):
    check(estimator)
