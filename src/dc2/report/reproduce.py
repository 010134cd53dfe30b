"""How to repeat a result: the Python code and the command that make a model, and its settings."""

from __future__ import annotations

import inspect
import platform
import shlex
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from dc2 import core
from dc2.parameters import is_plain
from dc2.report.cluster_statistics import ClusterStatistics, FittedClusterer
from dc2.report.page import Section
from dc2.spectral.rpf import RPF
from dc2.versions import __version__, package_versions

# They change the speed and what is printed, not the result.
WITHOUT_EFFECT = {"n_jobs", "block_bytes", "verbose"}
OPTIONS = {
    "n_clusters": "-k",
    "n_signatures": "--signatures",
    "metric": "--metric",
    "scale": "--scale",
    "random_state": "--seed",
}
IF_CHANGED = {
    "noise": "--noise",
    "min_cluster_share": "--min-cluster-share",
    "min_cluster_size": "--min-cluster-size",
    "max_cluster_size": "--max-cluster-size",
}


def settings_section(statistics: ClusterStatistics) -> Section:
    """Return the section."""
    model = statistics.model
    params, defaults = model.get_params(deep=False), _defaults(model)
    own = {"dc2": f"{__version__} ({core.name} core)", "Python": platform.python_version()}
    content = {
        "snippet": python_snippet(model),
        "command": command_line(model),
        "versions": [f"{name} {version}" for name, version in (own | package_versions()).items()],
        "settings": [(name, _value(value), _value(defaults[name])) for name, value in params.items()],
        "names": statistics.names if hasattr(model, "feature_names_in_") else None,
    }
    lead = (
        "The same rows, settings and versions give the same clusters."
        if isinstance(model.random_state, Integral)
        else "No seed was set, so another run may differ a little: set random_state to a number to repeat a result."
    )
    return Section("Do it again", lead, "settings.html", content)


def python_snippet(model: FittedClusterer) -> str:
    """Return the code that makes this model: what differs from the defaults.

    Examples
    --------
    >>> from dc2 import RPFCluster
    >>> print(python_snippet(RPFCluster(3, random_state=0)))
    from dc2 import RPFCluster
    <BLANKLINE>
    model = RPFCluster(n_clusters=3, random_state=0)
    labels = model.fit_predict(X)
    """
    recipes = [model, *(value for value in _changed(model).values() if _is_recipe(value))]
    imported = "\n".join(_import_of(recipe) for recipe in recipes)
    return f"{imported}\n\nmodel = {_value(model)}\nlabels = model.fit_predict(X)"


def _import_of(recipe: Any) -> str:
    room = ".".join(type(recipe).__module__.split(".")[:2]) if hasattr(recipe, "build") else "dc2"
    return f"from {room} import {type(recipe).__name__}"


def command_line(model: FittedClusterer) -> str | None:
    """Return the command that makes this model, or None where the command line lacks an option for it.

    Options are written out, so that the command does not depend on what its defaults are.

    Examples
    --------
    >>> from dc2 import DC2Clustering, RPFCluster
    >>> command_line(DC2Clustering(3, scale="standard", random_state=0))
    'dc2 cluster DATA -k 3 --signatures auto --metric euclidean --scale standard --seed 0 -o labels.parquet'
    >>> command_line(RPFCluster(3)) is None
    True
    """
    if type(model).__name__ != "DC2Clustering" or not set(_changed(model)) <= {*OPTIONS, *IF_CHANGED, "similarity"}:
        return None
    kernel = _kernel_options(model)
    if kernel is None:
        return None
    words = ["dc2", "cluster", "DATA"]
    for parameter, option in OPTIONS.items():
        value = getattr(model, parameter)
        if isinstance(value, range):
            value = (value[0], value[-1])
        if parameter == "scale" and value is None:
            value = "none"
        if isinstance(value, tuple | list):
            value = "-".join(map(str, value))
        if value is not None and is_plain(value):
            words += [option, str(value)]
    changed = _changed(model)
    for parameter, option in IF_CHANGED.items():
        words += [option, str(changed[parameter])] if parameter in changed else []
    return shlex.join([*words, *kernel, "-o", "labels.parquet"])


def _kernel_options(model: FittedClusterer) -> list[str] | None:
    """Return the options for a similarity, or None where the command line has none for it."""
    params = model.get_params(deep=False)
    similarity = RPF() if params["similarity"] == "rpf" else params["similarity"]
    if similarity == "graph":
        return []
    has_options = (
        type(similarity) is RPF and set(_changed(similarity)) <= {"bandwidth"} and np.ndim(similarity.bandwidth) == 0
    )
    if not has_options or params["n_signatures"] == "auto":  # which means another number there
        return None
    return ["--similarity", "rpf", "--bandwidth", str(similarity.bandwidth)]


def _changed(model: FittedClusterer) -> dict[str, Any]:
    defaults = _defaults(model)
    return {
        key: value
        for key, value in model.get_params(deep=False).items()
        if key not in WITHOUT_EFFECT
        and (is_plain(value) or _is_recipe(value) or isinstance(value, range))
        and not _same(value, defaults[key])
    }


def _defaults(model: FittedClusterer) -> dict[str, Any]:
    parameters = inspect.signature(type(model)).parameters
    return {name: parameter.default for name, parameter in parameters.items()}


def _same(value: Any, default: Any) -> bool:
    return _value(value) == _value(default)


def _is_recipe(value: Any) -> bool:
    return isinstance(value, BaseEstimator)


def _value(value: Any) -> str:
    """Return a value as code; of a generator or a function its kind, since its address means nothing."""
    if _is_recipe(value):
        changed = ", ".join(f"{name}={_value(own)}" for name, own in _changed(value).items())
        return f"{type(value).__name__}({changed})"
    if not is_plain(value) and not isinstance(value, range):
        return f"a {type(value).__name__}"
    return repr(value.item() if isinstance(value, np.generic) else value)
