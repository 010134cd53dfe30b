"""The summary: what there is to say of each cluster, one record each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dc2.facts.profile import Profile

if TYPE_CHECKING:
    from dc2.facts.facts import Facts

__all__ = ["NOISE", "summary_records"]

NOISE = -1
MOST_WORDS = 4


def summary_records(facts: Facts) -> list[dict[str, Any]]:
    """Return a record for each cluster, and a last one for rows that are in none."""
    whole = facts.unit == "rows"
    records = [_of_cluster(facts, int(k), whole) for k in np.unique(facts.clusters.labels) if k >= 0]
    noise = facts.clusters.noise or 0.0
    if noise > 0:
        records.append(
            {
                "cluster": NOISE,
                "rows": _count(noise, whole),
                "share": noise / facts.clusters.total,
                "stability": None,
                "spread": None,
                "nearest": None,
                "sets_apart": "in no cluster",
                "typical": None,
            }
        )
    return records


def _of_cluster(facts: Facts, k: int, whole: bool) -> dict[str, Any]:
    nearest = facts.silhouette
    return {
        "cluster": k,
        "rows": _count(facts.clusters.sizes[k], whole),
        "share": float(facts.shares[k]),
        "stability": float(facts.stability[k]),
        "spread": float(facts.radii[k]),
        "nearest": None if nearest is None else int(nearest.closest[k]),
        "sets_apart": _sets_apart(facts.profile, k),
        "typical": _typical(facts, k),
    }


def _count(rows: float, whole: bool) -> int | float:
    return round(rows) if whole else float(rows)


def _sets_apart(profile: Profile, k: int) -> str:
    """Return words with effect sizes, such as "high temperature (+1.2), low humidity (-0.8)"."""
    words = [
        f"{word} {profile.names[column]} ({profile.difference[k, column]:+.1f})"
        for word, column in profile.words(k, MOST_WORDS)
    ]
    return ", ".join(words) or "near the average in every column"


def _typical(facts: Facts, k: int) -> str:
    """Return a row of the cluster, in the columns that tell it from others."""
    row, profile = facts.model.representatives_[k], facts.profile
    columns = [column for _, column in profile.words(k, MOST_WORDS)] or range(min(MOST_WORDS, len(row)))
    preparer = getattr(facts.model, "preparer_", None)
    levels = {} if preparer is None else preparer.level_columns
    told = [_told(profile.names, row, column, levels) for column in columns]
    return ", ".join(dict.fromkeys(told))


def _told(names: Sequence[str], row: NDArray[np.float64], column: int, levels: Mapping[int, str]) -> str:
    """Return the value of a column; of columns of levels that which the row has, such as "plan=gold"."""
    if column not in levels:
        return f"{names[column]}={float(row[column]):.4g}"
    alike = [place for place, name in levels.items() if name == levels[column]]
    return names[max(alike, key=lambda place: float(row[place]))]
