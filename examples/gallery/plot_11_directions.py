"""
Directions, not lengths
=======================

Embeddings and counts of words differ in length for reasons that do not matter. ``metric="cosine"`` looks at
directions.
"""

import matplotlib.pyplot as plt
import numpy as np

from dc2 import DC2Clustering

rng = np.random.default_rng(0)
angles = rng.choice([0.2, 0.8, 1.4], 3000) + rng.normal(scale=0.06, size=3000)
lengths = rng.gamma(2.0, 1.0, 3000) + 0.1
X = lengths[:, None] * np.column_stack([np.cos(angles), np.sin(angles)])

figure, row = plt.subplots(1, 2, figsize=(10, 4))
for axes, metric in zip(row, ("euclidean", "cosine"), strict=True):
    model = DC2Clustering(3, metric=metric, random_state=0).fit(X)
    axes.scatter(*X.T, s=2, c=model.labels_, cmap="tab10")
    axes.set_title(f"metric={metric!r}")
