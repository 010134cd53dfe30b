"""Arguments and options that several commands share."""

import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

MOST_SIGNATURES = 1_000_000


class Scale(StrEnum):
    """How columns are scaled."""

    standard = "standard"
    robust = "robust"
    none = "none"

    @property
    def parameter(self) -> str | None:
        """The estimator's parameter."""
        return None if self is Scale.none else self.value


class Metric(StrEnum):
    """What makes rows alike."""

    euclidean = "euclidean"
    cosine = "cosine"
    haversine = "haversine"


def scale_of_numbers(given: Scale | None, metric: Metric) -> str | None:
    """Return how numbers are scaled: standard, unless another way is asked for; degrees are not."""
    if given is None:
        return None if metric is Metric.haversine else Scale.standard.parameter
    return given.parameter


class SimilarityName(StrEnum):
    """What makes signatures alike."""

    graph = "graph"
    rpf = "rpf"


class EngineName(StrEnum):
    """Who does the work."""

    threads = "threads"
    dask = "dask"
    spark = "spark"
    ray = "ray"


Data = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA",
        show_default=False,
        help="Parquet, Arrow, CSV, TSV, JSON lines (.jsonl), these also packed (.gz, .zst), or .npy files; folders, "
        "'globs/*.parquet' and addresses such as s3://bucket/*.parquet; - for standard input. All have the same "
        "columns.",
    ),
]
ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", show_default=False, help="A model that dc2 cluster --model saved.")
]
LabelsFile = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        show_default=False,
        help="Where to write a label per row, in order: .parquet, .arrow, .csv, .csv.gz or .npy.",
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter",
        metavar="SIGN",
        help="Separator of the columns in CSV files, such as ';' or tab. Default: a comma; in .tsv a tab.",
    ),
]
NoHeader = Annotated[
    bool,
    typer.Option("--no-header", help="CSV files have no header line; their columns are called x0, x1 and so on."),
]
Encoding = Annotated[
    str,
    typer.Option(
        "--encoding",
        metavar="NAME",
        help="Text encoding of CSV files, such as latin-1, cp1252 or utf-16.",
    ),
]
Decimal = Annotated[
    str,
    typer.Option("--decimal", metavar="SIGN", help="Decimal mark of numbers in CSV files: . or ,"),
]
Thousands = Annotated[
    str | None,
    typer.Option(
        "--thousands",
        metavar="SIGN",
        help="Mark between groups of three digits in CSV files, such as ',' in 1,103. Default: none.",
    ),
]
MissingTexts = Annotated[
    list[str],
    typer.Option(
        "--na",
        metavar="TEXT",
        help="Text that means a missing value in CSV files, such as -999; repeat it for several. Empty, NA, NaN, null "
        "and ? always do.",
    ),
]
Columns = Annotated[
    list[str],
    typer.Option(
        "--columns",
        metavar="NAMES",
        help="Columns to use, separated by commas (of .npy: numbers from 0). Default: all.",
    ),
]
Drop = Annotated[list[str], typer.Option("--drop", metavar="NAMES", help="Columns to leave out, separated by commas.")]
RowIds = Annotated[
    list[str],
    typer.Option("--id", metavar="NAMES", help="Columns to write beside the labels; they are not used for clustering."),
]
Weight = Annotated[
    str | None, typer.Option("--weight", metavar="NAME", help="Column of row weights; 2 equals two rows.")
]
LabelColumn = Annotated[str, typer.Option("--label-column", metavar="NAME", help="Name of the column of labels.")]
ScaleOption = Annotated[
    Scale | None,
    typer.Option(
        "--scale",
        metavar="HOW",
        help="How columns are scaled: standard (mean 0, deviation 1), robust (median and quartiles, for outliers), "
        "none. The model keeps it. Default: standard; a table with text or missing values is scaled when dc2 prepares "
        "it, and takes no --scale.",
    ),
]
MetricOption = Annotated[
    Metric,
    typer.Option(
        "--metric",
        metavar="NAME",
        help="euclidean, cosine for embeddings (with --scale none), or haversine for two columns of latitude and "
        "longitude in degrees; then distances are in kilometres.",
    ),
]
Signatures = Annotated[
    int,
    typer.Option(
        "--signatures",
        min=1,
        max=MOST_SIGNATURES,
        metavar="NUMBER",
        help="Number of signatures that rows are compressed to. More show finer shapes.",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", metavar="NUMBER", help="Threads. Default: all cores. Labels do not depend on it."),
]
EngineOption = Annotated[
    EngineName,
    typer.Option(
        "--engine",
        metavar="NAME",
        help="threads of this machine, or dask, spark or ray: the workers of a cluster read the files. spark and ray "
        "read Parquet, and identify rows by their values.",
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="With --engine dask or ray: the address of the cluster, such as tcp://host:8786. Default: start one here.",
    ),
]
Master = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="MASTER",
        help="With --engine spark: the master, such as spark://host:7077 or local[2], or sc://host for Spark Connect. "
        "Default: that of spark-defaults.conf, or all cores of this machine.",
    ),
]
Seed = Annotated[
    int,
    typer.Option("--seed", min=0, metavar="NUMBER", help="Random seed. The same seed gives the same labels."),
]
Force = Annotated[bool, typer.Option("--force", "-f", help="Replace files that exist.")]
Json = Annotated[bool, typer.Option("--json", help="Print the summary as JSON, for machines.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


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
