"""Randomness: one seed sequence per fit, one child per tree and partition.

Children are spawned in a fixed order, so what a tree draws depends on its number alone: never on threads,
blocks or the order in which work happens to finish.
"""

from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
from numpy.random import Generator, RandomState, SeedSequence
from sklearn.utils import check_random_state

from dc2.errors import ParameterError

__all__ = ["RandomStateLike", "is_seed_state", "seed_sequence", "tree_seed"]

RandomStateLike: TypeAlias = int | RandomState | Generator | SeedSequence | None

_ENTROPY_WORDS = 4  # of 32 bits each: what a SeedSequence itself would gather from the operating system

_LONGEST, _MOST_BITS = 1000, 4096  # of what a model file may call a seed


def seed_sequence(random_state: RandomStateLike = None) -> SeedSequence:
    """Return the seed sequence that a ``random_state`` stands for.

    Parameters
    ----------
    random_state : int, RandomState, Generator, SeedSequence or None, default=None
        An integer or a SeedSequence stands for the same sequence every time. A RandomState or a Generator
        is drawn from, so each call moves it on and gives another sequence. None draws from NumPy's global
        state, as everywhere in scikit-learn: ``numpy.random.seed`` then makes it repeatable.

    Returns
    -------
    SeedSequence
        A fresh one, which has no children yet: spawning from it does not change the argument.

    Examples
    --------
    >>> from dc2.random import seed_sequence, tree_seed
    >>> first, second = seed_sequence(0).spawn(2)
    >>> tree_seed(first) == tree_seed(seed_sequence(0).spawn(1)[0])
    True
    >>> tree_seed(first) == tree_seed(second)
    False
    """
    if isinstance(random_state, SeedSequence):
        return SeedSequence(random_state.entropy, spawn_key=random_state.spawn_key, pool_size=random_state.pool_size)
    if isinstance(random_state, Integral):
        if random_state < 0:
            raise ParameterError(
                f"random_state is {random_state}, but a seed must not be negative; use 0 or a larger integer."
            )
        return SeedSequence(int(random_state))
    if isinstance(random_state, Generator):
        words = random_state.integers(2**32, size=_ENTROPY_WORDS, dtype=np.uint32)
    elif random_state is None or isinstance(random_state, RandomState):
        words = check_random_state(random_state).randint(2**32, size=_ENTROPY_WORDS, dtype=np.uint32)
    else:
        raise ParameterError(
            f"random_state is {random_state!r}, from which no seed can be made; "
            "use an integer, None, or NumPy's RandomState, Generator or SeedSequence."
        )
    return SeedSequence(words.tolist())


def tree_seed(sequence: SeedSequence) -> int:
    """Return 64 bits of a sequence as an integer: the seed of one tree in the core."""
    return int(sequence.generate_state(1, np.uint64)[0])


def is_seed_state(state: Any) -> bool:
    """Return whether this is the state of a seed sequence, of ordinary size.

    Examples
    --------
    >>> is_seed_state(dict(seed_sequence(0).state)), is_seed_state({"entropy": -1})
    (True, False)
    """
    if not isinstance(state, dict) or set(state) != set(SeedSequence(0).state):
        return False
    entropy, key = state["entropy"], state["spawn_key"]
    entropy = entropy if isinstance(entropy, list | tuple) else [entropy]
    if not isinstance(key, list | tuple) or len(key) > _LONGEST or len(entropy) > _LONGEST:
        return False
    numbers = (*entropy, *key, state["n_children_spawned"])
    return state["pool_size"] == SeedSequence(0).pool_size and all(
        isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 2**_MOST_BITS for number in numbers
    )
