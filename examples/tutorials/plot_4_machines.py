"""
A cluster of machines
=====================

Dask arrays and data frames go where arrays go: the work is done where the chunks are, and only a sample and
sums travel. The labels are those of rows in memory, to the last one.
"""

# %%
# Without a client Dask's own threads do the work, as here. On a cluster, begin with
# ``Client("tcp://scheduler:8786")`` of ``distributed``; nothing else changes.
import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

from dc2 import DC2Clustering
from dc2.datasets import make_bananas

N_ROWS, N_CHUNKS = 40_000, 8

X, _ = make_bananas(N_ROWS)
rows = da.from_array(X, chunks=(N_ROWS // N_CHUNKS, -1))

# %%
# Fit there, and here.
there = DC2Clustering(n_signatures=500, random_state=0).fit(rows)
here = DC2Clustering(n_signatures=500, random_state=0).fit(X)

# %%
# Labels are lazy: they are computed when they are wanted, chunk by chunk.
labels = there.predict(rows)
print(labels)
print("the same labels:", np.array_equal(labels.compute(), here.labels_))

# %%
figure, axes = plt.subplots()
axes.scatter(*X.T, s=1, c=labels.compute(), cmap="coolwarm")
axes.set_title(f"{there.n_clusters_} clusters of {N_CHUNKS} chunks")

# %%
# What travels, how large chunks should be, and what happens when a worker dies: :doc:`../scaling`.
