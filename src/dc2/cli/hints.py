"""What a user may want to know of a table of numbers that was taken as it is."""

from collections.abc import Sequence

import numpy as np

from dc2.sources import Source
from dc2.sources.checks import listed

__all__ = ["hint_on_codes"]

LOOKED_AT_BYTES = 2**20
MOST_VALUES = 20
ROWS_PER_VALUE = 4


def hint_on_codes(source: Source) -> str:
    """Return a word on columns of few whole numbers beside columns of many values; empty where there are none.

    The first rows tell. Rows pile up at such values, so that a rating from 1 to 5 may cut clusters into five.
    """
    first = next(source.blocks(LOOKED_AT_BYTES)).X
    names = source.feature_names or [str(place) for place in range(first.shape[1])]
    values = [np.unique(column) for column in first.T]
    coded = [
        name
        for name, distinct in zip(names, values, strict=True)
        if 1 < len(distinct) <= min(MOST_VALUES, len(first) / ROWS_PER_VALUE) and (distinct % 1 == 0).all()
    ]
    many = any(len(distinct) > MOST_VALUES for distinct in values)
    return _in_words(coded) if coded and many else ""


def _in_words(names: Sequence[str]) -> str:
    one = len(names) == 1
    return (
        f"{listed(names)} {'holds' if one else 'hold'} few whole numbers, which other columns do not; such a column "
        f"may cut clusters at each of its values. --prepare spreads {'it' if one else 'them'}, if these are counts or "
        f"ratings; --as category:{names[0]} takes codes as names."
    )
