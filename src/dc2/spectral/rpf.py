"""The rpf-kernel: points are alike if many random trees put them into one leaf."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from dc2.errors import InputError
from dc2.graph.nodes import Description, Nodes
from dc2.io.model_file import saved_model, saved_record
from dc2.parameters import MOST_DIRECTIONS, check_integer, check_positive, check_random_directions
from dc2.random import RandomStateLike, seed_sequence
from dc2.trees.forest import FOREST_CUTS, ForestCut, RPForest, forest_leaf_size

BANDWIDTHS = (0.02, 0.03, 0.04, 0.05, 0.07, 0.1)
FINEST_FOR_COUNTING = 0.03  # with a smaller bandwidth lone outliers pass for clusters


@saved_model
class RPF(BaseEstimator):
    """The rpf-kernel exp((s - 1) / b), with s the share of random trees in which two points share a leaf.

    Parameters
    ----------
    n_trees : int, default=800
        Trees of the forest.
    leaf_size : float or "auto", default="auto"
        A node of a tree with fewer points is not split. "auto" is a twentieth of the points within 5 and 30; the paper
        has 30.
    cut : {"mixed", "quantile", "uniform", "median", "mean"}, default="mixed"
        Where a node is cut. With "mixed" every other tree cuts anywhere between the quartiles of the projections, as
        the authors' rpForests do, and the others anywhere, which finds small clusters that lie apart. The paper's
        trees cut at the median.
    bandwidth : float, sequence of float or "auto", default="auto"
        The b above. Smaller sees finer structure. Of several, dc2 takes the largest whose relative eigengap after the
        k-th eigenvalue is at least half of the best (the one nearest to 0.04 where no gap shows); "auto" is six between
        0.02 and 0.1. The paper's beta is b * n_trees.
    n_candidates : int, default=1
        Directions drawn for each split; the one along which the points spread most is taken.

    Examples
    --------
    >>> from dc2 import RPFCluster
    >>> from dc2.spectral import RPF
    >>> RPFCluster(3, similarity=RPF(n_trees=200)).get_params()["similarity__n_trees"]
    200
    """

    uses_rows: ClassVar[bool] = False

    def __init__(
        self,
        n_trees: int = 800,
        leaf_size: float | Literal["auto"] = "auto",
        cut: ForestCut = "mixed",
        bandwidth: float | Sequence[float] | Literal["auto"] = "auto",
        n_candidates: int = 1,
    ) -> None:
        self.n_trees = n_trees
        self.leaf_size = leaf_size
        self.cut = cut
        self.bandwidth = bandwidth
        self.n_candidates = n_candidates

    def check(self) -> None:
        """Raise if a parameter is impossible."""
        check_integer("n_trees", self.n_trees, low=1, high=MOST_DIRECTIONS)
        forest_leaf_size(self.leaf_size, 1)
        check_random_directions(self.cut, FOREST_CUTS, 0, self.n_candidates)
        bandwidths_of(self.bandwidth)

    def edges_per_row(self, points: NDArray[Any], rows_per_node: float) -> int:
        """Return 0: rows are not needed."""
        return 0

    def build(
        self, nodes: Nodes, seeds: SeedSequence, *, weighted: bool = False, n_jobs: int | None = None
    ) -> RPFSimilarity:
        """Grow the forest on nodes and count shared leaves."""
        forest = self.grow(nodes.points, seeds, nodes.relative_weights if weighted else None, n_jobs)
        # Two bytes a count: kept, so that other numbers of clusters and bandwidths need no new forest.
        counts = forest.counts(n_jobs=n_jobs).astype(np.min_scalar_type(self.n_trees))
        candidates = bandwidths_of(self.bandwidth)
        given = not isinstance(self.bandwidth, str) and len(candidates) == 1
        return RPFSimilarity(counts, self.n_trees, candidates[0] if given else None, candidates)

    def grow(
        self, points: NDArray[Any], seeds: SeedSequence, weights: NDArray[np.float64] | None, n_jobs: int | None
    ) -> RPForest:
        """Grow the forest."""
        return RPForest.grow(
            points, self.n_trees, self.leaf_size, cut=self.cut, n_candidates=self.n_candidates, sample_weight=weights,
            n_jobs=n_jobs, rng=seeds,
        )  # fmt: skip


def bandwidths_of(bandwidth: Any) -> tuple[float, ...]:
    """Return the bandwidths to choose from, ascending; a number is the only one."""
    if isinstance(bandwidth, str) and bandwidth == "auto":
        return BANDWIDTHS
    several = bandwidth if isinstance(bandwidth, Sequence | np.ndarray) and len(bandwidth) else [bandwidth]
    return tuple(sorted({check_positive("bandwidth", one) for one in several}))


@saved_record
@dataclass(frozen=True, eq=False)
class RPFSimilarity:
    """The rpf-kernel of nodes, for any bandwidth."""

    counts: NDArray[np.unsignedinteger[Any]]  # in how many trees two nodes share a leaf
    n_trees: int
    bandwidth: float | None = None  # None until one is chosen
    bandwidths: tuple[float, ...] = BANDWIDTHS  # to choose from, ascending

    sparse: ClassVar[bool] = False

    @property
    def bandwidths_for_counting(self) -> tuple[float, ...]:
        """The candidates that are wide enough to tell how many clusters there are; all if none is."""
        return tuple(b for b in self.bandwidths if b >= FINEST_FOR_COUNTING) or self.bandwidths

    def check(self) -> None:
        """Raise if the parts do not fit together; called when a similarity was read from a model file."""
        n = len(self.counts)
        if (
            type(self.n_trees) is not int
            or self.n_trees < 1
            or self.counts.shape != (n, n)
            or self.counts.dtype.kind != "u"
            or (n > 0 and self.counts.max() > self.n_trees)
            or not self.bandwidths
            or not all(0 < b < np.inf for b in (*self.bandwidths, 1.0 if self.bandwidth is None else self.bandwidth))
        ):
            raise InputError("the parts of an RPFSimilarity do not fit together.")

    def __len__(self) -> int:
        return len(self.counts)

    def matrix(self, bandwidth: float | None = None) -> NDArray[np.float64]:
        """Return exp((s - 1) / b) for all pairs of nodes."""
        used = self.bandwidth if bandwidth is None else bandwidth
        assert used is not None, "no bandwidth is chosen yet"
        return rpf_similarity(self.counts, self.n_trees, used)

    def at(self, bandwidth: float | None) -> RPFSimilarity:
        """Return the same kernel with another bandwidth in use."""
        return replace(self, bandwidth=bandwidth)

    def strength(self, some: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the share of trees that put two nodes into one leaf."""
        shares: NDArray[np.float64] = self.counts[np.ix_(some, some)] / self.n_trees
        return shares

    def apart(self, some: NDArray[np.intp], points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return sqrt((1 - s) / b), the root of minus the kernel's logarithm."""
        assert self.bandwidth is not None, "no bandwidth is chosen yet"
        return np.sqrt((1.0 - self.strength(some)) / self.bandwidth)

    def describe(self) -> Description:
        """Say what it is."""
        return Description(
            neighbours=f"{self.n_trees:,} random trees tell which signatures are neighbours",
            meaning=f"Alike means: of {self.n_trees:,} random trees, how many put both signatures into the same leaf. "
            "The kernel grows steeply with that share.",
            unit="shared leaves",
            whole="of trees",
        )


class RPFKernel(RPF):
    """The rpf-kernel of points as an estimator: the same kernel that `RPFCluster` uses.

    Parameters
    ----------
    n_trees, leaf_size, cut, n_candidates
        As in `RPF`.
    bandwidth : float, default=0.05
        The b of exp((s - 1) / b), s being the share of trees in which two points share a leaf. The paper's beta is b
        times the number of trees: 0.0125 to 0.1 for its 10 to 80 with 800 trees.
    n_jobs : int, optional
        Number of threads; None takes all cores.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the forest.

    Attributes
    ----------
    similarity_ : ndarray of shape (n_points, n_points), float64
        Similarity of the fitted points; symmetric, 1 on the diagonal.
    forest_ : RPForest
    n_features_in_ : int

    Notes
    -----
    Growing takes O(T n d log n) time for T trees, counting O(T n leaf_size); memory is n^2.

    Examples
    --------
    >>> import numpy as np
    >>> S = np.random.default_rng(0).normal(size=(200, 2))
    >>> kernel = RPFKernel(n_trees=100, random_state=0).fit(S)
    >>> kernel.similarity_.shape, kernel.similarity(S[:3]).shape
    ((200, 200), (3, 200))
    """

    def __init__(
        self,
        n_trees: int = 800,
        leaf_size: float | Literal["auto"] = "auto",
        cut: ForestCut = "mixed",
        bandwidth: float = 0.05,
        n_jobs: int | None = None,
        random_state: RandomStateLike = None,
        n_candidates: int = 1,
    ) -> None:
        super().__init__(n_trees, leaf_size, cut, bandwidth, n_candidates)
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Grow the forest on points of shape (n_points, n_features) and compute their similarity; y is ignored."""
        self.check()
        bandwidth = check_positive("bandwidth", self.bandwidth)  # "auto" needs a number of clusters
        points = validate_data(self, X, dtype=[np.float64, np.float32])
        self.forest_ = self.grow(points, seed_sequence(self.random_state), None, self.n_jobs)
        self.similarity_ = rpf_similarity(self.forest_.counts(n_jobs=self.n_jobs), self.n_trees, bandwidth)
        return self

    def similarity(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the similarity of each of new points to each fitted point, of shape (n_new, n_points)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        bandwidth = check_positive("bandwidth", self.bandwidth)
        return rpf_similarity(self.forest_.counts(X, n_jobs=self.n_jobs), self.n_trees, bandwidth)


def rpf_similarity(counts: NDArray[np.integer[Any]], n_trees: int, bandwidth: float) -> NDArray[np.float64]:
    """Return exp((s - 1) / b) from counts of shared leaves; each of the n_trees + 1 values is computed once."""
    values: NDArray[np.float64] = np.exp((np.arange(n_trees + 1) / n_trees - 1.0) / bandwidth)
    similarity: NDArray[np.float64] = values[counts]
    return similarity
