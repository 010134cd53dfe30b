"""
More signatures, finer shapes
=============================

With few signatures thin shapes run into each other. The number is chosen from rows and columns unless you give one.
"""

import matplotlib.pyplot as plt

from dc2 import DC2Clustering, clustering_accuracy
from dc2.datasets import make_spirals

X, y = make_spirals(30_000, turns=1.5)
figure, row = plt.subplots(1, 3, figsize=(12, 4))
for axes, m in zip(row, (40, 150, 1000), strict=True):
    model = DC2Clustering(3, n_signatures=m, random_state=0).fit(X)
    axes.scatter(*X.T, s=1, c=model.labels_, cmap="tab10")
    axes.plot(*model.signatures_.points.T, "k.", markersize=2)
    axes.set_title(f"{m} signatures: accuracy {clustering_accuracy(y, model.labels_):.2f}")
