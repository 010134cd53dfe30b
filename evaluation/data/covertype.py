"""Cover Type: what grows on 30 m x 30 m cells of four wilderness areas in Colorado."""

import numpy as np
from sklearn.utils import Bunch

from evaluation.data.download import Archive, DataFile, obtain
from evaluation.data.location import Folder
from evaluation.data.standardise import standardise
from evaluation.data.text import numeric_blocks, stack

__all__ = ["load_covertype"]

_ARCHIVE = Archive(
    "https://archive.ics.uci.edu/static/public/31/covertype.zip",
    (DataFile("covtype.data", "0a9371cef7c964b5475d6053cc3e0894a5aa6f65ad1ed3ecb01c45aa96217945"),),
    max_bytes=100_000_000,
)
_MEASURED = (
    "elevation", "aspect", "slope", "horizontal_distance_to_hydrology", "vertical_distance_to_hydrology",
    "horizontal_distance_to_roadways", "hillshade_9am", "hillshade_noon", "hillshade_3pm",
    "horizontal_distance_to_fire_points",
)  # fmt: skip
_FEATURES = (
    *_MEASURED,
    *(f"wilderness_area_{number}" for number in range(1, 5)),
    *(f"soil_type_{number}" for number in range(1, 41)),
)
_KEPT_CLASSES = {1: "spruce/fir", 2: "lodgepole pine", 3: "ponderosa pine", 6: "douglas-fir", 7: "krummholz"}

_DESCR = """Cover Type (UCI): 581,012 cells, 54 columns, seven kinds of forest. Prepared as in the DC2 paper: the two
small classes 4 and 5 are left out, which leaves 568,772 rows of 5 classes, and the first 10 columns are standardised;
the 44 indicator columns stay 0 or 1."""


def load_covertype(data_home: Folder | None = None, *, download: bool = True) -> Bunch:
    """Load Cover Type, 568,772 rows x 54 columns, 5 classes, as the paper prepares it.

    Returns
    -------
    sklearn.utils.Bunch
        `data` (n, 54), `target` (n,) in 0..4, `target_names`, `feature_names`, `DESCR`.
    """
    (path,) = obtain(_ARCHIVE, data_home, download=download)
    blocks = numeric_blocks(path, n_columns=len(_FEATURES) + 1, delimiter=",", dtype=np.int32)
    classes = np.array(list(_KEPT_CLASSES))
    kept = stack((block[np.isin(block[:, -1], classes)] for block in blocks), path)
    data = kept[:, :-1].astype(np.float32)
    standardise(data[:, : len(_MEASURED)])
    return Bunch(
        data=data,
        target=np.searchsorted(classes, kept[:, -1]).astype(np.int32),
        target_names=np.array(list(_KEPT_CLASSES.values())),
        feature_names=list(_FEATURES),
        DESCR=_DESCR,
    )
