"""
Columns with units
==================

Age in years beside income in euros: without scaling only income counts.
"""

import matplotlib.pyplot as plt
import numpy as np

from dc2 import DC2Clustering

rng = np.random.default_rng(0)
young = rng.normal([25, 40_000], [3, 12_000], (2000, 2))
old = rng.normal([60, 40_000], [3, 12_000], (2000, 2))
X = np.vstack([young, old])

figure, row = plt.subplots(1, 2, figsize=(10, 4))
for axes, scale in zip(row, (None, "standard"), strict=True):
    model = DC2Clustering(2, scale=scale, random_state=0).fit(X)
    axes.scatter(*X.T, s=2, c=model.labels_, cmap="coolwarm")
    axes.set(title=f"scale={scale!r}", xlabel="age", ylabel="income")
