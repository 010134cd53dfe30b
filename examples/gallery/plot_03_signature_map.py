"""
What is kept of the rows
========================

Rows become signatures: weighted points. The map shows them, the larger the more rows they stand for. A fitted or loaded
model draws it without the rows.
"""

from dc2 import DC2Clustering
from dc2.datasets import make_spirals
from dc2.report import SignatureMapDisplay

X, _ = make_spirals(50_000)
model = DC2Clustering(n_signatures=500, random_state=0).fit(X)
display = SignatureMapDisplay.from_estimator(model)
display.ax_.set_title(f"{len(X):,} rows, {len(model.signatures_)} signatures, {model.n_clusters_} clusters")
