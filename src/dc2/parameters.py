"""Parameters: checks whose messages give the name, the value and what is allowed; values that can be written."""

import functools
from collections.abc import Sequence
from contextlib import AbstractContextManager
from numbers import Integral, Real
from typing import Any

import joblib
import numpy as np
import threadpoolctl

from dc2.errors import ParameterError

__all__ = [
    "MOST_DIRECTIONS",
    "MOST_SIGNATURES",
    "MOST_STEPS",
    "MOST_THREADS",
    "check_choice",
    "check_integer",
    "check_positive",
    "check_random_directions",
    "is_plain",
    "one_blas_thread",
    "usable_threads",
]

# Anything beyond these is surely a slip, and would run for ever or fail with another library's message.
MOST_STEPS = 1000  # of sharpening or refinement; by then nothing has changed for a long time
MOST_DIRECTIONS = 1_000_000  # candidates of a split, trees of a forest
MOST_SIGNATURES = 2**31 - 1  # they are numbered by 32 bits
MOST_THREADS = 10_000


def check_integer(name: str, value: Any, low: int | None = None, high: int | None = None) -> int:
    """Return a whole number (of at least `low`, of at most `high`), or raise.

    Examples
    --------
    >>> check_integer("n_trees", 800, low=1)
    800
    """
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or (low is not None and value < low):
        raise _wrong(name, value, "must be a whole number" + ("" if low is None else f" of at least {low}"))
    if high is not None and value > high:
        raise _wrong(name, value, f"must be at most {high}")
    return int(value)


def check_positive(name: str, value: Any) -> float:
    """Return a finite number above zero, or raise."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 < float(value) < np.inf:
        raise _wrong(name, value, "must be a finite number above 0")
    return float(value)


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> Any:
    """Return one of the choices, or raise naming them."""
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
        raise _wrong(name, value, f"must be one of {', '.join(map(repr, choices))}")
    return value


def _wrong(name: str, value: Any, problem: str) -> ParameterError:
    return ParameterError(f"{name} {problem}; got {value!r}.", parameter=name, value=value, problem=f"{problem}.")


def check_random_directions(cut: Any, cuts: Sequence[str], sharpen: Any, n_candidates: Any = 1) -> None:
    """Check what says how a node is split."""
    check_choice("cut", cut, cuts)
    check_integer("sharpen", sharpen, low=0, high=MOST_STEPS)
    check_integer("n_candidates", n_candidates, low=1, high=MOST_DIRECTIONS)


def is_plain(value: Any) -> bool:
    """Return whether a value can be written down as it is: a number, a text, None, or several of them.

    Examples
    --------
    >>> is_plain((2, 10)), is_plain(np.random.default_rng())
    (True, False)
    """
    if isinstance(value, list | tuple):
        return all(map(is_plain, value))
    return value is None or isinstance(value, bool | int | float | str | np.generic)


@functools.cache
def _libraries() -> threadpoolctl.ThreadpoolController:
    import scipy.linalg  # noqa: F401  loads the last of them, with sklearn's, which every estimator needs

    return threadpoolctl.ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Limit BLAS and OpenMP to one thread: another number would round differently, or compete with threads of dc2.

    The libraries are looked for once: that takes 10 ms, longer than most of what is done meanwhile.
    """
    limit: AbstractContextManager[Any] = _libraries().limit(limits=1)
    return limit


def usable_threads(n_jobs: int | None) -> int:
    """Return the number of threads that `n_jobs` asks for.

    Examples
    --------
    >>> usable_threads(3)
    3
    >>> usable_threads(None) == usable_threads(-1) >= 1
    True
    """
    if n_jobs == 0:
        raise ParameterError(
            "n_jobs is 0, but at least one thread must work; use None or -1 for all cores.",
            parameter="n_jobs",
            value=0,
            problem="at least one thread must work. Use -1 for all cores.",
        )
    cores: int = joblib.cpu_count()
    if n_jobs is None:
        return cores
    check_integer("n_jobs", n_jobs, high=MOST_THREADS)
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)
