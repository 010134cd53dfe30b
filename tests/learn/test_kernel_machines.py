"""Laws of the kernel machines: what they equal, whatever the rows come in, and what they learn."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification, make_friedman1
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import QuantileRegressor, Ridge
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import dc2
from dc2 import DC2, Compressor, KernelClassifier, KernelRegressor, SignatureNystroem
from dc2.errors import InputError, InputTypeError, ParameterError
from dc2.learn import kernel_fit
from dc2.learn.kernel_functions import RADIAL, KernelShape, gradient_sizes
from dc2.learn.kernel_solver import (
    ExactRidge,
    ProjectedRidge,
    conjugate_gradients,
    kernel_matrix,
    normal_sums,
    predicted,
    residual_sums,
)
from dc2.learn.targets import drawn_members, means_suffice

RNG = np.random.default_rng(0)
MANY, TARGETS = make_friedman1(6_000, noise=0.5, random_state=0)
NEW = make_friedman1(200, random_state=1)[0]
QUICK: dict[str, Any] = {"kernel": "matern52", "metric": "scaled", "n_centres": 200, "n_jobs": 1, "random_state": 0}
"""Settings whose search takes a moment; with 6,000 rows there are held-out rows, centres and four parts."""


@parametrize_with_checks([KernelRegressor(n_jobs=1, random_state=0), KernelClassifier(n_jobs=1, random_state=0)])
def test_scikit_learn_checks_pass(estimator: Any, check: Any) -> None:
    check(estimator)


# -- the solution ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ridge", [1e-3, 1.0])
def test_with_all_rows_as_centres_it_is_kernel_ridge_regression(ridge: float) -> None:
    X, y = MANY[:300], np.stack([TARGETS[:300], TARGETS[:300] ** 2], axis=1)
    model = KernelRegressor("gaussian", bandwidth=0.7, ridge=ridge, metric="plain", random_state=0).fit(X, y)
    reference = KernelRidge(alpha=ridge, kernel="rbf", gamma=1 / (2 * 0.7**2)).fit(X, y - y.mean(axis=0))
    np.testing.assert_allclose(model.predict(NEW), reference.predict(NEW) + y.mean(axis=0), rtol=1e-6)


@pytest.mark.parametrize("name", [*RADIAL, "rpf"])
def test_sums_over_rows_and_solving_for_the_rows_agree(name: str) -> None:
    X, Y, weights = MANY[:150], TARGETS[:150, None], RNG.uniform(0.1, 2, 150)
    shape = KernelShape(name, 0.5)
    at, K = shape.at(X), kernel_matrix(shape, X)
    for_rows = ExactRidge(K, Y, weights).coefficients(0.1)
    by_sums = ProjectedRidge(normal_sums(at, 150, X, Y, weights), K).coefficients(0.1)
    np.testing.assert_allclose(predicted(at, by_sums, NEW), predicted(at, for_rows, NEW), rtol=1e-5)


def test_sums_of_blocks_are_the_sums_of_the_whole() -> None:
    at = KernelShape("matern32", 1.0).at(MANY[:40])
    whole = normal_sums(at, 40, MANY, TARGETS[:, None])
    cuts = [0, 1, 700, 2048, 5000, 6000]
    blocks = [normal_sums(at, 40, MANY[a:b], TARGETS[a:b, None], start=a) for a, b in itertools.pairwise(cuts)]
    total = sum(blocks)
    np.testing.assert_allclose(total[:, :40], whole[:, :40], rtol=1e-12)
    np.testing.assert_allclose(total[:, 40:], whole[:, 40:], rtol=1e-11)


def test_weights_are_repeats() -> None:
    at, times = KernelShape("laplacian", 1.0).at(MANY[:40]), RNG.integers(0, 4, 500)
    weighted = normal_sums(at, 40, MANY[:500], TARGETS[:500, None], times.astype(float))
    repeated = normal_sums(at, 40, np.repeat(MANY[:500], times, axis=0), np.repeat(TARGETS[:500], times)[:, None])
    np.testing.assert_allclose(weighted[:, :40], repeated[:, :40], rtol=1e-12)
    np.testing.assert_allclose(weighted[:, 40:], repeated[:, 40:], rtol=1e-11)


@pytest.mark.parametrize("repeats", [1, 3])
def test_a_fit_with_weights_is_the_fit_with_repeats(repeats: int) -> None:
    X, y, times = MANY[:120], TARGETS[:120], RNG.integers(1, 4, 120) * repeats
    order = RNG.permutation(int(times.sum()))
    model = KernelRegressor("matern32", random_state=0)
    weighted = clone(model).fit(X, y, sample_weight=times)
    repeated = clone(model).fit(np.repeat(X, times, axis=0)[order], np.repeat(y, times)[order])
    assert weighted.search_path_[-1].ridge == repeated.search_path_[-1].ridge
    np.testing.assert_allclose(weighted.predict(NEW), repeated.predict(NEW), rtol=1e-7)


def test_weights_of_many_rows_are_repeats() -> None:
    X, y, times = MANY[:3_000], TARGETS[:3_000], RNG.integers(0, 3, 3_000)
    weighted = KernelRegressor(**QUICK).fit(X, y, sample_weight=times)
    repeated = KernelRegressor(**QUICK).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.n_parts_ == repeated.n_parts_
    np.testing.assert_allclose(weighted.predict(NEW), repeated.predict(NEW), rtol=1e-7)


@pytest.mark.parametrize("name", RADIAL)
def test_gradients_are_those_of_differences(name: str) -> None:
    shape, centres, step = KernelShape(name, 0.8), MANY[:30], 1e-6
    coefficients = RNG.normal(size=(30, 1))
    at, along = shape.at(centres), []
    for column in range(centres.shape[1]):
        moved = np.zeros(centres.shape[1])
        moved[column] = step
        difference = predicted(at, coefficients, NEW + moved) - predicted(at, coefficients, NEW - moved)
        along.append(np.sqrt(np.mean((difference / (2 * step)) ** 2)))
    np.testing.assert_allclose(gradient_sizes(shape, centres, coefficients, NEW), along, rtol=1e-5)


def test_steps_along_a_preconditioner_reach_the_solution_of_the_sums() -> None:
    shape, Y = KernelShape("matern32", 1.0), np.stack([TARGETS, TARGETS**2], axis=1)
    at, K = shape.at(MANY[:60]), kernel_matrix(shape, MANY[:60])
    exact = ProjectedRidge(normal_sums(at, 60, MANY, Y), K).coefficients(0.1)
    solved = ProjectedRidge(normal_sums(at, 60, MANY[:600], Y[:600]), K).solver(0.1, times=10)
    begin = np.zeros((60, 2))
    found, rest, step = conjugate_gradients(
        begin, residual_sums(at, begin, MANY, Y), solved,
        lambda a: residual_sums(at, a, MANY, None) + 0.1 * K @ a, 0.0, 40,
    )  # fmt: skip
    np.testing.assert_allclose(predicted(at, found, NEW), predicted(at, exact, NEW), rtol=1e-6)
    assert np.abs(step * solved(rest)).max() < 1e-6 * np.abs(found).max()


def test_iterations_predict_as_the_sums_of_all_rows_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_fit, "FEWEST_SAMPLED", 1_500)
    monkeypatch.setattr(kernel_fit, "SAMPLE_BYTES", 1)
    X, y, weights = MANY.astype(np.float32), np.stack([TARGETS, -TARGETS], axis=1), RNG.integers(1, 3, len(MANY))
    settings = QUICK | {"n_centres": 100, "n_parts": 1, "ridge": 0.01}
    by_steps = KernelRegressor(**settings).fit(X, y, sample_weight=weights)
    threaded = KernelRegressor(**settings | {"n_jobs": 2}).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(threaded.predict(NEW), by_steps.predict(NEW))
    monkeypatch.setattr(kernel_fit, "WORTH_ITERATING", np.inf)
    by_sums = KernelRegressor(**settings).fit(X, y, sample_weight=weights).predict(NEW)
    wrong = by_sums[:, 0] - make_friedman1(200, random_state=1)[1]
    assert np.linalg.norm(by_steps.predict(NEW)[:, 0] - by_sums[:, 0]) < 0.05 * np.linalg.norm(wrong)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("exponent", [-100, 100])
def test_the_size_of_numbers_does_not_matter(dtype: Any, exponent: int) -> None:
    X, y, size = MANY[:200].astype(dtype), TARGETS[:200], 2.0**exponent
    model = KernelRegressor("matern52", metric="plain", random_state=0, n_jobs=1).fit(X, y)
    scaled = clone(model).fit((X * size).astype(dtype), y * size**5, sample_weight=np.full(200, 1e-9))
    assert scaled.ridge_ == pytest.approx(1e-9 * model.ridge_)
    assert scaled.bandwidth_ == pytest.approx(model.bandwidth_ * size, rel=1e-5)
    predictions = scaled.predict((NEW * size).astype(dtype)) / size**5
    np.testing.assert_allclose(predictions, model.predict(NEW.astype(dtype)), rtol=1e-4)


def test_held_out_rows_of_the_search_are_a_random_part_of_them() -> None:
    """Rows in the order of their classes would leave a class out."""
    y = np.repeat([0, 1], [6_000, 9_000])
    X = np.c_[y + RNG.normal(size=len(y)), np.arange(len(y))]
    searched = KernelClassifier("matern32", metric="scaled", n_centres=50, n_parts=1, random_state=0).fit(X, y)
    errors = {trial.stage: trial.error for trial in searched.search_path_}
    assert errors["search"] == pytest.approx(errors["centres"], abs=0.02)


# -- the same, whatever the rows come in ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted() -> KernelRegressor:
    return KernelRegressor(**QUICK).fit(MANY, TARGETS)


def test_many_rows_have_centres_and_parts(fitted: KernelRegressor) -> None:
    assert fitted.n_centres_ == 200
    assert fitted.n_parts_ == 4
    assert {trial.stage for trial in fitted.search_path_} == {"search", "rows", "signatures", "centres", "parts"}


def test_threads_change_nothing(fitted: KernelRegressor) -> None:
    threaded = KernelRegressor(**QUICK | {"n_jobs": 2}).fit(MANY, TARGETS)
    np.testing.assert_array_equal(threaded.predict(NEW), fitted.predict(NEW))


def test_blocks_change_only_rounding(fitted: KernelRegressor) -> None:
    small = KernelRegressor(**QUICK, block_bytes=40_000).fit(lambda: iter([MANY[:999], MANY[999:]]), TARGETS)
    np.testing.assert_allclose(small.predict(NEW), fitted.predict(NEW), rtol=1e-6)


def test_files_are_as_good_as_arrays(fitted: KernelRegressor, tmp_path: Path) -> None:
    frame = pd.DataFrame(MANY).add_prefix("x").assign(target=TARGETS, id=np.arange(len(MANY)))
    for number in range(3):
        part = frame.iloc[2_000 * number : 2_000 * (number + 1)]
        part.drop(columns="id").to_parquet(tmp_path / f"rows{number}.parquet")
    model = KernelRegressor(**QUICK).fit(str(tmp_path / "rows*.parquet"), "target")
    frame.head(100).to_parquet(tmp_path / "new.parquet")
    assert model.feature_names_in_.tolist() == [f"x{number}" for number in range(10)]
    expected = fitted.predict(MANY[:100])
    np.testing.assert_allclose(np.concatenate(list(model.predict(tmp_path / "new.parquet"))), expected, rtol=1e-6)
    assert model.predict_to(tmp_path / "new.parquet", tmp_path / "out.parquet", id_columns="id") == 100
    written = pd.read_parquet(tmp_path / "out.parquet")
    assert written["id"].tolist() == list(range(100))
    np.testing.assert_allclose(written["prediction"], expected, rtol=1e-6)


def test_several_outputs_are_written_as_columns_and_progress_ends_with_all_rows(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int | None]] = []
    frame, several = pd.DataFrame(MANY).add_prefix("x"), np.stack([TARGETS, -TARGETS], axis=1)
    model = KernelRegressor(**QUICK, verbose=lambda *step: seen.append(step)).fit(frame, several)
    assert seen[-1][1:] == (6_000, 6_000)
    assert model.predict_to(frame.head(50), tmp_path / "out.csv") == 50
    written = pd.read_csv(tmp_path / "out.csv")
    np.testing.assert_allclose(written[["prediction0", "prediction1"]], model.predict(frame.head(50)))


def test_dask_gives_what_arrays_give(fitted: KernelRegressor) -> None:
    da = pytest.importorskip("dask.array")
    model = KernelRegressor(**QUICK).fit(da.from_array(MANY, chunks=(1_700, 10)), da.from_array(TARGETS, chunks=999))
    lazy = model.predict(da.from_array(NEW, chunks=(70, 10)))
    assert isinstance(lazy, da.Array)
    np.testing.assert_allclose(lazy.compute(), fitted.predict(NEW), rtol=1e-6)


@pytest.mark.parametrize("kind", ["dask", "blocks"])
def test_iterations_give_the_same_from_any_source(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(kernel_fit, "FEWEST_SAMPLED", 1_500)
    monkeypatch.setattr(kernel_fit, "SAMPLE_BYTES", 1)
    settings = QUICK | {"n_centres": 100, "n_parts": 1, "ridge": 0.01, "bandwidth": 2.0}
    expected = KernelRegressor(**settings).fit(MANY, TARGETS).predict(NEW)
    if kind == "dask":
        rows: Any = pytest.importorskip("dask.array").from_array(MANY, chunks=(1_700, 10))
    else:
        rows = lambda: iter([MANY[:999], MANY[999:]])  # noqa: E731
    np.testing.assert_allclose(KernelRegressor(**settings).fit(rows, TARGETS).predict(NEW), expected, rtol=1e-6)


def test_a_frame_may_name_its_target() -> None:
    frame = pd.DataFrame(MANY[:300]).add_prefix("x")
    by_name = KernelRegressor("gaussian", random_state=0).fit(frame.assign(y=TARGETS[:300]), "y")
    by_array = KernelRegressor("gaussian", random_state=0).fit(frame, TARGETS[:300])
    np.testing.assert_array_equal(by_name.predict(frame), by_array.predict(frame))


def test_a_table_with_words_is_prepared() -> None:
    town = RNG.choice(["Rome", "Oslo", "Lima"], 600)
    size = RNG.normal(size=600)
    rich = np.where((town == "Oslo") == (size > 0), "yes", "no")
    table = pd.DataFrame({"town": town, "size": size})
    with pytest.warns(dc2.errors.PreparationNote):
        model = KernelClassifier("gaussian", random_state=0).fit(table[:400], rich[:400])
    assert model.score(table[400:], rich[400:]) > 0.9
    with pytest.raises(InputTypeError, match="not numeric"):
        KernelClassifier(prepare=None).fit(table, rich)


@pytest.mark.parametrize("parts", [1, "auto"])
def test_saved_and_loaded_it_predicts_the_same(parts: Any, tmp_path: Path) -> None:
    classes = np.where(np.median(TARGETS) < TARGETS, "high", "low")
    model = KernelClassifier(**QUICK | {"n_parts": parts}).fit(MANY.astype(np.float32), classes)
    model.save(tmp_path / "model.dc2")
    again = dc2.load(tmp_path / "model.dc2")
    assert again.classes_.tolist() == ["high", "low"]
    np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))
    np.testing.assert_array_equal(again.predict_proba(NEW), model.predict_proba(NEW))
    assert again.search_path_ == model.search_path_


def test_the_forest_of_an_rpf_machine_is_grown_again_when_it_is_loaded(tmp_path: Path) -> None:
    model = KernelRegressor("rpf", random_state=0).fit(MANY[:400], TARGETS[:400])
    model.save(tmp_path / "model.dc2")
    np.testing.assert_array_equal(dc2.load(tmp_path / "model.dc2").predict(NEW), model.predict(NEW))
    assert model.score(MANY[400:800], TARGETS[400:800]) > 0.5


# -- what it learns -------------------------------------------------------------------------------------------------


def test_parts_are_kept_only_where_held_out_rows_are_better_for_them(fitted: KernelRegressor) -> None:
    centres = min(trial.loss for trial in fitted.search_path_ if trial.stage == "centres")
    parts = [trial.loss for trial in fitted.search_path_ if trial.stage == "parts"]
    assert (fitted.n_parts_ > 1) == (parts[-1] < 0.995 * centres)


def test_columns_that_matter_not_are_found() -> None:
    model = KernelRegressor(random_state=0).fit(MANY[:1500], TARGETS[:1500])  # columns 5 to 9 are noise
    assert model.column_importances_.sum() == pytest.approx(1.0)
    assert model.column_importances_[:5].min() > 2 * model.column_importances_[5:].max()
    assert model.metric_ == "learned"


def test_units_of_columns_do_not_matter_if_they_are_scaled() -> None:
    X, units = MANY[:400], 2.0 ** RNG.integers(-20, 20, 10)
    model = KernelRegressor("gaussian", metric="scaled", random_state=0)
    plain, scaled = (clone(model).fit(X * by, TARGETS[:400]).predict(NEW * by) for by in (np.ones(10), units))
    np.testing.assert_allclose(scaled, plain, rtol=1e-6)


def test_probabilities_are_calibrated_on_rows_that_were_not_learned() -> None:
    X, y = make_classification(6_000, 8, n_informative=4, flip_y=0.4, random_state=0)
    model = KernelClassifier("gaussian", n_jobs=1, random_state=0).fit(X[:3_000], y[:3_000])
    sure = model.predict_proba(X[3_000:]).max(axis=1)
    right = model.predict(X[3_000:]) == y[3_000:]
    assert abs(sure.mean() - right.mean()) < 0.03
    assert np.array_equal(model.classes_[model.predict_proba(X).argmax(axis=1)], model.predict(X))


def test_probabilities_of_a_rare_class_have_its_share() -> None:
    X = RNG.normal(size=(1_000, 2))
    y = (RNG.random(1_000) < 0.1 / (1 + np.exp(-3 * X[:, 0]))).astype(int)
    model = KernelClassifier("gaussian", metric="plain", bandwidth=3.0, random_state=0, n_jobs=1).fit(X, y)
    shares = model.predict_proba(RNG.normal(size=(2_000, 2)))[:, 1]
    assert shares.mean() == pytest.approx(y.mean(), rel=0.3)


# -- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {"kernel": "cubic"},
        {"bandwidth": 0},
        {"ridge": -1.0},
        {"n_centres": 0},
        {"n_parts": 1.5},
        {"metric": "cosine"},
        {"kernel": "rpf", "metric": "learned"},
    ],
)
def test_impossible_parameters_are_refused_before_any_work(parameters: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        KernelRegressor(**parameters).fit(MANY[:10], TARGETS[:10])


def test_targets_must_match_rows() -> None:
    with pytest.raises(InputError, match="give one each"):
        KernelRegressor().fit(MANY[:10], TARGETS[:9])
    with pytest.raises(InputError, match="names a column"):
        KernelRegressor().fit(MANY[:10], "target")
    for wrong in (np.array(["a", "b"] * 5), np.full(10, np.inf), np.ones((10, 2, 2))):
        with pytest.raises(InputError) as caught:
            KernelRegressor().fit(MANY[:10], wrong)
        assert caught.value.parameter == "y"
    with pytest.raises(InputError, match="requires y"):
        KernelRegressor().fit(MANY[:10])


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_missing_classes_are_refused(missing: Any) -> None:
    classes = np.where(TARGETS[:50] > 14, "high", "low").astype(object)
    classes[7] = missing
    with pytest.raises(InputError) as caught:
        KernelClassifier().fit(pd.DataFrame(MANY[:50]).add_prefix("x").assign(kind=classes), "kind")
    assert caught.value.parameter == "y"
    with pytest.raises(InputError):
        KernelClassifier().fit(MANY[:50], classes)
    with pytest.raises(InputError):
        KernelClassifier().fit(MANY[:50], np.stack([TARGETS[:50] > 14, TARGETS[:50] > 9], axis=1).astype(int))


def test_constant_targets_and_rows_have_an_answer() -> None:
    assert np.allclose(KernelRegressor(**QUICK).fit(MANY[:4_000], np.full(4_000, 2.0)).predict(NEW), 2.0)
    assert np.allclose(KernelRegressor().fit(np.ones((50, 2)), TARGETS[:50]).predict([[1.0, 1.0]]), TARGETS[:50].mean())
    assert KernelClassifier().fit(MANY[:50], np.ones(50)).predict_proba(NEW).min() == 1.0


# -- kernel features and DC2 ----------------------------------------------------------------------------------------


def test_features_of_the_rpf_kernel_have_its_inner_products_at_the_landmarks() -> None:
    features = SignatureNystroem("rpf", n_components=60, random_state=0).fit(MANY[:1000])
    Z = features.transform(features.components_)
    forest = features._record.learned.forest
    np.testing.assert_allclose(Z @ Z.T, forest(features.components_), atol=1e-8)
    np.testing.assert_allclose(features.transform(MANY[:9]), features.transform(MANY[:20])[:9])


def noisy(n: int = 8_000) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(1).uniform(-3, 3, (n, 2))
    return X, X[:, 0] + np.sin(X[:, 1]) + 0.5 * np.random.default_rng(2).normal(size=n)


@pytest.mark.parametrize("quantile", [0.1, 0.9])
@pytest.mark.parametrize("weighted", [True, False])
def test_a_quantile_of_the_targets_is_that_of_all_rows(quantile: float, weighted: bool) -> None:
    X, y = noisy()
    model = DC2(QuantileRegressor(quantile=quantile, alpha=0), compressor=Compressor(800), random_state=0)
    times = RNG.integers(1, 5, len(X)) if weighted else None
    covered = np.average(y <= model.fit(X, y, sample_weight=times).predict(X), weights=times)
    assert abs(covered - quantile) < 0.035  # three standard errors of 800 rows


def test_a_gaussian_process_sees_the_noise() -> None:
    X, y = noisy()
    process = GaussianProcessRegressor(RBF() + WhiteKernel(), normalize_y=True)
    model = DC2(process, compressor=Compressor(250), random_state=0).fit(X, y)
    _, deviation = model.predict(X[:500], return_std=True)
    assert abs(deviation.mean() - 0.5) < 0.1
    assert not model.weights_used_


def test_estimators_of_the_mean_learn_from_means() -> None:
    X, y = noisy()
    model = DC2(make_pipeline(StandardScaler(), Ridge()), compressor=Compressor(100), random_state=0).fit(X, y)
    assert model.signature_target_.std() < y.std()
    assert not means_suffice(make_pipeline(StandardScaler(), QuantileRegressor()))
    assert means_suffice(GradientBoostingRegressor())
    assert not means_suffice(GradientBoostingRegressor(loss="absolute_error"))


def test_rows_may_have_several_labels() -> None:
    X, y = noisy()
    labels = np.stack([X[:, 0] > 0, X[:, 1] > 1, y > 2], axis=1).astype(int)
    model = DC2(KNeighborsClassifier(1), compressor=Compressor(1000), random_state=0).fit(X, labels)
    assert model.predict(X).shape == labels.shape
    assert (model.predict(X) == labels).mean() > 0.9
    with pytest.raises(InputError, match="MultiOutputClassifier"):
        DC2(SVC()).fit(X, labels)


@pytest.mark.parametrize("takes_weights", [True, False])
def test_rows_are_drawn_in_proportion_to_their_weight(takes_weights: bool) -> None:
    ids = np.repeat([0, 1, 2], [1, 3, 96])
    weights = np.where(np.arange(100) % 2 == 0, 3.0, 1.0)
    weights[99] = 0.0
    drawn = np.zeros(100)
    for seed in range(2_000):
        indices, represented = drawn_members(ids, weights, 3, takes_weights, np.random.default_rng(seed))
        assert represented.sum() == pytest.approx(weights.sum())
        np.add.at(drawn, indices, represented)
    assert drawn[99] == 0
    share = drawn / drawn.sum()
    heavy, light = share[4::2].sum(), share[5::2].sum()
    assert heavy / light == pytest.approx(weights[4::2].sum() / weights[5::2].sum(), rel=0.1)


# -- the learned metric ---------------------------------------------------------------------------------------------


def loud_noise(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows with three clusters in two quiet columns beside six columns of loud noise, and their clusters."""
    rng = np.random.default_rng(n)
    cluster = rng.integers(0, 3, n)
    quiet = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.5]])[cluster] + rng.normal(scale=0.1, size=(n, 2))
    return np.hstack([quiet, rng.normal(scale=5, size=(n, 6))]), cluster


def test_clusters_in_the_learned_metric_follow_the_columns_that_explain_the_target() -> None:
    X, cluster = loud_noise(3_000)
    target = np.where(cluster == 2, 1.0, X[:, 1]) + 0.1 * np.random.default_rng(0).normal(size=len(X))
    model = make_pipeline(
        KernelRegressor("gaussian", metric="learned", random_state=0), dc2.DC2Clustering(3, random_state=0)
    )
    found = model.fit(X, target)[-1].labels_
    plain = dc2.DC2Clustering(3, random_state=0).fit(X).labels_
    assert adjusted_rand_score(cluster, plain) < 0.3
    assert adjusted_rand_score(cluster, found) > 0.9
    np.testing.assert_array_equal(model.predict(X[:50]), found[:50])


def test_rows_in_the_metric_come_in_the_form_of_the_source(fitted: KernelRegressor, tmp_path: Path) -> None:
    expected = (NEW - fitted._record.machine.metric.shift) * fitted.column_scale_
    np.testing.assert_allclose(fitted.transform(NEW), expected)
    pd.DataFrame(NEW).add_prefix("x").to_parquet(tmp_path / "new.parquet")
    np.testing.assert_allclose(np.concatenate(list(fitted.transform(tmp_path / "new.parquet"))), expected)
