"""Clusterers: divide, compress, conquer, populate."""

from dc2.cluster.base import compare
from dc2.cluster.changes import Changes
from dc2.cluster.dc2_clustering import DC2Clustering
from dc2.cluster.kasp_rasp import KASP, RASP
from dc2.cluster.rpf_cluster import RPFCluster

__all__ = ["Changes", "DC2Clustering", "KASP", "RASP", "RPFCluster", "compare"]
