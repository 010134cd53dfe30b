"""US Census Income (KDD): who earned more than 50,000 dollars in 1994 and 1995."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from dc2.errors import SourceError
from evaluation.data.download import Archive, DataFile, obtain
from evaluation.data.location import Folder
from evaluation.data.standardise import standardise
from evaluation.data.text import line_blocks, stack

__all__ = ["load_usci"]

_ARCHIVE = Archive(
    "https://archive.ics.uci.edu/static/public/117/census+income+kdd.zip",
    (
        DataFile("census-income.data", "3676a81db7d3528f3f8b9f3c699d0f0aa28db45e6e994fa0b8ed38327539ee86"),
        DataFile("census-income.test", "98402b1ab879573d0a7f38a699a40258080e25e33d3401e7bf9c96d3fa0fab8c"),
    ),
    max_bytes=400_000_000,
)
_ATTRIBUTES = (
    "age", "class_of_worker", "industry_code", "occupation_code", "education", "wage_per_hour",
    "enrolled_in_school", "marital_status", "major_industry", "major_occupation", "race", "hispanic_origin", "sex",
    "union_member", "reason_for_unemployment", "employment_status", "capital_gains", "capital_losses", "dividends",
    "tax_filer_status", "region_before", "state_before", "household_status", "household_summary",
    "instance_weight", "migration_msa", "migration_region", "migration_within_region", "same_house_a_year_ago",
    "migration_sunbelt", "persons_worked_for", "family_under_18", "country_of_father", "country_of_mother",
    "country_of_birth", "citizenship", "self_employed", "veterans_questionnaire", "veterans_benefits",
    "weeks_worked", "year",
)  # fmt: skip
_DROPPED = (26, 27, 28, 30)  # numbered from 1, as in the paper: half of their values are missing
_INCOMES = ("- 50000.", "50000+.")

_DESCR = """US Census Income (UCI, KDD), training and test file together: 299,285 rows of 41 attributes. Prepared as
in the DC2 paper: attributes 26, 27, 28 and 30 are left out, then every row with a '?' ('NA' is a value like any
other), which leaves 285,779 rows of 37 columns; categories are numbered in alphabetical order, numbers stay numbers,
and every column is standardised. (The paper's text says 285,799 rows, its table 285,779, which is what comes out.)"""


def load_usci(data_home: Folder | None = None, *, download: bool = True) -> Bunch:
    """Load US Census Income, 285,779 rows x 37 columns, 2 classes, as the paper prepares it.

    Returns
    -------
    sklearn.utils.Bunch
        `data` (n, 37), `target` (n,) with 1 for an income above 50,000 dollars, `target_names`, `feature_names`,
        `DESCR`.
    """
    paths = obtain(_ARCHIVE, data_home, download=download)
    codes, words = _read(paths)

    kept_columns = [column for column in range(len(_ATTRIBUTES)) if column + 1 not in _DROPPED]
    missing = np.zeros(len(codes), dtype=bool)
    for column in kept_columns:
        missing |= np.array([word == "?" for word in words[column]])[codes[:, column]]
    codes = codes[~missing]

    data = np.empty((len(codes), len(kept_columns)), dtype=np.float32)
    for place, column in enumerate(kept_columns):
        data[:, place] = _values(words[column])[codes[:, column]]
    standardise(data)

    return Bunch(
        data=data,
        target=_classes(words[-1], paths)[codes[:, -1]],
        target_names=np.array(["up to 50000", "above 50000"]),
        feature_names=[_ATTRIBUTES[column] for column in kept_columns],
        DESCR=_DESCR,
    )


class _Numbering(dict[str, int]):
    """Numbers words in the order in which they first occur."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number


def _read(paths: list[Path]) -> tuple[NDArray[np.int32], list[list[str]]]:
    """Return, for every column, a number per row and the words that the numbers stand for."""
    numberings = [_Numbering() for _ in range(len(_ATTRIBUTES) + 1)]
    blocks = []
    for path in paths:
        for first, lines in line_blocks(path):
            fields = [line.split(",") for line in lines]
            if any(len(row) != len(numberings) for row in fields):
                raise SourceError(
                    f"{path} is not UCI's census-income file: not every line from {first:,} to "
                    f"{first + len(lines) - 1:,} has {len(numberings)} fields. Fetch the file again."
                )
            blocks.append(_number(zip(*fields, strict=True), numberings, len(lines)))
    codes = stack(blocks, paths[0])
    return codes, [[word.strip() for word in numbering] for numbering in numberings]


def _number(columns: Iterable[tuple[str, ...]], numberings: list[_Numbering], n_rows: int) -> NDArray[np.int32]:
    codes = np.empty((n_rows, len(numberings)), dtype=np.int32)
    for place, (column, numbering) in enumerate(zip(columns, numberings, strict=True)):
        codes[:, place] = np.fromiter(map(numbering.__getitem__, column), dtype=np.int32, count=n_rows)
    return codes


def _values(words: list[str]) -> NDArray[np.float64]:
    """Return the number for each word: itself if all are numbers, else its place in alphabetical order."""
    present = sorted({word for word in words if word != "?"})
    try:
        value: dict[str, Any] = {word: float(word) for word in present}
    except ValueError:
        value = {word: place for place, word in enumerate(present)}
    return np.array([value.get(word, np.nan) for word in words], dtype=np.float64)


def _classes(words: list[str], paths: list[Path]) -> NDArray[np.int32]:
    strange = sorted(set(words) - set(_INCOMES))
    if strange:
        raise SourceError(f"{paths[0]} or {paths[-1]} has the class {strange[0]!r}; {_INCOMES} are expected.")
    return np.array([_INCOMES.index(word) for word in words], dtype=np.int32)
