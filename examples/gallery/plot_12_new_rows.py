"""
New rows, and how sure they are
===============================

Every place of the plane has a cluster; ``predict_proba`` is lower where clusters meet.
"""

import matplotlib.pyplot as plt
import numpy as np

from dc2 import DC2Clustering
from dc2.datasets import make_rings

X, _ = make_rings(20_000, n_rings=2)
model = DC2Clustering(n_signatures=400, random_state=0).fit(X)

side = np.linspace(-3, 3, 150)
places = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.5))
left.pcolormesh(side, side, model.predict(places).reshape(150, 150), cmap="coolwarm", alpha=0.4)
left.plot(*X[:2000].T, "k.", markersize=1)
left.set_title("predict")
sure = right.pcolormesh(side, side, model.predict_proba(places).max(axis=1).reshape(150, 150))
right.set_title("the largest of predict_proba")
figure.colorbar(sure, ax=right)
