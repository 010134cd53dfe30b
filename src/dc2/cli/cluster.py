"""``dc2 cluster``: from files to labels, a model and a report."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from dc2.cli import options

__all__ = ["cluster"]


def cluster(
    data: options.Data,
    clusters: Annotated[
        Any,
        typer.Option(
            "--clusters",
            "-k",
            parser=options.number_or_auto,
            metavar="NUMBER",
            help="How many clusters: a number, a range such as 2-10, or auto, which chooses.",
        ),
    ] = "auto",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to write a label per row, in order: .parquet, .arrow, .csv, .csv.gz or .npy.",
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            "--model", metavar="FILE", help="Save the model here (.dc2), for dc2 predict, info and report."
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", metavar="FILE", help="Write a report here (.html), to be read in a browser."
        ),
    ] = None,
    columns: options.Columns = [],  # noqa: B006 - typer copies it
    drop: options.Drop = [],  # noqa: B006
    id_columns: options.RowIds = [],  # noqa: B006
    weight: options.Weight = None,
    label_column: options.LabelColumn = "label",
    scale: options.ScaleOption = options.Scale.standard,
    signatures: options.Signatures = 1000,
    bandwidth: Annotated[
        Any,
        typer.Option(
            "--bandwidth",
            parser=options.number_or_auto,
            metavar="NUMBER",
            help="How alike signatures must be: a number, smaller for finer structure, or auto, which chooses.",
        ),
    ] = "auto",
    jobs: options.Jobs = None,
    engine: options.EngineOption = options.Engine.threads,
    scheduler: options.Scheduler = None,
    seed: options.Seed = 0,
    force: options.Force = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Cluster the rows of files, of any size.

    Example: dc2 cluster sales.parquet -k 5 -o labels.parquet --id customer --report report.html
    """
    began = time.perf_counter()
    if output is None and model is None and report is None:
        raise typer.BadParameter("Nothing would be written: give --output, --model or --report.")

    from dc2.cli import summary
    from dc2.cli.failures import writing
    from dc2.cli.model_facts import choice_facts, cluster_weights
    from dc2.cli.outputs import check_labels_file, check_outputs
    from dc2.cli.populate import write_and_count
    from dc2.cli.progress import stage_bars
    from dc2.cli.rows import Rows
    from dc2.cli.workers import check_engine, workers
    from dc2.cluster import RPFCluster
    from dc2.facts import Facts
    from dc2.kernels import RPF

    check_engine(engine, scheduler)
    ids = options.split_names(id_columns)
    rows = Rows(data, options.split_names(columns), options.split_names(drop), ids, weight, engine)
    files = check_outputs(
        {"labels": output, "model": model, "report": report},
        force=force,
        inputs=[file.path for file in rows.files],
    )
    check_labels_file(output, ids, label_column)
    source = rows.to_fit()
    with workers(engine, scheduler, jobs), stage_bars() as progress:
        clusterer = RPFCluster(
            clusters,
            n_signatures=signatures,
            similarity=RPF(bandwidth=bandwidth),
            scale=scale.parameter,  # type: ignore[arg-type]
            n_jobs=jobs,
            random_state=seed,
            verbose=progress,
        ).fit(source)
        if "labels" in files:
            since = time.perf_counter()
            sizes: Sequence[float] = write_and_count(
                clusterer, rows.to_label(source), files["labels"], label_column
            )
            clusterer.stage_seconds_["populate"] += time.perf_counter() - since
        else:
            sizes = cluster_weights(clusterer)
    if "model" in files:
        with writing(files["model"]):
            clusterer.save(files["model"])
    if "report" in files:
        from dc2.report import write_report

        with writing(files["report"]):
            write_report(clusterer, files["report"], source_description=", ".join(data))
    summary.tell(
        f"{len(sizes)} cluster{'s' if len(sizes) > 1 else ''} in {clusterer.n_rows_in_:,} rows of "
        f"{clusterer.n_features_in_} columns",
        {
            **choice_facts(clusterer),
            "distortion": f"{clusterer.distortion_:.4g}: {len(clusterer.signatures_):,} signatures keep "
            f"{Facts.of(clusterer).variance_kept:.1%} of the variance",
        },
        {
            "rows": clusterer.n_rows_in_,
            "columns": clusterer.n_features_in_,
            "signatures": len(clusterer.signatures_),
            "distortion": clusterer.distortion_,
            "variance_kept": Facts.of(clusterer).variance_kept,
            "bandwidth": clusterer.bandwidth_,
        },
        sizes=sizes,
        seconds={**clusterer.stage_seconds_, "total": time.perf_counter() - began},
        files=files,
        as_json=json,
    )
