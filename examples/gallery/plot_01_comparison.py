"""
Clusterers on toy shapes
========================

The well-known comparison, with dc2 in it. The methods of the first three columns are told the number of clusters;
HDBSCAN and dc2 are not. In the last row there is nothing to find: one cluster is right.
"""

import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import HDBSCAN, KMeans, SpectralClustering
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

from dc2 import DC2Clustering

N_ROWS = 600
warnings.filterwarnings("ignore", message="Graph is not fully connected")  # spectral clustering of far blobs

rng = np.random.default_rng(0)
stretched = make_blobs(N_ROWS, random_state=170)[0] @ [[0.6, -0.6], [-0.4, 0.8]]
shapes = {
    "circles": (make_circles(N_ROWS, factor=0.5, noise=0.05, random_state=0)[0], 2),
    "moons": (make_moons(N_ROWS, noise=0.05, random_state=0)[0], 2),
    "uneven blobs": (make_blobs(N_ROWS, cluster_std=[1.0, 2.5, 0.5], random_state=170)[0], 3),
    "stretched": (stretched, 3),
    "blobs": (make_blobs(N_ROWS, random_state=8)[0], 3),
    "no clusters": (rng.random((N_ROWS, 2)), 1),
}


def methods(k):
    return {
        "K-means": KMeans(k, random_state=0),
        "Gaussian mixture": GaussianMixture(k, random_state=0),
        "spectral": SpectralClustering(k, affinity="nearest_neighbors", random_state=0),
        "HDBSCAN": HDBSCAN(min_cluster_size=15, copy=True),
        "DC2Clustering": DC2Clustering(random_state=0),
    }


figure, grid = plt.subplots(len(shapes), 5, figsize=(10, 12), subplot_kw={"xticks": [], "yticks": []})
for row, (shape, (X, k)) in zip(grid, shapes.items(), strict=True):
    X = StandardScaler().fit_transform(X)
    row[0].set_ylabel(shape)
    first = shape == "circles"
    for axes, (name, method) in zip(row, methods(k).items(), strict=True):
        start = time.perf_counter()
        labels = method.fit_predict(X)
        seconds = time.perf_counter() - start
        colours = np.where(labels < 0, "lightgray", np.array([f"C{label % 10}" for label in labels]))
        axes.scatter(*X.T, s=4, c=colours)
        axes.text(0.97, 0.03, f"{seconds:.2f} s", transform=axes.transAxes, ha="right", size=7)
        axes.set_title(name if first else "")
figure.tight_layout()
