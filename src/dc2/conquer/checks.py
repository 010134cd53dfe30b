"""Checks of parameters of conquer, before any work."""

from __future__ import annotations

from typing import Any

from dc2.communities.wish import Wish
from dc2.errors import ParameterError
from dc2.parameters import MOST_SIGNATURES, check_integer

__all__ = ["check_enough_signatures", "check_has_rows_to_tie"]


def check_enough_signatures(n_signatures: Any, wish: Wish) -> int:
    """Return a number of signatures that can make so many clusters, or raise."""
    number = check_integer("n_signatures", n_signatures, low=1, high=MOST_SIGNATURES)
    if number < wish.low:
        raise ParameterError(
            f"n_signatures={number} cannot make n_clusters={wish.low} clusters: use at least as many signatures as "
            "clusters, better many times more."
        )
    return number


def check_has_rows_to_tie(similarity: Any, one_tree: bool) -> None:
    """Raise if a similarity looks for the nearest signatures of rows where rows are dealt to several trees."""
    if getattr(similarity, "ties_rows", False) and not one_tree:
        raise ParameterError(
            "similarity='ties' needs one tree over all rows, but divide='sampling' makes one per partition. Use "
            "divide='projection'."
        )
