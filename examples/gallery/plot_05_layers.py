"""
Coarser and finer answers
=========================

Groups of groups have more than one right answer. ``layers_`` holds every one that persists.
"""

import matplotlib.pyplot as plt
import numpy as np

from dc2 import DC2Clustering

rng = np.random.default_rng(0)
groups = np.array([[0, 0], [12, 0], [6, 10]])
members = np.array([[-1.5, -1], [1.5, -1], [0, 1.6]])
centres = (groups[:, None] + members).reshape(-1, 2)
X = centres[rng.integers(len(centres), size=3000)] + rng.normal(scale=0.4, size=(3000, 2))
model = DC2Clustering(random_state=0).fit(X)

figure, row = plt.subplots(1, len(model.layers_), figsize=(4 * len(model.layers_), 4), squeeze=False)
for layer, axes in enumerate(row[0]):
    labels = model.labels_of_layer(layer)
    axes.scatter(*X.T, s=2, c=labels, cmap="tab20")
    chosen = ", chosen" if layer == model.layer_ else ""
    axes.set_title(f"layer {layer}: {labels.max() + 1} clusters{chosen}")
