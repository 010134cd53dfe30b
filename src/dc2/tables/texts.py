"""Columns of texts: groups of letters, reduced to the few components that stand out in a sample."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from scipy.sparse.linalg import LinearOperator, svds

from dc2.core.reference import hash_at
from dc2.errors import InputError
from dc2.io.frames import Frame
from dc2.io.model_file import saved_record
from dc2.parameters import one_blas_thread
from dc2.tables.values import Words, as_words, column_values

BUCKETS = 2**12
LENGTHS = (3, 4)
WORD = re.compile(r"\w+")
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

    Examples
    --------
    >>> (rows,) = letter_groups(["Late delivery!", "delivery: LATE", "refund"])
    >>> one, other, third = rows.toarray()
    >>> bool((one == other).all()), float(one @ third)
    (True, 0.0)
    """
    from sklearn.feature_extraction.text import HashingVectorizer  # here, since the import takes a tenth of a second

    vectorizer = HashingVectorizer(
        analyzer="char_wb",
        ngram_range=LENGTHS,
        n_features=BUCKETS,
        preprocessor=_prepared,
        binary=True,
        alternate_sign=False,
        norm=None,
    )
    piece: list[str] = []
    letters = 0
    for place, text in enumerate(texts):
        piece.append(text)
        letters += min(len(text), MOST_LETTERS)
        if letters > LETTERS_AT_A_TIME or place == len(texts) - 1:
            rows = csr_array(vectorizer.transform(piece))
            rows.sort_indices()
            yield rows
            piece, letters = [], 0


def _prepared(text: str) -> str:
    """Return the words of a text; half of a surrogate pair, which has no bytes in UTF-8, becomes a question mark."""
    return " ".join(words_of(text)).encode("utf-8", "replace").decode("utf-8")


MOST_COMPONENTS = 16
LEARNED_LETTERS = 2**22
"""At most so many letters of the sample are used to learn components."""
GRID = 2**20
"""Weights are whole multiples of 1/GRID, so their sums are exact, in any order and on every platform."""
START = 4096  # seed of the vector at which the search for components begins
NAMED_WORDS = 3
MOST_WORDS = 512
RARE_WORD = 0.002


@saved_record
@dataclass(frozen=True, eq=False)
class TextTransform:
    """A column of texts, each with a place in a space of few components."""

    name: str
    components: tuple[str, ...]
    weights: NDArray[np.int32]
    squares: NDArray[np.int32]
    middle: NDArray[np.float64]
    factor: float

    def check(self) -> None:
        """Raise if the parts do not fit together; called when read from a model file."""
        width = len(self.components)
        if not (
            width > 0
            and all(isinstance(name, str) for name in self.components)
            and self.weights.dtype == self.squares.dtype == np.int32
            and self.middle.dtype == np.float64
            and self.weights.shape == (BUCKETS, width)
            and self.squares.shape == (BUCKETS,)
            and self.middle.shape == (width,)
            and (self.squares >= 0).all()
            and np.isfinite(self.middle).all()
            and isinstance(self.factor, float)
            and 0 < self.factor < np.inf
        ):
            raise InputError("the parts of a TextTransform do not fit together.")

    def places(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the place of each text."""
        weights, squares = self.weights.astype(np.float64), self.squares.astype(np.float64)
        places = np.zeros((len(texts), len(self.components)))
        start = 0
        for groups in letter_groups(texts):
            length = np.sqrt(groups @ squares * GRID)[:, None]  # in units of the grid, like sums of weights
            own = np.divide(groups @ weights, length, out=np.zeros((len(length), self.width)), where=length > 0)
            places[start : start + len(own)] = np.where(length > 0, (own - self.middle) * self.factor, 0.0)
            start += len(own)
        return places

    @property
    def width(self) -> int:
        """Number of components."""
        return len(self.components)

    def places_of(self, words: Words) -> NDArray[np.float64]:
        """Return the place of each row of a column; missing values are in the middle."""
        of_level = np.vstack([self.places(words.levels), np.zeros(self.width)])
        rows: NDArray[np.float64] = of_level[words.codes]
        return rows

    def apply(self, frame: Frame, out: NDArray[Any]) -> None:
        """Write the places of a block's rows into `out`."""
        out[:] = self.places_of(as_words(column_values(frame.get_column(self.name))[1]))


def learned_text(name: str, words: Words) -> TextTransform | None:
    """Learn the places of texts from a sample of rows; None if all of them are alike.

    A group of letters weighs more if fewer rows have it, and every text has length 1. The components are the leading
    ones of the rows about their mean, up to the largest drop in singular values. Later components tell single words
    apart, and a graph of neighbours would take rows that share a word for a cluster.
    """
    rows = words.codes[words.codes >= 0]
    letters = np.array([min(len(level), MOST_LETTERS) for level in words.levels], np.int64)[rows].sum()
    rows = rows[:: max(1, -(-int(letters) // LEARNED_LETTERS))]
    levels, codes = np.unique(rows, return_inverse=True)
    groups = vstack([*letter_groups([words.levels[level] for level in levels])], format="csr")[codes]
    n_with = np.asarray(groups.sum(axis=0)).ravel()
    rarity = np.log((1.0 + len(rows)) / (1.0 + n_with))
    squares = np.rint(rarity**2 * GRID).astype(np.int32)
    vectors = _leading(groups, rarity)
    if vectors is None:
        return None
    weights = np.rint(vectors * rarity[:, None] * GRID).astype(np.int32)
    plain = TextTransform(name, ("",) * weights.shape[1], weights, squares, np.zeros(weights.shape[1]), 1.0)
    middle = plain.places_of(Words(words.levels, rows)).mean(axis=0)
    centred = TextTransform(name, plain.components, weights, squares, middle, 1.0)
    return TextTransform(name, _names(centred, words, rows), weights, squares, middle, 1.0)


def _leading(groups: csr_array, rarity: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return the components that stand out, one column each."""
    length = np.sqrt(groups @ rarity**2)
    rows = groups[length > 0]
    n_rows = rows.shape[0]
    rows = csr_array(
        (rarity[rows.indices] / np.repeat(length[length > 0], np.diff(rows.indptr)), rows.indices, rows.indptr),
        shape=rows.shape,
    )
    most = min(MOST_COMPONENTS, n_rows - 1)
    if most < 2:
        return None
    mean = np.asarray(rows.sum(axis=0)).ravel() / n_rows
    about_mean = LinearOperator(
        rows.shape,
        matvec=lambda vector: rows @ vector.ravel() - mean @ vector.ravel(),
        rmatvec=lambda vector: rows.T @ vector.ravel() - mean * vector.sum(),
        dtype=np.float64,
    )
    begin = hash_at(START, np.arange(min(rows.shape))) / 2.0**64 - 0.5
    with one_blas_thread():  # bits must not depend on the number of threads
        _, sizes, vectors = svds(about_mean, k=most, v0=begin)
    order = np.argsort(-sizes, kind="stable")
    sizes, vectors = sizes[order], vectors[order].T
    there = int((sizes > 1e-6 * np.sqrt(n_rows)).sum())
    if there == 0:
        return None
    falls = sizes[1 : there - 1] / sizes[2:there]
    kept = int(falls.argmax()) + 2 if len(falls) else there
    vectors = vectors[:, :kept]
    return vectors * np.where(vectors[np.abs(vectors).argmax(axis=0), np.arange(kept)] < 0, -1.0, 1.0)


def _names(part: TextTransform, words: Words, rows: NDArray[np.int64]) -> tuple[str, ...]:
    """Return names of components: the column, a number, and the frequent words that lie farthest out."""
    counted: Counter[str] = Counter()
    for level, count in zip(*np.unique(rows, return_counts=True), strict=True):
        counted.update(dict.fromkeys(words_of(words.levels[level]), int(count)))
    least = max(2.0, RARE_WORD * len(rows))
    order = sorted((word for word, count in counted.items() if count >= least), key=lambda word: (-counted[word], word))
    frequent = order[:MOST_WORDS]
    places = part.places(frequent)
    names = []
    for component in range(part.width):
        far = np.argsort(-places[:, component], kind="stable")[:NAMED_WORDS]
        told = ", ".join(frequent[place] for place in far if places[place, component] > 0)
        names.append(f"{part.name} {component + 1}" + (f" ({told})" if told else ""))
    return tuple(names)
