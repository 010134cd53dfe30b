"""``dc2 demo``: two shapes that K-means cannot separate, clustered from a file, compared and drawn."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dc2.cli import options
from dc2.cli.commands import cluster

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NOISE_SHARE = 0.03
DRAWN = 20_000


def demo(wanted: options.DemoOptions) -> None:
    """Make two interleaved shapes in noise, cluster them, and compare with K-means."""
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_rand_score

    from dc2.cli.error_messages import writing
    from dc2.cluster.dc2_clustering import DC2Clustering
    from dc2.io.frame_columns import import_pyarrow
    from dc2.io.outputs import write_labels

    began, rows, folder = time.perf_counter(), wanted.rows, wanted.folder
    folder.mkdir(parents=True, exist_ok=True)
    X, truth = _shapes_in_noise(rows)
    shapes = truth >= 0  # noise belongs to neither
    data, labels, report = folder / "shapes.parquet", folder / "labels.parquet", folder / "report.html"
    with writing(data):
        write_labels(data, [{"x": X[:, 0], "y": X[:, 1], "truth": truth}])
    print(f"Two interleaved shapes, and {NOISE_SHARE:.0%} noise: {data} ({rows:,} rows)\n")

    def from_file() -> NDArray[Any]:
        model = folder / "model.dc2"
        shown = f"{data} --id truth -o {labels} --model {model} --report {report} --force"
        print(f"$ dc2 cluster {shown}\n")
        wanted = options.ClusterOptions(
            data=[str(data)], id_columns=["truth"], output=labels, model=model, report=report, force=True
        )
        cluster(wanted)
        found: NDArray[Any] = import_pyarrow("parquet").read_table(labels).column("label").to_numpy()
        return found

    ways = {
        "K-means, rows in memory": lambda: KMeans(2, n_init=1, random_state=0).fit(X).labels_,
        "dc2, rows in memory": lambda: DC2Clustering(scale="standard", random_state=0).fit(X).labels_,
        "dc2, from file to report": from_file,
    }
    answers, lines = {}, []
    for name, way in ways.items():
        since = time.perf_counter()
        answers[name] = way()
        score = adjusted_rand_score(truth[shapes], answers[name][shapes])
        lines.append(f"  {name:<28} {time.perf_counter() - since:>7.2f}  {score:>19.3f}")
    print(f"\n  {'':<28} {'seconds':>7}  adjusted Rand index", *lines, sep="\n")

    by_kmeans, _, by_file = (
        (found if (found == truth)[shapes].mean() >= 0.5 else 1 - found) for found in answers.values()
    )
    picture = folder / "demo.png"
    _draw(picture, X, {"truth": truth, "K-means": by_kmeans, "dc2": by_file})
    print(f"\nDone in {time.perf_counter() - began:.0f} seconds. See {picture}, and open {report} in a browser.")


def _shapes_in_noise(rows: int) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
    """Return rows of two bananas (0, 1) and of noise all over the place (-1), mixed."""
    import numpy as np

    from dc2.datasets import make_bananas

    rng = np.random.default_rng(0)
    X, shape = make_bananas(rows)
    truth = shape.astype(np.int8)
    noise = rng.random(rows) < NOISE_SHARE
    X[noise] = rng.uniform((-1.5, -1.0), (2.5, 1.5), (int(noise.sum()), 2))
    truth[noise] = -1
    return X, truth


def _draw(path: Path, X: NDArray[Any], labellings: dict[str, NDArray[Any]]) -> None:
    import numpy as np

    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ImportError('The picture needs matplotlib, which is not installed: pip install "dc2[cli]"') from error

    colours = np.array(["#3b6fb6", "#e0812b", "#b9b9b9"])  # the last is for noise, -1
    figure = Figure(figsize=(12, 3.2), layout="constrained")
    for axes, (name, labels) in zip(figure.subplots(1, 3), labellings.items(), strict=True):
        axes.scatter(X[:DRAWN, 0], X[:DRAWN, 1], s=1, c=colours[labels[:DRAWN]], linewidths=0, rasterized=True)
        axes.set_title(name)
        axes.set_aspect("equal")
        axes.set_axis_off()
    figure.savefig(path, dpi=130)
