"""One partition for each number of clusters that was looked at."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dc2.communities.exact import longest_run
from dc2.communities.layers import by_mass
from dc2.communities.result import CommunityResult


def partitions_by_number(
    result: CommunityResult, masses: NDArray[np.float64]
) -> dict[int, NDArray[np.int32]]:
    """Return the clusters of nodes by their number, fewest first: what `exactly` gives without another search.

    The result's own clusters stand for their number.
    """
    found: dict[int, NDArray[np.int32]] = {}
    for k in np.unique(result.profile.n_clusters).tolist():
        run = longest_run(result.profile, k)
        assert run is not None
        found[k] = by_mass(result.profile.partitions[(run[0] + run[1]) // 2], masses)
    found[result.n_clusters] = result.labels
    return dict(sorted(found.items()))
