"""The result of conquering a tie graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dc2.communities.profile import Profile
from dc2.communities.verdict import Verdict
from dc2.errors import InputError
from dc2.model_file import saved_record


@saved_record
@dataclass(frozen=True, eq=False)
class CommunityResult:
    """Clusters of nodes.

    Attributes
    ----------
    labels : ndarray of shape (n_nodes,), int32
        Numbered by mass, the heaviest first.
    layers : tuple of ndarray of shape (n_nodes,), int32
        Nested partitions, finest first; `labels` is one of them.
    chosen_layer : int
        The place of `labels` among the layers.
    cluster_tree : tuple of ndarray
        For each layer but the last, the cluster of the next layer that contains each of its clusters.
    resolution_path : dict of ndarray
        "resolution", "n_clusters", "agreement", "depth", "crossing", "score" and "chosen", each of shape
        (n_resolutions,); NaN where something was not measured.
    verdict : Verdict
    profile : Profile
        All partitions that were found, for other choices.
    """

    labels: NDArray[np.int32]
    layers: tuple[NDArray[np.int32], ...]
    chosen_layer: int
    cluster_tree: tuple[NDArray[np.int32], ...]
    resolution_path: dict[str, NDArray[np.generic]]
    verdict: Verdict
    profile: Profile

    def check(self) -> None:
        """Raise if the parts do not fit together; called when a result is read from a model file."""
        n_nodes, path = len(self.labels), self.resolution_path
        n_looks = len(self.profile.resolutions)
        if (
            any(not _is_partition(labels, n_nodes) for labels in (self.labels, *self.layers))
            or type(self.chosen_layer) is not int
            or not 0 <= self.chosen_layer < len(self.layers)
            or not np.array_equal(self.layers[self.chosen_layer], self.labels)
            or len(self.cluster_tree) != len(self.layers) - 1
            or self.profile.partitions.shape != (n_looks, n_nodes)
            or set(path) != {"resolution", "n_clusters", "agreement", "depth", "crossing", "score", "chosen"}
            or any(values.shape != (n_looks,) for values in path.values())
        ):
            raise InputError("the parts of a CommunityResult do not fit together.")

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return int(self.labels.max()) + 1


def _is_partition(labels: NDArray[np.int32], n_nodes: int) -> bool:
    return (
        labels.dtype == np.int32
        and labels.shape == (n_nodes,)
        and n_nodes > 0
        and 0 <= int(labels.min()) <= int(labels.max()) < n_nodes
    )
