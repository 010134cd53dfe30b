"""One partition for each number of clusters that was looked at."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dc2.communities.layers import by_mass
from dc2.communities.result import CommunityResult


def partitions_by_number(
    result: CommunityResult, masses: NDArray[np.float64]
) -> dict[int, NDArray[np.int32]]:
    """Return the clusters of nodes by their number, fewest first, from the middle of where each was found.

    The result's own clusters stand for their number.
    """
    found: dict[int, NDArray[np.int32]] = {}
    for k in np.unique(result.profile.n_clusters).tolist():
        places = np.flatnonzero(result.profile.n_clusters == k)
        found[k] = by_mass(result.profile.partitions[places[len(places) // 2]], masses)
    found[result.n_clusters] = result.labels
    return dict(sorted(found.items()))
