"""The laws that every case of the campaign of labels is held to."""

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

import dc2
from dc2 import KASP, DC2Clustering, core
from dc2.core import _TWINS
from dc2.errors import InputError, InputTypeError, ModelFileError, ParameterError
from dc2.spectral import RPF
from fuzz.fuzz_cases import Case
from support.row_changes import CHANGES

REFUSALS = (InputError, InputTypeError, ParameterError, ModelFileError)


@dataclass(frozen=True, eq=False)
class Trial:
    """A case with its fitted model, and a folder for files."""

    case: Case
    base: Any
    folder: Path

    @cached_property
    def answer(self) -> np.ndarray:
        return answer(self.base, self.case.X)

    @cached_property
    def essence(self) -> tuple[bytes, ...]:
        return essence(self.base, self.answer)

    def equals(self, other: Any) -> None:
        assert essence(other, answer(other, self.case.X)) == self.essence, "another model"

    def equal_labels(self, labels: Any) -> None:
        np.testing.assert_array_equal(np.asarray(labels), self.answer)


def answer(model: Any, X: Any) -> np.ndarray:
    said = model.predict(X) if hasattr(model, "predict") else model.apply(X)
    return np.asarray(said)


def whole(labels: Any) -> np.ndarray:
    """Labels in one piece: those of rows that are not in memory come block by block."""
    return np.concatenate(list(labels)) if isinstance(labels, Iterator) else np.asarray(labels)


def essence(model: Any, labels: np.ndarray) -> tuple[bytes, ...]:
    """What a fitted model is, to the bit."""
    signatures = model.signatures_
    parts = (signatures.points, signatures.weights, signatures.spread, labels)
    return tuple(np.ascontiguousarray(part).tobytes() for part in parts)


def fitted(case: Case, data: Any = None, weights: Any = None, **changes: Any) -> Any:
    model = clone(case.model).set_params(**changes)
    return model.fit(case.X if data is None else data, sample_weight=weights)


def training_labels(trial: Trial) -> None:
    if getattr(trial.base, "divide", None) == "sampling" or dealt(trial.base):
        return  # rows are dealt at random there, and new ones go to the nearest
    trial.equal_labels(trial.base.labels_)


def another_way(trial: Trial) -> None:
    """From the other source, with other threads and blocks, and labelled at once."""
    case = trial.case
    model = clone(case.model).set_params(n_jobs=case.n_jobs, block_bytes=case.block_bytes)
    rows = case.brought(trial.folder)
    if hasattr(model, "fit_predict") and not dealt(trial.base):
        trial.equal_labels(whole(model.fit_predict(rows, sample_weight=case.weights)))
    else:
        model.fit(rows, sample_weight=case.weights)
    trial.equals(model)


def both_cores(trial: Trial) -> None:
    if len(trial.case.X) <= trial.case.rows_for_twin:
        with reference_core():
            trial.equals(fitted(trial.case, weights=trial.case.weights))


def pickled_and_saved(trial: Trial) -> None:
    copy = pickle.loads(pickle.dumps(trial.base))
    copy.save(trial.folder / "model.dc2")
    loaded = dc2.load(trial.folder / "model.dc2")
    trial.equals(loaded)
    if hasattr(loaded, "labels_of_layer"):
        take_layer(trial, loaded, len(trial.case.X) % len(trial.base.layers_))
        trial.equal_labels(loaded.recluster().predict(trial.case.X))


def take_layer(trial: Trial, loaded: Any, layer: int) -> None:
    """A layer that is taken answers as the fitted model says it would."""
    labels = np.asarray(loaded.recluster(layer=layer).predict(trial.case.X))
    if not dealt(loaded):
        np.testing.assert_array_equal(labels, trial.base.labels_of_layer(layer))


def repeats(trial: Trial) -> None:
    """Repeated rows give the same as weights, unless chance depends on the row: K-means, members, rows dealt by number.

    Rows of weight 0 count when there must be enough rows for a number of clusters; without them there may be too few.
    """
    case, base = trial.case, trial.base
    if case.weights is None or isinstance(base, KASP) or members(base) or dealt(base):
        return
    requested = getattr(base, "n_clusters", None)
    if isinstance(requested, int) and np.count_nonzero(case.weights) < requested:
        return
    again = fitted(case, np.repeat(case.X, case.weights.astype(int), axis=0))
    trial.equal_labels(answer(again, case.X))


def number_of_clusters(trial: Trial) -> None:
    """As asked for, except with few trees: points that share all leaves cannot be distinguished, which gives a warning.

    Members that are equal rows may be in two clusters.
    """
    base, requested = trial.base, getattr(trial.base, "n_clusters", None)
    few_trees = isinstance(getattr(base, "similarity", None), RPF)
    plain = trial.case.shape in ("normal", "blobs", "line", "grid")
    if isinstance(requested, int) and plain and not few_trees and not members(base):
        there = len(np.unique(base.signatures_.points[base.signatures_.weights > 0], axis=0))
        found = base.n_clusters_
        assert found == min(requested, there), f"{found} clusters of {requested}, {there} distinct"


def probabilities(trial: Trial) -> None:
    if not hasattr(trial.base, "predict_proba") or dealt(trial.base):
        return
    shares = np.asarray(trial.base.predict_proba(trial.case.X))
    assert np.isfinite(shares).all(), "a probability is not finite"
    assert (shares >= 0).all()
    assert (shares.sum(axis=1) <= 1 + 1e-9).all(), "probabilities above 1"


def noise_share(trial: Trial) -> None:
    noise, weights = getattr(trial.base, "noise", 0), trial.case.weights
    if noise:
        weights = np.ones(len(trial.case.X)) if weights is None else weights
        outside = weights[trial.base.labels_ < 0].sum()
        assert outside <= noise * weights.sum() + 1e-9, f"{outside} rows are noise, more than {noise}"


def outliers(trial: Trial) -> None:
    if hasattr(trial.base, "outlier_scores"):
        scores = np.asarray(trial.base.outlier_scores(trial.case.X))
        assert scores.shape == (len(trial.case.X),)
        assert (np.isfinite(scores) & (scores >= 0)).all(), "an outlier score is no number"


def what_does_not_matter(trial: Trial) -> None:
    """Clear clusters stay in another order, at another scale, with repeated rows, constant columns and so on."""
    case, model = trial.case, trial.base
    plain = ("auto", "auto", None, "euclidean", 0.0)
    is_plain = isinstance(model, DC2Clustering) and plain == tuple(
        getattr(model, name) for name in ("n_clusters", "n_signatures", "scale", "metric", "noise")
    )
    if case.shape != "clear clusters" or not is_plain or case.weights is not None:
        return
    rng = np.random.default_rng(len(case.X) + case.block_bytes)
    what = str(rng.choice(list(CHANGES)))
    changed, rows = CHANGES[what](case.X, rng)
    found = clone(case.model).fit_predict(changed)
    assert adjusted_rand_score(trial.answer[rows], found) == 1, what


LAWS: tuple[Callable[[Trial], None], ...] = (
    training_labels,
    another_way,
    both_cores,
    pickled_and_saved,
    repeats,
    number_of_clusters,
    probabilities,
    noise_share,
    outliers,
    what_does_not_matter,
)


def refused_too(case: Case, folder: Path) -> None:
    """Rows that are refused as an array are refused from another source as well."""
    try:
        fitted(case, case.brought(folder), case.weights, n_jobs=case.n_jobs, block_bytes=case.block_bytes)
    except REFUSALS:
        return
    raise AssertionError(f"refused as an array, and taken from {case.source!r}")


def members(model: Any) -> bool:
    """Whether signatures are rows drawn from their leaves."""
    compressor = getattr(model, "compressor", None) or model
    return getattr(compressor, "signature", "") == "member"


def dealt(model: Any) -> bool:
    """Whether rows are dealt to partitions by their number."""
    compressor = getattr(model, "compressor", None) or model
    return getattr(compressor, "divide", "") == "sampling" and compressor.n_partitions > 1


@contextmanager
def reference_core() -> Iterator[None]:
    """The NumPy twin of the native core."""
    ours = {name: getattr(core, name) for name in _TWINS}
    try:
        for name, module in _TWINS.items():
            setattr(core, name, getattr(import_module(module), name))
        yield
    finally:
        for name, function in ours.items():
            setattr(core, name, function)
