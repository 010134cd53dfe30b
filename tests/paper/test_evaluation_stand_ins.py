"""Stand-ins for sets that are not to be had: sizes, seeds, and that they say what they are."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dc2.errors import ParameterError
from evaluation.data import make_gas_like, make_ht_like

COLUMNS = {make_ht_like: 11, make_gas_like: 18}


@pytest.mark.parametrize("make", COLUMNS)
@settings(max_examples=10)
@given(n=st.sampled_from([1, 2, 1000, 20_000]), seed=st.integers(0, 2**32))
def test_the_rows_asked_for_come_as_float32_and_follow_the_seed(make: Callable[..., Any], n: int, seed: int) -> None:
    X = make(n, seed).data
    assert X.shape == (n, COLUMNS[make])
    assert X.dtype == np.float32
    assert np.isfinite(X).all()
    np.testing.assert_array_equal(make(n, seed).data, X)
    if n >= 1000:
        assert not np.array_equal(make(n, seed + 1).data, X)


@pytest.mark.parametrize("make", COLUMNS)
def test_no_rows_cannot_be_simulated(make: Callable[..., Any]) -> None:
    with pytest.raises(ParameterError, match="n=0"):
        make(0)


@pytest.mark.parametrize("make", [make_ht_like, make_gas_like])
def test_stand_ins_say_that_they_are_simulated(make: Callable[..., Any]) -> None:
    bunch = make(20_000)
    assert "Simulated" in bunch.DESCR
    assert "accuracy" in bunch.DESCR
    assert len(bunch.feature_names) == bunch.data.shape[1]
    assert set(bunch.target) == set(range(len(bunch.target_names)))


def test_gas_like_is_standardised_and_of_low_dimension() -> None:
    X = make_gas_like(50_000).data
    np.testing.assert_allclose(X.mean(axis=0, dtype=np.float64), 0, atol=1e-4)
    np.testing.assert_allclose(X.std(axis=0, dtype=np.float64), 1, atol=1e-4)
    spectrum = np.linalg.eigvalsh(np.cov(X.T))[::-1]
    assert spectrum[:6].sum() > 0.95 * spectrum.sum()


def test_gas_like_shares_its_rows_as_the_genuine_data_does() -> None:
    target = make_gas_like(8_387).target
    assert np.bincount(target).tolist() == [4_208, 4_179]
