"""Labels written to a file, and counted on their way."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dc2.cli.failures import writing
from dc2.output import write_labels
from dc2.sources import Source

__all__ = ["write_and_count"]


def write_and_count(model: Any, source: Source, path: Path, column: str) -> list[int]:
    """Write the label of each row to a file and return how many rows each cluster has."""
    counts = np.zeros(int(model.signature_labels_.max()) + 1, np.int64)

    def counted() -> Iterator[tuple[Any, Any]]:
        for labels, extra in model.labelled_blocks(source):
            counts[:] += np.bincount(labels, minlength=len(counts))
            yield labels, extra

    with writing(path):
        write_labels(path, counted(), column)
    return [int(count) for count in counts]
