"""The poker rule, checked on UCI's own rows and on every kind of hand; freshly dealt hands."""

from math import comb
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dc2.errors import InputError, ParameterError
from evaluation.data import load_poker, make_poker, merge_poker_classes, poker_class

# Numbers of hands among the 2,598,960, by class.
HANDS = [1_302_540, 1_098_240, 123_552, 54_912, 10_200, 5_108, 3_744, 624, 36, 4]


def hand(*cards: tuple[int, int]) -> list[int]:
    return [number for card in cards for number in card]


def test_the_rule_gives_every_genuine_row_its_class(data_dir: Path) -> None:
    bunch = load_poker(data_dir, subset="train")
    assert bunch.data.shape == (25_010, 10)
    np.testing.assert_array_equal(poker_class(bunch.data), bunch.hand)
    np.testing.assert_array_equal(bunch.target, merge_poker_classes(bunch.hand))
    assert set(bunch.hand) == set(range(10))


@pytest.mark.parametrize(
    ("expected", "ranks", "suits"),
    [
        (0, (1, 3, 5, 7, 9), (1, 2, 3, 4, 1)),
        (0, (12, 13, 1, 2, 3), (1, 2, 3, 4, 1)),  # a straight does not go around the ace
        (1, (1, 1, 5, 7, 9), (1, 2, 3, 4, 1)),
        (2, (1, 1, 5, 5, 9), (1, 2, 3, 4, 1)),
        (3, (1, 1, 1, 5, 9), (1, 2, 3, 4, 1)),
        (4, (1, 2, 3, 4, 5), (1, 2, 3, 4, 1)),
        (4, (10, 11, 12, 13, 1), (1, 2, 3, 4, 1)),
        (5, (1, 3, 5, 7, 9), (2, 2, 2, 2, 2)),
        (6, (1, 1, 1, 5, 5), (1, 2, 3, 4, 1)),
        (7, (1, 1, 1, 1, 5), (1, 2, 3, 4, 1)),
        (8, (1, 2, 3, 4, 5), (3, 3, 3, 3, 3)),
        (8, (9, 10, 11, 12, 13), (3, 3, 3, 3, 3)),
        (9, (10, 11, 12, 13, 1), (4, 4, 4, 4, 4)),
    ],
)
def test_every_kind_of_hand(expected: int, ranks: tuple[int, ...], suits: tuple[int, ...]) -> None:
    cards = list(zip(suits, ranks, strict=True))
    for seed in range(3):
        shuffled = np.random.default_rng(seed).permutation(cards)
        assert poker_class(shuffled.reshape(1, 10)).tolist() == [expected]


@given(seed=st.integers(0, 2**32), n=st.integers(1, 300))
def test_a_deal_is_five_different_cards(seed: int, n: int) -> None:
    bunch = make_poker(n, seed)
    suits, ranks = bunch.data[:, 0::2], bunch.data[:, 1::2]
    assert bunch.data.shape == (n, 10)
    assert set(np.unique(suits)) <= {1, 2, 3, 4}
    assert ranks.min() >= 1
    assert ranks.max() <= 13
    cards = np.sort(suits * 13 + ranks, axis=1)
    assert (np.diff(cards, axis=1) > 0).all()
    np.testing.assert_array_equal(make_poker(n, seed).data, bunch.data)


def test_dealt_hands_have_the_exact_shares_of_the_ten_classes() -> None:
    assert sum(HANDS) == comb(52, 5)
    n = 1_000_000
    bunch = make_poker(n, seed=3)
    expected = np.array(HANDS) / sum(HANDS) * n
    observed = np.bincount(bunch.hand, minlength=10)
    assert (np.abs(observed - expected) < 5 * np.sqrt(expected) + 1).all()
    np.testing.assert_allclose(np.bincount(bunch.target) / n, [0.5012, 0.4225, 0.0763], atol=0.003)
    assert "regenerated" in bunch.DESCR


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ParameterError, match="n=0"):
        make_poker(0)
    with pytest.raises(InputError, match="10 columns"):
        poker_class(np.zeros((3, 9)))
    with pytest.raises(ParameterError, match="validation"):
        load_poker(subset="validation")  # type: ignore[arg-type]
