"""
A million embeddings
====================

Embeddings of texts or images are long rows of which only the direction matters. ``metric="cosine"`` is made for them.
The embeddings here are made on the spot: directions around topics, as a language model would give them.
"""

# %%
# ``N_ROWS = 1_000_000`` needs 1.5 GB for the rows; the rest stays small.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import adjusted_rand_score

from dc2 import DC2Clustering
from dc2.report import SignatureMapDisplay

N_ROWS, N_COLUMNS, N_TOPICS = 20_000, 96, 12

rng = np.random.default_rng(0)
topics = rng.normal(size=(N_TOPICS, N_COLUMNS))
truth = rng.integers(N_TOPICS, size=N_ROWS)
X = (topics[truth] + 0.7 * rng.normal(size=(N_ROWS, N_COLUMNS))).astype(np.float32)

# %%
# Fit. float32 stays float32: half of the memory, and faster.
model = DC2Clustering(metric="cosine", n_signatures=600, random_state=0).fit(X)
print(f"{model.n_clusters_} topics, adjusted Rand index {adjusted_rand_score(truth, model.labels_):.3f}")
print({stage: round(seconds, 2) for stage, seconds in model.stage_seconds_.items()})

# %%
# A map of the topics: signatures that are alike lie together.
figure, axes = plt.subplots(figsize=(7, 5))
SignatureMapDisplay.from_estimator(model, layout="variation", ax=axes)
axes.set_title(f"{N_ROWS:,} embeddings as {len(model.signatures_)} signatures")

# %%
# The rows nearest to the middle of a topic tell what it is about: give their texts to a reader, or to a language model.
centre = X[model.labels_ == 0].mean(axis=0)
print("typical rows of topic 0:", np.argsort(-(X @ centre) / np.linalg.norm(X, axis=1))[:5])
