"""
Kernel learning with DC2
========================

A kernel machine whose cost grows with the square of the rows can learn from signatures instead. ``DC2`` wraps any
scikit-learn estimator.
"""

# %%
import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC

from dc2 import DC2, Compressor
from dc2.datasets import make_spirals

N_ROWS = 4000  # a million takes DC2 seconds, and SVC days

X, y = make_spirals(2 * N_ROWS)
X, y, X_new, y_new = X[:N_ROWS], y[:N_ROWS], X[N_ROWS:], y[N_ROWS:]

# %%
# A classifier: each class is compressed apart.
compressor = Compressor(300, populate="nearest", random_state=0)
for name, machine in {"all rows": SVC(C=10), "signatures": DC2(SVC(C=10), compressor=compressor)}.items():
    start = time.perf_counter()
    machine.fit(X, y)
    seconds = time.perf_counter() - start
    print(f"SVC on {name}: accuracy {machine.score(X_new, y_new):.3f}, {seconds:.2f} s")

# %%
side = np.linspace(-4.5, 4.5, 120)
places = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2).astype(np.float32)
figure, axes = plt.subplots()
axes.pcolormesh(side, side, machine.predict(places).reshape(120, 120), cmap="tab10", alpha=0.4)
axes.scatter(*X_new.T, s=1, c=y_new, cmap="tab10")
axes.set_title("a support vector machine that learned from 300 signatures")

# %%
# A regressor: a signature carries the mean target of its rows.
x = np.sort(np.random.default_rng(0).uniform(-3, 3, N_ROWS))[:, None]
target = np.sin(2 * x[:, 0]) + np.random.default_rng(1).normal(scale=0.3, size=N_ROWS)
ridge = DC2(KernelRidge(kernel="rbf", gamma=2.0), compressor=Compressor(100, random_state=0)).fit(x, target)
figure, axes = plt.subplots()
axes.plot(x[:, 0], target, ".", markersize=1, color="lightgray")
axes.plot(x[:, 0], ridge.predict(x), color="C3")
axes.set_title("kernel ridge regression on 100 signatures")

# %%
# More, with clusterers, transformers and few labels: :doc:`../kernel-learning`.
