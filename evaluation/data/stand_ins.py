"""Simulated stand-ins for the two sensor sets, if these are missing: for time and memory, never for accuracy."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch
from threadpoolctl import threadpool_limits

from dc2.datasets import check_rows
from evaluation.data.gas_sensor import GAS_CLASSES, GAS_FEATURES, GAS_ROWS
from evaluation.data.ht_sensor import HT_CLASSES, HT_FEATURES
from evaluation.data.standardise import standardise

__all__ = ["make_gas_like", "make_ht_like"]

_SIMULATED = "Good for measuring time and memory; accuracy on it says nothing about the genuine data."

_HT_ROWS = 928_991
_HT_RECORDINGS = 100
_HT_SENSORS = 8

_GAS_SECONDS = 42_000.0
_GAS_KINDS = 4  # kinds of sensor; four copies of each make sixteen
_GAS_SENSORS = 16


def make_ht_like(n: int = _HT_ROWS, seed: int = 0) -> Bunch:
    """Simulate data of HT Sensor's size and kind: 100 recordings, 11 raw columns, 3 classes.

    Eight resistances fall and recover exponentially around a stimulus; temperature and humidity wander, and pull the
    resistances along. The rows cover all recordings whatever `n` is.

    Parameters
    ----------
    n : int, default=928_991
        Number of rows.
    seed : int, default=0
        Seed of the simulation.

    Returns
    -------
    sklearn.utils.Bunch
        `data` (n, 11), `target` (n,), `recording` (n,), `target_names`, `feature_names`, `DESCR`.

    Examples
    --------
    >>> from evaluation.data import make_ht_like
    >>> make_ht_like(5000).data.shape
    (5000, 11)
    """
    n = check_rows(n)
    rng = np.random.default_rng(seed)
    data = np.empty((n, len(HT_FEATURES)), dtype=np.float32)
    class_of = np.sort(rng.permutation(_HT_RECORDINGS) % len(HT_CLASSES))
    sensitivity = rng.uniform(0.05, 0.5, size=(len(HT_CLASSES), _HT_SENSORS))
    sensitivity[HT_CLASSES.index("background")] = 0.0
    resistance = rng.uniform(5.0, 15.0, size=_HT_SENSORS)
    edges = np.linspace(0, n, _HT_RECORDINGS + 1).astype(np.intp)
    for number in range(_HT_RECORDINGS):
        rows = data[edges[number] : edges[number + 1]]
        _record_home(rows, resistance, sensitivity[class_of[number]], rng)
    recording = np.repeat(np.arange(_HT_RECORDINGS, dtype=np.int32), np.diff(edges))
    return Bunch(
        data=data,
        target=class_of.astype(np.int32)[recording],
        recording=recording,
        target_names=np.array(HT_CLASSES),
        feature_names=list(HT_FEATURES),
        DESCR=f"Simulated from seed {seed}: {n:,} rows of the size and kind of HT Sensor. {_SIMULATED}",
    )


def make_gas_like(n: int = sum(GAS_ROWS), seed: int = 0) -> Bunch:
    """Simulate data of Gas Sensor's size and kind: two mixtures, 18 standardised columns of low intrinsic dimension.

    Concentrations jump every hundred seconds or so; four kinds of sensor follow them exponentially, each at its own
    rate, and sixteen sensors mix the four, drift slowly and add noise. The rows cover the same twelve hours per
    mixture whatever `n` is.

    Parameters
    ----------
    n : int, default=8_386_765
        Number of rows, shared between the mixtures as in the genuine data.
    seed : int, default=0
        Seed of the simulation.

    Returns
    -------
    sklearn.utils.Bunch
        `data` (n, 18), `target` (n,), `target_names`, `feature_names`, `DESCR`.

    Examples
    --------
    >>> from evaluation.data import make_gas_like
    >>> make_gas_like(5000).data.shape
    (5000, 18)
    """
    n = check_rows(n)
    rng = np.random.default_rng(seed)
    data = np.empty((n, len(GAS_FEATURES)), dtype=np.float32)
    n_first = round(n * GAS_ROWS[0] / sum(GAS_ROWS))
    resting = rng.uniform(500.0, 3000.0, size=_GAS_SENSORS)
    with threadpool_limits(1, "blas"):  # products this narrow are slower on several threads
        for mixture, highest_ppm in ((data[:n_first], (533.0, 20.0)), (data[n_first:], (297.0, 20.0))):
            _record_mixture(mixture, resting, np.array(highest_ppm), rng)
    standardise(data)
    return Bunch(
        data=data,
        target=np.repeat(np.arange(2, dtype=np.int32), [n_first, n - n_first]),
        target_names=np.array(GAS_CLASSES),
        feature_names=list(GAS_FEATURES),
        DESCR=f"Simulated from seed {seed}: {n:,} rows of the size and kind of Gas Sensor. {_SIMULATED}",
    )


def _record_home(
    out: NDArray[Any], resistance: NDArray[Any], sensitivity: NDArray[Any], rng: np.random.Generator
) -> None:
    """Fill `out` with one recording, an hour before the stimulus to an hour after it."""
    stimulus = rng.uniform(0.2, 2.0)  # in hours, as all times here
    phase, temperature, humidity = rng.uniform(0.0, 6.0), rng.normal(26.0, 2.0), rng.normal(57.0, 6.0)
    ageing = rng.normal(1.0, 0.05, size=_HT_SENSORS)
    time = np.linspace(-1.0, stimulus + 1.0, len(out))
    response = -np.expm1(-np.clip(time, 0.0, stimulus) / 0.15) * np.exp(-np.maximum(time - stimulus, 0.0) / 0.3)
    warmth, damp = np.sin(time + phase), np.sin(1.7 * time + phase)
    weather = 1.0 - 0.02 * warmth - 0.03 * damp
    out[:, 0] = time
    out[:, 1:9] = resistance * ageing * weather[:, None] * (1.0 - response[:, None] * sensitivity)
    out[:, 9] = temperature + warmth
    out[:, 10] = humidity + 3.0 * damp
    out[:, 1:] += rng.standard_normal((len(out), len(HT_FEATURES) - 1), dtype=np.float32) * np.float32(0.02)


def _record_mixture(
    out: NDArray[Any], resting: NDArray[Any], highest_ppm: NDArray[Any], rng: np.random.Generator
) -> None:
    """Fill `out` with one mixture: two concentrations, then sixteen sensors."""
    edges = np.concatenate([[0.0], np.cumsum(rng.uniform(80.0, 120.0, size=600))])
    edges = edges[edges < _GAS_SECONDS]
    # Each gas is off half of the time.
    share = rng.uniform(0.1, 1.0, size=(len(edges), 2)) * (rng.random((len(edges), 2)) < 0.5)
    # Per second, by gas and kind.
    follow_rate = rng.uniform(0.02, 0.2, size=2 * _GAS_KINDS).astype(np.float32)
    copies = np.tile(np.repeat(np.arange(_GAS_KINDS), 2), 2)  # the kind of each sensor, in UCI's order
    mix = np.zeros((2 * _GAS_KINDS, _GAS_SENSORS), dtype=np.float32)
    for gas in range(2):
        mix[gas * _GAS_KINDS + copies, np.arange(_GAS_SENSORS)] = rng.uniform(500.0, 2000.0, size=_GAS_SENSORS)
    drift = rng.normal(0.0, 0.1, size=_GAS_SENSORS) / _GAS_SECONDS

    step = _GAS_SECONDS / max(len(out), 1)
    row_edges = np.append(np.ceil(edges / step).astype(np.intp), len(out))
    lengths = np.diff(np.append(edges, _GAS_SECONDS))
    level = np.zeros(2 * _GAS_KINDS, dtype=np.float32)
    for segment, start in enumerate(edges):
        rows = slice(row_edges[segment], row_edges[segment + 1])
        goal = np.sqrt(np.repeat(share[segment], _GAS_KINDS)).astype(np.float32)
        elapsed = (np.arange(rows.start, rows.stop) * step - start).astype(np.float32)
        response = goal + (level - goal) * np.exp(-elapsed[:, None] * follow_rate)
        out[rows, :2] = share[segment] * highest_ppm
        rest = resting * (1.0 + drift * start)
        noise = rng.standard_normal((len(elapsed), _GAS_SENSORS), dtype=np.float32)
        noise *= np.float32(10.0)
        noise += response @ mix
        out[rows, 2:] = noise + rest.astype(np.float32)
        level = goal + (level - goal) * np.exp(-np.float32(lengths[segment]) * follow_rate)
