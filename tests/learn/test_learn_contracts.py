"""DC2 among scikit-learn's estimators: which methods it has, which weights are routed, and what is refused."""

from typing import Any

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.cluster import (
    AgglomerativeClustering,
    FeatureAgglomeration,
    KMeans,
    SpectralClustering,
)
from sklearn.decomposition import KernelPCA
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.manifold import SpectralEmbedding
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity, LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelPropagation, LabelSpreading
from sklearn.svm import SVC, SVR

from dc2 import DC2, Compressor
from dc2.errors import ParameterError
from dc2.learn.targets import Kind, kind_of
from support.learn_data import CRESCENT, MOONS, small

# -- scikit-learn's contracts -------------------------------------------------------------------------------------


def test_methods_are_there_if_the_estimator_makes_them_possible() -> None:
    assert is_classifier(DC2(SVC()))
    assert is_regressor(DC2(SVR()))
    assert hasattr(DC2(SVC()), "decision_function")
    assert not hasattr(DC2(SVC()), "transform")
    assert not hasattr(DC2(SVC()), "set_output")
    assert not hasattr(DC2(SVC()), "fit_predict")
    assert not hasattr(DC2(KernelRidge()), "predict_proba")
    assert not hasattr(DC2(AgglomerativeClustering()), "score")
    assert not hasattr(DC2(KernelPCA()), "predict")
    assert hasattr(DC2(AgglomerativeClustering()), "predict")
    assert hasattr(DC2(SpectralEmbedding()), "transform")
    with pytest.raises(NotFittedError):
        DC2(SVC()).predict(MOONS)


def test_parameters_of_estimator_and_compressor_can_be_searched() -> None:
    search = GridSearchCV(
        DC2(SVC(), compressor=small()),
        {"estimator__C": [1.0, 10.0], "compressor__n_signatures": [20, 60]},
        cv=2,
    ).fit(MOONS, CRESCENT)
    assert search.best_score_ > 0.97
    assert set(search.best_params_) == {"estimator__C", "compressor__n_signatures"}
    assert make_pipeline(StandardScaler(), search.best_estimator_).fit(MOONS, CRESCENT).score(MOONS, CRESCENT) > 0.97


def test_weights_are_routed_as_requested() -> None:
    weights = np.ones(len(MOONS))
    with config_context(enable_metadata_routing=True):
        with pytest.raises(UnsetMetadataPassedError):
            DC2(SVC(), compressor=small()).fit(MOONS, CRESCENT, sample_weight=weights)
        for asked in (True, False):
            estimator = SVC().set_fit_request(sample_weight=asked).set_score_request(sample_weight=True)
            model = DC2(estimator, compressor=small()).set_fit_request(sample_weight=True)
            model.fit(MOONS, CRESCENT, sample_weight=weights)
            assert model.weights_used_ is asked
            assert model.fit(MOONS, CRESCENT).weights_used_ is asked
            search = GridSearchCV(model, {"estimator__C": [1.0, 2.0]}, cv=2)
            search.fit(MOONS, CRESCENT, sample_weight=weights)
            assert search.best_estimator_.weights_used_ is asked
        assert DC2(SVC(), compressor=small()).fit(MOONS, CRESCENT).weights_used_
        chain = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False), SVC().set_fit_request(sample_weight=True)
        )
        assert DC2(chain, compressor=small()).fit(MOONS, CRESCENT).weights_used_
        scored = model.score(MOONS, CRESCENT, sample_weight=(CRESCENT == 0).astype(float))
        assert scored == np.mean(model.predict(MOONS[CRESCENT == 0]) == 0)
    assert not DC2(make_pipeline(StandardScaler(), SVC()), compressor=small()).fit(MOONS, CRESCENT).weights_used_


# -- what is refused ----------------------------------------------------------------------------------------------


class NoFit(BaseEstimator):
    """Has parameters and nothing else."""


class FitOnly(BaseEstimator):
    def fit(self, X: Any, y: Any = None) -> Any:
        return self


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (SVC, r"estimator=SVC.*SVC\(\)"),
        (NoFit(), r"estimator=NoFit.* no fit method"),
        (FitOnly(), r"FitOnly.*predict, decision_function, score_samples or transform"),
        (FeatureAgglomeration(), r"FeatureAgglomeration.*2 labels for 1000 signatures"),
        (LocalOutlierFactor(), r"LocalOutlierFactor\(novelty=True\)"),
        (SVC(kernel="precomputed"), r"estimator=SVC.*precomputed matrix"),
        (SpectralClustering(affinity="precomputed"), r"SpectralClustering.*precomputed matrix"),
    ],
)
def test_an_estimator_that_cannot_learn_from_signatures_is_refused(estimator: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        DC2(estimator).fit(MOONS, CRESCENT)


@pytest.mark.parametrize(
    ("parameters", "fit", "message"),
    [
        ({"compressor": KMeans()}, (MOONS, CRESCENT), r"compressor=KMeans.*dc2.Compressor"),
        ({"min_per_class": 0}, (MOONS, CRESCENT), r"min_per_class .* at least 1; got 0"),
        ({"compressor": Compressor(1)}, (MOONS, CRESCENT), r"n_signatures=1.* 2 classes"),
        ({"compressor": Compressor(scale="robust")}, (MOONS, CRESCENT), r"make_pipeline\(StandardScaler\(\)"),
        ({}, (MOONS,), r"requires y to be passed, but the target y is None"),
        ({}, (MOONS, CRESCENT[:-1]), r"y has 2999 values but X has 3000 rows"),
        ({}, (MOONS, np.eye(2, dtype=int)[CRESCENT]), r"MultiOutputClassifier\(DC2\(SVC"),
        ({}, (MOONS, MOONS[:, 0]), r"continuous"),
    ],
)
def test_impossible_input_is_refused_with_what_would_do(
    parameters: dict[str, Any], fit: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        DC2(SVC(), **parameters).fit(*fit)


def test_kinds_are_distinguished() -> None:
    kinds = {
        SVC(): Kind.CLASSIFIER,
        SVR(): Kind.REGRESSOR,
        KMeans(): Kind.CLUSTERER,
        KernelPCA(): Kind.TRANSFORMER,
        SpectralEmbedding(): Kind.TRANSFORMER,
        LabelSpreading(): Kind.SEMI_SUPERVISED,
        make_pipeline(StandardScaler(), LabelSpreading()): Kind.SEMI_SUPERVISED,
        GridSearchCV(make_pipeline(StandardScaler(), LabelPropagation()), {}): Kind.SEMI_SUPERVISED,
        make_pipeline(StandardScaler(), SVC()): Kind.CLASSIFIER,
        KernelDensity(): Kind.DETECTOR,
    }
    assert {estimator: kind_of(estimator) for estimator in kinds} == kinds
