"""The arguments and options of the commands, as records; commands that have options in common share a record."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

MOST_SIGNATURES = 1_000_000


Scale = StrEnum("Scale", ["standard", "robust", "none"])
Metric = StrEnum("Metric", ["euclidean", "cosine", "haversine"])
SimilarityName = StrEnum("SimilarityName", ["graph", "rpf"])
EngineName = StrEnum("EngineName", ["threads", "dask", "spark", "ray"])


def scale_of_numbers(given: Scale | None, metric: Metric) -> str | None:
    """Return the estimator's scale: standard, unless another is asked for; degrees are not scaled."""
    if given is None:
        return None if metric is Metric.haversine else Scale.standard.value
    return None if given is Scale.none else given.value


def _option(names: str, metavar: str | None, text: str, heading: str | None = None, **more: Any) -> Any:
    """Return an option; options with a heading stand under it in ``--help``."""
    return typer.Option(*names.split(), metavar=metavar, rich_help_panel=heading, help=text, **more)


_column = partial(_option, heading="Columns")
_text_file = partial(_option, heading="CSV and other text files")
_machine = partial(_option, heading="Machines")


def _argument(metavar: str, text: str) -> Any:
    return typer.Argument(metavar=metavar, show_default=False, help=text)


LABEL_FILES = "Where to write a label per row, in order: .parquet, .arrow, .csv, .csv.gz or .npy."
ModelFile = Annotated[Path, _argument("MODEL", "A model that dc2 cluster --model saved.")]
Weight = Annotated[str | None, _column("--weight", "NAME", "Column of row weights; 2 equals two rows.")]
Drop = Annotated[list[str], _column("--drop", "NAMES", "Columns to leave out, separated by commas.")]
ScaleOption = Annotated[
    Scale | None,
    _column(
        "--scale",
        "HOW",
        "How columns are scaled: standard (mean 0, deviation 1), robust (median and quartiles, for outliers), none. "
        "Default: standard; a table with text or missing values is scaled when dc2 prepares it, and takes no --scale.",
    ),
]
MetricOption = Annotated[
    Metric,
    _column(
        "--metric",
        "NAME",
        "euclidean; cosine for embeddings, with --scale none; or haversine for latitude and longitude in degrees.",
    ),
]
Jobs = Annotated[
    int | None, _machine("--jobs -j", "NUMBER", "Threads. Default: all cores. Labels do not depend on it.")
]
Seed = Annotated[int, _option("--seed", "NUMBER", "Random seed. The same seed gives the same labels.", min=0)]
Force = Annotated[bool, _option("--force -f", None, "Replace files that exist.")]
Debug = Annotated[bool, _option("--debug", None, "Show the traceback of an error.")]


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """The options of every command that reads text files."""

    delimiter: Annotated[
        str | None,
        _text_file(
            "--delimiter", "SIGN", "Separator of the columns, such as ';' or tab. Default: a comma; in .tsv a tab."
        ),
    ] = None
    no_header: Annotated[
        bool,
        _text_file("--no-header", None, "CSV files have no header line; their columns are called x0, x1 and so on."),
    ] = False
    encoding: Annotated[str, _text_file("--encoding", "NAME", "Text encoding, such as latin-1, cp1252 or utf-16.")] = (
        "utf-8"
    )
    decimal: Annotated[str, _text_file("--decimal", "SIGN", "Decimal mark of numbers: . or ,")] = "."
    thousands: Annotated[
        str | None,
        _text_file("--thousands", "SIGN", "Mark between groups of three digits, such as ',' in 1,103. Default: none."),
    ] = None
    na: Annotated[
        list[str],
        _text_file(
            "--na",
            "TEXT",
            "Text that means a missing value, such as -999; may be repeated. Empty, NA, NaN, null and ? always do.",
        ),
    ] = field(default_factory=list)
    json: Annotated[bool, _option("--json", None, "Print the summary as JSON, for machines.")] = False
    debug: Debug = False


@dataclass(frozen=True, kw_only=True)
class RowsOptions(ReadingOptions):
    """The options of every command that reads rows."""

    data: Annotated[
        list[str],
        _argument(
            "DATA",
            "Parquet, Arrow, CSV, TSV, JSON lines (.jsonl), these also packed (.gz, .zst), or .npy files; folders, "
            "'globs/*.parquet' and addresses such as s3://bucket/*.parquet; - for standard input. All have the same "
            "columns.",
        ),
    ]
    columns: Annotated[
        list[str],
        _column("--columns", "NAMES", "Columns to use, separated by commas (of .npy: numbers from 0). Default: all."),
    ] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class LabelsOptions(RowsOptions):
    """The options of every command that writes labels."""

    id_columns: Annotated[
        list[str], _column("--id", "NAMES", "Columns to write beside the labels; they are not used for clustering.")
    ] = field(default_factory=list)
    label_column: Annotated[str, _column("--label-column", "NAME", "Name of the column of labels.")] = "label"
    jobs: Jobs = None
    force: Force = False


@dataclass(frozen=True, kw_only=True)
class PredictOptions(LabelsOptions):
    """The options of ``dc2 predict``."""

    model: ModelFile
    output: Annotated[Path, _option("--output -o", "FILE", LABEL_FILES, show_default=False)]
    top: Annotated[
        int | None,
        _option(
            "--top",
            "NUMBER",
            "Also write the best clusters of each row, at most 5, and their shares: cluster_1, share_1 and so on.",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class UpdateOptions(LabelsOptions):
    """The options of ``dc2 update``."""

    model: ModelFile
    output: Annotated[Path | None, _option("--output -o", "FILE", "Where to write a label per new row, in order.")] = (
        None
    )
    new_model: Annotated[
        Path | None,
        _option(
            "--model",
            "FILE",
            "Save the updated model here (.dc2). The old file is only replaced if this names it, with --force.",
        ),
    ] = None
    report: Annotated[
        Path | None, _option("--report", "FILE", "Write a report here (.html); it shows what changed.")
    ] = None
    forget: Annotated[
        float,
        _option(
            "--forget",
            "SHARE",
            "Share of their weight that older rows lose first, such as 0.1; from 1 on a half-life in updates.",
        ),
    ] = 0.0
    fixed: Annotated[
        bool, _option("--fixed", None, "Rows seen before keep their labels; only far rows make new clusters.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class CompareOptions(RowsOptions):
    """The options of ``dc2 compare``."""

    old: Annotated[Path, _argument("OLD", "A model that dc2 saved.")]
    new: Annotated[Path, _argument("NEW", "A later model.")]


@dataclass(frozen=True, kw_only=True)
class CompressOptions(RowsOptions):
    """The options of ``dc2 compress``."""

    output: Annotated[
        Path,
        _option(
            "--output -o",
            "FILE",
            "Where to write a row per signature: .parquet, .arrow, .csv or .csv.gz.",
            show_default=False,
        ),
    ]
    model: Annotated[Path | None, _option("--model", "FILE", "Save the Compressor here (.dc2), for Python.")] = None
    signatures: Annotated[
        int,
        _option(
            "--signatures",
            "NUMBER",
            "Number of signatures that rows are compressed to. More show finer shapes.",
            min=1,
            max=MOST_SIGNATURES,
        ),
    ] = 1000
    drop: Drop = field(default_factory=list)
    weight: Weight = None
    scale: ScaleOption = None
    metric: MetricOption = Metric.euclidean
    jobs: Jobs = None
    seed: Seed = 0
    force: Force = False


@dataclass(frozen=True, kw_only=True)
class InfoOptions(ReadingOptions):
    """The options of ``dc2 info``."""

    paths: Annotated[list[str], _argument("MODEL|DATA", "A model (.dc2), or data files.")]


def split_names(values: Sequence[str]) -> list[str]:
    """Return the names of an option that may be repeated and may hold commas.

    Examples
    --------
    >>> split_names(["height,weight", "age"])
    ['height', 'weight', 'age']
    """
    return [name for value in values for name in value.split(",") if name]


def taken_as(values: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the columns that ``--as category:NAMES`` takes as categories, and those of ``--as text:NAMES``.

    Examples
    --------
    >>> taken_as(["category:zip,plan", "text:comment"])
    (['zip', 'plan'], ['comment'])
    """
    found: dict[str, list[str]] = {"category": [], "text": []}
    for value in values:
        kind, _, names = value.partition(":")
        if kind not in found or not split_names([names]):
            raise typer.BadParameter(
                f"{value!r}: say --as category:NAMES or --as text:NAMES, such as --as category:zip,plan."
            )
        found[kind] += split_names([names])
    return found["category"], found["text"]


def signatures_or_auto(text: Any) -> Any:
    """Return a number of signatures that memory can hold, and ``auto`` as it is.

    Examples
    --------
    >>> signatures_or_auto("3000"), signatures_or_auto("auto")
    (3000, 'auto')
    """
    number = text if text == "auto" else _number(text)
    if number != "auto" and not (isinstance(number, int) and 1 <= number <= MOST_SIGNATURES):
        raise typer.BadParameter(f"{text!r} is neither auto nor a whole number from 1 to {MOST_SIGNATURES}.")
    return number


def number_or_auto(text: Any) -> Any:
    """Return a number, a range such as ``2-10`` as a pair, and ``auto`` as it is; the estimator checks the rest.

    Examples
    --------
    >>> number_or_auto("3"), number_or_auto("0.05"), number_or_auto("2-10"), number_or_auto("auto")
    (3, 0.05, (2, 10), 'auto')
    """
    if text == "auto":
        return text
    pair = re.fullmatch(r"(\d+)-(\d+)", str(text))
    if pair:
        return int(pair[1]), int(pair[2])
    number = _number(text)
    if number is None:
        raise typer.BadParameter(f"{text!r} is not a number, a range such as 2-10, or auto.")
    return number


def _number(text: Any) -> int | float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return int(number) if number.is_integer() else number


@dataclass(frozen=True, kw_only=True)
class ClusterOptions(LabelsOptions):
    """The options of ``dc2 cluster``."""

    clusters: Annotated[
        Any,
        _option(
            "--clusters -k",
            "NUMBER",
            "Number of clusters: a number, a range such as 2-10, or auto, which chooses.",
            parser=number_or_auto,
        ),
    ] = "auto"
    output: Annotated[Path | None, _option("--output -o", "FILE", LABEL_FILES)] = None
    model: Annotated[
        Path | None, _option("--model", "FILE", "Save the model here (.dc2), for dc2 predict, info and report.")
    ] = None
    report: Annotated[Path | None, _option("--report", "FILE", "Write a report for the browser here (.html).")] = None
    noise: Annotated[
        float,
        _option(
            "--noise",
            "SHARE",
            "Share of the rows to label -1 as noise, such as 0.05: those with the highest outlier scores.",
        ),
    ] = 0.0
    min_cluster_share: Annotated[
        float | None,
        _option(
            "--min-cluster-share",
            "SHARE",
            "Smallest share of the rows that a cluster may have, such as 0.01; smaller ones get the label -1.",
        ),
    ] = None
    min_cluster_size: Annotated[
        float | None,
        _option(
            "--min-cluster-size",
            "ROWS",
            "Smallest cluster, in rows, or as a share below 1; smaller ones join another cluster.",
        ),
    ] = None
    max_cluster_size: Annotated[
        float | None,
        _option(
            "--max-cluster-size", "ROWS", "Largest cluster, in rows, or as a share below 1; larger ones are divided."
        ),
    ] = None
    signatures: Annotated[
        Any,
        _option(
            "--signatures",
            "NUMBER",
            "Number of signatures that rows are compressed to, more for finer shapes; or auto, which chooses.",
            parser=signatures_or_auto,
        ),
    ] = "auto"
    similarity: Annotated[
        SimilarityName,
        _option(
            "--similarity",
            "NAME",
            "graph: Leiden communities of the neighbour graph. rpf: the paper's kernel and spectral clustering.",
        ),
    ] = SimilarityName.graph
    bandwidth: Annotated[
        Any,
        _option(
            "--bandwidth",
            "NUMBER",
            "With --similarity rpf, the bandwidth of the kernel: a number, smaller for finer structure, or auto.",
            parser=number_or_auto,
        ),
    ] = "auto"
    seed: Seed = 0
    drop: Drop = field(default_factory=list)
    weight: Weight = None
    scale: ScaleOption = None
    metric: MetricOption = Metric.euclidean
    taken_as: Annotated[
        list[str],
        _column(
            "--as",
            "KIND:NAMES",
            "Type of columns: category:zip,plan for categories, text:comment for text to vectorise.",
        ),
    ] = field(default_factory=list)
    raw: Annotated[bool, _column("--raw", None, "Do not prepare columns: text and missing values are errors.")] = False
    prepare: Annotated[
        bool,
        _column(
            "--prepare",
            None,
            "Prepare a table of numbers too: scale columns, leave out ids, add jitter to counts and ratings.",
        ),
    ] = False
    label_from: Annotated[
        str | None,
        _column("--label-from", "NAME", "Column of known labels, empty or -1 where unknown; rows keep theirs."),
    ] = None
    engine: Annotated[
        EngineName,
        _machine(
            "--engine",
            "NAME",
            "threads of this machine; or dask, spark or ray, whose workers read the files (spark and ray: Parquet).",
        ),
    ] = EngineName.threads
    scheduler: Annotated[
        str | None,
        _machine(
            "--scheduler",
            "ADDRESS",
            "With --engine dask or ray: its address, such as tcp://host:8786. Default: start one here.",
        ),
    ] = None
    master: Annotated[
        str | None,
        _machine(
            "--master",
            "MASTER",
            "With --engine spark: the master, such as local[2], spark://host:7077, or sc://host for Spark Connect.",
        ),
    ] = None
