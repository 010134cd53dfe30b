"""What to think of the number of clusters, in one plain sentence."""

from __future__ import annotations

from typing import Any

__all__ = ["verdict_in_words"]


def verdict_in_words(model: Any) -> str | None:
    """Return what speaks for the number of clusters of a fitted model, or None where nothing was looked at."""
    found = f"{model.n_clusters_} cluster{'s' if model.n_clusters_ != 1 else ''}"
    verdict = getattr(model, "verdict_", None)
    if verdict is not None:
        if model.n_clusters_ != verdict.n_clusters:
            return f"{found}, the layer asked for. Of all numbers: {verdict}"
        return str(verdict)
    path = getattr(model, "n_clusters_path_", None)
    if path is None:
        return None
    best_first = [int(n) for n in path["n_clusters"][(-path["score"]).argsort(kind="stable")]]
    others = [n for n in best_first if n != model.n_clusters_]
    return f"{found}; {others[0]} comes next." if others else f"{found}."
