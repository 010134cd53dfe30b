"""
First clusters
==============

Two moons: nobody says how many there are.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from dc2 import DC2Clustering

X, _ = make_moons(20_000, noise=0.08, random_state=0)
model = DC2Clustering(random_state=0).fit(X)

figure, axes = plt.subplots()
axes.scatter(*X.T, s=1, c=model.labels_, cmap="coolwarm")
axes.set_title(f"{model.n_clusters_} clusters of {len(X):,} rows")
print(model.verdict_)
