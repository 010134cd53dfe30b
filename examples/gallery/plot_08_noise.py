"""
Rows that belong nowhere
========================

``noise=0.05`` leaves the five rows in a hundred that lie farthest out without a cluster: their label is -1.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from dc2 import DC2Clustering

rng = np.random.default_rng(0)
X = np.vstack([make_moons(5000, noise=0.05, random_state=0)[0], rng.uniform([-2, -1.5], [3, 2], (260, 2))])
model = DC2Clustering(noise=0.05, random_state=0).fit(X)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
left.scatter(*X.T, s=2, c=np.where(model.labels_ < 0, "lightgray", np.where(model.labels_ == 0, "C0", "C1")))
left.set_title("gray: no cluster")
drawn = right.scatter(*X.T, s=2, c=model.outlier_scores_, cmap="viridis")
right.set_title("outlier scores")
figure.colorbar(drawn, ax=right)
