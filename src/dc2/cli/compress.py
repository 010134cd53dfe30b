"""``dc2 compress``: from files to signatures."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from dc2.cli import options

__all__ = ["CompressOptions", "compress"]


@dataclass(frozen=True, kw_only=True)
class CompressOptions:
    """The options of ``dc2 compress``."""

    data: options.Data
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            show_default=False,
            help="Where to write a row per signature: .parquet, .arrow, .csv or .csv.gz.",
        ),
    ]
    model: Annotated[
        Path | None,
        typer.Option("--model", metavar="FILE", help="Save the Compressor here (.dc2), for Python."),
    ] = None
    delimiter: options.Delimiter = None
    no_header: options.NoHeader = False
    encoding: options.Encoding = "utf-8"
    columns: options.Columns = field(default_factory=list)
    drop: options.Drop = field(default_factory=list)
    weight: options.Weight = None
    scale: options.ScaleOption = None
    metric: options.MetricOption = options.Metric.euclidean
    signatures: options.Signatures = 1000
    jobs: options.Jobs = None
    seed: options.Seed = 0
    force: options.Force = False
    json: options.Json = False
    debug: options.Debug = False


def compress(wanted: CompressOptions) -> None:
    """Compress the rows of files to about a thousand signatures, for any other tool.

    A signature is the mean of the rows it stands for, in the units of the data; dc2_weight says how many rows that
    are, dc2_spread their mean squared distance to it (in scaled units).

    Example: dc2 compress sales.parquet -o signatures.parquet --drop customer
    """
    if wanted.output.suffix.lower() == ".npy":
        raise typer.BadParameter("A .npy file has no column names; write .parquet or .csv.")

    from dc2.cli.compressing import run

    run(wanted)
