"""
Another number, without the rows
================================

``recluster`` works on the signatures alone, so that it takes a moment, also on a model loaded from a file.
"""

import matplotlib.pyplot as plt

from dc2 import DC2Clustering
from dc2.datasets import make_bananas

X, _ = make_bananas(20_000)
model = DC2Clustering(random_state=0).fit(X)

figure, row = plt.subplots(1, 3, figsize=(12, 4))
for axes, k in zip(row, (2, 4, 8), strict=True):
    model.recluster(k)
    axes.scatter(*X.T, s=1, c=model.labels_, cmap="tab10")
    axes.set_title(f"recluster({k})")
