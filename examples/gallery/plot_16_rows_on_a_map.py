"""
Rows on a map, to be explored
=============================

``map(X)`` gives two coordinates for as many rows as asked, with their labels, the layers and how far out each row lies.
`jupyter-scatter <https://jupyter-scatter.dev>`_ draws it so that one can zoom, pick and filter: download this page as a
notebook and run it.
"""

import jscatter
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from dc2 import DC2Clustering

X = load_digits(as_frame=True).data
model = DC2Clustering(noise=0.02, random_state=0).fit(X)
rows = model.map(X, n_rows=1_500)
rows.head()

# %%
# In a notebook the last line shows a map. Points are coloured by cluster, noise (-1) has a colour of its own, and rows
# that lie far out are larger.

rows["cluster"] = rows["label"].astype(str).astype("category")
scatter = jscatter.Scatter(data=rows, x="x", y="y", height=480)
scatter.color(by="cluster")
scatter.size(by="score", map=(4, 12, 20))
scatter.tooltip(True, properties=["cluster", "score", "row"])
scatter.show()

# %%
# The same on paper.

figure, axes = plt.subplots(figsize=(7, 5))
for cluster, own in rows.groupby("label"):
    axes.scatter(own["x"], own["y"], s=6, color="lightgray" if cluster < 0 else f"C{cluster % 10}")
axes.set(xticks=[], yticks=[], title=f"{len(rows):,} digits, {model.n_clusters_} clusters, gray: none")
