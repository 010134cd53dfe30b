"""scikit-learn's own checks, on every estimator in every way it works.

To add an estimator, put it into ESTIMATORS, small enough to fit a handful of rows. A check that must fail goes into
EXPECTED_FAILURES with the reason; the aim is that none is our own.
"""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import check_estimator_sparse_array, parametrize_with_checks

import dc2
from dc2 import (
    DC2,
    KASP,
    RASP,
    Compressor,
    DC2Clustering,
    GaussianKernel,
    KernelClassifier,
    KernelRegressor,
    RPFCluster,
    RPFFeatures,
    RPFKernel,
    RPNeighbors,
    SignatureNystroem,
    TablePreparer,
)
from dc2.spectral import Gaussian


class InFrames(TablePreparer):
    """A TablePreparer that takes arrays too, as frames: scikit-learn's checks know no others."""

    def fit(self, X: Any, y: Any = None) -> Any:
        return super().fit(_framed(X))

    def transform(self, X: Any) -> Any:
        return super().transform(_framed(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        tags.input_tags.string = tags.input_tags.categorical = tags.no_validation = False
        return tags


def _framed(X: Any) -> Any:
    return X if hasattr(X, "columns") else pd.DataFrame(np.asarray(X)).add_prefix("x")


# Every public estimator with its defaults, then other ways to work; those of `dc2.learn` have tests of their own.
DEFAULTS: list[Any] = [
    Compressor(),
    DC2Clustering(),
    GaussianKernel(),
    InFrames(),
    KASP(),
    RASP(),
    RPFCluster(),
    RPFFeatures(),
    RPFKernel(),
    RPNeighbors(),
    SignatureNystroem(),
]
ESTIMATORS: list[Any] = [
    *DEFAULTS,
    Compressor(n_signatures=20, populate="leaf", random_state=0),
    Compressor(n_signatures=8, n_partitions=3, random_state=0),
    Compressor(n_signatures=20, signature="member", scale="standard", random_state=0),
    Compressor(n_signatures=None, leaf_size=5, sample_size=None, cut="median", sharpen=0, random_state=0),
    RPFCluster(n_clusters=3, similarity=Gaussian(), n_signatures=20, random_state=0),
    DC2Clustering(n_clusters=3, n_signatures=20, random_state=0),
    DC2Clustering(noise=0.1, random_state=0),
]
CHECKED_ELSEWHERE = (DC2, KernelClassifier, KernelRegressor)

IS_NO_CLASSIFIER = (
    "predict_proba gives a share for each cluster; the check wants four columns, as many as there are classes in y"
)
ANY_ORDER = {"check_dataframe_column_names_consistency": "columns are found by name, in any order"}
SPARSE_CHECKS = dict.fromkeys(("check_estimator_sparse_array", "check_estimator_sparse_matrix"), IS_NO_CLASSIFIER)
FIVE_ROWS = "the check fits five rows, fewer than 15 neighbours, and dc2 checks that before columns and values"

BY_NAME = "columns are found by name, and one that is not there is named"
FRAMES_ALONE = "pandas makes a frame of it before the preparer sees it"
EXPECTED_FAILURES: dict[str, dict[str, str]] = {
    **dict.fromkeys(("DC2Clustering", "RPFCluster", "RASP", "KASP"), SPARSE_CHECKS),
    "Compressor": {"check_fit_score_takes_y": "partial_fit after fit raises, since the rows of fit would be lost"},
    "RPNeighbors": dict.fromkeys(("check_n_features_in_after_fitting", "check_estimators_nan_inf"), FIVE_ROWS),
    "InFrames": {
        "check_n_features_in_after_fitting": BY_NAME,
        "check_fit2d_predict1d": BY_NAME,
        "check_dtype_object": "a column of dictionaries is refused in other words",
        "check_fit1d": FRAMES_ALONE,
        **dict.fromkeys(
            ("check_estimator_sparse_tag", "check_estimator_sparse_array", "check_estimator_sparse_matrix"),
            FRAMES_ALONE,
        ),
    },
}


def expected_failures(estimator: Any) -> dict[str, str]:
    """The checks that a class cannot pass, and why."""
    return ANY_ORDER | EXPECTED_FAILURES.get(type(estimator).__name__, {})


@pytest.mark.filterwarnings("ignore:n_clusters=8")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_finds_nothing_wrong(estimator, check):
    check(estimator)


def test_every_public_estimator_is_checked_with_its_defaults():
    public = {getattr(dc2, name) for name in dc2.__all__ if isinstance(getattr(dc2, name), type)}
    checked = {type(estimator) for estimator in DEFAULTS} | {TablePreparer, *CHECKED_ELSEWHERE}
    assert {found for found in public if issubclass(found, BaseEstimator)} <= checked


@pytest.mark.parametrize("clusterer", [DC2Clustering, RPFCluster, RASP])
def test_sparse_rows_pass_the_check_but_for_the_shape_of_shares(clusterer):
    without_shares = type("WithoutShares", (clusterer,), {"predict_proba": property()})
    check_estimator_sparse_array("WithoutShares", without_shares())
