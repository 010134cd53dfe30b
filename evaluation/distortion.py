"""Experiment 1: distortion with partitions by random sampling, compared with random projections."""

from __future__ import annotations

from typing import Any, Literal

from evaluation.experiment import Experiment, Results, stopwatch
from evaluation.methods import compressor
from evaluation.sets import GENERATED, PAPER_SETS, DataSet
from evaluation.settings import Settings

__all__ = ["DISTORTION", "VARIANTS"]

VARIANTS = ("2 partitions", "3 partitions")
_SCHEMES: tuple[Literal["sampling", "projection"], ...] = ("sampling", "projection")


def _work(data: DataSet, variant: str, seed: int, settings: Settings) -> Results:
    row: dict[str, Any] = {**data.describe(), "variant": variant, "seed": seed}
    n_partitions = int(variant.split()[0])
    for divide in _SCHEMES:
        model = compressor(
            settings.n_signatures, seed, n_partitions=n_partitions, divide=divide, n_jobs=settings.n_jobs
        )
        with stopwatch() as watch:
            model.fit(data.X)
        row |= {f"distortion_{divide}": model.distortion_, f"seconds_{divide}": watch.seconds}
    row["ratio"] = row["distortion_sampling"] / row["distortion_projection"]
    return {"distortion": [row]}


DISTORTION = Experiment("distortion", (*PAPER_SETS, *GENERATED), VARIANTS, _work)
