"""The commands ``cluster``, ``compress``, ``predict``, ``update``, ``compare``, ``info``, ``report`` and ``export``."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from dc2.cli import options


def cluster(wanted: options.ClusterOptions) -> None:
    """Cluster the rows of files, of any size.

    dc2 prepares a table with text, dates or missing values, and the summary says how; numbers are only scaled.

    Without --output, --model or --report it only prints the summary.

    Example: dc2 cluster sales.parquet -k 5 -o labels.parquet --id customer --report report.html
    """
    if wanted.bandwidth != "auto" and wanted.similarity is not options.SimilarityName.rpf:
        raise typer.BadParameter("--bandwidth needs --similarity rpf; the neighbour graph has none.")

    from dc2.cli.run import run_cluster

    run_cluster(wanted)


def compress(wanted: options.CompressOptions) -> None:
    """Compress the rows of files to about a thousand signatures, for any other tool.

    A signature is the mean of the rows it stands for, in the units of the data; dc2_weight says how many rows that
    are, dc2_spread their mean squared distance to it (in scaled units).

    Example: dc2 compress sales.parquet -o signatures.parquet --drop customer
    """
    if wanted.output.suffix.lower() == ".npy":
        raise typer.BadParameter("A .npy file has no column names; write .parquet or .csv.")

    from dc2.cli.run import run_compress

    run_compress(wanted)


def predict(wanted: options.PredictOptions) -> None:
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


def update(wanted: options.UpdateOptions) -> None:
    """Add new rows to a saved model: clusters that survive keep their numbers, and the summary says what changed.

    Example: dc2 update january.dc2 february.parquet -o labels.parquet --model february.dc2 --forget 0.1
    """
    from dc2.cli.run import run_update

    run_update(wanted)


def compare(wanted: options.CompareOptions) -> None:
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


def info(wanted: options.InfoOptions) -> None:
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


def _told(wanted: options.InfoOptions) -> dict[str, Any]:
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


def report(wanted: options.ReportOptions) -> None:
    """Write a report of a model: one HTML file that needs no network.

    Example: dc2 report model.dc2 -o report.html
    """
    from dc2.cli.describe import load_clusterer
    from dc2.cli.error_messages import writing
    from dc2.cli.run import check_outputs
    from dc2.report.cluster_report import write_report

    clusterer = load_clusterer(wanted.model)
    page = wanted.output or wanted.model.with_suffix(".html")
    files = check_outputs({"report": page}, force=wanted.force, inputs=[str(wanted.model)])
    with writing(files["report"]):
        described = f"the model {wanted.model.name}"
        write_report(clusterer, files["report"], source_description=described, overwrite=wanted.force)
    print(f"Open {page} in a browser.")


def export(wanted: options.ExportOptions) -> None:
    """Write a model's predict as an ONNX graph, for programs without Python.

    Example: dc2 export model.dc2 model.onnx
    """
    from dc2.cli.describe import load_clusterer
    from dc2.cli.error_messages import writing
    from dc2.cli.run import check_outputs

    clusterer = load_clusterer(wanted.model)
    files = check_outputs({"ONNX model": wanted.output}, force=wanted.force, inputs=[str(wanted.model)])
    with writing(files["ONNX model"]):
        clusterer.to_onnx(files["ONNX model"], overwrite=wanted.force)
