"""Labels written to a file and counted on their way; and what to do where they cannot be written."""

import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.cli.cluster import ClusterOptions
from dc2.cli.failures import CommandError, sentence, writing
from dc2.cli.summary import ClusterSizes
from dc2.sources import Source

__all__ = ["kept_by_model", "write_and_count"]


def write_and_count(model: Any, source: Source, path: Path, column: str) -> ClusterSizes:
    """Write the label of each row to a file and return how many rows each cluster has."""
    counts = np.zeros(int(model.signature_labels_.max()) + 2, np.int64)  # the first is that of -1

    def count(labels: NDArray[np.int32]) -> None:
        counts[:] += np.bincount(labels + 1, minlength=len(counts))

    with writing(path):
        model.predict_to(source, path, column=column, seen=count)
    noise, *sizes = (int(count) for count in counts)
    return ClusterSizes(sizes, noise if hasattr(model, "noise_weights_") else None)


def kept_by_model(error: Exception, model: Any, files: Mapping[str, Path], wanted: ClusterOptions) -> CommandError:
    """Return the error to raise where labels could not be written: it says how to go on from the model."""
    told = sentence(error)
    saved = files.get("model") or _saved_in_haste(model, files["labels"])
    if saved is None:
        return CommandError(f"{told} The model could not be saved either.")
    ids = [part for name in wanted.id_columns for part in ("--id", name)]
    again = shlex.join(["dc2", "predict", str(saved), *wanted.data, "-o", str(files["labels"]), *ids])
    return CommandError(f"{told} The clusters are not lost: the model is {str(saved)!r}. Go on with: {again}")


def _saved_in_haste(model: Any, labels: Path) -> Path | None:
    """Save a model that nobody asked for beside the labels, or where temporary files go."""
    for folder in (labels.parent, Path(tempfile.gettempdir())):
        path = folder / f"{labels.name.partition('.')[0] or 'model'}.dc2"
        if path.exists():
            continue
        try:
            model.save(path)
        except (OSError, ValueError):
            continue
        return path
    return None
