"""Tables as people have them: customers in groups, in numbers, words, dates and blanks."""

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
