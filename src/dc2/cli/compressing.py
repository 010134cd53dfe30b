"""The work of ``dc2 compress``."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from dc2.cli import summary
from dc2.cli.compress import CompressOptions
from dc2.cli.failures import writing
from dc2.cli.options import scale_of_numbers
from dc2.cli.outputs import check_names, check_outputs
from dc2.cli.progress import stage_bars
from dc2.cli.rows import ColumnChoice, Rows, csv_options
from dc2.cli.standard_input import with_standard_input
from dc2.compress import Compressor
from dc2.engines.base import Progress
from dc2.facts.variance import variance_kept
from dc2.output import check_output_path, write_labels
from dc2.sources import Source

__all__ = ["run"]

# Names that columns of real data hardly ever have.
WEIGHT_COLUMN, SPREAD_COLUMN = "dc2_weight", "dc2_spread"


def run(wanted: CompressOptions) -> None:
    """Compress, write what is wanted and say what was done."""
    began = time.perf_counter()
    with with_standard_input(wanted.data) as data:
        rows = Rows(data, ColumnChoice.of(wanted), csv=csv_options(wanted))
        outputs = {"signatures": wanted.output, "model": wanted.model}
        files = check_outputs(outputs, force=wanted.force, inputs=rows.paths)
        check_output_path(wanted.output)
        source = rows.to_fit()
        check_names(files.get("model"), source)
        names = column_names(source)
        with stage_bars() as progress:
            compressor = fitted(wanted, source, progress)
    if "model" in files:
        with writing(files["model"]):
            compressor.save(files["model"])
    with writing(files["signatures"]):
        write_labels(files["signatures"], [table(compressor, names)])
    tell(compressor, source, {"total": time.perf_counter() - began}, files, wanted.json)


def column_names(source: Source) -> Sequence[str]:
    """Return the names of the columns to write, or raise if one of them is a name that we need."""
    names = source.feature_names or [f"x{index}" for index in range(source.n_features)]
    for name in (WEIGHT_COLUMN, SPREAD_COLUMN):
        if name in names:
            raise typer.BadParameter(f"The data has a column {name!r} already; leave it out with --drop.")
    return names


def fitted(wanted: CompressOptions, source: Source, progress: Progress) -> Compressor:
    """Return the compressor that the options ask for, fitted."""
    return Compressor(
        wanted.signatures,
        scale=scale_of_numbers(wanted.scale),  # type: ignore[arg-type]
        metric=wanted.metric.value,
        n_jobs=wanted.jobs,
        random_state=wanted.seed,
        verbose=progress,
    ).fit(source)


def table(compressor: Compressor, names: Sequence[str]) -> dict[str, Any]:
    """Return the signatures as columns, in the units of the data."""
    signatures, scaling = compressor.signatures_, compressor.router_.scaling
    points = signatures.points if scaling is None else scaling.undo(signatures.points)
    columns = dict(zip(names, points.T, strict=True))
    return {**columns, WEIGHT_COLUMN: signatures.weights, SPREAD_COLUMN: signatures.spread}


def tell(
    compressor: Compressor,
    source: Source,
    seconds: Mapping[str, float],
    files: Mapping[str, Path],
    as_json: bool,
) -> None:
    """Say what was made."""
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
        seconds=seconds,
        files=files,
        as_json=as_json,
    )
