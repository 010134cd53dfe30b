"""Laws of DC2: what signatures carry, and how rows get their answers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import is_classifier, is_clusterer
from sklearn.cluster import (
    DBSCAN,
    HDBSCAN,
    AffinityPropagation,
    AgglomerativeClustering,
    KMeans,
    SpectralClustering,
)
from sklearn.datasets import make_blobs
from sklearn.decomposition import KernelPCA
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression
from sklearn.manifold import Isomap, SpectralEmbedding
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import KernelDensity, NeighborhoodComponentsAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelPropagation, LabelSpreading
from sklearn.svm import SVC, SVR, OneClassSVM

from dc2 import DC2, Compressor
from dc2.errors import InputError, InputTypeError
from dc2.learn.targets import class_quotas
from support.learn_data import CRESCENT, MOONS, small, waves

# -- clusterers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "clusterer",
    [
        AgglomerativeClustering(2, linkage="single"),
        SpectralClustering(2, gamma=30.0, random_state=0),
        HDBSCAN(min_cluster_size=10, copy=True),
        DBSCAN(eps=0.15),
    ],
)
def test_any_clusterer_labels_all_rows_through_their_signatures(clusterer: Any) -> None:
    model = DC2(clusterer, compressor=small(200)).fit(MOONS)
    assert adjusted_rand_score(CRESCENT, model.labels_) > 0.95
    assert np.array_equal(model.labels_, model.predict(MOONS))
    assert np.array_equal(model.labels_, model.fit_predict(MOONS))
    assert is_clusterer(model)


def test_new_rows_get_the_cluster_of_their_signature_where_the_estimator_cannot_predict() -> None:
    X, _ = make_blobs(2_000, centers=[[0, 0], [10, 0], [0, 10]], random_state=0)
    model = DC2(AffinityPropagation(preference=-500, random_state=0), compressor=small(60)).fit(X[:1_000])
    new = model.predict(X[1_000:])
    assert np.array_equal(new, model.signature_labels_[model.compressors_[0].apply(X[1_000:])])
    assert len(np.unique(new)) == 3


def test_rows_of_a_file_are_clustered_block_by_block(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", MOONS)
    path = str(tmp_path / "rows.npy")
    cluster = AgglomerativeClustering(2, linkage="single")
    from_file = DC2(cluster, compressor=small(200, block_bytes=4_096)).fit(path)
    in_memory = DC2(cluster, compressor=small(200)).fit(MOONS)
    labels = np.concatenate(list(from_file.predict(path)))
    assert adjusted_rand_score(labels, in_memory.labels_) == 1.0
    with pytest.raises(AttributeError, match="rows in memory"):
        _ = from_file.labels_


def test_leaf_counts_are_weights_where_the_estimator_takes_them_and_weights_used_says_so() -> None:
    for clusterer, takes in [(KMeans(2, n_init=1), True), (AgglomerativeClustering(2), False)]:
        assert DC2(clusterer, compressor=small()).fit(MOONS).weights_used_ is takes

    class Recorder(KMeans):
        def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
            self.seen_ = sample_weight
            return super().fit(X, y, sample_weight)

    model = DC2(Recorder(2, n_init=1), compressor=small()).fit(MOONS)
    assert np.array_equal(model.estimator_.seen_, model.signatures_.weights)
    assert model.signatures_.weights.sum() == len(MOONS)


# -- regressors ---------------------------------------------------------------------------------------------------


def test_the_target_of_a_signature_is_the_mean_of_its_rows() -> None:
    X, y = waves(2_000)
    weights = np.random.default_rng(1).integers(0, 4, len(y)).astype(float)
    model = DC2(KernelRidge(), compressor=small()).fit(X, y, sample_weight=weights)
    ids = model.compressors_[0].labels_
    for number in (0, 17, 99):
        own = ids == number
        assert np.isclose(model.signature_target_[number], np.average(y[own], weights=weights[own]))
        assert np.isclose(model.signatures_.weights[number], weights[own].sum())


def test_a_kernel_machine_on_signatures_is_about_as_good_as_on_all_rows() -> None:
    X, y = waves(1_000)
    X_new, y_new = waves(500, seed=1)
    full = KernelRidge(kernel="rbf", gamma=0.5, alpha=0.1)
    score = DC2(full, compressor=small(300)).fit(X, y).score(X_new, y_new)
    assert score > full.fit(X, y).score(X_new, y_new) - 0.02


def test_several_targets_are_averaged_each_by_itself() -> None:
    X, y = waves(1_000)
    both = DC2(KernelRidge(kernel="rbf"), compressor=small()).fit(X, np.column_stack([y, -2 * y]))
    one = DC2(KernelRidge(kernel="rbf"), compressor=small()).fit(X, y)
    assert np.allclose(both.predict(X[:9]), np.outer(one.predict(X[:9]), [1, -2]))


def test_keyword_arguments_reach_the_estimator() -> None:
    X, y = waves(500)
    model = DC2(GaussianProcessRegressor(alpha=0.01), compressor=small(50)).fit(X, y)
    mean, deviation = model.predict(X[:7], return_std=True)
    assert np.allclose(mean, model.predict(X[:7]))
    assert deviation.shape == (7,)
    assert not model.weights_used_


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.sampled_from(["leaf", "nearest"]))
def test_no_row_is_lost_between_targets_and_weights(seed: int, populate: Any) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 200))
    X, y = rng.normal(size=(n, 2)).round(1), rng.normal(size=n)
    compressor = Compressor(int(rng.integers(1, 40)), populate=populate, n_jobs=1, random_state=seed)
    model = DC2(LinearRegression(), compressor=compressor).fit(X, y)
    assert model.signatures_.weights.sum() == n
    assert np.isclose((model.signatures_.weights * model.signature_target_).sum(), y.sum())


# -- classifiers --------------------------------------------------------------------------------------------------


def test_classes_are_compressed_apart_in_proportion_with_a_minimum_each() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(["common", "rare", "rarest"], [1_940, 50, 10])
    X = rng.normal(size=(2_000, 2)) + (y == "rare")[:, None]
    model = DC2(SVC(), compressor=small(100)).fit(X, y)
    classes, counts = np.unique(model.signature_target_, return_counts=True)
    assert dict(zip(classes, counts, strict=True)) == {"common": 80, "rare": 10, "rarest": 10}
    for name in classes:
        own = model.signature_target_ == name
        assert model.signatures_.weights[own].sum() == (y == name).sum()
    assert model.weights_used_
    assert model.classes_.tolist() == classes.tolist()


@given(st.lists(st.integers(1, 100_000), min_size=1, max_size=20), st.integers(0, 1_000), st.integers(1, 30))
def test_quotas_use_up_the_signatures_and_keep_the_minimum(rows: list[int], extra: int, at_least: int) -> None:
    total = len(rows) + extra
    quotas = class_quotas(total, np.array(rows, float), at_least)
    assert sum(quotas) == total
    for quota, n in zip(quotas, rows, strict=True):
        assert quota >= max(1, min(at_least, total // len(rows), n))


def test_with_a_signature_per_row_dc2_is_the_estimator_itself() -> None:
    X, y = MOONS[:300], CRESCENT[:300]
    for estimator in (SVC(gamma=2.0, tol=1e-8), SVR(gamma=2.0, tol=1e-8), KernelRidge(kernel="rbf")):
        method = "decision_function" if is_classifier(estimator) else "predict"
        ours = getattr(DC2(estimator, compressor=small(1_000)).fit(X, y), method)(X)
        assert np.allclose(ours, getattr(estimator.fit(X, y), method)(X), atol=1e-5)


def test_answers_do_not_depend_on_the_size_of_blocks() -> None:
    whole = DC2(SVC(), compressor=small()).fit(MOONS, CRESCENT)
    pieces = DC2(SVC(), compressor=small(block_bytes=50_000)).fit(MOONS, CRESCENT)
    assert np.allclose(whole.decision_function(MOONS), pieces.decision_function(MOONS))
    assert whole.score(MOONS, CRESCENT) == np.mean(whole.predict(MOONS) == CRESCENT) > 0.98


def test_a_class_without_weight_is_as_if_it_were_not_there() -> None:
    y = np.where(MOONS[:, 0] > 1.5, 2, CRESCENT)
    weights = (y != 2).astype(float)
    model = DC2(SVC(), compressor=small()).fit(MOONS, y, sample_weight=weights)
    assert model.classes_.tolist() == [0, 1]
    assert model.signatures_.weights.sum() == weights.sum()


def test_rows_of_a_file_are_classified_with_targets_from_memory(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", MOONS)
    path = str(tmp_path / "rows.npy")
    from_file = DC2(SVC(), compressor=small(block_bytes=4_096)).fit(path, CRESCENT)
    in_memory = DC2(SVC(), compressor=small()).fit(MOONS, CRESCENT)
    assert np.array_equal(from_file.signatures_.points, in_memory.signatures_.points)
    assert np.array_equal(np.concatenate(list(from_file.predict(path))), in_memory.predict(MOONS))
    regression = DC2(KernelRidge(), compressor=small()).fit(path, MOONS[:, 0])
    assert np.allclose(
        regression.signature_target_,
        DC2(KernelRidge(), compressor=small()).fit(MOONS, MOONS[:, 0]).signature_target_,
    )
    with pytest.raises(InputTypeError, match="rows in memory"):
        from_file.score(path, CRESCENT)
    with pytest.raises(InputTypeError, match="rows in memory"):
        regression.predict(path, nonsense=True)


# -- semi-supervised ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "estimator",
    [
        LabelSpreading(gamma=30),
        LabelPropagation(gamma=30),
        make_pipeline(StandardScaler(), LabelSpreading(gamma=20)),
        make_pipeline(StandardScaler(), LabelPropagation(gamma=20)),
    ],
)
def test_few_labels_spread_over_all_rows(estimator: Any) -> None:
    y = np.full(len(MOONS), -1)
    y[:20] = CRESCENT[:20]
    model = DC2(estimator, compressor=small(300)).fit(MOONS, y)
    assert model.score(MOONS, CRESCENT) > 0.97
    labelled = model.signature_target_ != -1
    assert labelled.sum() == 20  # few enough to be kept as they are
    assert model.signatures_.weights[labelled].sum() == 20
    assert model.signatures_.weights.sum() == len(MOONS)
    assert model.classes_.tolist() == [0, 1]


def test_many_labels_are_compressed_within_their_class() -> None:
    y = np.where(np.arange(len(MOONS)) % 2, -1, CRESCENT)
    model = DC2(LabelSpreading(gamma=30), compressor=small(100)).fit(MOONS, y)
    assert (model.signature_target_ == -1).sum() == 50
    assert model.score(MOONS, CRESCENT) > 0.97


@pytest.mark.parametrize("estimator", [LabelSpreading(), make_pipeline(StandardScaler(), LabelSpreading())])
def test_rows_without_any_label_are_refused(estimator: Any) -> None:
    with pytest.raises(InputError, match=r"all 3000 rows are unlabelled"):
        DC2(estimator).fit(MOONS, np.full(len(MOONS), -1))


def test_minus_one_is_a_class_like_any_other_to_other_classifiers() -> None:
    model = DC2(SVC(), compressor=small()).fit(MOONS, 2 * CRESCENT - 1)
    assert model.classes_.tolist() == [-1, 1]


# -- transformers and the rest ------------------------------------------------------------------------------------


def test_rows_are_transformed_by_the_estimator_or_through_their_signature() -> None:
    X = MOONS[:1_000]
    by_itself = DC2(KernelPCA(2, kernel="rbf", gamma=2), compressor=small()).fit(X)
    assert np.allclose(by_itself.transform(X), by_itself.estimator_.transform(X))
    through = DC2(SpectralEmbedding(2, affinity="rbf", random_state=0), compressor=small()).fit(X)
    embedding = through.transform(X)
    assert np.array_equal(embedding, through.estimator_.embedding_[through.compressors_[0].labels_])
    assert np.array_equal(embedding, through.fit_transform(X))


def test_transformers_name_their_columns_and_make_frames() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(waves(200)[0], columns=["a", "b"], index=np.arange(200) + 5)
    for estimator, prefix in [
        (Isomap(n_components=2), "isomap"),
        (SpectralEmbedding(2), "spectralembedding"),
    ]:
        model = DC2(estimator, compressor=small()).set_output(transform="pandas").fit(frame)
        out = model.transform(frame)
        assert list(out.columns) == [f"{prefix}0", f"{prefix}1"]
        assert (out.index == frame.index).all()
        assert model.feature_names_in_.tolist() == ["a", "b"]


def test_a_transformer_that_needs_classes_gets_them() -> None:
    model = DC2(NeighborhoodComponentsAnalysis(1, random_state=0), compressor=small()).fit(MOONS, CRESCENT)
    assert set(model.signature_target_) == {0, 1}
    assert model.transform(MOONS).shape == (3_000, 1)


def test_estimators_without_a_target_delegate_too() -> None:
    outliers = DC2(OneClassSVM(nu=0.1), compressor=small()).fit(MOONS)
    assert outliers.predict([[0.0, 1.0], [50.0, 50.0]]).tolist()[1] == -1
    assert outliers.weights_used_
    density = DC2(KernelDensity(bandwidth=0.2), compressor=small()).fit(MOONS)
    assert density.score_samples([[0.0, 1.0]])[0] > density.score_samples([[9.0, 9.0]])[0]
    assert np.isclose(density.score(MOONS[:50]), density.score_samples(MOONS[:50]).sum())


def test_what_the_compressor_scales_the_estimator_sees_scaled() -> None:
    X, y = waves(1_000)
    stretched = X * [1_000.0, 1.0] + [5.0, 0.0]
    model = KernelRidge(kernel="rbf", gamma=1.0)
    scaled = DC2(model, compressor=small(scale="standard")).fit(stretched, y)
    plain = DC2(model, compressor=small()).fit(stretched, y)
    assert scaled.score(stretched, y) > 0.9 > plain.score(stretched, y)
