"""
How the number of clusters is chosen
====================================

Communities are sought at many resolutions, fine and coarse. A number that persists over many of them, and is
found again when rows are resampled, is a good answer.
"""

import matplotlib.pyplot as plt

from dc2 import DC2Clustering
from dc2.datasets import make_uneven_blobs

X, _ = make_uneven_blobs(10_000, n_clusters=6)
model = DC2Clustering(random_state=0).fit(X)

path = model.resolution_path_
print({name: len(values) for name, values in path.items()})
figure, axes = plt.subplots()
axes.step(path["resolution"], path["n_clusters"], where="mid")
axes.axhline(model.n_clusters_, color="gray", linestyle=":")
axes.set(xscale="log", yscale="log", xlabel="resolution", ylabel="number of clusters")
axes.set_title(f"chosen: {model.n_clusters_}")
