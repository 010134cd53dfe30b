"""Poker Hand: the rule that gives a hand its class, UCI's own rows, and freshly dealt ones."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from dc2.datasets import check_rows, row_blocks
from dc2.errors import InputError, ParameterError
from evaluation.data.download import Archive, DataFile, obtain
from evaluation.data.location import Folder
from evaluation.data.text import numeric_blocks, stack

__all__ = ["load_poker", "make_poker", "merge_poker_classes", "poker_class"]

_URL = "https://archive.ics.uci.edu/static/public/158/poker+hand.zip"
_MAX_BYTES = 60_000_000
_ARCHIVES = {
    # Nobody publishes a checksum of the test file: its number of lines is known.
    "test": Archive(_URL, (DataFile("poker-hand-testing.data", n_lines=1_000_000),), _MAX_BYTES),
    "train": Archive(
        _URL,
        (
            DataFile(
                "poker-hand-training-true.data",
                "865e3ddab86a461d6d556ae339ca0c13b602d8be9088281abe8b2accd75a9f69",
            ),
        ),
        _MAX_BYTES,
    ),
}
_CARDS = 5
_FEATURES = tuple(f"{letter}{card}" for card in range(1, _CARDS + 1) for letter in "SC")
_HANDS = (
    "nothing", "one pair", "two pairs", "three of a kind", "straight", "flush", "full house", "four of a kind",
    "straight flush", "royal flush",
)  # fmt: skip
_MERGED = ("nothing", "one pair", "better than one pair")

_PREPARED = """Columns S1, C1, ... S5, C5: suit 1 to 4 and rank 1 (ace) to 13 (king) of five cards, raw. `hand` is the
class, 0 to 9; `target` merges all hands better than one pair, as the DC2 paper does, into three classes of 50.12, 42.25
and 7.63 %."""
_DESCR = f"Poker Hand (UCI), the {{subset}} file. {_PREPARED}"
_DESCR_MADE = f"""Poker Hand, regenerated: {{n:,}} uniformly random deals of five cards, from seed {{seed}}, with the
exact rule for the class. Not UCI's rows, which are such deals too, but the same distribution. {_PREPARED}"""


def load_poker(
    data_home: Folder | None = None,
    *,
    subset: Literal["test", "train"] = "test",
    download: bool = True,
) -> Bunch:
    """Load Poker Hand, 1,000,000 rows x 10 columns, 3 classes, as the paper prepares it.

    Parameters
    ----------
    subset : {"test", "train"}, default="test"
        UCI's test file of 1,000,000 rows, which the paper uses, or the training file of 25,010.

    Returns
    -------
    sklearn.utils.Bunch
        `data` (n, 10), `target` (n,) in 0..2, `hand` (n,) in 0..9, `target_names`, `hand_names`, `feature_names`,
        `DESCR`.

    See Also
    --------
    make_poker : The same distribution, without any file.
    """
    if subset not in _ARCHIVES:
        raise ParameterError(f"subset={subset!r} is unknown; choose 'test' (1,000,000 rows) or 'train' (25,010 rows).")
    (path,) = obtain(_ARCHIVES[subset], data_home, download=download)
    table = stack(numeric_blocks(path, n_columns=2 * _CARDS + 1, delimiter=",", dtype=np.int8), path)
    return _bunch(table[:, :-1].astype(np.float32), table[:, -1].astype(np.int32), _DESCR.format(subset=subset))


def make_poker(n: int = 1_000_000, seed: int = 0) -> Bunch:
    """Deal `n` uniformly random poker hands and class them by the exact rule: Poker Hand, regenerated.

    Parameters
    ----------
    n : int, default=1_000_000
        Number of hands.
    seed : int, default=0
        Seed of the deals.

    Returns
    -------
    sklearn.utils.Bunch
        `data` (n, 10), `target` (n,) in 0..2, `hand` (n,) in 0..9, `target_names`, `hand_names`, `feature_names`,
        `DESCR`.

    Examples
    --------
    >>> from evaluation.data import make_poker
    >>> hands = make_poker(1000, seed=1)
    >>> hands.data.shape
    (1000, 10)
    >>> hands.hand_names[hands.hand[0]] in hands.hand_names
    True
    """
    n = check_rows(n)
    rng = np.random.default_rng(seed)
    data = np.empty((n, 2 * _CARDS), dtype=np.float32)
    hand = np.empty(n, dtype=np.int32)
    for rows in row_blocks(n):
        cards = _deal(rows.stop - rows.start, rng)
        data[rows, 0::2] = cards // 13 + 1
        data[rows, 1::2] = cards % 13 + 1
        hand[rows] = poker_class(data[rows])
    return _bunch(data, hand, _DESCR_MADE.format(n=n, seed=seed))


def merge_poker_classes(hand: NDArray[Any]) -> NDArray[Any]:
    """Merge the ten classes to the paper's three: nothing, one pair, anything better.

    Examples
    --------
    >>> import numpy as np
    >>> from evaluation.data import merge_poker_classes
    >>> merge_poker_classes(np.array([0, 1, 2, 9]))
    array([0, 1, 2, 2])
    """
    merged: NDArray[Any] = np.minimum(hand, len(_MERGED) - 1)
    return merged


def poker_class(hands: NDArray[Any]) -> NDArray[np.int32]:
    """Return the class, 0 (nothing) to 9 (royal flush), of hands given as columns S1, C1, ... S5, C5.

    Among five cards the number of pairs of equal rank tells all hands of equal ranks apart: one pair 1, two pairs 2,
    three of a kind 3, full house 4, four of a kind 6. An ace may stand at either end of a straight.

    Examples
    --------
    >>> import numpy as np
    >>> from evaluation.data import poker_class
    >>> poker_class(np.array([[1, 10, 1, 11, 1, 13, 1, 12, 1, 1], [1, 2, 2, 2, 3, 5, 4, 5, 1, 9]]))
    array([9, 2], dtype=int32)
    """
    hands = np.asarray(hands)
    if hands.ndim != 2 or hands.shape[1] != 2 * _CARDS:
        raise InputError(f"hands of shape {hands.shape} are not five cards each; 10 columns are expected.")
    # (5, n): whole cards side by side, so that comparisons run along memory.
    suits, ranks = hands[:, 0::2].astype(np.int8).T, hands[:, 1::2].astype(np.int8).T

    equal_pairs = np.zeros(len(hands), dtype=np.int8)
    for first in range(_CARDS):
        for second in range(first + 1, _CARDS):
            equal_pairs += ranks[first] == ranks[second]
    by_equal_pairs = np.array([0, 1, 2, 3, 6, -1, 7], dtype=np.int32)
    result = by_equal_pairs[equal_pairs]

    high_ranks = np.where(ranks == 1, np.int8(14), ranks)  # aces above the king
    lowest_high = high_ranks.min(axis=0)
    four_apart = (ranks.max(axis=0) - ranks.min(axis=0) == 4) | (high_ranks.max(axis=0) - lowest_high == 4)
    straight = four_apart & (equal_pairs == 0)
    flush = (suits == suits[0]).all(axis=0)
    result[straight] = 4
    result[flush] = 5
    result[straight & flush] = 8
    result[straight & flush & (lowest_high == 10)] = 9
    return result


def _deal(n: int, rng: np.random.Generator) -> NDArray[np.int8]:
    """Return (n, 5) cards in 0..51, all different within a hand: hands with a repeat are thrown away."""
    cards = np.empty((n, _CARDS), dtype=np.int8)
    filled = 0
    while filled < n:
        drawn = rng.integers(0, 52, size=(n - filled, _CARDS), dtype=np.int8)
        in_order = np.sort(drawn, axis=1)
        proper = drawn[(in_order[:, 1:] != in_order[:, :-1]).all(axis=1)]
        cards[filled : filled + len(proper)] = proper
        filled += len(proper)
    return cards


def _bunch(data: NDArray[Any], hand: NDArray[np.int32], description: str) -> Bunch:
    return Bunch(
        data=data,
        target=merge_poker_classes(hand),
        hand=hand,
        target_names=np.array(_MERGED),
        hand_names=np.array(_HANDS),
        feature_names=list(_FEATURES),
        DESCR=description,
    )
