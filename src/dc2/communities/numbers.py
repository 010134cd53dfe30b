"""One partition for each number of clusters that was found."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dc2.communities.layers import by_mass
from dc2.communities.result import CommunityResult


def partitions_by_number(result: CommunityResult, masses: NDArray[np.float64]) -> dict[int, NDArray[np.int32]]:
    """Return a partition of the nodes for each number of clusters, fewest clusters first.

    Each is taken from the middle of the resolutions that gave this number; the result's own number has its own
    clusters.
    """
    found: dict[int, NDArray[np.int32]] = {}
    for k in np.unique(result.profile.n_clusters).tolist():
        places = np.flatnonzero(result.profile.n_clusters == k)
        found[k] = by_mass(result.profile.partitions[places[len(places) // 2]], masses)
    found[result.n_clusters] = result.labels
    return dict(sorted(found.items()))
