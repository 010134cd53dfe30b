"""DC2Clustering: the clusterer that needs no settings."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from inspect import signature
from numbers import Real
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from dc2.cluster.base import SignatureClusterer, warn_if_not_supported
from dc2.cluster.changes import Changes
from dc2.cluster.fit import ClusterPlan, Compress, checked_plan, compress_by, fit_rows, with_layer
from dc2.cluster.noise import NoisePlan, Outliers
from dc2.cluster.update import no_changes, update
from dc2.compress.compression import compress_automatically
from dc2.compress.compressor import Compressor
from dc2.compress.populate import NegativeScores
from dc2.compress.scaling import IF_APART
from dc2.engines.engine import DEFAULT_BLOCK_BYTES
from dc2.engines.map_rows import RunOptions, Verbose, mapped_rows
from dc2.errors import ParameterError
from dc2.graph.constraints import RowLabels, RowLinks, RowsKnown
from dc2.graph.n_clusters import RequestedClusters
from dc2.graph.neighbor_graph import NeighborGraph
from dc2.graph.nodes import SimilarityRecipe
from dc2.graph.precomputed import KINDS
from dc2.graph.size_limits import SizeLimits
from dc2.io.model_file import saved_model
from dc2.io.resolve import without_label_column
from dc2.parameters import check_choice, check_integer
from dc2.random import RandomStateLike, seed_sequence
from dc2.spectral.conquer import SpectralConqueror, check_enough_signatures, check_has_rows
from dc2.spectral.gaussian import Gaussian
from dc2.spectral.rpf import RPF
from dc2.tables.auto_prepare import Preparation
from dc2.tables.preparer import TablePreparer

RECIPES: dict[str, type[Any]] = {"gaussian": Gaussian, "rpf": RPF, "graph": NeighborGraph}


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


@saved_model
class DC2Clustering(SignatureClusterer):
    """Find clusters of any shape, and their number, in 10^3 to 10^9 rows.

    dc2 divides the rows by random projections and compresses each part to a signature, the mean of its rows. It
    connects two signatures if rows are near both, and finds the clusters as communities of this neighbour graph
    (Leiden algorithm). The number of clusters is one that persists over many resolutions and under bootstrap
    resampling. Each row gets the cluster of its nearest signature. If there are few rows, dc2 does not compress them:
    each distinct row is a node of the graph.

    Parameters
    ----------
    n_clusters : "auto", int, (low, high) or range, default="auto"
        "auto" chooses a number that the data support, possibly 1; a pair or a range limits the choice. A number is met
        if there are that many distinct rows.
    n_signatures : "auto" or int, default="auto"
        "auto" depends only on distinct rows, columns and `n_clusters`: few rows (16,384 in four columns, 4096 more for
        each further one, at most 100,000) are not compressed; above, the number grows with rows and columns, to 21,399
        for 784 columns. A few thousand make a fit of tens of thousands of rows faster and less fine.
    similarity : {"graph", "rpf", "gaussian"} or an object such as ``NeighborGraph(n_neighbors=8)``, default="graph"
        "graph" is a sparse neighbour graph, clustered by communities; "rpf" and "gaussian" are dense kernels for up to
        about 2000 signatures, clustered by spectral clustering.
    metric : {"euclidean", "cosine", "haversine", "precomputed"}, default="euclidean"
        With "cosine" only the direction of a row counts. With "haversine" rows are latitude and longitude in degrees,
        in this order or by their names, and distances are in kilometres. With "precomputed" X is a graph: a sparse
        matrix of the neighbours of each row, such as that of `KNeighborsTransformer`, or a dense matrix of all
        distances of up to 20,000 rows; what needs coordinates raises ParameterError.
    precomputed : {"distances", "similarities"}, default="distances"
        What a given graph holds. Of a row count the nearest 15 neighbours, or as many as a ``NeighborGraph`` says.
    scale : {None, "standard", "robust"}, default=None
        Scaling of columns: by mean and standard deviation, or by median and quartile distance.
    prepare : "auto", TablePreparer or None, default="auto"
        "auto" prepares a frame, a file or a dataset with text, dates or missing values, and warns once with what it did
        to each column; a table of numbers is standardised, with a warning, if interquartile ranges differ more than
        thirtyfold. A `TablePreparer` prepares every table; None refuses anything but numbers.
    noise : float, default=0.0
        At most this share of the rows, by weight, is labelled -1: those with the highest outlier scores; rows with
        equal scores share a label. `predict` uses the same threshold. Rows that are not in memory are read again for
        it.
    min_cluster_share : float or None, default=None
        Clusters with less of the weight are labelled -1 too, but never the largest; ``n_clusters_`` still counts them.
    min_cluster_size, max_cluster_size : float or None, default=None
        Rows, or their weight, from 1 on; a share of all rows below 1. A smaller cluster joins the one with which it
        shares most edges; a larger one is cut where fewest edges cross. Equal rows, and those of a signature, stay
        together.
    balance : float or None, default=None
        The largest cluster is at most so many times as large as the smallest; 1 makes equal sizes.
    compressor : Compressor or None, default=None
        How rows become signatures; parameters that it shares with this class are set here.
    n_jobs : int, optional
        Number of threads; None takes all cores. The result does not depend on it.
    block_bytes : int, default=16 MiB
        Budget for a block of rows, in bytes; a few blocks are in memory at a time. The result does not depend on it.
    device : "cuda" or None, default=None
        "cuda" sends rows in host memory through a GPU; rows on a GPU stay there. The result does not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Seed of everything.
    verbose : int or callable, default=0
        1 shows the stages; a callable is called with ``(stage, rows_done, rows_total)``.

    Attributes
    ----------
    labels_ : ndarray of shape (n_rows,), int32
        The cluster of each training row, for rows in memory only. Cluster 0 is the heaviest; -1 is noise.
    outlier_scores_ : ndarray of shape (n_rows,), float64
        The outlier score of each training row, for rows in memory only.
    noise_threshold_ : float
        Rows with a higher outlier score are noise; exists only with `noise` above 0.
    classes_ : ndarray of shape (n_clusters,), object
        The label in `y` of each cluster, or None; exists only if `y` held labels of some rows.
    n_clusters_ : int
        The number of clusters found, before any are marked as noise.
    layers_ : list of ndarray of shape (n_signatures,), int32
        Every partition with enough evidence, finest first; each cluster of one is within a cluster of the next.
        ``labels_`` comes from number ``layer_``.
    cluster_tree_ : list of ndarray
        For each layer the cluster of the next layer that contains each of its clusters; for the last layer the root.
    layer_heights_ : ndarray of shape (n_layers + 1,)
        How high in the hierarchy each layer forms and, last, the root. Heights never fall.
    resolution_path_ : dict of arrays
        What was considered: "resolution", the number of clusters there, bootstrap agreement, and its score.
    signatures_ : Signatures
        Points, weights and spread.
    signature_labels_ : ndarray of shape (n_signatures,), int32
        The cluster of each signature; -1 only because of `min_cluster_share`.
    cluster_numbers_ : ndarray of shape (n_clusters,), int32
        The number of each cluster, in the order of the columns of `predict_proba`: 0, 1, ... until an `update`.
    changes_ : Changes
        What the last `update` changed.
    similarity_ : GraphSimilarity
        The graph: ``similarity_.matrix()`` is sparse.
    preparer_ : TablePreparer
        Turned a table of mixed columns into numbers; exists only if a table was prepared.
    distortion_ : float
        Mean squared distance of a row to its signature.
    stage_seconds_ : dict
        Seconds spent to divide, compress, conquer and populate.
    n_features_in_, feature_names_in_, n_rows_in_

    Notes
    -----
    A fit takes two passes over the rows (one and a sample if they are in memory). No step costs the square of the
    number of signatures. The labels are the same for any number of threads, size of blocks, layout of files and engine.

    If rows are the nodes, the model holds them, and `save` writes them to the file. Give `n_signatures` to keep only
    averages.

    References
    ----------
    Wang, Bian, Liu, Yan: DC²: A Divide-and-conquer Algorithm for Large-scale Kernel Learning with Application to
    Clustering.
    Traag, Waltman, van Eck: From Louvain to Leiden: guaranteeing well-connected communities. Scientific Reports 2019.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from dc2 import DC2Clustering, clustering_accuracy
    >>> X, y = make_moons(20_000, noise=0.05, random_state=0)
    >>> model = DC2Clustering(random_state=0).fit(X)
    >>> model.n_clusters_, clustering_accuracy(y, model.labels_) > 0.99
    (2, True)

    Equal rows are one cluster:

    >>> DC2Clustering().fit_predict([[1.0, 2.0]] * 3).tolist()
    [0, 0, 0]

    An isolated row beside a hundred others belongs to no cluster:

    >>> rows = [[x, y] for x in range(10) for y in range(10)] + [[50, 50]]
    >>> model = DC2Clustering(noise=0.01, random_state=0).fit(rows)
    >>> model.labels_[-1], (model.labels_ == -1).sum(), model.predict([[-20, 5]])[0]
    (np.int32(-1), np.int64(1), np.int32(-1))
    """

    def __init__(
        self,
        n_clusters: int | Literal["auto"] | tuple[int, int] | range = "auto",
        *,
        n_signatures: int | Literal["auto"] = "auto",
        similarity: Any = "graph",
        metric: Literal["euclidean", "cosine", "haversine", "precomputed"] = "euclidean",
        precomputed: Literal["distances", "similarities"] = "distances",
        scale: Literal["standard", "robust"] | None = None,
        prepare: Literal["auto"] | TablePreparer | None = "auto",
        noise: float = 0.0,
        min_cluster_share: float | None = None,
        min_cluster_size: float | None = None,
        max_cluster_size: float | None = None,
        balance: float | None = None,
        compressor: Compressor | None = None,
        n_jobs: int | None = None,
        block_bytes: int = DEFAULT_BLOCK_BYTES,
        device: Literal["cuda"] | None = None,
        random_state: RandomStateLike = None,
        verbose: Verbose = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_signatures = n_signatures
        self.similarity = similarity
        self.metric = metric
        self.precomputed = precomputed
        self.scale = scale
        self.prepare = prepare
        self.noise = noise
        self.min_cluster_share = min_cluster_share
        self.min_cluster_size = min_cluster_size
        self.max_cluster_size = max_cluster_size
        self.balance = balance
        self.compressor = compressor
        self.n_jobs = n_jobs
        self.block_bytes = block_bytes
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | str | None = None,
        *,
        must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None,
    ) -> Self:
        """Cluster rows, with the labels of some of them if they are known.

        Parameters
        ----------
        X : array-like, data frame, path, list of paths, glob, callable, Dask array or data frame, or Source
            The rows; with ``metric="precomputed"`` a graph.
        y : array-like of shape (n_rows,), str or None, default=None
            Known labels: numbers or texts; -1, None or NaN for rows whose label is unknown; or the name of the column
            of a frame or of files that holds them. The rows with a label are in one cluster, which ``classes_`` names;
            clusters without labels are found as well. If every row has a label, nothing is left to find, and `y` is
            ignored, as by other clusterers.
        sample_weight : array-like of shape (n_rows,), str or None
            Weights, or the name of the column that holds them. An integer weight w equals w repeated rows.
        must_link, cannot_link : array-like of shape (n_pairs, 2), default=None
            Pairs of row numbers, from 0: two rows that are, or are not, in one cluster.
        """
        X, y, sample_weight = without_label_column(X, y, sample_weight)
        known, plan = RowsKnown(RowLabels.of(y), RowLinks.of(must_link, cannot_link)), self._plan()
        anything = known.labels is not None or known.links is not None
        if anything and not isinstance(plan.similarity, NeighborGraph):
            raise ParameterError(f"similarity={self.similarity!r}: labels and links need similarity='graph'.")
        if anything and plan.limits.given:
            raise ParameterError("Labels or links are given, and cluster sizes are limited. Give one of the two.")
        record = fit_rows(plan, X, sample_weight, known if anything else None)
        warn_if_not_supported(record)
        return self._keep(record)

    def _plan(self) -> ClusterPlan:
        requested = RequestedClusters.of(self.n_clusters)
        compress, compress_frames, one_tree = self._compress(requested)
        similarity = similarity_recipe(self.similarity)
        check_has_rows(similarity, one_tree)
        noise = NoisePlan.of(self.noise, self.min_cluster_share)
        limits = SizeLimits.of(self.min_cluster_size, self.max_cluster_size, self.balance)
        if limits.given and not isinstance(similarity, NeighborGraph):
            raise ParameterError(f"similarity={self.similarity!r}: limits of cluster sizes need similarity='graph'.")
        if noise.share and not one_tree:
            raise ParameterError(
                f"noise={self.noise!r} needs one tree over all rows, but divide='sampling' makes one per partition. "
                "Use divide='projection'."
            )
        return ClusterPlan(
            owner=type(self).__name__,
            compress=compress,
            compress_frames=compress_frames,
            similarity=similarity,
            conqueror=SpectralConqueror(),
            requested=requested,
            options=RunOptions.of(self),
            seeds=seed_sequence(self.random_state),
            noise=noise if one_tree else None,
            preparation=self._preparation(),
            limits=limits,
            graph=self.precomputed if self.metric == "precomputed" else None,
        )

    def _preparation(self) -> Preparation:
        preparation = Preparation.of(self.prepare, self.scale)
        if self.metric != "haversine":
            return preparation
        if preparation.always:
            raise ParameterError(
                "prepare=TablePreparer(...): metric='haversine' takes degrees as they are. Use prepare=None."
            )
        return Preparation()

    def _compress(self, requested: RequestedClusters) -> tuple[Compress | None, Compress | None, bool]:
        """Return how rows are compressed, how frames of columns of different scales are, and whether by one tree."""
        check_choice("precomputed", self.precomputed, KINDS)
        if self.metric == "precomputed":
            self._check_graph()
            return None, None, True
        automatic = isinstance(self.n_signatures, str) and self.n_signatures == "auto"
        if not automatic:
            check_enough_signatures(self.n_signatures, requested)
        plan = checked_plan(self)
        by_plan = partial(compress_automatically, n_clusters=requested.low) if automatic else compress_by
        as_given = plan.scale is not None or plan.metric != "euclidean"
        return by_plan(plan), None if as_given else by_plan(replace(plan, scale=IF_APART)), plan.one_tree

    def _check_graph(self) -> None:
        """Raise if a parameter is set that has no meaning for a graph."""
        defaults = {name: p.default for name, p in signature(type(self)).parameters.items()}
        for name in ("n_signatures", "scale", "compressor", "device"):
            if getattr(self, name) != defaults[name]:
                raise ParameterError(
                    f"{name}={getattr(self, name)!r}: metric='precomputed' has no rows to compress. Leave it out.",
                    parameter=name,
                )
        if isinstance(self.prepare, TablePreparer):
            raise ParameterError("prepare=TablePreparer(...): metric='precomputed' takes a graph. Use prepare=None.")
        if not isinstance(similarity_recipe(self.similarity), NeighborGraph):
            raise ParameterError(f"similarity={self.similarity!r}: metric='precomputed' needs similarity='graph'.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.metric == "precomputed"
        return tags

    def outlier_scores(self, X: Any) -> Any:
        """Return how far out each row lies: 0 to 1, higher is farther.

        The distances within which a few percent of all rows are, to 256 rows drawn by weight, are compared with those
        of a typical row: 1/3 is typical, 1/2 is twice as far, 2/3 four times as far. A row that is farther from its
        neighbourhood than nine rows in ten scores higher in proportion. So rows between clusters are found, and groups
        of anomalies too. Scores depend only on the signatures, not on clusters or on the other rows of X.

        Parameters
        ----------
        X : array-like, data frame, path, ... as in `fit`
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,), float64
            For a source that is not in memory, an iterator of such arrays, one per block; for a Dask collection, a
            lazy Dask array with the same chunks.
        """
        check_is_fitted(self)
        return self._scored(X, self._scores_of(self._outliers()))

    def score_samples(self, X: Any) -> Any:
        """Return the negative of `outlier_scores`: higher is more ordinary, as in scikit-learn's detectors.

        Parameters
        ----------
        X : array-like, data frame, path, ... as in `fit`
            The rows.
        """
        check_is_fitted(self)
        return self._scored(X, NegativeScores(self._scores_of(self._outliers())))

    def _scored(self, X: Any, answer: Any) -> Any:
        return mapped_rows(self._source(X), answer, lambda: np.empty(0), RunOptions.of(self))

    def _outliers(self) -> Outliers:
        outliers = self._fitted().outliers
        if outliers is None:
            raise ParameterError(
                "outlier scores need one tree over all rows, but divide='sampling' made one per partition. Fit with "
                "divide='projection'."
            )
        return outliers

    @property
    def outlier_scores_(self) -> NDArray[np.float64]:
        """The outlier score of each training row."""
        record = self._fitted()
        if record.scores is not None:
            return record.scores
        if record.rows is None:
            raise AttributeError(
                "outlier_scores_ is kept for rows in memory only, and not in saved or pickled models. Use "
                "outlier_scores(X)."
            )
        return self._once("outlier_scores", self._scores_of_rows)

    def _scores_of_rows(self) -> NDArray[np.float64]:
        scores = self._scores_of(self._outliers())
        found: NDArray[np.float64] = mapped_rows(self._fitted().rows, scores, lambda: np.empty(0), RunOptions.of(self))
        found.setflags(write=False)
        return found

    @property
    def noise_threshold_(self) -> float:
        """The outlier score above which a row is noise."""
        outliers = self._fitted().outliers
        if outliers is None or outliers.threshold is None:
            raise AttributeError("noise_threshold_ exists only with noise above 0.")
        return outliers.threshold

    def recluster(
        self, n_clusters: int | Literal["auto"] | tuple[int, int] | range | None = None, *, layer: int | None = None
    ) -> Self:
        """Choose other clusters, without the rows; takes a fraction of the time of a fit, and works on a loaded model.

        Parameters
        ----------
        n_clusters : int, "auto", (low, high), range or None
            None keeps what was asked for last.
        layer : int, optional
            Take this one of ``layers_`` instead of a number.

        Returns
        -------
        self
            ``labels_``, `predict` and everything else now give the new clusters; parameters stay as they are. The
            layers found before are kept, nested around the new clusters; ``recluster("auto")`` goes back to the choice.
        """
        if layer is None:
            return self._reconquer(n_clusters)
        if n_clusters is not None:
            raise ParameterError(f"give n_clusters or layer, not both; got {n_clusters!r} and {layer!r}.")
        return self._keep(with_layer(self._fitted(), self._checked_layer(layer)))

    def update(
        self, X: Any, sample_weight: ArrayLike | str | None = None, *, forget: float = 0.0, move: bool = True
    ) -> Changes:
        """Add new rows; clusters that survive keep their numbers. Neither old rows nor their labels are needed.

        Each row joins its nearest signature. Rows beyond the reach of all rows before make new signatures, and the
        clusters are found again. A new cluster gets a new number, and the number of one that is gone is not used
        again. If signatures are rows, new distinct rows become signatures too, and all are compressed when they are as
        many as `fit` would compress.

        Parameters
        ----------
        X : array-like, data frame, path, ... as in `fit`
            The new rows. Columns with names are found by name; scaling and preparation are those of the fit.
        sample_weight : array-like of shape (n_rows,), str or None
            Weights, or the name of the column that holds them. An integer weight w equals w repeated rows.
        forget : float, default=0.0
            The share of their weight that older rows lose first. From 1 on it is a half-life, in updates. Clusters
            that get no rows are gone when little of their weight is left; without forgetting they stay.
        move : bool, default=True
            Whether older signatures may change their clusters. If not, rows that the model has seen keep their labels,
            and rows far from all others may make new clusters. It needs ``noise=0`` and ``min_cluster_share=None``.

        Returns
        -------
        Changes
            Clusters that were kept, grew, shrank, moved, split, merged, are new or gone; the flow of rows, and the
            drift. It is ``changes_`` too. ``labels_`` is not kept: use ``predict(X)``.

        Examples
        --------
        >>> import numpy as np
        >>> from dc2 import DC2Clustering
        >>> january = np.random.default_rng(0).normal(size=(200, 2)) + np.repeat([[0.0], [20.0]], 100, axis=0)
        >>> model = DC2Clustering(random_state=0).fit(january)
        >>> february = np.random.default_rng(1).normal(size=(100, 2)) - 20
        >>> model.update(february).of("born"), model.cluster_numbers_.tolist()
        ([2], [2, 0, 1])
        """
        check_is_fitted(self)
        if not isinstance(forget, Real) or not 0 <= forget < np.inf:
            raise ParameterError(
                f"forget={forget!r}: not a share or a half-life. Use a number from 0 to 1, or updates from 1 on."
            )
        if _are_no_rows(X, sample_weight):
            self._record = replace(self._record, changes=no_changes(self._record))
            return self.changes_
        lost = float(forget) if forget < 1 else 1.0 - 0.5 ** (1.0 / float(forget))
        record = update(self._plan(), self._record, self._arriving(X, sample_weight), lost, bool(move), self._again())
        self._keep(record)
        return self.changes_

    def partial_fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | str | None = None) -> Self:
        """Fit the first rows of a stream, or `update` with the next ones.

        Parameters
        ----------
        X : array-like, data frame, path, ... as in `fit`
            The next rows.
        y : ignored
        sample_weight : array-like of shape (n_rows,), str or None
            Their weights.
        """
        if not hasattr(self, "_record"):
            return self.fit(X, sample_weight=sample_weight)
        self.update(X, sample_weight)
        return self

    def _again(self) -> Compress:
        """Return how signatures that are rows are compressed when they are too many; they are scaled already."""
        plain: dict[str, Any] = {"scale": None, "metric": "euclidean"}
        compressor = None if self.compressor is None else clone(self.compressor).set_params(**plain)
        other: DC2Clustering = clone(self).set_params(compressor=compressor, **plain)
        return cast(Compress, other._compress(self._record.requested)[0])

    def labels_of_layer(self, layer: int) -> NDArray[np.int32]:
        """Return the clusters of one of ``layers_``: of rows if they are in memory, otherwise of signatures.

        Parameters
        ----------
        layer : int
            Its number; 0 is the finest.
        """
        record = self._fitted()
        labels = self.layers_[self._checked_layer(layer)]
        return record.marked(labels) if record.ids is None else record.labels_of_rows(labels)

    def _checked_layer(self, layer: Any) -> int:
        number, there = check_integer("layer", layer, low=0), len(self.layers_)
        if number >= there:
            raise ParameterError(f"there is no layer={number}: the layers are 0 (finest) to {there - 1}.")
        return number


def _are_no_rows(X: Any, sample_weight: Any) -> bool:
    """Return whether rows in memory are none, or all have weight 0."""
    shape = getattr(X, "shape", (1,))
    weightless = isinstance(sample_weight, np.ndarray | list | tuple) and not np.any(sample_weight)
    return weightless or bool(shape and shape[0] == 0)
