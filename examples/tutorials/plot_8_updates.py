"""
New data every month
====================

A made series of six months: clusters drift, split, merge, die and are born. One model follows them, and each cluster
keeps its number for as long as it lives.
"""

# %%
# Each month has its own places.
import matplotlib.pyplot as plt
import numpy as np

from dc2 import DC2Clustering

MONTHS = [
    {"a": (0, 0), "b": (20, 0), "c": (0, 20)},
    {"a": (1, 1), "b": (20, 0), "c": (0, 20), "d": (22, 16)},  # d is born
    {"a": (2, 2), "b1": (20, 1.5), "b2": (20, -1.5), "c": (0, 20), "d": (22, 16)},  # b is drawn out
    {"a": (3, 3), "b1": (20, 4), "b2": (20, -4), "c": (0, 20), "d": (22, 15)},  # and splits
    {"a": (4, 4), "b1": (20, 6), "b2": (20, -5), "d": (21, 13)},  # c dies
    {"a": (5, 5), "b1": (20, 9), "b2": (20, -5), "d": (20.5, 10)},  # two become one
]


def rows_of(month):
    """The rows of a month: 4000 at each place."""
    draw = np.random.default_rng(month)
    places = np.array(list(MONTHS[month].values()), float)
    return (np.repeat(places, 4000, axis=0) + draw.normal(size=(4000 * len(places), 2))).astype(np.float32)


# %%
# The first month is fitted, the others are updates. What changed is printed as sentences.
model = DC2Clustering(n_signatures=600, random_state=0)
labels = []
for month in range(len(MONTHS)):
    X = rows_of(month)
    if month == 0:
        model.fit(X)
    else:
        changes = model.update(X, forget=0.95)
        print(f"month {month}\n{changes}\n")
    labels.append(model.predict(X))

# %%
# Colours are cluster numbers: the same in every month.
figure, axes = plt.subplots(2, 3, figsize=(10, 6), sharex=True, sharey=True)
for month, ax in enumerate(axes.flat):
    X = rows_of(month)
    ax.scatter(*X[::5].T, s=2, c=labels[month][::5], cmap="tab10", vmin=0, vmax=9)
    ax.set_title(f"month {month}")
    for number in np.unique(labels[month]):
        ax.annotate(str(number), X[labels[month] == number].mean(axis=0), weight="bold")

# %%
# The record of the last update as a table, and the drift.
print(model.changes_.to_frame())
print(model.changes_.drift)
