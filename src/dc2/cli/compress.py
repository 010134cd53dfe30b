"""``dc2 compress``: from files to signatures."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from dc2.cli import options

__all__ = ["compress"]

# Names that columns of people's data hardly have.
WEIGHT_COLUMN, SPREAD_COLUMN = "dc2_weight", "dc2_spread"


def compress(
    data: options.Data,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            show_default=False,
            help="Where to write a row per signature: .parquet, .arrow, .csv or .csv.gz.",
        ),
    ],
    model: Annotated[
        Path | None,
        typer.Option("--model", metavar="FILE", help="Save the Compressor here (.dc2), for Python."),
    ] = None,
    columns: options.Columns = [],  # noqa: B006 - typer copies it
    drop: options.Drop = [],  # noqa: B006
    weight: options.Weight = None,
    scale: options.ScaleOption = options.Scale.standard,
    signatures: options.Signatures = 1000,
    jobs: options.Jobs = None,
    seed: options.Seed = 0,
    force: options.Force = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Compress the rows of files to about a thousand signatures, for any other tool.

    A signature is the mean of the rows it stands for, in the units of the data; dc2_weight says how many rows that
    are, dc2_spread their mean squared distance to it (in scaled units).

    Example: dc2 compress sales.parquet -o signatures.parquet --drop customer
    """
    began = time.perf_counter()
    if output.suffix.lower() == ".npy":
        raise typer.BadParameter("A .npy file has no column names; write .parquet or .csv.")

    from dc2.cli import summary
    from dc2.cli.failures import writing
    from dc2.cli.outputs import check_outputs
    from dc2.cli.progress import stage_bars
    from dc2.cli.rows import Rows
    from dc2.compress import Compressor
    from dc2.facts.variance import variance_kept
    from dc2.output import check_output_path, write_labels

    rows = Rows(data, options.split_names(columns), options.split_names(drop), weight=weight)
    files = check_outputs(
        {"signatures": output, "model": model}, force=force, inputs=[file.path for file in rows.files]
    )
    check_output_path(output)
    source = rows.to_fit()
    names = source.feature_names or [f"x{index}" for index in range(source.n_features)]
    for name in (WEIGHT_COLUMN, SPREAD_COLUMN):
        if name in names:
            raise typer.BadParameter(f"The data has a column {name!r} already; leave it out with --drop.")
    with stage_bars() as progress:
        compressor = Compressor(
            signatures,
            scale=scale.parameter,  # type: ignore[arg-type]
            n_jobs=jobs,
            random_state=seed,
            verbose=progress,
        ).fit(source)
    with writing(files["signatures"]):
        write_labels(files["signatures"], [_table(compressor, names)])
    if "model" in files:
        with writing(files["model"]):
            compressor.save(files["model"])
    made, kept = compressor.signatures_, variance_kept(compressor.signatures_)
    summary.tell(
        f"{len(made):,} signatures of {source.n_rows:,} rows of {source.n_features} columns",
        {"distortion": f"{compressor.distortion_:.4g}: {kept:.1%} of the variance is kept"},
        {
            "rows": source.n_rows,
            "columns": source.n_features,
            "signatures": len(made),
            "distortion": compressor.distortion_,
            "variance_kept": kept,
        },
        seconds={"total": time.perf_counter() - began},
        files=files,
        as_json=json,
    )


def _table(compressor: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return the signatures as columns, in the units of the data."""
    signatures, scaling = compressor.signatures_, compressor.router_.scaling
    points = signatures.points if scaling is None else scaling.undo(signatures.points)
    columns = dict(zip(names, points.T, strict=True))
    return {**columns, WEIGHT_COLUMN: signatures.weights, SPREAD_COLUMN: signatures.spread}
