"""Communities: from a tie graph to clusters, their number given or found, and layers."""

from dc2.communities.agreement import drawn_weights
from dc2.communities.conquer import choose_layer, conquer_ties
from dc2.communities.graph import TieGraph, tie_graph
from dc2.communities.numbers import partitions_by_number
from dc2.communities.profile import Nodes, Profile
from dc2.communities.result import CommunityResult
from dc2.communities.sizes import signatures_for, ties_per_row
from dc2.communities.stability import conquered_anew
from dc2.communities.verdict import Verdict
from dc2.communities.wish import Wish

__all__ = [
    "CommunityResult",
    "Nodes",
    "Profile",
    "TieGraph",
    "Verdict",
    "Wish",
    "choose_layer",
    "conquer_ties",
    "conquered_anew",
    "drawn_weights",
    "partitions_by_number",
    "signatures_for",
    "tie_graph",
    "ties_per_row",
]
