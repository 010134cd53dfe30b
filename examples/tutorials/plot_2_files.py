"""
Files larger than memory
========================

A path, a list of paths or a pattern goes where an array goes. Files are read in blocks, twice; nothing as long as the
rows is kept.
"""

# %%
# Some files
# ----------
# Here they are small. Set ``ROWS_PER_FILE`` to ten million and nothing else changes, memory neither.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import pyarrow as pa
import pyarrow.parquet as pq

from dc2 import DC2Clustering, as_source, load
from dc2.datasets import make_rings

ROWS_PER_FILE, N_FILES = 20_000, 3

folder = Path(tempfile.mkdtemp())
for number in range(N_FILES):
    X, _ = make_rings(ROWS_PER_FILE, seed=number)
    table = pa.table({"row": range(len(X)), "x": X[:, 0], "y": X[:, 1]})
    pq.write_table(table, folder / f"part-{number}.parquet")

# %%
# Fit
# ---
# ``as_source`` says which columns count: ``row`` is an id.
rows = as_source(str(folder / "part-*.parquet"), columns=["x", "y"])
model = DC2Clustering(n_signatures=1000, random_state=0).fit(rows)
print(f"{model.n_rows_in_:,} rows, {model.n_clusters_} clusters")

# %%
# Labels to a file, and the model to another
# ------------------------------------------
model.predict_to(rows, folder / "labels.parquet")
model.save(folder / "rings.dc2")
print(pq.read_table(folder / "labels.parquet").slice(0, 3).to_pydict())
print(f"the model has {(folder / 'rings.dc2').stat().st_size / 1e3:,.0f} kB")

# %%
# Tomorrow
# --------
# New rows, with the loaded model:
X, _ = make_rings(5000, seed=99)
labels = load(folder / "rings.dc2").predict(pa.table({"x": X[:, 0], "y": X[:, 1]}))
figure, axes = plt.subplots()
axes.scatter(*X.T, s=1, c=labels, cmap="tab10")
axes.set_title("new rows, labelled by the loaded model")

# %%
# The same without Python: ``dc2 cluster 'part-*.parquet' --id row -o labels.parquet --model rings.dc2``.
