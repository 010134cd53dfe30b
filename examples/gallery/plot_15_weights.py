"""
Weights mean repeats
====================

A row of weight 3 counts as three equal rows: the clusters are those of the repeated rows.
"""

import matplotlib.pyplot as plt
import numpy as np

from dc2 import DC2Clustering
from dc2.datasets import make_uneven_blobs

X, _ = make_uneven_blobs(3000, n_clusters=5)
weights = np.random.default_rng(0).integers(1, 4, len(X))
weighted = DC2Clustering(n_signatures=200, random_state=0).fit(X, sample_weight=weights)
repeated = DC2Clustering(n_signatures=200, random_state=0).fit(np.repeat(X, weights, axis=0))
print("clusters:", weighted.n_clusters_, repeated.n_clusters_)
print("same labels:", (np.repeat(weighted.labels_, weights) == repeated.labels_).mean())

figure, axes = plt.subplots()
axes.scatter(*X.T, s=2.0 * weights, c=weighted.labels_, cmap="tab10")
axes.set_title("weighted rows, larger where they count more")
