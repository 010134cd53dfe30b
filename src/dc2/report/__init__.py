"""Reports on a fitted clusterer: statistics, plots, and one HTML file."""

from dc2.report.cluster_report import write_report
from dc2.report.cluster_statistics import ClusterStatistics
from dc2.report.displays import ClusterProfileDisplay, SignatureMapDisplay, SpectrumDisplay

__all__ = ["ClusterProfileDisplay", "ClusterStatistics", "SignatureMapDisplay", "SpectrumDisplay", "write_report"]
