"""
The paper's way: a kernel and its eigenvalues
=============================================

``RPFCluster`` counts the leaves of a random forest that two signatures share, and takes eigenvectors. After the
eigenvalue of the last cluster there is a gap.
"""

from dc2 import RPFCluster
from dc2.datasets import make_rings
from dc2.report import SpectrumDisplay

X, _ = make_rings(20_000)
model = RPFCluster(3, n_signatures=300, random_state=0).fit(X)
display = SpectrumDisplay.from_estimator(model)
display.ax_.set_title("three rings: a gap after the third eigenvalue")
