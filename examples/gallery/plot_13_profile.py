"""
What makes a cluster
====================

In which columns the rows of a cluster are above or below the rest.
"""

import numpy as np
import pandas as pd

from dc2 import DC2Clustering
from dc2.report import ClusterProfileDisplay

rng = np.random.default_rng(0)
names = ["visits", "basket", "returns", "age", "distance", "discount"]
kinds = rng.normal(scale=3, size=(4, len(names)))
X = pd.DataFrame(kinds[rng.integers(4, size=4000)] + rng.normal(size=(4000, len(names))), columns=names)
model = DC2Clustering(scale="standard", random_state=0).fit(X)
display = ClusterProfileDisplay.from_estimator(model)
display.ax_.set_title(f"{model.n_clusters_} clusters, column by column")
