"""The arguments and options of the commands, as records; commands that have options in common share a record."""

# ruff: noqa: RUF009 - fields are made by functions

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

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


REQUIRED: Any = ...


def _option(names: str, default: Any, text: str, heading: str | None = None, **more: Any) -> Any:
    """Return a field that is an option: its names and what stands for its value, such as ``"--jobs -j NUMBER"``."""
    words = names.split()
    metavar = None if words[-1].startswith("-") else words.pop()
    about = typer.Option(*words, metavar=metavar, rich_help_panel=heading, help=text, **more)
    own = {"default": default} if default is not list else {"default_factory": list}
    return field(**({} if default is REQUIRED else own), metadata={ABOUT: about})


_column = partial(_option, heading="Columns")
_text_file = partial(_option, heading="CSV and other text files")
_machine = partial(_option, heading="Machines")
ABOUT = "about"


def _argument(metavar: str, text: str) -> Any:
    return field(metadata={ABOUT: typer.Argument(metavar=metavar, show_default=False, help=text)})


LABEL_FILES = "Where to write a label per row, in order: .parquet, .arrow, .csv, .csv.gz or .npy."


@dataclass(frozen=True, kw_only=True)
class CommandOptions:
    """The options of every command."""

    debug: bool = _option("--debug", False, "Show the traceback of an error.")


@dataclass(frozen=True, kw_only=True)
class ModelOptions(CommandOptions):
    """The options of every command that reads a model."""

    model: Path = _argument("MODEL", "A model that dc2 cluster --model saved.")


@dataclass(frozen=True, kw_only=True)
class ReadingOptions(CommandOptions):
    """The options of every command that reads text files."""

    delimiter: str | None = _text_file(
        "--delimiter SIGN", None, "Separator of the columns, such as ';' or tab. Default: a comma; in .tsv a tab."
    )
    no_header: bool = _text_file(
        "--no-header", False, "CSV files have no header line; their columns are called x0, x1 and so on."
    )
    encoding: str = _text_file("--encoding NAME", "utf-8", "Text encoding, such as latin-1, cp1252 or utf-16.")
    decimal: str = _text_file("--decimal SIGN", ".", "Decimal mark of numbers: . or ,")
    thousands: str | None = _text_file(
        "--thousands SIGN", None, "Mark between groups of three digits, such as ',' in 1,103. Default: none."
    )
    na: list[str] = _text_file(
        "--na TEXT",
        list,
        "Text that means a missing value, such as -999; may be repeated. Empty, NA, NaN, null and ? always do.",
    )
    json: bool = _option("--json", False, "Print the summary as JSON, for machines.")


@dataclass(frozen=True, kw_only=True)
class RowsOptions(ReadingOptions):
    """The options of every command that reads rows."""

    data: list[str] = _argument(
        "DATA",
        "Parquet, Arrow, CSV, TSV, JSON lines (.jsonl), these also packed (.gz, .zst), or .npy files; folders, "
        "'globs/*.parquet' and addresses such as s3://bucket/*.parquet; - for standard input. All have the same "
        "columns.",
    )
    columns: list[str] = _column(
        "--columns NAMES", list, "Columns to use, separated by commas (of .npy: numbers from 0). Default: all."
    )


@dataclass(frozen=True, kw_only=True)
class WorkOptions(RowsOptions):
    """The options of every command that works on all rows."""

    jobs: int | None = _machine("--jobs -j NUMBER", None, "Threads. Default: all cores. Labels do not depend on it.")
    force: bool = _option("--force -f", False, "Replace files that exist.")


@dataclass(frozen=True, kw_only=True)
class LabelsOptions(WorkOptions):
    """The options of every command that writes labels."""

    id_columns: list[str] = _column(
        "--id NAMES", list, "Columns to write beside the labels; they are not used for clustering."
    )
    label_column: str = _column("--label-column NAME", "label", "Name of the column of labels.")


@dataclass(frozen=True, kw_only=True)
class FitOptions(WorkOptions):
    """The options of every command that fits."""

    drop: list[str] = _column("--drop NAMES", list, "Columns to leave out, separated by commas.")
    weight: str | None = _column("--weight NAME", None, "Column of row weights; 2 equals two rows.")
    scale: Scale | None = _column(
        "--scale HOW",
        None,
        "How columns are scaled: standard (mean 0, deviation 1), robust (median and quartiles, for outliers), none. "
        "Default: standard; a table with text or missing values is scaled when dc2 prepares it, and takes no --scale.",
    )
    metric: Metric = _column(
        "--metric NAME",
        Metric.euclidean,
        "euclidean; cosine for embeddings, with --scale none; or haversine for latitude and longitude in degrees.",
    )
    seed: int = _option("--seed NUMBER", 0, "Random seed. The same seed gives the same labels.", min=0)


@dataclass(frozen=True, kw_only=True)
class PredictOptions(LabelsOptions, ModelOptions):
    """The options of ``dc2 predict``."""

    output: Path = _option("--output -o FILE", REQUIRED, LABEL_FILES, show_default=False)
    top: int | None = _option(
        "--top NUMBER",
        None,
        "Also write the best clusters of each row, at most 5, and their shares: cluster_1, share_1 and so on.",
    )


@dataclass(frozen=True, kw_only=True)
class UpdateOptions(LabelsOptions, ModelOptions):
    """The options of ``dc2 update``."""

    output: Path | None = _option("--output -o FILE", None, "Where to write a label per new row, in order.")
    new_model: Path | None = _option(
        "--model FILE",
        None,
        "Save the updated model here (.dc2). The old file is only replaced if this names it, with --force.",
    )
    report: Path | None = _option("--report FILE", None, "Write a report here (.html); it shows what changed.")
    forget: float = _option(
        "--forget SHARE",
        0.0,
        "Share of their weight that older rows lose first, such as 0.1; from 1 on a half-life in updates.",
    )
    fixed: bool = _option("--fixed", False, "Rows seen before keep their labels; only far rows make new clusters.")


@dataclass(frozen=True, kw_only=True)
class CompareOptions(RowsOptions):
    """The options of ``dc2 compare``."""

    old: Path = _argument("OLD", "A model that dc2 saved.")
    new: Path = _argument("NEW", "A later model.")


@dataclass(frozen=True, kw_only=True)
class CompressOptions(FitOptions):
    """The options of ``dc2 compress``."""

    output: Path = _option(
        "--output -o FILE",
        REQUIRED,
        "Where to write a row per signature: .parquet, .arrow, .csv or .csv.gz.",
        show_default=False,
    )
    model: Path | None = _option("--model FILE", None, "Save the Compressor here (.dc2), for Python.")
    signatures: int = _option(
        "--signatures NUMBER",
        1000,
        "Number of signatures that rows are compressed to. More show finer shapes.",
        min=1,
        max=MOST_SIGNATURES,
    )


@dataclass(frozen=True, kw_only=True)
class InfoOptions(ReadingOptions):
    """The options of ``dc2 info``."""

    paths: list[str] = _argument("MODEL|DATA", "A model (.dc2), or data files.")


@dataclass(frozen=True, kw_only=True)
class ReportOptions(ModelOptions):
    """The options of ``dc2 report``."""

    output: Path | None = _option("--output -o FILE", None, "The page; beside the model, if not given.")
    force: bool = _option("--force -f", False, "Replace files that exist.")


@dataclass(frozen=True, kw_only=True)
class ExportOptions(CommandOptions):
    """The options of ``dc2 export``."""

    model: Path = _argument("MODEL", "A model that dc2 cluster --model saved.")
    output: Path = _argument("FILE", "The graph (.onnx).")
    force: bool = _option("--force -f", False, "Replace files that exist.")


@dataclass(frozen=True, kw_only=True)
class DemoOptions(CommandOptions):
    """The options of ``dc2 demo``."""

    rows: int = _option("--rows NUMBER", 2_000_000, "Rows to make.", min=1000)
    folder: Path = _option("--folder FOLDER", Path("demo"), "Where to write the files.")


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
class ClusterOptions(LabelsOptions, FitOptions):
    """The options of ``dc2 cluster``."""

    clusters: Any = _option(
        "--clusters -k NUMBER",
        "auto",
        "Number of clusters: a number, a range such as 2-10, or auto, which chooses.",
        parser=number_or_auto,
    )
    output: Path | None = _option("--output -o FILE", None, LABEL_FILES)
    model: Path | None = _option("--model FILE", None, "Save the model here (.dc2), for dc2 predict, info and report.")
    report: Path | None = _option("--report FILE", None, "Write a report for the browser here (.html).")
    noise: float = _option(
        "--noise SHARE",
        0.0,
        "Share of the rows to label -1 as noise, such as 0.05: those with the highest outlier scores.",
    )
    min_cluster_share: float | None = _option(
        "--min-cluster-share SHARE",
        None,
        "Smallest share of the rows that a cluster may have, such as 0.01; smaller ones get the label -1.",
    )
    min_cluster_size: float | None = _option(
        "--min-cluster-size ROWS",
        None,
        "Smallest cluster, in rows, or as a share below 1; smaller ones join another cluster.",
    )
    max_cluster_size: float | None = _option(
        "--max-cluster-size ROWS", None, "Largest cluster, in rows, or as a share below 1; larger ones are divided."
    )
    signatures: Any = _option(
        "--signatures NUMBER",
        "auto",
        "Number of signatures that rows are compressed to, more for finer shapes; or auto, which chooses.",
        parser=signatures_or_auto,
    )
    similarity: SimilarityName = _option(
        "--similarity NAME",
        SimilarityName.graph,
        "graph: Leiden communities of the neighbour graph. rpf: the paper's kernel and spectral clustering.",
    )
    bandwidth: Any = _option(
        "--bandwidth NUMBER",
        "auto",
        "With --similarity rpf, the bandwidth of the kernel: a number, smaller for finer structure, or auto.",
        parser=number_or_auto,
    )
    taken_as: list[str] = _column(
        "--as KIND:NAMES",
        list,
        "Type of columns: category:zip,plan for categories, text:comment for text to vectorise.",
    )
    raw: bool = _column("--raw", False, "Do not prepare columns: text and missing values are errors.")
    prepare: bool = _column(
        "--prepare",
        False,
        "Prepare a table of numbers too: scale columns, leave out ids, add jitter to counts and ratings.",
    )
    label_from: str | None = _column(
        "--label-from NAME", None, "Column of known labels, empty or -1 where unknown; rows keep theirs."
    )
    engine: EngineName = _machine(
        "--engine NAME",
        EngineName.threads,
        "threads of this machine; or dask, spark or ray, whose workers read the files (spark and ray: Parquet).",
    )
    scheduler: str | None = _machine(
        "--scheduler ADDRESS",
        None,
        "With --engine dask or ray: its address, such as tcp://host:8786. Default: start one here.",
    )
    master: str | None = _machine(
        "--master MASTER",
        None,
        "With --engine spark: the master, such as local[2], spark://host:7077, or sc://host for Spark Connect.",
    )
