"""Plots of fitted clusterers, in scikit-learn's way; matplotlib is imported when one is drawn."""

from dc2.plots.cluster_profile_display import ClusterProfileDisplay
from dc2.plots.signature_map_display import SignatureMapDisplay
from dc2.plots.spectrum_display import SpectrumDisplay

__all__ = ["ClusterProfileDisplay", "SignatureMapDisplay", "SpectrumDisplay"]
