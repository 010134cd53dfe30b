"""Randomness: one seed sequence per fit, one child per tree and partition.

Children are spawned in a fixed order, so what a tree draws depends on its number alone: never on threads,
blocks or the order in which work happens to finish.
"""

from numbers import Integral
from typing import TypeAlias

import numpy as np
from numpy.random import Generator, RandomState, SeedSequence
from sklearn.utils import check_random_state

from dc2.errors import ParameterError

__all__ = ["RandomStateLike", "seed_sequence", "tree_seed"]

RandomStateLike: TypeAlias = int | RandomState | Generator | SeedSequence | None

_ENTROPY_WORDS = 4  # of 32 bits each: what a SeedSequence itself would gather from the operating system


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
        return SeedSequence(
            random_state.entropy, spawn_key=random_state.spawn_key, pool_size=random_state.pool_size
        )
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
