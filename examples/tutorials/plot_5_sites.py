"""
Data that may not leave their site
==================================

Three hospitals may not pool their patients, but want to find groups among them. Each compresses its own rows, and only
signatures travel: weighted means. ``examples/sites.py`` does the same with three processes that talk to each other.
"""

# %%
# The sites see different parts of the plane, so that none could find the clusters alone.
import matplotlib.pyplot as plt
import numpy as np

from dc2 import Compressor, RPFCluster, Signatures, clustering_accuracy
from dc2.datasets import make_bananas

N_ROWS, N_SITES = 30_000, 3

X, y = make_bananas(N_ROWS)
parts = np.array_split(np.argsort(X[:, 0], kind="stable"), N_SITES)

# %%
# At each site: 200 signatures, with a tree of its own.
compressors = [Compressor(200, random_state=site).fit(X[rows]) for site, rows in enumerate(parts)]
sent = [compressor.signatures_ for compressor in compressors]

# %%
# In one place: merge and cluster the signatures.
model = RPFCluster(2, random_state=0).fit_signatures(Signatures.merge(*sent))
answers = np.split(model.signature_labels_, np.cumsum([len(part) for part in sent])[:-1])

# %%
# Back at each site: every row takes the label of its signature.
labels = np.empty(N_ROWS, int)
for rows, compressor, answer in zip(parts, compressors, answers, strict=True):
    labels[rows] = answer[compressor.apply(X[rows])]
print(f"accuracy: {clustering_accuracy(y, labels):.3f}")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
for site, part in enumerate(sent):
    left.scatter(*part.points.T, s=8, label=f"site {site}")
left.set_title("what travels: signatures")
left.legend()
right.scatter(*X.T, s=1, c=labels, cmap="coolwarm")
right.set_title("what each site knows in the end")

# %%
# A signature of few rows tells about them. Where that matters, ask for fewer signatures and leave out those with a
# small weight before sending; dc2 makes no promise of anonymity.
