"""HT Sensor: eight gas sensors in a home, with wine, bananas or nothing near them."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from dc2.errors import SourceError
from evaluation.data.download import Archive, DataFile, obtain
from evaluation.data.location import Folder
from evaluation.data.text import line_blocks, numeric_blocks, stack

__all__ = ["HT_CLASSES", "HT_FEATURES", "load_ht_sensor"]

# Nobody publishes a checksum of these two: the numbers of lines are the paper's rows, and UCI's 100 recordings,
# each with a line of headings.
_ARCHIVE = Archive(
    "https://archive.ics.uci.edu/static/public/362/gas+sensors+for+home+activity+monitoring.zip",
    (
        DataFile("HT_Sensor_dataset.dat", n_lines=928_992),
        DataFile("HT_Sensor_metadata.dat", n_lines=101),
    ),
    max_bytes=400_000_000,
)
HT_FEATURES = ("time", *(f"R{number}" for number in range(1, 9)), "temperature", "humidity")
HT_CLASSES = ("background", "wine", "banana")

_DESCR = """Gas sensors for home activity monitoring (UCI), "HT Sensor": 100 recordings by eight metal-oxide sensors, a
thermometer and a hygrometer; 928,991 rows. Prepared as in the DC2 paper: the raw columns time (hours from the
stimulus), R1 to R8, temperature and humidity; a row has the class of its recording, joined by the recording's id."""


def load_ht_sensor(data_home: Folder | None = None, *, download: bool = True) -> Bunch:
    """Load HT Sensor, 928,991 rows x 11 columns, 3 classes, as the paper prepares it.

    Returns
    -------
    sklearn.utils.Bunch
        `data` (n, 11), `target` (n,) with 0 background, 1 wine, 2 banana, `recording` (n,), `target_names`,
        `feature_names`, `DESCR`.
    """
    readings_path, metadata_path = obtain(_ARCHIVE, data_home, download=download)
    class_of = _read_metadata(metadata_path)
    blocks = numeric_blocks(readings_path, n_columns=len(HT_FEATURES) + 1, delimiter=None, dtype=np.float32, skip=1)
    table = stack(blocks, readings_path)
    recording = table[:, 0].astype(np.int32)
    return Bunch(
        data=np.ascontiguousarray(table[:, 1:]),
        target=_join(recording, class_of, readings_path, metadata_path),
        recording=recording,
        target_names=np.array(HT_CLASSES),
        feature_names=list(HT_FEATURES),
        DESCR=_DESCR,
    )


def _read_metadata(path: Path) -> dict[int, int]:
    """Return the class of every recording; lines read ``id date class t0 dt``."""
    class_of: dict[int, int] = {}
    for first, lines in line_blocks(path, skip=1):
        for number, line in enumerate(lines, start=first):
            fields = line.split()
            if not fields:
                continue
            if len(fields) != 5 or not fields[0].isdigit() or fields[2] not in HT_CLASSES:
                raise SourceError(
                    f"{path}, line {number}, is {line.strip()!r}; an id, a date, one of {', '.join(HT_CLASSES)} and "
                    "two times are expected. Fetch the file again."
                )
            class_of[int(fields[0])] = HT_CLASSES.index(fields[2])
    return class_of


def _join(recording: NDArray[np.int32], class_of: dict[int, int], readings: Path, metadata: Path) -> NDArray[Any]:
    present, row_of = np.unique(recording, return_inverse=True)
    unknown = [int(number) for number in present if int(number) not in class_of]
    if unknown:
        raise SourceError(f"{readings} has rows of recording {unknown[0]}, which {metadata} does not list.")
    return np.array([class_of[int(number)] for number in present], dtype=np.int32)[row_of]
