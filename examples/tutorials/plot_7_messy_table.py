"""
A messy table, from CSV to a report for the boss
================================================

Ids, words, dates, blanks and numbers of all sizes: a table as it comes out of a shop. It goes in as it is, and a page
that anyone can read comes out.
"""

# %%
# The table
# ---------
# Three kinds of customers, which nobody has marked. Set ``ROWS`` to a million and nothing else changes.
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

ROWS = 6000

draw = np.random.default_rng(0)
kind = draw.choice(3, ROWS, p=[0.5, 0.3, 0.2])
day = pd.Timestamp("2023-01-01") + pd.to_timedelta(draw.integers(0, 700, ROWS), unit="D")
table = pd.DataFrame(
    {
        "customer": [f"C{number:07d}" for number in range(ROWS)],
        "since": day.strftime("%Y-%m-%d"),
        "age": np.array([24, 41, 67])[kind] + draw.normal(0, 4, ROWS).round(),
        "minutes": draw.gamma(9, np.array([2.0, 9.0, 4.0])[kind]).round(1),
        "spent": np.exp(np.array([3.0, 6.0, 4.6])[kind] + draw.normal(0, 0.35, ROWS)).round(2),
        "channel": np.where(draw.random(ROWS) < 0.85, np.array(["app", "web", "shop"])[kind], "phone"),
        "country": draw.choice(["IT", "NO", "PE"], ROWS),
    }
)
table.loc[draw.random(ROWS) < 0.06, "age"] = np.nan
table.loc[draw.random(ROWS) < 0.04, "channel"] = None

folder = Path(tempfile.mkdtemp())
table.to_csv(folder / "customers.csv", index=False)
print((folder / "customers.csv").read_text("utf-8")[:420])

# %%
# Clusters
# --------
# A path, a data frame or a pattern of paths: all are the same. What becomes of each column is said once, as a warning,
# and kept in the model.
import warnings

from dc2 import DC2Clustering

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it is printed below
    model = DC2Clustering(random_state=0).fit(table)

for column, words in model.preparer_.decisions_.items():
    print(f"{column}: {words}")
print(f"\n{model.n_clusters_} clusters")

# %%
# Who they are
# ------------
# In the units of the table. Nobody told the number of clusters.
summary = model.summary()
print(summary[["cluster", "rows", "share", "stability", "sets_apart"]].to_string(index=False))

# %%
# Counts and ratings need no care: rows pile up at whole numbers, and what lies apart looks like clusters; so the values
# of columns with few steps are spread within them. A table without words and blanks is taken as it is, though: there
# ask for it, ``DC2Clustering(prepare=TablePreparer())``.

# %%
# A picture
# ---------
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(8, 4.5))
for cluster in range(model.n_clusters_):
    some = table[model.labels_ == cluster]
    axes.scatter(some["age"], some["spent"], s=4, label=f"cluster {cluster}: {len(some):,} customers")
axes.set(xlabel="age", ylabel="spent", yscale="log", title="Customers by age and what they spent")
axes.legend(markerscale=4)

# %%
# The page for the boss
# ---------------------
# One file that opens in any browser and needs no network: what was found, how sure it is, what sets the clusters apart,
# and a slider for other numbers of clusters.
page = model.report(folder / "report.html")
print(f"{page.name}: {page.stat().st_size / 1e3:,.0f} kB")

# %%
# The labels go back to where the table came from, beside the id.
table.assign(cluster=model.labels_)[["customer", "cluster"]].to_csv(folder / "labels.csv", index=False)
print((folder / "labels.csv").read_text("utf-8")[:80])

# %%
# The same without Python::
#
#     dc2 cluster customers.csv --id customer -o labels.csv --report report.html
#
# What is done with each kind of column, and how to decide otherwise: :doc:`/tables`.
