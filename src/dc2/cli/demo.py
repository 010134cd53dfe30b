"""``dc2 demo``: two shapes that K-means cannot separate, clustered from a file, compared and drawn."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dc2.cli import options
from dc2.cli.commands import cluster

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NOISE_SHARE = 0.03
DRAWN = 20_000


def demo(
    rows: Annotated[int, typer.Option("--rows", min=1000, metavar="NUMBER", help="Rows to make.")] = 2_000_000,
    folder: Annotated[Path, typer.Option("--folder", metavar="FOLDER", help="Where to write the files.")] = Path(
        "demo"
    ),
    debug: options.Debug = False,
) -> None:
    """Make two interleaved shapes in noise, cluster them, and compare with K-means."""
    began = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    X, truth = _shapes_in_noise(rows)
    data, labels, report = folder / "shapes.parquet", folder / "labels.parquet", folder / "report.html"
    _write(data, X, truth)
    print(f"Two interleaved shapes, and {NOISE_SHARE:.0%} noise: {data} ({rows:,} rows)\n")

    files = {"-o": labels, "--model": folder / "model.dc2", "--report": report}
    found, seconds = _timed(lambda rows: _clustered(rows, files), data)
    by_kmeans, kmeans_seconds = _timed(_kmeans, X)
    by_dc2, dc2_seconds = _timed(_dc2, X)
    print(f"\n  {'':<28} {'seconds':>7}  adjusted Rand index")
    for name, spent, answer in (
        ("K-means, rows in memory", kmeans_seconds, by_kmeans),
        ("dc2, rows in memory", dc2_seconds, by_dc2),
        ("dc2, from file to report", seconds, found),
    ):
        print(f"  {name:<28} {spent:>7.2f}  {_score(truth, answer):>19.3f}")
    picture = folder / "demo.png"
    _draw(picture, X, {"truth": truth, "K-means": _coloured(by_kmeans, truth), "dc2": _coloured(found, truth)})
    print(f"\nDone in {time.perf_counter() - began:.0f} seconds. See {picture}, and open {report} in a browser.")


def _clustered(data: Path, files: dict[str, Path]) -> NDArray[Any]:
    """Say the command, run it and return the labels that it wrote."""
    shown = [str(data), "--id", "truth", *(str(part) for pair in files.items() for part in pair)]
    print(f"$ dc2 cluster {shlex.join(shown)} --force\n")
    cluster(
        options.ClusterOptions(
            data=[str(data)],
            id_columns=["truth"],
            output=files["-o"],
            model=files["--model"],
            report=files["--report"],
            force=True,
        )
    )
    return _read_labels(files["-o"])


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


def _write(path: Path, X: NDArray[Any], truth: NDArray[Any]) -> None:
    from dc2.cli.error_messages import writing
    from dc2.io.outputs import write_labels

    with writing(path):
        write_labels(path, [{"x": X[:, 0], "y": X[:, 1], "truth": truth}])


def _read_labels(path: Path) -> NDArray[Any]:
    from dc2.io.frame_columns import import_pyarrow

    labels: NDArray[Any] = import_pyarrow("parquet").read_table(path).column("label").to_numpy()
    return labels


def _timed(cluster_rows: Callable[[Any], Any], X: Any) -> tuple[NDArray[Any], float]:
    since = time.perf_counter()
    return cluster_rows(X), time.perf_counter() - since


def _kmeans(X: NDArray[Any]) -> NDArray[Any]:
    from sklearn.cluster import KMeans

    labels: NDArray[Any] = KMeans(2, n_init=1, random_state=0).fit(X).labels_
    return labels


def _dc2(X: NDArray[Any]) -> NDArray[np.int32]:
    from dc2.cluster.dc2_clustering import DC2Clustering

    return DC2Clustering(scale="standard", random_state=0).fit(X).labels_


def _score(truth: NDArray[Any], labels: NDArray[Any]) -> float:
    """Return how well the shapes were found; noise belongs to neither."""
    from sklearn.metrics import adjusted_rand_score

    shapes = truth >= 0
    return float(adjusted_rand_score(truth[shapes], labels[shapes]))


def _coloured(labels: NDArray[Any], truth: NDArray[Any]) -> NDArray[Any]:
    """Return two clusters numbered as the shapes they mostly are."""
    shapes = truth >= 0
    return labels if (labels == truth)[shapes].mean() >= 0.5 else 1 - labels


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
