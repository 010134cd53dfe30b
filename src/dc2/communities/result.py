"""What conquering a tie graph answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dc2.communities.profile import Profile
from dc2.errors import InputError
from dc2.model_file import saved_record

PERSISTS = 3.0  # times what a cloud of many dimensions shows, in the logarithm of resolutions


@saved_record
@dataclass(frozen=True)
class Verdict:
    """Why this number of clusters.

    Attributes
    ----------
    score, runner_up_score : float
        Of the number chosen, and of the next best. 0 where there is none.
    bar : float
        What a score must reach for more than one cluster to be found.
    runner_up : int
        The next best number of clusters; 0 where there is none.
    one_cluster : bool
        Whether one cluster was answered because no number reached the bar.
    agreement : float
        Of resampled rows with the partition chosen, 1 where they all lead to it; NaN where it was not looked at.
    depth : float
        The mean depth of the valleys around its clusters, between 0 and 1.
    crossing : float
        The share of ties that cross between its clusters; 1 is that of chance.
    persistence : float
        The width of its plateau, in the logarithm of resolutions; 0 where no resolution gave that number.
    resolution : float
        At which it was found; NaN where it was merged from finer clusters.
    """

    score: float
    bar: float
    runner_up: int
    runner_up_score: float
    one_cluster: bool
    agreement: float
    depth: float
    crossing: float
    persistence: float
    resolution: float

    def shows(self, n_clusters: int) -> bool:
        """Return whether a number that was given persists for longer than a cloud shows it, which is about 1/k."""
        return self.persistence * n_clusters > PERSISTS


@saved_record
@dataclass(frozen=True, eq=False)
class CommunityResult:
    """Clusters of nodes.

    Attributes
    ----------
    labels : ndarray of shape (n_nodes,), int32
        Numbered by mass, the heaviest first.
    layers : tuple of ndarray of shape (n_nodes,), int32
        Partitions nested around `labels`, which is one of them, finest first.
    chosen_layer : int
        The place of `labels` among the layers.
    cluster_tree : tuple of ndarray
        For each layer but the last, the cluster of the next layer that each cluster lies in.
    resolution_path : dict of ndarray
        "resolution", "n_clusters", "agreement", "depth", "crossing", "score" and "chosen", each of shape
        (n_resolutions,).
        NaN where something was not looked at.
    verdict : Verdict
    profile : Profile
        All partitions that were looked at, for other choices.
    """

    labels: NDArray[np.int32]
    layers: tuple[NDArray[np.int32], ...]
    chosen_layer: int
    cluster_tree: tuple[NDArray[np.int32], ...]
    resolution_path: dict[str, NDArray[np.generic]]
    verdict: Verdict
    profile: Profile

    def check(self) -> None:
        """Raise if the parts do not fit together; called when a result was read from a model file."""
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
