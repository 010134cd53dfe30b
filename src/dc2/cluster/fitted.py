"""What a fitted clusterer knows, read from the record of its fit."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dc2.cluster.record import ClusterRecord
from dc2.communities import CommunityResult, Verdict, partitions_by_number
from dc2.compress.signatures import Signatures
from dc2.conquer import Spectrum
from dc2.estimators.columns import Columns
from dc2.tables import TablePreparer

__all__ = ["FittedAttributes"]

Value = TypeVar("Value")


class FittedAttributes:
    """The public attributes of a fitted clusterer; each reads from one frozen record and changes nothing."""

    _record: ClusterRecord

    @property
    def n_features_in_(self) -> int:
        """Number of columns seen in fit."""
        return self._columns_in.n_features

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Names of the columns seen in fit, if they have names."""
        return self._columns_in.feature_names_in

    @property
    def _columns_in(self) -> Columns:
        record = self._fitted()
        return record.columns if record.preparer is None else record.preparer.columns_

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """Names of the columns of the signatures: those of the rows, or of what these were reduced or prepared to."""
        return self._fitted().columns.names_out

    @property
    def preparer_(self) -> TablePreparer:
        """Turned the table into numbers; its ``decisions_`` say how."""
        return _there(self._fitted().preparer, "preparer_", "where a table was prepared")

    @property
    def labels_(self) -> NDArray[np.int32]:
        """The cluster of each training row, -1 for noise."""
        record = self._fitted()
        if record.ids is None:
            raise AttributeError(
                "labels_ is kept for rows in memory only, and not in saved or pickled models. Use predict(X), or "
                "predict_to(source, path) to write the label of each row."
            )
        return record.labels_of_rows(record.conquest.labels)

    @property
    def n_clusters_(self) -> int:
        """The number of clusters found, before any are marked as noise."""
        return self._fitted().conquest.n_clusters

    @property
    def signatures_(self) -> Signatures:
        """Points, weights and spread of the signatures."""
        return self._fitted().signatures

    @property
    def signature_labels_(self) -> NDArray[np.int32]:
        """The cluster of each signature; -1 if its cluster is too small and counts as noise."""
        return self._fitted().signature_labels

    @property
    def noise_weights_(self) -> NDArray[np.float64]:
        """How many training rows of each signature, or what weight of them, are labelled -1."""
        noise = self._fitted().noise_of_signatures
        return _there(noise, "noise_weights_", "where noise or min_cluster_share was asked for")

    @property
    def router_(self) -> Any:
        """Sends a row to its signature."""
        return self._fitted().router

    @property
    def similarity_(self) -> Any:
        """The similarity of the signatures: its matrix, and what it means in words."""
        return self._fitted().similarity_in_use

    @property
    def distortion_(self) -> float:
        """Mean squared distance of a row to its signature."""
        return self._fitted().signatures.distortion

    @property
    def n_rows_in_(self) -> int:
        """Number of rows seen in fit."""
        return self._fitted().n_rows

    @property
    def stage_seconds_(self) -> dict[str, float]:
        """Seconds spent to divide, compress, conquer and populate."""
        return _there(self._fitted().stage_seconds, "stage_seconds_", "after fit, and not after fit_signatures")

    @property
    def eigenvalues_(self) -> NDArray[np.float64]:
        """Leading eigenvalues of the normalized similarity."""
        return self._spectrum("eigenvalues_").eigenvalues

    @property
    def embedding_(self) -> NDArray[np.float64]:
        """The spectral embedding of the signatures."""
        return self._spectrum("embedding_").embedding

    @property
    def bandwidth_(self) -> float:
        """The bandwidth in use."""
        return self._spectrum("bandwidth_").bandwidth

    @property
    def bandwidth_path_(self) -> dict[str, NDArray[Any]]:
        """The bandwidths that were considered."""
        path = self._spectrum("bandwidth_path_").bandwidth_path
        return _there(path, "bandwidth_path_", "where the bandwidth was chosen")

    @property
    def n_clusters_path_(self) -> dict[str, NDArray[Any]]:
        """The numbers of clusters that were considered."""
        path = self._spectrum("n_clusters_path_").n_clusters_path
        return _there(path, "n_clusters_path_", "where the number of clusters was chosen")

    @property
    def layers_(self) -> list[NDArray[np.int32]]:
        """Every partition of the signatures that persists, finest first."""
        return list(self._communities("layers_").layers)

    @property
    def layer_(self) -> int:
        """The number of the layer that the labels come from."""
        return self._communities("layer_").chosen_layer

    @property
    def partitions_(self) -> dict[int, NDArray[np.int32]]:
        """Clusters of the signatures for each number of clusters that was considered, fewest first."""
        found = self._communities("partitions_")
        return partitions_by_number(found, self._fitted().signatures.weights)

    @property
    def cluster_tree_(self) -> list[NDArray[np.int32]]:
        """For each layer but the last, the cluster of the next layer that contains each of its clusters."""
        return list(self._communities("cluster_tree_").cluster_tree)

    @property
    def resolution_path_(self) -> dict[str, NDArray[Any]]:
        """The resolutions that were considered."""
        return dict(self._communities("resolution_path_").resolution_path)

    @property
    def verdict_(self) -> Verdict:
        """The evidence for this number of clusters, and for the next best; ``str`` says it in a sentence."""
        return self._communities("verdict_").verdict

    @property
    def _n_features_out(self) -> int:
        spectrum = self._record.conquest.spectrum
        return self.n_clusters_ if spectrum is None else int(spectrum.embedding.shape[1])

    def _fitted(self) -> ClusterRecord:
        if not hasattr(self, "_record"):
            raise AttributeError(f"this {type(self).__name__} is not fitted yet; call fit first.")
        return self._record

    def _spectrum(self, name: str) -> Spectrum:
        return _there(self._fitted().conquest.spectrum, name, "where eigenvectors made the clusters")

    def _communities(self, name: str) -> CommunityResult:
        return _there(self._fitted().conquest.communities, name, "where communities made the clusters")


def _there(value: Value | None, name: str, when: str) -> Value:
    """Return a fitted attribute, or say when there is one."""
    if value is None:
        raise AttributeError(f"{name} exists only {when}.")
    return value
