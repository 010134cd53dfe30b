"""Tables as people have them: customers in groups, in numbers, text, dates and missing values."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray


def customers(n_rows: int, seed: int = 0) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Return customers of five groups, and the group of each."""
    draw = np.random.default_rng(seed)
    group = draw.choice(5, n_rows, p=[0.3, 0.25, 0.2, 0.15, 0.1])
    usual = np.array(["basic", "plus", "plus", "gold", "basic"])[group]
    table = pd.DataFrame(
        {
            "customer": [f"C{number:07d}" for number in range(n_rows)],
            "age": np.array([25, 40, 55, 35, 68])[group] + draw.normal(0, 3.5, n_rows),
            "income": np.exp(np.array([10.2, 11.2, 10.6, 11.9, 10.0])[group] + draw.normal(0, 0.18, n_rows)),
            "visits": np.array([2, 12, 6, 20, 1])[group] + draw.gamma(2.0, 0.8, n_rows),
            "basket": np.exp(np.array([3.0, 4.2, 5.2, 3.6, 2.2])[group] + draw.normal(0, 0.25, n_rows)),
            "plan": np.where(draw.random(n_rows) < 0.7, usual, draw.choice(["basic", "plus", "gold"], n_rows)),
            "city": draw.choice([f"city {number}" for number in range(30)], n_rows),
            "signup": pd.Timestamp("2020-01-01") + pd.to_timedelta(draw.integers(0, 1500, n_rows), "D"),
            "country": "IT",
            "active": draw.random(n_rows) < 0.6,
        }
    )
    for column, share in (("age", 0.05), ("income", 0.03), ("plan", 0.04)):
        table.loc[draw.random(n_rows) < share, column] = None
    return table, group


def two_groups(n_rows: int = 600) -> pa.Table:
    """Return customers of two groups, in numbers, with ids that begin with zeros."""
    draw = np.random.default_rng(0)
    group = draw.integers(0, 2, n_rows)
    return pa.table(
        {
            "customer": [f"{number:05}" for number in range(n_rows)],
            "age": 30.0 + 30 * group + draw.normal(0, 3, n_rows),
            "visits": 2.0 + 9 * group + draw.normal(0, 1, n_rows),
        }
    )


def flights(n_rows: int, seed: int = 0) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Return flights of three groups with codes, names, times HHMM and mostly missing delays, and the group of each."""
    draw = np.random.default_rng(seed)
    group = draw.choice(3, n_rows, p=[0.5, 0.3, 0.2])
    airline = np.minimum(draw.poisson(np.array([2, 5, 9])[group]), 13)
    state = draw.integers(0, 20, n_rows)
    minutes = (np.array([7, 13, 19])[group] * 60 + draw.normal(0, 90, n_rows)).astype(int) % 1440
    delay = np.where(draw.random(n_rows) < np.array([0.1, 0.2, 0.5])[group], draw.gamma(2, 10, n_rows), np.nan)
    distance = np.exp(draw.normal(np.array([5.5, 6.5, 7.5])[group], 0.25))
    table = pd.DataFrame(
        {
            "AirlineID": draw.choice(np.arange(19_000, 21_000), 14, replace=False)[airline],
            "StateFips": draw.permutation(20)[state],
            "State": np.array([f"S{place}" for place in range(20)])[state],
            "StateName": np.array([f"State of {place}" for place in range(20)])[state],
            "DepTime": minutes // 60 * 100 + minutes % 60,
            "Distance": distance,
            "AirTime": distance / 8 + draw.normal(0, 8, n_rows),
            "NASDelay": delay,
            "Tail": np.nan,
            "Gate": pd.Categorical(draw.integers(1, 4, n_rows)),
        }
    )
    return table, group
