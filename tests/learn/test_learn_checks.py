"""scikit-learn's own checks, for every kind of estimator that DC2 takes, and for the kernel features."""

from typing import Any

import pytest
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.decomposition import KernelPCA
from sklearn.kernel_ridge import KernelRidge
from sklearn.manifold import SpectralEmbedding
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC, SVR, OneClassSVM
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from dc2 import DC2, Compressor, RPFFeatures, SignatureNystroem


def on_signatures(estimator: Any, n_signatures: int = 1000) -> DC2:
    return DC2(estimator, compressor=Compressor(n_signatures, n_jobs=1), random_state=0)


OF_EVERY_KIND = [
    on_signatures(AgglomerativeClustering(n_clusters=3)),
    on_signatures(KMeans(n_clusters=3, n_init=1, random_state=0), 30),
    on_signatures(SVC()),
    on_signatures(SVC(break_ties=True), 60),
    on_signatures(KernelRidge()),
    on_signatures(SVR(C=10.0), 60),
    on_signatures(KernelPCA(n_components=2, kernel="rbf")),
    on_signatures(SpectralEmbedding(n_components=2, affinity="rbf", random_state=0)),
    on_signatures(LabelSpreading(gamma=0.5)),
    on_signatures(OneClassSVM()),
    SignatureNystroem(n_components=20, n_jobs=1, random_state=0),
    RPFFeatures(n_trees=5, n_points=50, n_jobs=1, random_state=0),
]


def expected_failures(estimator: Any) -> dict[str, str]:
    if isinstance(estimator, DC2) and isinstance(estimator.estimator, LabelSpreading):
        return {"check_classifiers_classes": "uses -1 as a class, from which scikit-learn exempts such by name"}
    return {}


@parametrize_with_checks(OF_EVERY_KIND, expected_failed_checks=expected_failures)
def test_scikit_learn_checks_pass(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("estimator", OF_EVERY_KIND[:2])
@pytest.mark.parametrize("check", ["check_clustering", "check_clusterer_compute_labels_predict"])
def test_checks_of_clusterers_pass(estimator: DC2, check: str) -> None:
    getattr(estimator_checks, check)("DC2", estimator)


def test_a_semi_supervised_classifier_passes_the_check_it_is_exempt_from_under_its_own_name() -> None:
    estimator_checks.check_classifiers_classes("LabelSpreading", on_signatures(LabelSpreading(gamma=0.5)))
