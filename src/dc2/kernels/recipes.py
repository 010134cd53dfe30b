"""Similarities by name."""

from __future__ import annotations

from typing import Any

from dc2.errors import ParameterError
from dc2.kernels.gaussian import Gaussian
from dc2.kernels.rpf import RPF
from dc2.kernels.similarity import SimilarityRecipe
from dc2.kernels.ties import Ties

__all__ = ["similarity_recipe"]

RECIPES: dict[str, type[Any]] = {"gaussian": Gaussian, "rpf": RPF, "ties": Ties}


def similarity_recipe(similarity: Any) -> SimilarityRecipe:
    """Return the recipe that a parameter ``similarity`` names or is, checked.

    Examples
    --------
    >>> similarity_recipe("rpf")
    RPF()
    """
    if isinstance(similarity, str) and similarity in RECIPES:
        similarity = RECIPES[similarity]()
    if isinstance(similarity, type) or not isinstance(similarity, SimilarityRecipe):
        names = ", ".join(map(repr, RECIPES))
        raise ParameterError(
            f"similarity must be one of {names}, or an object such as RPF(n_trees=400); got {similarity!r}."
        )
    similarity.check()
    return similarity
