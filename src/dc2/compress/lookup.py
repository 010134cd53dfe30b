"""A router to given points: one leaf for each point, with a shortlist of its neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from dc2.compress.router import Router
from dc2.compress.scaling import Scaling
from dc2.compress.shortlists import with_links
from dc2.random import tree_seed
from dc2.trees.neighbours import nearest_neighbours
from dc2.trees.tree import grow_on

NEAR, LINKS = 24, 48  # points on each shortlist: the nearest, and all


def signature_router(
    points: NDArray[Any], seeds: SeedSequence, scaling: Scaling | None = None, n_threads: int = 1
) -> tuple[Router, NDArray[np.int32]]:
    """Return a router whose leaves hold one distinct point each, and the number of each leaf's point."""
    tree, leaf = grow_on(
        points, None, seed=tree_seed(seeds), leaf_size=0.0, max_leaves=len(points), cut="median", sharpen=2
    )
    _, first = np.unique(leaf, return_index=True)
    router = Router((tree,), np.ascontiguousarray(points[first]), scaling=scaling)
    return with_links(router, NEAR, LINKS, n_threads), first.astype(np.int32)


def nearest_points(router: Router, few: int, n_threads: int) -> NDArray[np.int32]:
    """Return the nearest few points of each of the router's points, itself first."""
    assert router.shortlist is not None
    if few <= router.shortlist.shape[1]:
        return router.shortlist[:, :few]
    return nearest_neighbours(router.centres, few, seed=router.deal_seed, n_threads=n_threads)[0]
