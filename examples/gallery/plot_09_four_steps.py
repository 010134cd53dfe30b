"""
The four steps
==============

Divide, compress, conquer, populate: what dc2 does, drawn by its own parts.
"""

import matplotlib.pyplot as plt

from dc2 import DC2Clustering
from dc2.datasets import make_bananas

X, _ = make_bananas(20_000)
model = DC2Clustering(2, n_signatures=120, random_state=0).fit(X)
points, weights = model.signatures_.points, model.signatures_.weights

figure, grid = plt.subplots(2, 2, figsize=(10, 8), subplot_kw={"xticks": [], "yticks": []})
divide, compress, conquer, populate = grid.ravel()

nearest = ((X[:4000, None] - points) ** 2).sum(axis=2).argmin(axis=1)
divide.scatter(*X[:4000].T, s=2, c=nearest % 20, cmap="tab20")
divide.set_title("1. divide: rows by cell")

compress.scatter(*points.T, s=weights / weights.mean() * 20, c="gray")
compress.set_title("2. compress: a signature for each cell")

ties = model.similarity_.matrix().tocoo()
for i, j, strength in zip(ties.row, ties.col, ties.data / ties.data.max(), strict=True):
    if i < j:
        conquer.plot(*points[[i, j]].T, color="gray", linewidth=2 * strength, zorder=0)
conquer.scatter(*points.T, s=20, c=model.signature_labels_, cmap="coolwarm")
conquer.set_title("3. conquer: communities of the ties")

populate.scatter(*X.T, s=1, c=model.labels_, cmap="coolwarm")
populate.set_title("4. populate: every row has a cluster")
