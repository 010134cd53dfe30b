"""Which groups of letters occur in texts: a hash numbers them, so there is no vocabulary to keep."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dc2.core.reference import hash_at

__all__ = ["BUCKETS", "letter_groups", "words_of"]

BUCKETS = 2**12
LENGTHS = (3, 4)
SEED = 74_510
WORD = re.compile(r"\w+")
SPACE, END = 0x20, 0x0A
LETTER_BITS = 21  # of a Unicode letter: three fit into one number
MOST_LETTERS = 10_000
"""Letters of a text that are read; the rest is ignored."""
LETTERS_AT_A_TIME = 2**18


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case.

    Examples
    --------
    >>> words_of("Don't PANIC (42)")
    ['don', 't', 'panic', '42']
    """
    return WORD.findall(text[:MOST_LETTERS].casefold())


def letter_groups(texts: Sequence[str]) -> Iterator[csr_array]:
    """Yield a row of zeros and ones for each text: which groups of three and four letters occur in its words.

    A group may include the beginning or the end of a word. Its number is a hash of its letters alone, so it does not
    depend on other texts or their order; now and then two groups share a number.

    Yields
    ------
    csr_array of shape (some, BUCKETS), float64
        As many texts as a limit on memory allows, in order. Columns ascend in each row.

    Examples
    --------
    >>> (rows,) = letter_groups(["Late delivery!", "delivery: LATE", "refund"])
    >>> one, other, third = rows.toarray()
    >>> bool((one == other).all()), float(one @ third)
    (True, 0.0)
    """
    piece: list[str] = []
    letters = 0
    for text in texts:
        piece.append(f" {' '.join(words_of(text))} ")
        letters += len(piece[-1])
        if letters > LETTERS_AT_A_TIME:
            yield _groups(piece)
            piece, letters = [], 0
    if piece:
        yield _groups(piece)


def _groups(texts: Sequence[str]) -> csr_array:
    """Return the groups of letters in texts whose words have a space before and after them."""
    together = "\n".join(texts) + "\n"
    letters = np.frombuffer(together.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint64)
    text_of = np.cumsum(letters == END)
    found = [_groups_of_length(letters, length) for length in LENGTHS]
    lines = np.concatenate([text_of[places] for places, _ in found])
    once = np.unique(lines * BUCKETS + np.concatenate([columns for _, columns in found]))
    starts = np.searchsorted(once, np.arange(len(texts) + 1) * BUCKETS)
    return csr_array((np.ones(len(once)), once % BUCKETS, starts), shape=(len(texts), BUCKETS))


def _groups_of_length(letters: NDArray[np.uint64], length: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where groups of this many letters within one word begin, and the column of each."""
    n_places = max(0, len(letters) - length + 1)
    whole = np.ones(n_places, dtype=np.bool_)
    for step in range(length):
        letter = letters[step : step + n_places]
        whole &= letter != END
        if 0 < step < length - 1:
            whole &= letter != SPACE
    places = np.flatnonzero(whole)
    hashed = np.zeros(len(places), np.uint64)
    for start in range(0, length, 3):
        packed = np.zeros(len(places), np.uint64)
        for step in range(start, min(start + 3, length)):
            packed = (packed << np.uint64(LETTER_BITS)) | letters[places + step]
        hashed = hash_at(SEED + length, hashed ^ packed)
    return places, (hashed % np.uint64(BUCKETS)).astype(np.int64)
