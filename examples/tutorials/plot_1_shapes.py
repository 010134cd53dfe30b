"""
Shapes K-means cannot see
=========================

K-means gives each row to the nearest of k centres, so that its clusters are always round. Here are three arms of a
spiral among columns of noise, and what becomes of them.
"""

# %%
# Make the data
# -------------
# ``N_ROWS`` may be two million: the fit then takes seconds.
import matplotlib.pyplot as plt
from sklearn.cluster import KMeans

from dc2 import DC2Clustering, clustering_accuracy
from dc2.datasets import add_noise_columns, make_spirals

N_ROWS = 20_000

X, y = make_spirals(N_ROWS)
X = add_noise_columns(X, 4)
X.shape

# %%
# Cluster them twice
# ------------------
# K-means is told that there are three; dc2 is not.
kmeans = KMeans(3, random_state=0).fit(X)
model = DC2Clustering(random_state=0).fit(X)
print(f"dc2 found {model.n_clusters_} clusters")
print(f"accuracy: K-means {clustering_accuracy(y, kmeans.labels_):.3f}")
print(f"accuracy: dc2     {clustering_accuracy(y, model.labels_):.3f}")

# %%
# Look
# ----
figure, row = plt.subplots(1, 3, figsize=(12, 4), subplot_kw={"xticks": [], "yticks": []})
answers = {"the truth": y, "K-means": kmeans.labels_, "dc2": model.labels_}
for axes, (name, labels) in zip(row, answers.items(), strict=True):
    axes.scatter(X[:, 0], X[:, 1], s=1, c=labels, cmap="tab10")
    axes.set_title(name)

# %%
# Go on
# -----
# What the model thinks of its answer, and the coarser and finer ones:
print(model.verdict_)
print([layer.max() + 1 for layer in model.layers_])
