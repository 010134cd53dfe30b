"""Experiment 1: distortion when partitions are made by random sampling, against by random projections."""

from __future__ import annotations

from typing import Any

from dc2.compress import Compressor
from dc2.experiments.experiment import Experiment, Results, stopwatch
from dc2.experiments.methods import PAPER_COMPRESSION
from dc2.experiments.sets import GENERATED, PAPER_SETS, DataSet
from dc2.experiments.settings import Settings

__all__ = ["DISTORTION", "PARTITIONS"]

PARTITIONS = (2, 3)


def _work(data: DataSet, variant: str, seed: int, settings: Settings) -> Results:
    n_partitions = int(variant.split()[0])
    row: dict[str, Any] = {
        **data.describe(), "variant": variant, "seed": seed, "n_partitions": n_partitions,
    }  # fmt: skip
    for divide in ("sampling", "projection"):
        compressor = Compressor(
            settings.n_signatures,
            n_partitions=n_partitions,
            divide=divide,
            **PAPER_COMPRESSION,
            n_jobs=settings.n_jobs,
            random_state=seed,
        )
        with stopwatch() as watch:
            compressor.fit(data.X)
        row |= {f"distortion_{divide}": compressor.distortion_, f"seconds_{divide}": watch.seconds}
    row["ratio"] = row["distortion_sampling"] / row["distortion_projection"]
    return {"distortion": [row]}


DISTORTION = Experiment(
    "distortion",
    (*PAPER_SETS, *GENERATED),
    tuple(f"{n_partitions} partitions" for n_partitions in PARTITIONS),
    _work,
)
