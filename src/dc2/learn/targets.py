"""Compression that carries a target along, for the estimator to learn from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier, is_clusterer, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils import assert_all_finite, check_array, column_or_1d, get_tags
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from dc2.compress.compressor import Compressor
from dc2.compress.divide import share_out
from dc2.compress.populate import in_one_array
from dc2.compress.signatures import Signatures
from dc2.engines.engine import DEFAULT_BLOCK_BYTES
from dc2.errors import InputError, ParameterError
from dc2.io.source import Source
from dc2.learn.metadata_routing import SelectedRows, check_length, weights_of
from dc2.random import seed_sequence

BY_MEANS = frozenset(
    (
        "ElasticNet", "ElasticNetCV", "KernelRidge", "KernelRegressor", "KNeighborsRegressor", "Lars", "LarsCV",
        "Lasso", "LassoCV", "LassoLars", "LassoLarsCV", "LinearRegression", "MLPRegressor",
        "OrthogonalMatchingPursuit", "PLSRegression", "RadiusNeighborsRegressor", "Ridge", "RidgeCV",
    )
)  # fmt: skip
"""Regressors with a squared error: equal rows with several targets are the same to them as one with the mean."""

MEAN_LOSSES = frozenset(("friedman_mse", "gamma", "poisson", "squared_error"))
"""Losses whose minimum depends on the mean of the targets alone, if rows are weighted."""
BY_LOSS = frozenset(
    (
        "DecisionTreeRegressor", "ExtraTreeRegressor", "ExtraTreesRegressor", "GammaRegressor",
        "GradientBoostingRegressor", "HistGradientBoostingRegressor", "PoissonRegressor", "RandomForestRegressor",
        "SGDRegressor", "TweedieRegressor",
    )
)  # fmt: skip

PREDICTIONS = ("predict", "decision_function", "score_samples")
"""Methods that give results for rows, of estimators that are neither clusterers nor transformers."""


class Kind(StrEnum):
    """Kinds of estimators, by the targets that signatures need and by how rows get results."""

    CLUSTERER = "clusterer"
    CLASSIFIER = "classifier"
    REGRESSOR = "regressor"
    SEMI_SUPERVISED = "semi-supervised classifier"
    TRANSFORMER = "transformer"
    DETECTOR = "detector"


def kind_of(estimator: Any) -> Kind:
    """Return the kind of an estimator; raise if it cannot be fitted to signatures."""
    _check_estimator(estimator)
    name = type(estimator).__name__
    if is_clusterer(estimator):
        return Kind.CLUSTERER
    if is_classifier(estimator):
        _check_predicts(estimator, name)
        return Kind.SEMI_SUPERVISED if _is_semi_supervised(estimator) else Kind.CLASSIFIER
    if is_regressor(estimator):
        _check_predicts(estimator, name)
        return Kind.REGRESSOR
    if has_transform(estimator):
        return Kind.TRANSFORMER
    _check_predicts(estimator, name)
    return Kind.DETECTOR


def refused(parameter: str, value: Any, problem: str, fix: str, shown: str | None = None) -> ParameterError:
    """Return the error about a parameter."""
    shown = repr(value) if shown is None else shown
    message = f"{parameter}={shown}: {problem} {fix}"
    return ParameterError(message, parameter=parameter, value=value, problem=problem)


def has_transform(estimator: Any) -> bool:
    """Return whether rows can be transformed: by the estimator, or else through their signature."""
    return hasattr(estimator, "transform") or (
        get_tags(estimator).estimator_type is None and hasattr(estimator, "fit_transform")
    )


def _check_estimator(estimator: Any) -> None:
    if isinstance(estimator, type):
        name = estimator.__name__
        raise refused("estimator", estimator, "this is a class.", f"Give an instance: {name}().", shown=name)
    if not hasattr(estimator, "fit") or not hasattr(estimator, "get_params"):
        missing = "fit" if not hasattr(estimator, "fit") else "get_params"
        fix = "Give a scikit-learn estimator such as SVC(), KernelRidge() or SpectralClustering()."
        raise refused("estimator", estimator, f"it has no {missing} method.", fix)
    if get_tags(estimator).input_tags.pairwise:
        fix = (
            "Give it a kernel or metric by name or as a function, or fit it on a kernel matrix of "
            "Compressor().fit(X).signatures_.points."
        )
        raise refused("estimator", estimator, "it expects a precomputed matrix, but signatures are points.", fix)


def _check_predicts(estimator: Any, name: str) -> None:
    if not any(hasattr(estimator, method) for method in PREDICTIONS):
        problem = f"it has none of {', '.join(PREDICTIONS)} or transform for new rows."
        fix = "Use one that has, or set its parameters so that it has (such as LocalOutlierFactor(novelty=True))."
        raise refused("estimator", estimator, problem, fix, shown=name)


def _is_semi_supervised(estimator: Any) -> bool:
    """Only these read -1 as "not labelled", also in a pipeline or a search; to all others it is an ordinary class."""
    inner = [estimator, *estimator.get_params().values()]
    bases = (base for part in inner for base in type(part).__mro__)
    return any(base.__module__.startswith("sklearn.semi_supervised") for base in bases)


UNLABELLED = -1


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """What an estimator learns from: signatures, their targets, and the compressors that made them."""

    signatures: Signatures
    target: NDArray[Any] | None
    compressors: list[Compressor]


def training_set(
    kind: Kind,
    estimator: Any,
    compressor: Compressor,
    source: Source,
    y: Any,
    min_per_class: int,
    weighted: bool = True,
) -> TrainingSet:
    """Compress rows; give every signature a target that the estimator needs; `weighted` if it is given weights."""
    tags = get_tags(estimator)
    supervised = kind in (Kind.CLASSIFIER, Kind.REGRESSOR, Kind.SEMI_SUPERVISED) or (
        kind is Kind.TRANSFORMER and tags.target_tags.required
    )
    if not supervised:
        fitted = compressor.fit(source)
        return TrainingSet(fitted.signatures_, None, [fitted])
    if y is None:
        raise InputError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None.", parameter="y"
        )
    y = np.asarray(y)  # of Dask, computed once
    if kind is Kind.REGRESSOR or (
        kind is Kind.TRANSFORMER and type_of_target(y, input_name="y").startswith("continuous")
    ):
        targets = numeric_targets(y)
        if targets.ndim != 2 or not tags.target_tags.multi_output:
            targets = np.asarray(column_or_1d(targets, warn=True))
        check_length(len(targets), source.n_rows)
        if kind is Kind.REGRESSOR and not means_suffice(estimator):
            return _member_targets(compressor, source, targets, weighted)
        return _mean_targets(compressor, source, targets)
    if kind is Kind.CLASSIFIER and np.ndim(y) == 2 and np.shape(y)[1] > 1 and _takes_several_labels(tags):
        labels = np.asarray(check_array(y, dtype=None, input_name="y"))
        check_length(len(labels), source.n_rows)
        return _member_targets(compressor, source, labels, weighted)
    labels = class_labels(y, f"DC2({type(estimator).__name__}(...))")
    check_length(len(labels), source.n_rows)
    return _within_classes(compressor, source, labels, min_per_class, kind is Kind.SEMI_SUPERVISED)


def _signature_of_rows(
    compressor: Compressor, source: Source, y: NDArray[Any]
) -> tuple[NDArray[np.int32], NDArray[np.float64] | None]:
    """Compress all rows; return the signature of each, and the weights."""
    compressor.fit(source)
    ids = compressor.labels_ if source.in_memory else in_one_array(compressor.apply(source))
    check_length(len(y), len(ids))
    return ids, weights_of(source, compressor.block_bytes)


def _mean_targets(compressor: Compressor, source: Source, y: NDArray[Any]) -> TrainingSet:
    """Compress all rows; a signature's target is the mean of its rows."""
    ids, weights = _signature_of_rows(compressor, source, y)
    n_signatures = len(compressor.signatures_)
    rows = np.bincount(ids, weights, n_signatures).astype(np.float64)
    # A signature that lost all its rows to nearer ones has no target.
    has_rows = rows > 0
    columns = y.reshape(len(y), -1).T
    totals = [np.bincount(ids, column if weights is None else column * weights, n_signatures) for column in columns]
    means = np.stack(totals, axis=1)[has_rows] / rows[has_rows, None]
    points, spread = compressor.signatures_.points[has_rows], compressor.signatures_.spread[has_rows]
    target = means.reshape(-1, *y.shape[1:]).astype(y.dtype if y.dtype.kind == "f" else np.float64)
    return TrainingSet(Signatures(points, rows[has_rows], spread), target, [compressor])


def _member_targets(compressor: Compressor, source: Source, y: NDArray[Any], weighted: bool) -> TrainingSet:
    """Compress all rows, and draw rows with their own targets from the signatures: these keep the spread of targets."""
    ids, weights = _signature_of_rows(compressor, source, y)
    rng = np.random.default_rng(seed_sequence(compressor.random_state).spawn(1)[0])
    indices, represented = drawn_members(ids, weights, len(compressor.signatures_), weighted, rng)
    rows, scaling = rows_at(source, indices), compressor.router_.scaling
    points = rows if scaling is None else scaling.apply(rows)
    spread = compressor.signatures_.spread[ids[indices]]
    return TrainingSet(Signatures(points, represented, spread), y[indices], [compressor])


def _takes_several_labels(tags: Any) -> bool:
    return bool(tags.target_tags.multi_output or (tags.classifier_tags and tags.classifier_tags.multi_label))


def _within_classes(
    compressor: Compressor, source: Source, y: NDArray[Any], min_per_class: int, semi_supervised: bool
) -> TrainingSet:
    """Compress each class separately, so that every signature belongs to one class."""
    if compressor.scale is not None:
        problem = "classes are compressed separately, so each would have its own scaling."
        raise refused("scale", compressor.scale, problem, "Use make_pipeline(StandardScaler(), DC2(...)).")
    weights = weights_of(source, compressor.block_bytes)
    classes, codes, rows = _present_classes(y, weights)
    labelled = classes != UNLABELLED if semi_supervised else np.ones(len(classes), bool)
    if not labelled.any():
        raise InputError(f"y: all {len(y)} rows are unlabelled ({UNLABELLED}). Label at least one.", parameter="y")
    quotas: list[Any] = [None] * len(classes)  # leaf_size says how many where no number is given
    if compressor.n_signatures is not None:
        quotas = _quotas(compressor.n_signatures, rows, labelled, min_per_class)
    seeds = seed_sequence(compressor.random_state).spawn(len(classes))
    compressors = []
    for number, (quota, seed) in enumerate(zip(quotas, seeds, strict=True)):
        partitions = compressor.n_partitions if quota is None else min(compressor.n_partitions, quota)
        own = clone(compressor).set_params(n_signatures=quota, n_partitions=partitions, random_state=seed)
        compressors.append(own.fit(SelectedRows(source, codes == number)))
    sizes = [len(own.signatures_) for own in compressors]
    signatures = Signatures.merge(*(own.signatures_ for own in compressors))
    return TrainingSet(signatures, np.repeat(classes, sizes), compressors)


def _present_classes(
    y: NDArray[Any], weights: NDArray[np.float64] | None
) -> tuple[NDArray[Any], NDArray[np.intp], NDArray[np.float64]]:
    """Return the classes that have any weight, the number of each row's class (-1: none), and their weight."""
    classes, codes = np.unique(y, return_inverse=True)
    rows = np.bincount(codes, weights, len(classes)).astype(np.float64)
    present = rows > 0
    renumbered = np.where(present, np.cumsum(present) - 1, -1)
    return classes[present], renumbered[codes], rows[present]


def _quotas(n_signatures: int, rows: NDArray[np.float64], labelled: NDArray[np.bool_], min_per_class: int) -> list[Any]:
    """Return the signatures of each class; few labelled rows, whose labels all others get, may take half of them."""
    if n_signatures < len(rows):
        problem = f"too few for {len(rows)} classes."
        raise refused("n_signatures", n_signatures, problem, "Use at least one each, better many.")
    for_labelled = n_signatures
    if not labelled.all():
        rows_labelled = rows[labelled].sum()
        half_or_fair = max(n_signatures // 2, round(n_signatures * rows_labelled / rows.sum()))
        for_labelled = int(np.clip(min(half_or_fair, rows_labelled), labelled.sum(), n_signatures - 1))
    quotas = np.full(len(rows), n_signatures - for_labelled)
    quotas[labelled] = class_quotas(for_labelled, rows[labelled], min_per_class)
    return quotas.tolist()


def class_quotas(total: int, rows: NDArray[np.float64], at_least: int) -> list[int]:
    """Allocate signatures in proportion to rows, with a minimum for each class that the total allows."""
    least = np.minimum(max(1, min(at_least, total // len(rows))), np.maximum(np.ceil(rows), 1)).astype(int)
    quotas = np.zeros(len(rows), int)
    open_classes = np.arange(len(rows))
    while len(open_classes):
        shares = np.array(share_out(total - int(quotas.sum()), rows[open_classes].tolist()))
        short = shares < least[open_classes]
        if not short.any():
            quotas[open_classes] = shares
            break
        quotas[open_classes[short]] = least[open_classes[short]]
        open_classes = open_classes[~short]
    return [int(quota) for quota in quotas]


def numeric_targets(y: Any) -> NDArray[Any]:
    """Return finite numbers, in one column or several."""
    y = np.asarray(y)
    try:
        return np.asarray(check_array(y, ensure_2d=False, dtype="numeric", allow_nd=False, input_name="y"))
    except ValueError as error:
        hint = " For classes take a classifier." if y.dtype.kind in "OSTU" else ""
        raise InputError(f"y: {error}{hint}", parameter="y") from error


def class_labels(y: Any, model: str) -> NDArray[Any]:
    """Return class labels, one per row; `model` is what a user would write for one column of several."""
    y = np.asarray(y)
    if y.dtype.kind == "f":
        assert_all_finite(y, input_name="y")
    if y.dtype.kind == "O":
        missing = np.flatnonzero([_is_missing(label) for label in y.flat])
        if len(missing):
            raise InputError(
                f"y has {len(missing)} missing values, the first at position {missing[0]}. Drop these rows, or give "
                "them a class of their own.",
                parameter="y",
            )
    check_classification_targets(y)
    if type_of_target(y, input_name="y").startswith("multi") and y.ndim == 2 and y.shape[1] > 1:
        raise InputError(
            f"y has shape {y.shape}, but each row needs exactly one class. Fit one model per column: "
            f"MultiOutputClassifier({model}).",
            parameter="y",
        )
    return np.asarray(column_or_1d(y, warn=True))


def _is_missing(label: Any) -> bool:
    same = label == label
    return label is None or not (isinstance(same, bool | np.bool_) and same)  # NaN != NaN; pandas.NA gives neither


# --- rows drawn from signatures, for estimators that learn the spread of targets and not only their mean -----------


def means_suffice(estimator: Any) -> bool:
    """Return whether a regressor is known to learn the same from the mean target of a signature as from all targets."""
    inner = _inner(estimator)
    if not type(inner).__module__.startswith(("sklearn.", "dc2.")):
        return False
    name = type(inner).__name__
    if name in BY_LOSS:
        parameters = inner.get_params(deep=False)
        return parameters.get("loss", parameters.get("criterion", "squared_error")) in MEAN_LOSSES
    return name in BY_MEANS


def _inner(estimator: Any) -> Any:
    """Return what learns the target: the last step of a pipeline, the estimator of a search or of several outputs."""
    while True:
        if isinstance(estimator, Pipeline):
            estimator = estimator.steps[-1][1]
        elif type(estimator).__module__ in ("sklearn.model_selection._search", "sklearn.multioutput"):
            estimator = estimator.estimator
        else:
            return estimator


def drawn_members(
    ids: NDArray[np.integer[Any]],
    weights: NDArray[np.float64] | None,
    n_signatures: int,
    weighted: bool,
    rng: np.random.Generator,
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return the indices of rows drawn from signatures, and the weight that each represents.

    If the estimator takes weights, one row of each signature is drawn; otherwise as many rows at equal distances of
    weight along the signatures, so that each represents the same share of all rows.
    """
    own = np.ones(len(ids)) if weights is None else weights
    present = np.flatnonzero(own > 0)
    order = present[np.lexsort((rng.random(len(present)), ids[present]))]
    total = np.cumsum(own[order])
    rows = np.bincount(ids, own, n_signatures).astype(np.float64)
    if weighted:
        # A random point of each signature's stretch of the total weight: a row is drawn in proportion to its weight.
        filled = np.flatnonzero(rows)
        points = np.cumsum(rows)[filled] - rows[filled] * rng.uniform(1e-9, 1.0, len(filled))
        represented = rows[filled]
    else:
        count = min(n_signatures, len(order))
        points = (np.arange(count) + rng.random()) * (total[-1] / count)
        represented = np.full(count, float(total[-1]) / count)
    indices = order[np.minimum(np.searchsorted(total, points, side="right"), len(order) - 1)]
    return indices, represented


def rows_at(source: Source, indices: NDArray[np.intp]) -> NDArray[Any]:
    """Return the rows of a source with some indices, in one pass."""
    rows = np.empty((len(indices), source.n_features), source.dtype)
    for block in source.blocks(DEFAULT_BLOCK_BYTES):
        inside = np.flatnonzero((indices >= block.start) & (indices < block.stop))
        if len(inside):
            rows[inside] = block.take(indices[inside] - block.start)
    return rows
