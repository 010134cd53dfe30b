"""What a similarity is: a recipe that a user passes, and what it builds from nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from dc2.kernels.nodes import Nodes

__all__ = ["DenseSimilarity", "InWords", "Similarity", "SimilarityRecipe"]


@dataclass(frozen=True)
class InWords:
    """A similarity explained to people who do not know it.

    Attributes
    ----------
    neighbours : str
        Half a sentence on how neighbours are found, such as "Distances tell which signatures are neighbours".
    meaning : str
        What it means that two signatures are alike.
    unit : str
        What its numbers count.
    whole : str
        What a number of 1 stands for, such as "all trees"; empty where the numbers are not shares.
    """

    neighbours: str
    meaning: str
    unit: str
    whole: str = ""


class Similarity(Protocol):
    """How alike nodes are, built once and saved with the model.

    Attributes
    ----------
    sparse : bool
        Decides the conqueror: a sparse similarity is a graph of ties, conquered by communities; a dense one is a
        kernel matrix, conquered by its eigenvectors.
    """

    sparse: ClassVar[bool]

    def in_words(self) -> InWords:
        """Say what it is."""

    def strength(self, some: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return how alike some nodes are, as a matrix of numbers from 0 to 1 that a picture can show."""

    def apart(self, some: NDArray[np.intp], points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how far apart some nodes, which lie at these points, are to be drawn on a map."""


class DenseSimilarity(Similarity, Protocol):
    """A kernel matrix, for every bandwidth that may be chosen.

    Attributes
    ----------
    bandwidth : float or None
        The bandwidth in use; None until one is chosen.
    bandwidths : tuple of float
        Those to choose from, ascending.
    bandwidths_for_counting : tuple of float
        Those of them that tell how many clusters there are.
    """

    bandwidth: float | None
    bandwidths: tuple[float, ...]
    bandwidths_for_counting: tuple[float, ...]

    def __len__(self) -> int: ...

    def matrix(self, bandwidth: float | None = None) -> NDArray[np.float64]:
        """Return the similarity of all pairs of nodes, by default at the bandwidth in use."""

    def at(self, bandwidth: float | None) -> Any:
        """Return the same similarity with another bandwidth in use; None leaves it to be chosen."""


@runtime_checkable
class SimilarityRecipe(Protocol):
    """What a user passes as ``similarity=``: parameters, and how to build from them."""

    def check(self) -> None:
        """Raise if a parameter is impossible."""

    def build(self, nodes: Nodes, seeds: SeedSequence, *, weighted: bool = False, n_jobs: int | None = None) -> Any:
        """Return the similarity of nodes; with `weighted` it regards how many rows each stands for."""
