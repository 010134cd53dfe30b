"""The record of a fit: everything a fitted clusterer knows, made at once and never changed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dc2.cluster.changes import Changes, matched_names, overlap_of
from dc2.cluster.noise import Outliers
from dc2.compress.compression import near
from dc2.compress.populate import entries_of, with_noise
from dc2.compress.routing import Router, RowRouter
from dc2.compress.signatures import Signatures
from dc2.errors import InputError, ParameterError
from dc2.graph.conquest import Conquest
from dc2.graph.constraints import Known
from dc2.graph.n_clusters import RequestedClusters
from dc2.graph.nodes import DenseSimilarity, Similarity
from dc2.graph.precomputed import GivenGraph, needs_coordinates
from dc2.io.columns import Columns
from dc2.io.model_file import saved_record
from dc2.random import is_seed_state
from dc2.tables.preparer import TablePreparer


@saved_record
@dataclass(frozen=True, eq=False)
class ClusterRecord:
    """What a fit found."""

    columns: Columns
    n_rows: int
    router: RowRouter
    signature_of_id: NDArray[np.int32] | None  # for each number that the router gives, if these differ
    signatures: Signatures
    similarity: Similarity  # as it was built; it has a bandwidth only if the user gave one
    requested: RequestedClusters
    conquest: Conquest
    seed: dict[str, Any]  # state of the seed sequence, in plain numbers
    stage_seconds: dict[str, float] | None = None  # None if no rows were compressed here
    outliers: Outliers | None = None  # None if rows are not scored
    preparer: TablePreparer | None = None
    names: NDArray[np.int32] | None = None  # the number of each cluster, once there were updates
    unused: int = 0  # the first number that no cluster ever had; 0 before any update
    base: int = 0  # number of signatures of the fit; 0 before any update
    changes: Changes | None = None
    # Share of each signature's rows with a value in each column of numbers, if some miss: filled-in values never count.
    share_known: NDArray[np.float32] | None = None
    # Not saved: what has an entry per row, kept if rows are in memory, and a row of each signature.
    ids: NDArray[np.int32] | None = None
    scores: NDArray[np.float64] | None = None
    rows: Any = None
    members: NDArray[Any] | None = None
    known: Known | None = None  # labels that the user gave

    def check(self) -> None:
        """Raise if the parts do not fit together; called when a record was read from a model file."""
        n_signatures, labels = len(self.signatures), self.conquest.labels
        n_ids, numbers = len(self.router.centres), self.signature_of_id
        is_sound = (
            type(self.n_rows) is int
            and self.n_rows > 0
            and is_seed_state(self.seed)
            and isinstance(self.requested, RequestedClusters)
            and isinstance(self.conquest, Conquest)
            and isinstance(self.signatures, Signatures)
            and hasattr(self.similarity, "describe")
            and self.similarity.sparse == (self.conquest.spectrum is None)
            and hasattr(self.router, "assign")
            and (self.stage_seconds is None or _are_seconds(self.stage_seconds))
            and self.signatures.points.shape[1] == self.router.centres.shape[1]
            and self.columns.width == self._width
            and labels.shape == (n_signatures,)
            and labels.max() < n_signatures
            and len(self.similarity) == n_signatures
            and (n_ids == n_signatures if numbers is None else numbers.shape == (n_ids,))
            and (self.outliers is None or isinstance(self.outliers, Outliers))
            and (self.preparer is None or _makes(self.preparer, self.columns))
            and (self.names is None or self._are_numbers(self.names))
            and (
                self.share_known is None
                or (self.preparer is not None and _are_shares(self.share_known, n_signatures, self.columns))
            )
            and (self.known is None or len(self.known.codes) == n_signatures)
            and (self.noise_weights is None or (numbers is None and self._holds(self.noise_weights)))
        )
        if is_sound and numbers is not None:
            is_sound = numbers.dtype == np.int32 and bool(((numbers >= 0) & (numbers < n_signatures)).all())
        if not is_sound:
            raise InputError("the parts of a ClusterRecord do not fit together.")

    @property
    def is_graph(self) -> bool:
        """Whether a graph was given, and rows have no coordinates."""
        return isinstance(self.router, GivenGraph)

    @property
    def _width(self) -> int:
        if self.is_graph:
            return len(self.router.centres)
        scaling = self.router.scaling
        return int(self.router.centres.shape[1]) if scaling is None else scaling.n_columns

    def of_id(self, of_signature: NDArray[Any]) -> NDArray[Any]:
        """Return values of signatures, rearranged to be indexed by the router's numbers."""
        return of_signature if self.signature_of_id is None else of_signature[self.signature_of_id]

    def in_units(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return rows in the units of the data, as far as possible, from the units of clustering."""
        if self.preparer is not None:
            _, values = self.preparer.in_units(rows, means=False)
            return values
        scaling = self.router.scaling
        return rows if scaling is None else np.asarray(scaling.undo(rows))

    def router_to_search(self, n_threads: int) -> Router:
        """Return the router with neighbour lists, for several nearest signatures of a row."""
        if self.is_graph:
            raise needs_coordinates()
        return near(cast(Router, getattr(self.router, "whole", self.router)), n_threads)

    def without_rows(self) -> ClusterRecord:
        """Return the same without anything that has an entry per row: a saved model is small."""
        known = None if self.known is None else self.known.without_rows()
        return replace(self, ids=None, scores=None, rows=None, members=None, known=known)

    @property
    def holds_rows(self) -> bool:
        """Whether each signature is a distinct row."""
        return not self.signatures.spread.any()

    @property
    def n_fitted(self) -> int:
        """Number of signatures of the fit."""
        return self.base or len(self.signatures)

    @property
    def cluster_names(self) -> NDArray[np.int32]:
        """The number of each cluster."""
        return np.arange(self.conquest.n_clusters, dtype=np.int32) if self.names is None else self.names

    @property
    def first_unused(self) -> int:
        """The first number that no cluster ever had."""
        return self.unused or self.conquest.n_clusters

    def renamed(
        self, conquest: Conquest, before: NDArray[np.int32], now: NDArray[np.int32], weights: NDArray[np.float64]
    ) -> ClusterRecord:
        """Return the record with other clusters; those that survive keep their numbers.

        `before` are the numbers of the clusters of some things before, `now` their places among those of the conquest;
        -1 is none.
        """
        old = np.unique(before[before >= 0])
        overlap = overlap_of(before, now, weights, old, conquest.n_clusters)
        names, unused = matched_names(overlap, old, self.first_unused)
        return replace(self, conquest=conquest, names=names, unused=unused)

    def reconquered(self, conquest: Conquest) -> ClusterRecord:
        """Return the record with other clusters of the same signatures; after updates, survivors keep their numbers."""
        if self.names is None:
            return replace(self, conquest=conquest)
        before = self.cluster_names[self.conquest.labels]
        return self.renamed(conquest, before, conquest.labels, self.signatures.weights)

    def named(self, labels: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the numbers of clusters that are given by place; -1 stays."""
        return labels if self.names is None else np.append(self.names, np.int32(-1))[labels]

    def _are_numbers(self, names: NDArray[np.int32]) -> bool:
        return (
            names.dtype == np.int32
            and names.shape == (self.conquest.n_clusters,)
            and len(np.unique(names)) == len(names)
            and 0 <= int(names.min()) <= int(names.max()) < self.unused
        )

    def _holds(self, noise: NDArray[np.float64]) -> bool:
        """Return whether no signature has more noise than rows."""
        weights = self.signatures.weights
        return noise.shape == weights.shape and bool((noise <= weights).all())

    @property
    def noise_weights(self) -> NDArray[np.float64] | None:
        """The weight of the training rows that are noise by their score, for each number that the router gives."""
        return None if self.outliers is None else self.outliers.noise_weights

    def marked(self, labels: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return clusters of signatures, with -1 for clusters that are too small; the largest never is."""
        if self.outliers is None or not self.outliers.min_cluster_share:
            return labels
        sizes = np.bincount(labels, self.signatures.weights)
        small = sizes < self.outliers.min_cluster_share * sizes.sum()
        small[sizes.argmax()] = False
        return np.where(small[labels], np.int32(-1), labels)

    @property
    def signature_labels(self) -> NDArray[np.int32]:
        """The cluster of each signature; -1 if it is too small."""
        return self.named(self.marked(self.conquest.labels))

    @property
    def noise_of_signatures(self) -> NDArray[np.float64] | None:
        """The weight of each signature's training rows that are labelled -1; None if no noise was asked for."""
        outliers = self.outliers
        if outliers is None or (outliers.noise_weights is None and not outliers.min_cluster_share):
            return None
        noise = np.zeros(len(self.signatures)) if outliers.noise_weights is None else outliers.noise_weights
        return np.where(self.signature_labels < 0, self.signatures.weights, noise)

    def labels_of_rows(self, labels: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the cluster of each row in memory, -1 for noise, from clusters of signatures."""
        assert self.ids is not None
        of_rows: NDArray[np.int32] = entries_of(self.of_id(self.marked(labels)), self.ids)
        if self.outliers is not None and self.outliers.threshold is not None and self.scores is not None:
            of_rows = with_noise(of_rows, self.outliers.is_noise(self.scores))
        return of_rows

    @property
    def similarity_in_use(self) -> Similarity:
        """The similarity as it was conquered."""
        spectrum = self.conquest.spectrum
        return self.similarity if spectrum is None else self.dense_similarity.at(spectrum.bandwidth)

    @property
    def dense_similarity(self) -> DenseSimilarity:
        """The similarity, which must have a bandwidth."""
        if self.similarity.sparse:
            raise ParameterError("bandwidth: a neighbour graph has none. Leave it out.")
        return cast(DenseSimilarity, self.similarity)


def _makes(preparer: Any, columns: Columns) -> bool:
    return isinstance(preparer, TablePreparer) and tuple(preparer.get_feature_names_out()) == columns.names


def _are_shares(known: NDArray[Any], n_signatures: int, columns: Columns) -> bool:
    is_matrix = known.ndim == 2 and len(known) == n_signatures and known.shape[1] <= columns.width
    return is_matrix and known.dtype == np.float32 and bool(((known >= 0) & (known <= 1)).all())


def _are_seconds(stages: Any) -> bool:
    return isinstance(stages, dict) and all(
        isinstance(stage, str) and isinstance(seconds, float) and 0 <= seconds < np.inf
        for stage, seconds in stages.items()
    )
