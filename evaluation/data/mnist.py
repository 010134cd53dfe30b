"""MNIST: 70,000 handwritten digits, for the benchmarks."""

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from dc2.errors import SourceError
from evaluation.data.bounded import open_bytes
from evaluation.data.download import Archive, DataFile, obtain
from evaluation.data.location import Folder

__all__ = ["load_mnist"]


def _archive(part: str, kind: str, sha256: str) -> Archive:
    name, dotted = f"{part}-{kind}-ubyte", f"{part}-{kind.replace('-', '.')}-ubyte"
    others = (f"mnist/{name}", dotted, f"mnist/{dotted}")
    return Archive(
        f"https://ossci-datasets.s3.amazonaws.com/mnist/{name}.gz",
        (DataFile(name, sha256, None, others),),
        max_bytes=60_000_000,
    )


_IMAGES = (
    _archive("train", "images-idx3", "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"),
    _archive("t10k", "images-idx3", "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"),
)
_LABELS = (
    _archive("train", "labels-idx1", "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
    _archive("t10k", "labels-idx1", "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
)

_DESCR = """MNIST: 60,000 training and then 10,000 test images of handwritten digits, 28 x 28 pixels from 0 to 255,
one row per image."""


def load_mnist(data_home: Folder | None = None, *, download: bool = True) -> Bunch:
    """Load MNIST, 70,000 rows x 784 columns with values from 0 to 255, 10 classes.

    Returns
    -------
    sklearn.utils.Bunch
        `data` (70000, 784), `target` (70000,), `target_names`, `feature_names`, `DESCR`.
    """
    images, labels = (
        [_read_idx(path) for archive in archives for path in obtain(archive, data_home, download=download)]
        for archives in (_IMAGES, _LABELS)
    )
    pixels = np.concatenate([part.reshape(len(part), -1) for part in images])
    return Bunch(
        data=pixels.astype(np.float32),
        target=np.concatenate(labels).astype(np.int32),
        target_names=np.array([str(digit) for digit in range(10)]),
        feature_names=[f"pixel_{place}" for place in range(pixels.shape[1])],
        DESCR=_DESCR,
    )


def _read_idx(path: Path) -> NDArray[np.uint8]:
    """Read an idx file: two zero bytes, the type (8: bytes), the number of axes, their lengths, the values."""
    with open_bytes(path) as stream:
        content = stream.read()
    if content[:3] != b"\x00\x00\x08" or len(content) < 4 + 4 * content[3]:
        raise SourceError(f"{path} is not an idx file of bytes. Fetch the file again.")
    values_start = 4 + 4 * content[3]
    shape = np.frombuffer(content[4:values_start], dtype=">u4").tolist()
    if len(content) - values_start != math.prod(shape):
        raise SourceError(
            f"{path} holds {len(content) - values_start:,} bytes of values, not the {math.prod(shape):,} of its "
            f"shape {tuple(shape)}. Fetch the file again."
        )
    return np.frombuffer(content, dtype=np.uint8, offset=values_start).reshape(shape)
