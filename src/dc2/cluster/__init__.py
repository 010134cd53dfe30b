"""Clusterers: divide, compress, conquer, populate."""

from dc2.cluster.dc2_clustering import DC2Clustering
from dc2.cluster.kasp_rasp import KASP, RASP
from dc2.cluster.rpf_cluster import RPFCluster

__all__ = [
    "DC2Clustering",
    "KASP",
    "RASP",
    "RPFCluster",
]
