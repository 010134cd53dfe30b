"""``dc2 cluster``: from files to labels, a model and a report."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from dc2.cli import options

__all__ = ["ClusterOptions", "cluster"]


@dataclass(frozen=True, kw_only=True)
class ClusterOptions:
    """The options of ``dc2 cluster``."""

    data: options.Data
    clusters: Annotated[
        Any,
        typer.Option(
            "--clusters",
            "-k",
            parser=options.number_or_auto,
            metavar="NUMBER",
            help="How many clusters: a number, a range such as 2-10, or auto, which chooses.",
        ),
    ] = "auto"
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to write a label per row, in order: .parquet, .arrow, .csv, .csv.gz or .npy.",
        ),
    ] = None
    model: Annotated[
        Path | None,
        typer.Option("--model", metavar="FILE", help="Save the model here (.dc2), for dc2 predict, info and report."),
    ] = None
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help="Write a report here (.html), to be read in a browser."),
    ] = None
    delimiter: options.Delimiter = None
    no_header: options.NoHeader = False
    encoding: options.Encoding = "utf-8"
    columns: options.Columns = field(default_factory=list)
    drop: options.Drop = field(default_factory=list)
    id_columns: options.RowIds = field(default_factory=list)
    weight: options.Weight = None
    taken_as: Annotated[
        list[str],
        typer.Option(
            "--as",
            metavar="KIND:NAMES",
            help="Columns to take as categories whatever they look like, such as category:zip,plan; or whose texts to "
            "look into, such as text:comment.",
        ),
    ] = field(default_factory=list)
    raw: Annotated[
        bool,
        typer.Option("--raw", help="Take columns as they are: words and blanks are refused, and nothing is prepared."),
    ] = False
    prepare: Annotated[
        bool,
        typer.Option(
            "--prepare",
            help="Prepare a table of numbers alone too: columns are scaled, ids left out, counts and ratings spread.",
        ),
    ] = False
    label_column: options.LabelColumn = "label"
    scale: options.ScaleOption = None
    metric: options.MetricOption = options.Metric.euclidean
    noise: Annotated[
        float,
        typer.Option(
            "--noise",
            metavar="SHARE",
            help="Share of the rows, such as 0.05, that are in no cluster: those farthest out are labelled -1.",
        ),
    ] = 0.0
    min_cluster_share: Annotated[
        float | None,
        typer.Option(
            "--min-cluster-share",
            metavar="SHARE",
            help="Clusters with a smaller share of the rows, such as 0.01, are labelled -1 too.",
        ),
    ] = None
    signatures: Annotated[
        Any,
        typer.Option(
            "--signatures",
            parser=options.signatures_or_auto,
            metavar="NUMBER",
            help="Points to compress the rows to: a number, more for finer shapes, or auto, which chooses.",
        ),
    ] = "auto"
    similarity: Annotated[
        options.Similarity,
        typer.Option(
            "--similarity",
            metavar="NAME",
            help="ties: communities of the graph that rows tie signatures to. rpf: the paper's kernel and spectral "
            "clustering, with 1000 signatures.",
        ),
    ] = options.Similarity.ties
    bandwidth: Annotated[
        Any,
        typer.Option(
            "--bandwidth",
            parser=options.number_or_auto,
            metavar="NUMBER",
            help="With --similarity rpf, how alike signatures must be: a number, smaller for finer structure, or auto.",
        ),
    ] = "auto"
    jobs: options.Jobs = None
    engine: options.EngineOption = options.Engine.threads
    scheduler: options.Scheduler = None
    seed: options.Seed = 0
    force: options.Force = False
    json: options.Json = False
    debug: options.Debug = False


def cluster(wanted: ClusterOptions) -> None:
    """Cluster the rows of files, of any size.

    A table with words, dates or blanks is prepared first, and the summary says how; plain numbers are only scaled.

    Example: dc2 cluster sales.parquet -k 5 -o labels.parquet --id customer --report report.html
    """
    if wanted.output is None and wanted.model is None and wanted.report is None:
        raise typer.BadParameter("Nothing would be written: give --output, --model or --report.")

    if wanted.bandwidth != "auto" and wanted.similarity is not options.Similarity.rpf:
        raise typer.BadParameter("--bandwidth is for --similarity rpf; ties have none.")

    from dc2.cli.clustering import run

    run(wanted)
