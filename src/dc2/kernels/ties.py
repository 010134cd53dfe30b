"""Ties: nodes are alike if the same rows lie near both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.metrics import euclidean_distances

from dc2.communities import TieGraph, tie_graph, ties_per_row
from dc2.kernels.nodes import Nodes
from dc2.kernels.similarity import InWords
from dc2.model_file import saved_model, saved_record
from dc2.parameters import check_integer

__all__ = ["TieSimilarity", "Ties"]


@saved_model
class Ties(BaseEstimator):
    """The tie graph: every row ties the signatures that lie nearest to it to each other.

    Two signatures are tied by the rows that lie between them, so that the graph sees density where a kernel sees only
    distance. It is sparse at any size and has no bandwidth.

    Parameters
    ----------
    n_ties : int or "auto", default="auto"
        How many signatures a row ties together, at least 2. "auto" goes by the number of signatures and of rows for
        each.

    Examples
    --------
    >>> from dc2 import DC2Clustering
    >>> from dc2.kernels import Ties
    >>> DC2Clustering(similarity=Ties(n_ties=8)).get_params()["similarity__n_ties"]
    8
    """

    ties_rows: ClassVar[bool] = True

    def __init__(self, n_ties: int | Literal["auto"] = "auto") -> None:
        self.n_ties = n_ties

    def check(self) -> None:
        """Raise if a parameter is impossible."""
        if not (isinstance(self.n_ties, str) and self.n_ties == "auto"):
            check_integer("n_ties", self.n_ties, low=2)

    def _ties(self, nodes: Nodes) -> int:
        if self.n_ties != "auto":
            return int(self.n_ties)
        rows_per_node = 1.0 if nodes.are_rows else float(nodes.masses.sum()) / len(nodes)
        return ties_per_row(len(nodes), rows_per_node, nodes.points.shape[1])

    def build(
        self, nodes: Nodes, seeds: SeedSequence, *, weighted: bool = False, n_jobs: int | None = None
    ) -> TieSimilarity:
        """Look at the nearest nodes of rows, and tie these to each other; nothing in it is random."""
        near = nodes.near(min(self._ties(nodes), len(nodes)))
        return TieSimilarity(tie_graph(near.ids, near.weights, len(nodes)), near.ids.shape[1])


@saved_record
@dataclass(frozen=True, eq=False)
class TieSimilarity:
    """The tie graph of nodes.

    Attributes
    ----------
    graph : TieGraph
    n_ties : int
        How many nodes each row ties together.
    """

    graph: TieGraph
    n_ties: int

    sparse: ClassVar[bool] = True

    def __len__(self) -> int:
        return self.graph.n_nodes

    def matrix(self) -> csr_array:
        """Return the weight of the rows that lie near both of two nodes."""
        return self.graph.matrix()

    def strength(self, some: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the share of the rows near one node that lie near the other too, 1 for a node and itself."""
        # A row near a node gives it n_ties - 1 ties.
        rows_near = np.maximum(self.graph.volumes[some], 1.0) / max(self.n_ties - 1, 1)
        shared = self.matrix()[some][:, some].toarray()
        strength: NDArray[np.float64] = shared / np.sqrt(np.outer(rows_near, rows_near))
        np.fill_diagonal(strength, 1.0)
        return np.minimum(strength, 1.0)

    def apart(self, some: NDArray[np.intp], points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return distances: a few nodes out of very many are hardly tied to each other."""
        return np.asarray(euclidean_distances(points))

    def in_words(self) -> InWords:
        """Say what it is."""
        return InWords(
            neighbours=f"Every row ties the {self.n_ties} signatures nearest to it",
            meaning="Alike means: of the rows that lie near one of the two signatures, the share that lies near both.",
            unit="shared rows",
            whole="of rows",
        )
