"""Checks of values: numbers that are not finite, and weights. Each names what it found and where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dc2.errors import InputError, InputTypeError, MissingValuesError

__all__ = ["check_weights", "check_weights_sum", "listed", "raise_if_not_finite"]

NAMES_SHOWN = 5
LARGEST_WEIGHT = 1e100


def listed(names: Sequence[object]) -> str:
    """Write names for a message: all if they are few, otherwise the first ones.

    Examples
    --------
    >>> listed(["a", "b"])
    "'a', 'b'"
    >>> listed(list("abcdefg"))
    "'a', 'b', 'c', 'd', 'e' and 2 more"
    """
    shown = ", ".join(repr(name) for name in names[:NAMES_SHOWN])
    return shown if len(names) <= NAMES_SHOWN else f"{shown} and {len(names) - NAMES_SHOWN} more"


def raise_if_not_finite(
    X: NDArray[Any],
    feature_names: Sequence[str] | None = None,
    start: int = 0,
) -> None:
    """Raise if a block holds NaN or infinity, saying in which columns, how many, and the first row.

    It reads every value: call it when sums are not finite, to tell the user why. If all values are finite, it returns;
    then the sums overflowed.

    Parameters
    ----------
    X : ndarray of shape (rows, n_features)
        The block.
    feature_names : sequence of str, optional
        Names of the columns; without them columns are numbered from 0.
    start : int, default=0
        Global index of the first row.

    Examples
    --------
    >>> raise_if_not_finite(np.array([[1.0, 2.0], [3.0, np.nan]]), ["height", "weight"])
    Traceback (most recent call last):
    ...
    dc2.errors.MissingValuesError: Input X contains NaN. In rows 0 to 1: column 'weight' has 1 (first in row 1). \
Fill missing values in, for instance with sklearn.impute.SimpleImputer, or drop these rows.
    """
    missing = np.isnan(X)
    if missing.any():
        raise MissingValuesError(
            f"Input X contains NaN. {_where(missing, feature_names, start)} "
            "Fill missing values in, for instance with sklearn.impute.SimpleImputer, or drop these rows."
        )
    infinite = np.isinf(X)
    if infinite.any():
        raise InputError(
            f"Input X contains infinity or a value too large for {X.dtype!r}. "
            f"{_where(infinite, feature_names, start)} Clip these values or drop these rows."
        )


def _where(found: NDArray[np.bool_], feature_names: Sequence[str] | None, start: int) -> str:
    counts = found.sum(axis=0)
    columns = np.flatnonzero(counts)
    parts = []
    for column in columns[:NAMES_SHOWN]:
        name = repr(feature_names[column]) if feature_names is not None else str(column)
        parts.append(f"column {name} has {counts[column]} (first in row {start + found[:, column].argmax()})")
    more = f", and so {len(columns) - NAMES_SHOWN} more columns" if len(columns) > NAMES_SHOWN else ""
    return f"In rows {start} to {start + len(found) - 1}: {', '.join(parts)}{more}."


def check_weights(weights: ArrayLike, n_rows: int | None = None, start: int = 0) -> NDArray[np.float64]:
    """Return sample weights as float64, or raise: one finite, non-negative number per row.

    Parameters
    ----------
    weights : array-like of shape (n_rows,)
        The weights.
    n_rows : int, optional
        Number of rows they must match.
    start : int, default=0
        Global index of the first row, for messages.
    """
    try:
        checked = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"sample_weight must hold numbers, one per row: {error}") from error
    if checked.ndim != 1:
        raise InputError(f"sample_weight must be 1-dimensional, one number per row; got {checked.shape}.")
    if n_rows is not None and len(checked) != n_rows:
        raise InputError(f"sample_weight has {len(checked)} values but X has {n_rows} rows: give one each.")
    for bad, what in (
        (~np.isfinite(checked), "NaN or infinity"),
        (checked < 0, "negative values"),
        (checked > LARGEST_WEIGHT, f"values above {LARGEST_WEIGHT:g}, whose sum may overflow"),
    ):
        if bad.any():
            first = int(bad.argmax())
            raise InputError(
                f"sample_weight contains {what}: {int(bad.sum())} of {len(checked)}, "
                f"first in row {start + first} ({checked[first]}). A weight must be finite and not negative."
            )
    return checked


def check_weights_sum(total: float, n_rows: int) -> None:
    """Raise if no row weighs anything: nothing would be left to learn from."""
    if not total > 0:
        raise InputError(f"sample_weight is zero for all {n_rows} rows; at least one must weigh something.")
