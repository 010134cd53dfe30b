"""Update a model whenever a file appears in a folder: python examples/watch_folder.py FOLDER [SECONDS]

The first file is fitted, each later one updates the model, in order of their names. After each the model is saved
beside the files, so that the next start goes on where this one stopped, and what changed is printed. SECONDS is how
often to look; without it the files that are there are worked on once.
"""

import json
import sys
import time
from pathlib import Path

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


def main():
    """Work once, or again and again."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    while True:
        work(folder)
        if len(sys.argv) < 3:
            return
        time.sleep(float(sys.argv[2]))


if __name__ == "__main__":
    main()
