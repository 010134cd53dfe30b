"""The commands ``cluster``, ``compress``, ``predict``, ``update``, ``compare``, ``info``, ``report`` and ``export``."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from dc2.cli import options


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
            help="Number of clusters: a number, a range such as 2-10, or auto, which chooses.",
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
        typer.Option("--report", metavar="FILE", help="Write a report for the browser here (.html)."),
    ] = None
    delimiter: options.Delimiter = None
    no_header: options.NoHeader = False
    encoding: options.Encoding = "utf-8"
    decimal: options.Decimal = "."
    thousands: options.Thousands = None
    na: options.MissingTexts = field(default_factory=list)
    columns: options.Columns = field(default_factory=list)
    drop: options.Drop = field(default_factory=list)
    id_columns: options.RowIds = field(default_factory=list)
    weight: options.Weight = None
    taken_as: Annotated[
        list[str],
        typer.Option(
            "--as",
            metavar="KIND:NAMES",
            help="Type of columns: category:zip,plan for categories, text:comment for text to vectorise.",
        ),
    ] = field(default_factory=list)
    raw: Annotated[
        bool,
        typer.Option("--raw", help="Do not prepare columns: text and missing values are errors."),
    ] = False
    prepare: Annotated[
        bool,
        typer.Option(
            "--prepare",
            help="Prepare a table of numbers too: scale columns, leave out ids, add jitter to counts and ratings.",
        ),
    ] = False
    label_from: Annotated[
        str | None,
        typer.Option(
            "--label-from",
            metavar="NAME",
            help="Column of known labels, empty or -1 where unknown; rows keep theirs, and clusters have these names.",
        ),
    ] = None
    label_column: options.LabelColumn = "label"
    scale: options.ScaleOption = None
    metric: options.MetricOption = options.Metric.euclidean
    noise: Annotated[
        float,
        typer.Option(
            "--noise",
            metavar="SHARE",
            help="Share of the rows to label -1 as noise, such as 0.05: those with the highest outlier scores.",
        ),
    ] = 0.0
    min_cluster_share: Annotated[
        float | None,
        typer.Option(
            "--min-cluster-share",
            metavar="SHARE",
            help="Smallest share of the rows that a cluster may have, such as 0.01; smaller ones get the label -1.",
        ),
    ] = None
    min_cluster_size: Annotated[
        float | None,
        typer.Option(
            "--min-cluster-size",
            metavar="ROWS",
            help="Smallest cluster, in rows, or as a share below 1; smaller ones join another cluster.",
        ),
    ] = None
    max_cluster_size: Annotated[
        float | None,
        typer.Option(
            "--max-cluster-size",
            metavar="ROWS",
            help="Largest cluster, in rows, or as a share below 1; larger ones are divided.",
        ),
    ] = None
    signatures: Annotated[
        Any,
        typer.Option(
            "--signatures",
            parser=options.signatures_or_auto,
            metavar="NUMBER",
            help="Number of signatures that rows are compressed to, more for finer shapes; or auto, which chooses.",
        ),
    ] = "auto"
    similarity: Annotated[
        options.SimilarityName,
        typer.Option(
            "--similarity",
            metavar="NAME",
            help="graph: Leiden communities of the neighbour graph. rpf: the paper's kernel and spectral clustering, "
            "with 1000 signatures.",
        ),
    ] = options.SimilarityName.graph
    bandwidth: Annotated[
        Any,
        typer.Option(
            "--bandwidth",
            parser=options.number_or_auto,
            metavar="NUMBER",
            help="With --similarity rpf, the bandwidth of the kernel: a number, smaller for finer structure, or auto.",
        ),
    ] = "auto"
    jobs: options.Jobs = None
    engine: options.EngineOption = options.EngineName.threads
    scheduler: options.Scheduler = None
    master: options.Master = None
    seed: options.Seed = 0
    force: options.Force = False
    json: options.Json = False
    debug: options.Debug = False


def cluster(wanted: ClusterOptions) -> None:
    """Cluster the rows of files, of any size.

    dc2 prepares a table with text, dates or missing values, and the summary says how; numbers are only scaled.

    Without --output, --model or --report it only prints the summary.

    Example: dc2 cluster sales.parquet -k 5 -o labels.parquet --id customer --report report.html
    """
    if wanted.bandwidth != "auto" and wanted.similarity is not options.SimilarityName.rpf:
        raise typer.BadParameter("--bandwidth needs --similarity rpf; the neighbour graph has none.")

    from dc2.cli.run import run_cluster

    run_cluster(wanted)


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
    decimal: options.Decimal = "."
    thousands: options.Thousands = None
    na: options.MissingTexts = field(default_factory=list)
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

    from dc2.cli.run import run_compress

    run_compress(wanted)


@dataclass(frozen=True, kw_only=True)
class PredictOptions:
    """The options of ``dc2 predict``."""

    model: options.ModelFile
    data: options.Data
    output: options.LabelsFile
    delimiter: options.Delimiter = None
    no_header: options.NoHeader = False
    encoding: options.Encoding = "utf-8"
    decimal: options.Decimal = "."
    thousands: options.Thousands = None
    na: options.MissingTexts = field(default_factory=list)
    columns: options.Columns = field(default_factory=list)
    id_columns: options.RowIds = field(default_factory=list)
    label_column: options.LabelColumn = "label"
    top: Annotated[
        int | None,
        typer.Option(
            "--top",
            metavar="NUMBER",
            help="Write the best clusters of each row too, at most 5, and their shares: columns cluster_1, share_1, "
            "... and share_rest.",
        ),
    ] = None
    jobs: options.Jobs = None
    force: options.Force = False
    json: options.Json = False
    debug: options.Debug = False


def predict(wanted: PredictOptions) -> None:
    """Label rows with a model that was saved.

    Columns are found by the names the model was made with; others may be there too.

    Example: dc2 predict model.dc2 new.parquet -o labels.parquet --id customer
    """
    began = time.perf_counter()

    from dc2.cli import summary
    from dc2.cli.describe import load_clusterer
    from dc2.cli.inputs import ColumnChoice, Rows, csv_options, with_standard_input
    from dc2.cli.run import check_labels, check_outputs, write_and_count
    from dc2.cli.summary import stage_bars

    clusterer = load_clusterer(wanted.model)
    with with_standard_input(wanted.data) as data, stage_bars() as progress:
        rows = Rows(data, ColumnChoice.of(wanted), csv=csv_options(wanted))
        inputs = [str(wanted.model), *rows.paths]
        files = check_outputs({"labels": wanted.output}, force=wanted.force, inputs=inputs)
        source = rows.for_model(clusterer)
        check_labels(files["labels"], rows, source, wanted.label_column)
        clusterer.set_params(n_jobs=wanted.jobs, verbose=progress)
        sizes = write_and_count(
            clusterer, source, files["labels"], wanted.label_column, overwrite=wanted.force, top=wanted.top
        )
    summary.print_summary(
        f"{sizes.total:,} rows labelled",
        {},
        {"rows": sizes.total},
        sizes=sizes,
        seconds={"total": time.perf_counter() - began},
        files=files,
        as_json=wanted.json,
    )


@dataclass(frozen=True, kw_only=True)
class UpdateOptions:
    """The options of ``dc2 update``."""

    model: options.ModelFile
    data: options.Data
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write a label per new row, in order."),
    ] = None
    new_model: Annotated[
        Path | None,
        typer.Option(
            "--model",
            metavar="FILE",
            help="Save the updated model here (.dc2). The old file is only replaced if this names it, with --force.",
        ),
    ] = None
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help="Write a report here (.html); it shows what changed."),
    ] = None
    forget: Annotated[
        float,
        typer.Option(
            "--forget",
            metavar="SHARE",
            help="Share of their weight that older rows lose first, such as 0.1; from 1 on a half-life in updates.",
        ),
    ] = 0.0
    fixed: Annotated[
        bool, typer.Option("--fixed", help="Rows seen before keep their labels; only far rows make new clusters.")
    ] = False
    delimiter: options.Delimiter = None
    no_header: options.NoHeader = False
    encoding: options.Encoding = "utf-8"
    decimal: options.Decimal = "."
    thousands: options.Thousands = None
    na: options.MissingTexts = field(default_factory=list)
    columns: options.Columns = field(default_factory=list)
    id_columns: options.RowIds = field(default_factory=list)
    label_column: options.LabelColumn = "label"
    jobs: options.Jobs = None
    force: options.Force = False
    json: options.Json = False
    debug: options.Debug = False


def update(wanted: UpdateOptions) -> None:
    """Add new rows to a saved model: clusters that survive keep their numbers, and the summary says what changed.

    Example: dc2 update january.dc2 february.parquet -o labels.parquet --model february.dc2 --forget 0.1
    """
    from dc2.cli.run import run_update

    run_update(wanted)


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """The options of ``dc2 compare``."""

    old: Annotated[Path, typer.Argument(metavar="OLD", show_default=False, help="A model that dc2 saved.")]
    new: Annotated[Path, typer.Argument(metavar="NEW", show_default=False, help="A later model.")]
    data: options.Data
    delimiter: options.Delimiter = None
    no_header: options.NoHeader = False
    encoding: options.Encoding = "utf-8"
    decimal: options.Decimal = "."
    thousands: options.Thousands = None
    na: options.MissingTexts = field(default_factory=list)
    columns: options.Columns = field(default_factory=list)
    json: options.Json = False
    debug: options.Debug = False


def compare(wanted: CompareOptions) -> None:
    """Say what changed between the clusters of two models, by the labels that both give to the same rows.

    Example: dc2 compare january.dc2 february.dc2 rows.parquet
    """
    from dc2.cli import summary
    from dc2.cli.describe import load_clusterer
    from dc2.cli.inputs import ColumnChoice, Rows, csv_options, with_standard_input
    from dc2.cluster.base import compare as compared

    models = [load_clusterer(path) for path in (wanted.old, wanted.new)]
    with with_standard_input(wanted.data) as data:
        rows = Rows(data, ColumnChoice.of(wanted), csv=csv_options(wanted))
        changes = compared(*models, *(rows.for_model(model) for model in models))
    summary.print_changes(changes, as_json=wanted.json)


SHOWN = 40


@dataclass(frozen=True, kw_only=True)
class InfoOptions:
    """The options of ``dc2 info``."""

    paths: Annotated[
        list[str],
        typer.Argument(metavar="MODEL|DATA", show_default=False, help="A model (.dc2), or data files."),
    ]
    delimiter: options.Delimiter = None
    no_header: options.NoHeader = False
    encoding: options.Encoding = "utf-8"
    decimal: options.Decimal = "."
    thousands: options.Thousands = None
    na: options.MissingTexts = field(default_factory=list)
    json: options.Json = False
    debug: options.Debug = False


def info(wanted: InfoOptions) -> None:
    """Show what a model holds, or the rows and columns of data files.

    Example: dc2 info model.dc2
    """
    from dc2.cli import summary

    told = _told(wanted)
    if wanted.json:
        summary.print_json(told)
        return
    sizes = told.pop("cluster_sizes", None)
    clusters = summary.ClusterSizes(sizes, told.pop("noise", None)) if sizes else None
    facts = {name.replace("_", " "): _describe(fact) for name, fact in told.items()}
    summary.print_lines([*summary.fact_lines(facts), *(["", *summary.cluster_lines(clusters)] if clusters else [])])


def _told(wanted: InfoOptions) -> dict[str, Any]:
    from dc2.cli.describe import data_facts, model_facts
    from dc2.cli.inputs import csv_options, with_standard_input

    if len(wanted.paths) == 1 and wanted.paths[0].lower().endswith(".dc2"):
        return model_facts(Path(wanted.paths[0]).expanduser())
    with with_standard_input(wanted.paths) as paths:
        return data_facts(paths, csv_options(wanted))


def _describe(fact: Any) -> str:
    if isinstance(fact, Mapping):
        fact = [f"{name}={value}" for name, value in fact.items()]
    if isinstance(fact, list):
        more = f" and {len(fact) - SHOWN} more" if len(fact) > SHOWN else ""
        return ", ".join(map(str, fact[:SHOWN])) + more
    if fact is None:
        return "not known without reading"
    if isinstance(fact, str):
        return fact
    return f"{fact:,}" if isinstance(fact, int) else f"{fact:.4g}"


def report(
    model: options.ModelFile,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The page; beside the model, if not given."),
    ] = None,
    force: options.Force = False,
    debug: options.Debug = False,
) -> None:
    """Write a report of a model: one HTML file that needs no network.

    Example: dc2 report model.dc2 -o report.html
    """
    from dc2.cli.describe import load_clusterer
    from dc2.cli.error_messages import writing
    from dc2.cli.run import check_outputs
    from dc2.report.cluster_report import write_report

    clusterer = load_clusterer(model)
    page = output or model.with_suffix(".html")
    files = check_outputs({"report": page}, force=force, inputs=[str(model)])
    with writing(files["report"]):
        write_report(clusterer, files["report"], source_description=f"the model {model.name}", overwrite=force)
    print(f"Open {page} in a browser.")


def export(
    model: options.ModelFile,
    output: Annotated[Path, typer.Argument(metavar="FILE", show_default=False, help="The graph (.onnx).")],
    force: options.Force = False,
    debug: options.Debug = False,
) -> None:
    """Write a model's predict as an ONNX graph, for programs without Python.

    Example: dc2 export model.dc2 model.onnx
    """
    from dc2.cli.describe import load_clusterer
    from dc2.cli.error_messages import writing
    from dc2.cli.run import check_outputs

    clusterer = load_clusterer(model)
    files = check_outputs({"ONNX model": output}, force=force, inputs=[str(model)])
    with writing(files["ONNX model"]):
        clusterer.to_onnx(files["ONNX model"], overwrite=force)
