"""Update a model whenever a file appears in a folder: python examples/watch_folder.py FOLDER [SECONDS]

The first file is fitted, each later one updates the model, in order of their names. After each the model is saved
beside the files, so that the next start goes on where this one stopped, and what changed is printed. SECONDS is how
often to look; without it the files that are there are worked on once. Without a
folder it shows three made months.
"""

import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

import dc2

FORGET = 0.1


def work(folder):
    """Take in all files that are new, one by one."""
    saved, seen = folder / "clusters.dc2", folder / "seen.json"
    done = json.loads(seen.read_text("utf-8")) if seen.exists() else []
    for path in sorted(folder.glob("*.parquet")):
        if path.name in done:
            continue
        if saved.exists():
            model = dc2.load(saved)
            said = model.update(path, forget=FORGET)
        else:
            model = dc2.DC2Clustering(random_state=0).fit(path)
            said = f"{model.n_clusters_} clusters."
        model.save(saved)
        done.append(path.name)
        seen.write_text(json.dumps(done), "utf-8")
        print(f"{path.name}:\n{said}\n", flush=True)


def make_months(folder):
    """Write three made months: the third has a cluster more."""
    draw = np.random.default_rng(0)
    for month, places in enumerate([[0, 20], [0, 20], [0, 20, 40]]):
        rows = np.repeat(places, 500)[:, None] + draw.normal(size=(500 * len(places), 2))
        pd.DataFrame(rows, columns=["x", "y"]).to_parquet(folder / f"month-{month}.parquet")


def main(folder=None, seconds=None):
    """Work on a folder once, or again and again; without a folder, on made months."""
    if folder is None:
        with tempfile.TemporaryDirectory() as made:
            make_months(Path(made))
            work(Path(made))
            return dc2.load(Path(made, "clusters.dc2")).cluster_numbers_.tolist()
    while True:
        work(Path(folder))
        if seconds is None:
            return None
        time.sleep(float(seconds))


if __name__ == "__main__":
    main(*sys.argv[1:])
