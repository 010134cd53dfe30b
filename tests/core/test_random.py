"""Seed sequences: which random states give the same randomness, and which do not."""

import numpy as np
import pytest
from sklearn.utils import check_random_state

from dc2.errors import ParameterError
from dc2.random import is_seed_state, seed_sequence, tree_seed


def test_an_integer_always_stands_for_the_same_sequence():
    assert tree_seed(seed_sequence(7)) == tree_seed(seed_sequence(np.int64(7)))
    assert tree_seed(seed_sequence(7)) != tree_seed(seed_sequence(8))


def test_spawning_does_not_change_the_sequence_it_came_from():
    given = np.random.SeedSequence(3)
    first = [tree_seed(child) for child in seed_sequence(given).spawn(3)]
    assert first == [tree_seed(child) for child in seed_sequence(given).spawn(3)]
    assert len(set(first)) == 3
    assert given.n_children_spawned == 0


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_a_generator_is_drawn_from_so_each_call_differs_but_repeats_from_its_seed(make):
    def two_draws():
        generator = make(5)
        return [tree_seed(seed_sequence(generator)) for _ in range(2)]

    first, second = two_draws()
    assert first != second
    assert [first, second] == two_draws()


def test_none_follows_the_global_state_of_numpy():
    global_state = check_random_state(None)
    before = global_state.get_state()
    try:
        global_state.seed(0)
        first = tree_seed(seed_sequence(None))
        global_state.seed(0)
        assert tree_seed(seed_sequence(None)) == first
        assert tree_seed(seed_sequence(None)) != first
    finally:
        global_state.set_state(before)


@pytest.mark.parametrize("random_state", [-1, 1.5, "0", [1, 2]])
def test_what_is_no_seed_is_refused(random_state):
    with pytest.raises(ParameterError, match="random_state is"):
        seed_sequence(random_state)


@pytest.mark.parametrize(
    "change",
    [
        {"": 1},
        {"entropy": -1},
        {"entropy": None},
        {"entropy": 10**5000},
        {"spawn_key": 3},
        {"spawn_key": ["x"]},
        {"pool_size": 10**9},
        {"n_children_spawned": True},
    ],
)
def test_an_invalid_seed_state_raises(change):
    state = dict(seed_sequence(5).spawn(1)[0].state)
    assert is_seed_state(state)
    assert not is_seed_state(state | change)
