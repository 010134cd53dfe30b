"""Views: the same signatures in other numbers of clusters, to compare with the one that was chosen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dc2.facts.fitted import FittedClusters
from dc2.facts.profile import Profile, cluster_profile

if TYPE_CHECKING:
    from dc2.facts.facts import Facts

__all__ = ["View", "views_of"]

MOST_VIEWS = 16
MOST_CLUSTERS = 40


@dataclass(frozen=True, eq=False)
class View:
    """A partition of the signatures.

    Attributes
    ----------
    clusters : FittedClusters
    profile : Profile
    layers : tuple of int
        The layers that have so many clusters.
    chosen : bool
        Whether it is the model's own.
    """

    clusters: FittedClusters
    profile: Profile
    layers: tuple[int, ...]
    chosen: bool


def views_of(facts: Facts) -> list[View]:
    """Return partitions with fewer and more clusters than the model's own, which is one of them; fewest first."""
    model, own = facts.model, facts.clusters
    partitions: dict[int, NDArray[np.int32]] = dict(getattr(model, "partitions_", {}))
    layers = getattr(model, "layers_", [])
    for layer in layers:
        partitions[int(layer.max()) + 1] = layer
    others = [k for k in partitions if 1 < k <= MOST_CLUSTERS and k != model.n_clusters_]
    nearest_first = sorted(others, key=lambda k: (abs(np.log(k / model.n_clusters_)), k))
    kept = sorted([model.n_clusters_, *nearest_first[: MOST_VIEWS - 1]])
    found = []
    for k in kept:
        if k == model.n_clusters_:
            clusters, profile = own, facts.profile
        else:
            # Noise is noise in any number of clusters.
            labels = np.where(own.labels < 0, own.labels, partitions[k])
            if len(np.unique(labels[labels >= 0])) < k:
                continue
            clusters = replace(own, labels=labels, n_clusters=k)
            profile = cluster_profile(clusters)
        of_layers = tuple(i for i, layer in enumerate(layers) if int(layer.max()) + 1 == k)
        found.append(View(clusters, profile, of_layers, k == model.n_clusters_))
    return found
