"""Compression that carries a target along, for the estimator to learn from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import assert_all_finite, check_array, column_or_1d, get_tags
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from dc2.compress import Compressor, Signatures
from dc2.compress.divide import share_out
from dc2.compress.populate import in_one_array
from dc2.errors import InputError, ParameterError
from dc2.learn.kinds import Kind
from dc2.learn.rows import SelectedRows, check_length, weights_of
from dc2.random import seed_sequence
from dc2.sources import Source

__all__ = ["Lesson", "class_quotas", "teach"]

UNLABELLED = -1


@dataclass(frozen=True, eq=False)
class Lesson:
    """What an estimator learns from: signatures, their targets, and the compressors that made them."""

    signatures: Signatures
    target: NDArray[Any] | None
    compressors: list[Compressor]


def teach(kind: Kind, estimator: Any, compressor: Compressor, source: Source, y: Any, min_per_class: int) -> Lesson:
    """Compress rows so that every signature has a target of the sort the estimator needs."""
    tags = get_tags(estimator)
    supervised = kind in (Kind.CLASSIFIER, Kind.REGRESSOR, Kind.SEMI_SUPERVISED) or (
        kind is Kind.TRANSFORMER and tags.target_tags.required
    )
    if not supervised:
        fitted = compressor.fit(source)
        return Lesson(fitted.signatures_, None, [fitted])
    if y is None:
        raise InputError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None: signatures get their "
            "targets from it."
        )
    y = np.asarray(y) if hasattr(y, "__dask_graph__") else y  # computed once
    if kind is Kind.REGRESSOR or (
        kind is Kind.TRANSFORMER and type_of_target(y, input_name="y").startswith("continuous")
    ):
        targets = _numbers(y, tags.target_tags.multi_output)
        check_length(len(targets), source.n_rows)
        return _mean_targets(compressor, source, targets)
    labels = _labels(y, type(estimator).__name__)
    check_length(len(labels), source.n_rows)
    return _within_classes(compressor, source, labels, min_per_class, kind is Kind.SEMI_SUPERVISED)


def _mean_targets(compressor: Compressor, source: Source, y: NDArray[Any]) -> Lesson:
    """Compress all rows; a signature's target is the mean of its rows."""
    compressor.fit(source)
    ids = compressor.labels_ if source.in_memory else in_one_array(compressor.apply(source))
    check_length(len(y), len(ids))
    weights = weights_of(source, compressor.block_bytes)
    n_signatures = len(compressor.signatures_)
    rows = np.bincount(ids, weights, n_signatures).astype(np.float64)
    # A signature that lost all its rows to nearer ones has no target.
    taught = rows > 0
    columns = y.reshape(len(y), -1).T
    totals = [np.bincount(ids, column if weights is None else column * weights, n_signatures) for column in columns]
    means = np.stack(totals, axis=1)[taught] / rows[taught, None]
    points, spread = compressor.signatures_.points[taught], compressor.signatures_.spread[taught]
    target = means.reshape(-1, *y.shape[1:]).astype(y.dtype if y.dtype.kind == "f" else np.float64)
    return Lesson(Signatures(points, rows[taught], spread), target, [compressor])


def _within_classes(
    compressor: Compressor, source: Source, y: NDArray[Any], min_per_class: int, semi_supervised: bool
) -> Lesson:
    """Compress each class separately, so that every signature belongs to one class."""
    if compressor.scale is not None:
        raise ParameterError(
            f"scale={compressor.scale!r} would scale each class by itself, because classes are compressed apart. "
            "Scale before: make_pipeline(StandardScaler(), DC2(...))."
        )
    weights = weights_of(source, compressor.block_bytes)
    classes, codes, rows = _present_classes(y, weights)
    labelled = classes != UNLABELLED if semi_supervised else np.ones(len(classes), bool)
    if not labelled.any():
        raise InputError(
            f"all {len(y)} rows are unlabelled (y is {UNLABELLED}), so there is nothing to spread; label at least one."
        )
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
    return Lesson(signatures, np.repeat(classes, sizes), compressors)


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
    """Return the signatures of each class.

    Labelled rows may take half of the signatures where they are few: each is then kept as it is, for the labels that
    all others get come from them.
    """
    if n_signatures < len(rows):
        raise ParameterError(
            f"n_signatures={n_signatures} cannot stand for {len(rows)} classes: use at least one each, better many."
        )
    for_labelled = n_signatures
    if not labelled.all():
        rows_labelled = rows[labelled].sum()
        half_or_fair = max(n_signatures // 2, round(n_signatures * rows_labelled / rows.sum()))
        for_labelled = int(np.clip(min(half_or_fair, rows_labelled), labelled.sum(), n_signatures - 1))
    quotas = np.full(len(rows), n_signatures - for_labelled)
    quotas[labelled] = class_quotas(for_labelled, rows[labelled], min_per_class)
    return quotas.tolist()


def class_quotas(total: int, rows: NDArray[np.float64], at_least: int) -> list[int]:
    """Share signatures out in proportion to rows, with a minimum for each class that the total allows.

    Examples
    --------
    >>> class_quotas(100, np.array([990.0, 10.0]), at_least=10)
    [90, 10]
    """
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


def _numbers(y: Any, multi_output: bool) -> NDArray[Any]:
    """Return numeric targets, of one column or, where the estimator takes it, several."""
    y = check_array(y, ensure_2d=False, dtype="numeric", allow_nd=False, input_name="y")
    if multi_output and y.ndim == 2:
        return np.asarray(y)
    return np.asarray(column_or_1d(y, warn=True))


def _labels(y: Any, name: str) -> NDArray[Any]:
    """Return class labels, one per row."""
    if np.asarray(y).dtype.kind == "f":
        assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    if type_of_target(y, input_name="y").startswith("multi") and np.ndim(y) == 2 and np.shape(y)[1] > 1:
        raise InputError(
            f"y has shape {np.shape(y)}, but rows are compressed within each class, of which a row must have one. Fit "
            f"one model per column: MultiOutputClassifier(DC2({name}(...)))."
        )
    return np.asarray(column_or_1d(y, warn=True))
