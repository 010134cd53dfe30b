"""Tables larger than the sample whose rows repeat a few: a whole weight equals repeated rows there too."""

import numpy as np
import pytest
from numpy.random import SeedSequence

from dc2 import Compressor
from dc2.compress import compression
from dc2.compress.compression import compress_automatically
from dc2.compress.divide import Plan, plan_of
from dc2.compress.sampling import count_repeated_rows, take_sample
from dc2.engines.threads import ThreadEngine
from dc2.errors import InputError
from dc2.graph import neighbor_graph
from dc2.io.resolve import as_source


@pytest.fixture
def small_sample(monkeypatch):
    """Samples of 60 rows, and at most 50 distinct rows that become signatures."""
    for module in (compression, neighbor_graph):
        monkeypatch.setattr(module, "rows_as_nodes", lambda *_: 50)
    monkeypatch.setattr(Plan, "sample_rows_wanted", lambda *_: 60)


def compressed(X, weights=None, n_threads=1, block_bytes=2**24):
    plan, engine = plan_of(Compressor(random_state=0)), ThreadEngine(n_threads, block_bytes=block_bytes)
    compress = compress_automatically(plan, 1)
    return compress(as_source(X, sample_weight=weights), engine, SeedSequence(0), n_threads, None)


def repeated_table(n_distinct, seed=0):
    rng = np.random.default_rng(seed)
    distinct = rng.normal(size=(n_distinct, 4)).astype(np.float32)
    return distinct, rng.integers(1, 90, n_distinct)


@pytest.mark.parametrize("n_distinct", [2, 40, 50])
def test_whole_weights_equal_repeated_rows_beyond_the_sample(small_sample, n_distinct):
    distinct, repeats = repeated_table(n_distinct)
    weighted = compressed(distinct, repeats.astype(float))
    for n_threads, block_bytes in ((1, 2**24), (3, 1000)):
        found = compressed(np.repeat(distinct, repeats, axis=0), None, n_threads, block_bytes)
        for part in ("points", "weights", "spread"):
            np.testing.assert_array_equal(getattr(found.signatures, part), getattr(weighted.signatures, part))
        np.testing.assert_array_equal(found.ids, np.repeat(weighted.ids, repeats))
        assert found.n_rows == repeats.sum()


def test_more_distinct_rows_than_may_be_signatures_are_compressed(small_sample):
    distinct, repeats = repeated_table(51)
    X = np.repeat(distinct, repeats, axis=0)
    assert compressed(X).sample is not None


@pytest.mark.parametrize("block_bytes", [100, 3000, 2**24])
def test_weights_of_equal_rows_add_up_to_the_same_bits_in_blocks_of_any_size(block_bytes):
    rng = np.random.default_rng(1)
    X, weights = rng.integers(0, 3, (2000, 3)).astype(np.float64), rng.uniform(0, 2, 2000)
    weights[rng.random(2000) < 0.1] = 0
    source, engine = as_source(X, sample_weight=weights), ThreadEngine(2, block_bytes=block_bytes)
    sample = take_sample(source, engine, 100, seed=0)
    counted, whole = (count_repeated_rows(source, used, sample, most=27) for used in (engine, ThreadEngine(1)))
    np.testing.assert_array_equal(counted.weights, whole.weights)
    np.testing.assert_array_equal(counted.rows, whole.rows)
    assert counted.weights.sum() == pytest.approx(weights.sum())
    assert count_repeated_rows(source, engine, sample, most=26) is None


def test_a_value_that_is_no_number_is_refused_though_the_sample_missed_it(small_sample):
    distinct, repeats = repeated_table(20)
    X = np.repeat(distinct, repeats, axis=0)
    X[len(X) // 2, 1] = np.nan
    with pytest.raises(InputError):
        compressed(X)
