"""What a model file or data files hold."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.cli.error_messages import CommandError
from dc2.cli.summary import ClusterSizes
from dc2.cluster.base import SignatureClusterer
from dc2.errors import InputError
from dc2.io.csv_files import CsvOptions
from dc2.io.formats import DataFile
from dc2.io.model_file import load, read_header
from dc2.io.paths import find_files
from dc2.io.source import listed
from dc2.parameters import is_plain
from dc2.report.cluster_statistics import ClusterStatistics, variance_kept

COUNTED_BYTES = 2**26
"""A file of texts that is no larger is read through, to count its rows."""


def data_facts(paths: Sequence[str], csv: CsvOptions | None = None) -> dict[str, Any]:
    """Return the number of files and rows, and the type of every column."""
    files = find_files(list(paths), csv)
    columns: dict[str, str] = {}
    n_rows: int | None = 0
    for file in files:
        found, rows = _columns(file)
        columns = columns or found
        other = sorted(set(found) ^ set(columns))
        if other:
            raise CommandError(
                f"{file.path!r} and {files[0].path!r} have different columns: {listed(other)} is only in one of them. "
                "Look at them one at a time, and choose columns that both have with --columns."
            )
        n_rows = None if rows is None or n_rows is None else n_rows + rows
    return {
        "files": len(files),
        "format": ", ".join(sorted({file.format.name for file in files})),
        "rows": n_rows,
        "columns": len(columns),
        "column_types": columns,
    }


def _columns(file: DataFile) -> tuple[dict[str, str], int | None]:
    """Return the columns of a file and their types, and its rows where these are soon counted."""
    try:
        if file.format.name == "npy":
            array = np.lib.format.open_memmap(file.path, mode="r")
            if array.ndim not in (1, 2):
                raise ValueError(f"it holds an array of shape {array.shape}, and no rows")
            width = array.shape[1] if array.ndim == 2 else 1
            return {str(index): str(array.dtype) for index in range(width)}, len(array)
        schema, rows = file.format.describe(file)
        if rows is None and len(schema) and file.is_local and os.path.getsize(file.path) <= COUNTED_BYTES:
            rows = sum(len(piece) for piece in file.format.read(file, [schema.field(0)], 2**20))
    except (InputError, MemoryError):
        raise
    except Exception as error:  # a damaged header breaks readers in many ways
        raise CommandError(f"{file.path!r} cannot be read as {file.format.name}: {error}") from error
    return {field.name: str(field.type) for field in schema}, rows


def labelled_clusters(model: SignatureClusterer) -> NDArray[np.int32]:
    """Return the numbers of the clusters that label rows: not those that are too small."""
    numbers = model.cluster_numbers_
    labelled: NDArray[np.int32] = numbers[np.isin(numbers, model.signature_labels_)]
    return labelled


def cluster_weights(model: SignatureClusterer) -> ClusterSizes:
    """Return the rows (or their weight) of each cluster and of none, from the signatures."""
    labels, weights = model.signature_labels_, model.signatures_.weights
    noise = getattr(model, "noise_weights_", None)
    if noise is None:
        noise_rows, inside = None, labels >= 0
    else:
        weights, noise_rows, inside = weights - noise, float(noise.sum()), labels >= 0
    numbers = labelled_clusters(model)
    sizes = np.bincount(labels[inside], weights[inside], int(numbers.max()) + 1)[numbers]
    return ClusterSizes(sizes.tolist(), noise_rows, numbers.tolist())


def choice_facts(model: SignatureClusterer, statistics: ClusterStatistics) -> dict[str, str]:
    """Return the evidence for the number of clusters, and what else was chosen."""
    facts = {}
    if statistics.verdict is not None:
        facts["verdict"] = statistics.verdict
    if model.n_clusters_ > 1:
        facts["stability"] = f"{model.overall_stability_:.2f} (bootstrap, mean Jaccard)"
    if statistics.remarks:
        facts["columns"] = " ".join(statistics.remarks)
    if hasattr(model, "bandwidth_path_"):
        facts["bandwidth"] = f"{model.bandwidth_:g}, chosen"
    return facts


def load_model(path: Path) -> Any:
    """Return a saved model, or say why there is none."""
    path = path.expanduser()
    if path.is_dir():
        raise CommandError(f"{str(path)!r} is a folder. Name the model file, which dc2 cluster --model writes.")
    if not path.exists():
        raise CommandError(f"There is no file {str(path)!r}. dc2 cluster --model writes a model.")
    return load(path)


def load_clusterer(path: Path) -> Any:
    """Return a saved model that has clusters."""
    model = load_model(path)
    if not hasattr(model, "signature_labels_"):
        raise CommandError(
            f"{str(path)!r} holds a {type(model).__name__}, which has no clusters. Use a model that dc2 cluster "
            "--model saved."
        )
    return model


def model_facts(path: Path) -> dict[str, Any]:
    """Return what a model file holds."""
    model, header = load_model(path), read_header(path)
    names = getattr(model, "feature_names_in_", None)
    sizes = cluster_weights(model) if hasattr(model, "signature_labels_") else None
    return {
        "model": header.class_name,
        "written_by": f"dc2 {header.dc2_version}",
        "file_bytes": path.stat().st_size,
        "rows": getattr(model, "n_rows_in_", None),
        "columns": model.n_features_in_,
        "column_names": None if names is None else list(names),
        "signatures": len(model.signatures_),
        "distortion": model.distortion_,
        "variance_kept": variance_kept(model.signatures_),
        "cluster_sizes": None if sizes is None else list(sizes.sizes),
        **({} if sizes is None or sizes.noise is None else {"noise": sizes.noise}),
        "settings": {
            name: value if is_plain(value) else repr(value)
            for name, value in model.get_params(deep=False).items()
            if name != "verbose"
        },
    }
