"""
What each parameter does
========================

The parameters that matter, each on rows where it does: on the left without it, on the right with it.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs, make_moons

from dc2 import DC2Clustering

rng = np.random.default_rng(0)
moons = make_moons(3000, noise=0.05, random_state=0)[0]
blobs = make_blobs(4000, centers=6, cluster_std=0.9, random_state=4)[0]
units = np.column_stack([rng.normal(0, 1000, 2000), np.repeat([0.0, 1.0], 1000) + rng.normal(0, 0.12, 2000)])
angles = np.repeat([0.3, 0.8, 1.3], 700) + rng.normal(0, 0.05, 2100)
lengths = rng.choice([0.6, 3.0], 2100) + rng.normal(0, 0.12, 2100)
rays = np.column_stack([np.cos(angles), np.sin(angles)]) * lengths[:, None]
stray = np.vstack([moons, rng.uniform([-2, -1.5], [3, 2], (150, 2))])
crumb = np.vstack([moons, rng.normal([2.5, 1.5], 0.05, (40, 2))])

PAIRS = {
    'scale="standard"': (units, {"n_clusters": 2}, {"scale": "standard"}),
    'metric="cosine"': (rays, {"n_clusters": 3}, {"metric": "cosine"}),
    "n_clusters=3": (blobs, {}, {"n_clusters": 3}),
    "n_signatures=500 (left: 20)": (moons, {"n_clusters": 2, "n_signatures": 20}, {"n_signatures": 500}),
    "noise=0.05": (stray, {"n_clusters": 2}, {"noise": 0.05}),
    "min_cluster_share=0.05": (crumb, {}, {"min_cluster_share": 0.05}),
}

figure, grid = plt.subplots(len(PAIRS), 2, figsize=(8, 3 * len(PAIRS)), subplot_kw={"xticks": [], "yticks": []})
for (name, (X, before, change)), pair in zip(PAIRS.items(), grid, strict=True):
    for axes, parameters, title in zip(pair, (before, before | change), ("without", name), strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a number asked for does not show
            labels = DC2Clustering(**parameters, random_state=0).fit_predict(X)
        axes.scatter(*X.T, s=2, c=np.where(labels < 0, "#bbbbbb", np.char.add("C", (labels % 10).astype(str))))
        axes.set_title(f"{title}: {labels.max() + 1} clusters", fontsize=10)
figure.tight_layout()
