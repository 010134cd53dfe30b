"""A fit is all or nothing: wherever it breaks off, the estimator is exactly what it was."""

import inspect
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import AgglomerativeClustering
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.svm import SVC
from sklearn.utils.validation import check_is_fitted

import dc2
from dc2 import DC2, KASP, RASP, Compressor, DC2Clustering, RPFCluster, RPFFeatures, SignatureNystroem
from dc2.errors import InputError
from dc2.spectral import RPF

RNG = np.random.default_rng(0)
KINDS = np.repeat([0, 1, 2], 40)
FRAME = pd.DataFrame(8.0 * np.eye(3)[KINDS] + RNG.normal(size=(120, 3)), columns=["a", "b", "c"])
OTHER = pd.DataFrame(RNG.normal(size=(90, 4)), columns=["p", "q", "r", "s"])
OTHER_KINDS = np.arange(90) % 2
SIZE = {"n_jobs": 1, "block_bytes": 1024, "random_state": 0}


def rpf(**changes: Any) -> RPFCluster:
    return RPFCluster(**{"n_clusters": (2, 4), "n_signatures": 20, "similarity": RPF(20), **SIZE, **changes})


def compressor(**changes: Any) -> Compressor:
    return Compressor(20, **{"sample_size": 60, **SIZE, **changes})


MODELS = {
    "DC2Clustering": DC2Clustering((2, 4), prepare=None, **SIZE),
    "DC2Clustering-signatures": DC2Clustering((2, 4), n_signatures=20, prepare=None, **SIZE),
    "RPFCluster": rpf(),
    "RPFCluster-gaussian": rpf(similarity="gaussian", n_clusters=3),
    "RASP": RASP(3, n_signatures=20, **SIZE),
    "KASP": KASP(3, n_signatures=20, **SIZE),
    "Compressor": compressor(),
    "DC2-classifier": DC2(SVC(), compressor=compressor()),
    "DC2-clusterer": DC2(AgglomerativeClustering(3), compressor=compressor()),
    "SignatureNystroem": SignatureNystroem(n_components=20, **SIZE),
    "RPFFeatures": RPFFeatures(n_trees=10, n_points=20, **SIZE),
}
CLUSTERERS = (
    "DC2Clustering",
    "DC2Clustering-signatures",
    "RPFCluster",
    "RPFCluster-gaussian",
    "RASP",
    "KASP",
)


def fit(model: Any, frame: pd.DataFrame = FRAME, kinds: Any = KINDS) -> Any:
    return model.fit(frame, kinds)


def refit(model: Any) -> Any:
    return model.fit(OTHER, OTHER_KINDS)


def reconquer(model: Any) -> Any:
    return model.recluster(n_clusters=(3, 5), bandwidth=0.03)


def other_signatures(model: Any) -> Any:
    return model.fit_signatures(SIGNATURES)


def more_rows(model: Any) -> Any:
    return model.partial_fit(FRAME[50:])


SIGNATURES = compressor().fit(OTHER).signatures_

# What may break off, by a name, and the fitted model that it is done to.
ACTIONS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    **{f"{name}.fit": (lambda name=name: fit(clone(MODELS[name])), refit) for name in MODELS},
    **{f"{name}.fit_signatures": (lambda name=name: fit(clone(MODELS[name])), other_signatures) for name in CLUSTERERS},
    "RPFCluster.recluster": (lambda: fit(rpf()), reconquer),
    "DC2Clustering.recluster": (
        lambda: fit(DC2Clustering("auto", n_signatures=20, **SIZE)),
        lambda model: model.recluster(n_clusters=5),
    ),
    "Compressor.partial_fit, cuts not placed": (lambda: compressor().partial_fit(FRAME[:50]), more_rows),
    "Compressor.partial_fit, cuts placed": (lambda: compressor().partial_fit(FRAME[:70]), more_rows),
}
every_action = pytest.mark.parametrize("action", ACTIONS)


def answers(model: Any) -> bytes:
    """What the model says of rows, to the bit."""
    said = model.transform(FRAME) if hasattr(model, "transform") else model.predict(FRAME)
    numbers = said.toarray() if sparse.issparse(said) else np.asarray(said)
    return numbers.tobytes()


def snapshot(model: Any) -> tuple[Any, ...]:
    """All that a model is: the very objects it holds, what these hold, and its answers."""
    said = answers(model)
    return {name: id(value) for name, value in vars(model).items()}, pickle.dumps(model), said


@contextmanager
def kept(model: Any) -> Iterator[None]:
    """A model that is, at the end, what it was at the beginning."""
    before = snapshot(model)
    yield
    assert snapshot(model) == before
    assert list(model.feature_names_in_) == list(FRAME.columns)
    assert model.n_features_in_ == 3


class Broken(Exception):
    """Raised by the tests in the midst of a fit."""


def verbose_parameter(model: Any) -> str:
    return "compressor__verbose" if isinstance(model, DC2) else "verbose"


@every_action
def test_a_callback_that_raises_at_any_news_leaves_the_model_as_it_was(action):
    made, act = ACTIONS[action]
    name = verbose_parameter(made())
    news: list[Any] = []
    act(made().set_params(**{name: lambda *told: news.append(told)}))
    model = made()
    for last in range(len(news)):
        told = iter(range(last))

        def callback(*news: Any, told: Iterator[int] = told) -> None:
            if next(told, None) is None:
                raise Broken

        with kept(model):
            model.set_params(**{name: callback})
            with pytest.raises(Broken):
                act(model)
            model.set_params(**{name: 0})
    assert news or "signatures" in action or "recluster" in action or "partial_fit" in action


@pytest.mark.parametrize("name", MODELS)
def test_a_fit_tells_of_its_stages_so_that_it_can_be_broken_off_in_each(name):
    model, stages = clone(MODELS[name]), []
    fit(model.set_params(**{verbose_parameter(model): lambda stage, *_: stages.append(stage)}))
    expected = {"compress"} if name not in CLUSTERERS else {"divide", "compress", "conquer"}
    if name == "DC2Clustering":  # rows that are few are not compressed
        expected -= {"compress"}
    assert expected <= set(stages)


PLACES = Path(dc2.__file__).parent.as_posix()
INTERRUPTS = int(os.environ.get("DC2_INTERRUPTS", "0"))  # in all; `make fuzz` wants a thousand


@contextmanager
def interrupted_at(call: int) -> Iterator[list[int]]:
    """Ctrl-C at the n-th call of a function of this package, in the thread that fits.

    Calls of generators do not count: Python drops an exception that is raised while one is closed.
    """
    calls = [0]

    def count(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PLACES) and not code.co_flags & inspect.CO_GENERATOR:
            calls[0] += 1
            if calls[0] == call:
                raise KeyboardInterrupt

    sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(None)


@every_action
def test_an_interrupt_at_any_moment_leaves_the_model_as_it_was(action):
    made, act = ACTIONS[action]
    act(made())  # imports and compilation on first use are not to be counted
    model = made()
    with interrupted_at(-1) as calls:
        act(model)
    model, rng = made(), np.random.default_rng(len(action))
    usual = 60 if action.startswith("RPFCluster.") else 15
    with kept(model):
        for call in rng.integers(1, calls[0], max(usual, -(-INTERRUPTS // len(ACTIONS))), endpoint=True):
            with pytest.raises(KeyboardInterrupt), interrupted_at(int(call)):
                act(model)


@pytest.mark.parametrize(
    "function",
    [
        "dc2.tables.auto_prepare.fitted_source",
        "dc2.cluster.fit.engine_for",
        "dc2.cluster.fit.nodes_at",
        "dc2.cluster.fit.ClusterRecord",
        "dc2.cluster.fit.compress",
        "dc2.spectral.rpf.RPForest.grow",
        "dc2.spectral.rpf.RPFSimilarity",
        "dc2.spectral.conquer.spectra",
        "dc2.spectral.conquer.spectral_clustering",
        "dc2.spectral.conquer.by_weight",
    ],
)
def test_an_error_in_any_stage_leaves_the_clusterer_as_it_was(function, monkeypatch):
    model = fit(rpf())
    with kept(model), monkeypatch.context() as patched:
        patched.setattr(function, _broken)
        with pytest.raises(Broken):
            refit(model)
    assert refit(model).n_features_in_ == 4


def _broken(*_: Any, **__: Any) -> Any:
    raise Broken


@pytest.mark.parametrize("name", MODELS)
def test_rows_that_are_refused_leave_the_model_as_it_was(name):
    model = fit(clone(MODELS[name]))
    bad = OTHER.copy()
    bad.iloc[77, 1] = np.nan
    labels = model.labels_.copy() if hasattr(model, "labels_") else None
    with kept(model), pytest.raises(InputError, match="77"):
        model.fit(bad, OTHER_KINDS)
    if labels is not None:
        np.testing.assert_array_equal(model.labels_, labels)


@pytest.mark.parametrize("name", MODELS)
def test_a_first_fit_that_fails_leaves_the_model_unfitted(name):
    model = clone(MODELS[name])
    before = dict(vars(model))
    bad = OTHER.copy()
    bad.iloc[77, 1] = np.nan
    with pytest.raises(InputError, match="77"):
        model.fit(bad, OTHER_KINDS)
    assert vars(model) == before
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


@pytest.mark.parametrize("name", CLUSTERERS)
@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
def test_a_warning_that_is_made_an_error_leaves_the_clusterer_as_it_was(name):
    """Fewer clusters than asked for is a warning; the test session makes it an error."""
    model = fit(clone(MODELS[name])).set_params(n_clusters=3)
    with kept(model), pytest.raises(ConvergenceWarning, match=r"\b2 distinct"):
        model.fit(np.repeat([[0.0, 0.0, 0.0], [5.0, 5.0, 5.0]], 50, axis=0))


@every_action
def test_what_breaks_off_can_be_done_again(action):
    """The seed of an estimator is not used up by a fit that failed."""
    made, act = ACTIONS[action]
    model, fresh = made(), act(made())
    with pytest.raises(KeyboardInterrupt), interrupted_at(10):
        act(model)
    act(model)
    assert repr(model.signatures_ if hasattr(model, "signatures_") else None) == repr(
        fresh.signatures_ if hasattr(fresh, "signatures_") else None
    )
    if model.n_features_in_ == 3:
        assert answers(model) == answers(fresh)


@pytest.mark.parametrize("name", MODELS)
def test_pickling_and_saving_leave_the_model_as_it_was(name, tmp_path):
    model = fit(clone(MODELS[name]))
    labels = model.labels_.copy() if hasattr(model, "labels_") else None
    with kept(model):
        pickle.dumps(model)
        if hasattr(model, "save"):
            model.save(tmp_path / "model.dc2")
    if labels is not None:
        np.testing.assert_array_equal(model.labels_, labels)
