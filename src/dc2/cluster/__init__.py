"""Clusterers: divide, compress, conquer, populate."""

from dc2.cluster.kasp import KASP
from dc2.cluster.rasp import RASP
from dc2.cluster.rpf_cluster import RPFCluster

__all__ = ["KASP", "RASP", "RPFCluster"]
