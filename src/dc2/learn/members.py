"""Member rows with their own targets, for estimators that learn the spread of targets and not only their mean."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from dc2.engines.engine import DEFAULT_BLOCK_BYTES
from dc2.io.source import Source

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


def means_suffice(estimator: Any) -> bool:
    """Return whether a regressor learns the same from the mean target of a signature as from the targets of its rows.

    One that is not known to do so does not: it may estimate quantiles, noise or anything else of the spread.

    Examples
    --------
    >>> from sklearn.linear_model import QuantileRegressor, Ridge
    >>> means_suffice(Ridge()), means_suffice(QuantileRegressor())
    (True, False)
    """
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

    Parameters
    ----------
    ids : ndarray of shape (n_rows,)
        The signature of each row.
    weights : ndarray of shape (n_rows,) or None
    n_signatures : int
    weighted : bool
        Whether the estimator takes weights. Then one row of each signature is drawn; otherwise as many rows
        at equal distances of weight along the signatures, so that each represents the same share of all rows.
    rng : Generator
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
