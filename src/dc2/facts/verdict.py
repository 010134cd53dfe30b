"""What to think of the number of clusters, in one plain sentence."""

from __future__ import annotations

from typing import Any

from dc2.communities import Verdict

__all__ = ["verdict_in_words"]

NEARLY_AS_GOOD = 0.75


def verdict_in_words(model: Any) -> str | None:
    """Return what speaks for the number of clusters of a fitted model, or None where nothing was looked at."""
    verdict = getattr(model, "verdict_", None)
    if verdict is not None:
        words = _of_communities(verdict, model.n_clusters_, chosen=not model.wish_.exact)
        if model.wish_.exact or model.wish_.any_number:
            return words
        if verdict.score < verdict.bar:
            return (
                f"{_clusters(model.n_clusters_)} come nearest of the numbers asked for, but do not stand out."
            )
        return f"Of the numbers asked for: {words}"
    path = getattr(model, "n_clusters_path_", None)
    if path is None:
        return None
    best_first = [int(n) for n in path["n_clusters"][(-path["score"]).argsort(kind="stable")]]
    others = [n for n in best_first if n != model.n_clusters_]
    return f"{_clusters(model.n_clusters_)}" + (f"; {others[0]} comes next." if others else ".")


def _of_communities(verdict: Verdict, n_clusters: int, chosen: bool) -> str:
    if not chosen:
        return _given(verdict, n_clusters)
    if verdict.one_cluster:
        next_best = (
            f" The best other number, {verdict.runner_up}, does not persist." if verdict.runner_up else ""
        )
        return f"No clusters stand out: the rows are one cloud.{next_best}"
    if verdict.runner_up and verdict.runner_up_score >= NEARLY_AS_GOOD * verdict.score:
        return f"{_clusters(n_clusters)}; {verdict.runner_up} is nearly as good."
    return f"{_clusters(n_clusters)} stand out."


def _given(verdict: Verdict, n_clusters: int) -> str:
    if n_clusters == 1:
        return "One cluster, as asked for."
    if not verdict.shows(n_clusters):
        return f"{_clusters(n_clusters)}, as asked for, but this number does not show in the data."
    return f"{_clusters(n_clusters)}, as asked for; the number persists."


def _clusters(number: int) -> str:
    return f"{number} cluster{'s' if number != 1 else ''}"
