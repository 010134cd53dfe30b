"""The work of ``dc2 cluster``: check all that can be checked, fit, save the model, and only then write the rest."""

import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from dc2.cli import summary
from dc2.cli.cluster import ClusterOptions
from dc2.cli.failures import writing
from dc2.cli.hints import hint_on_codes
from dc2.cli.labels import kept_by_model, write_and_count
from dc2.cli.model_facts import choice_facts, cluster_weights
from dc2.cli.options import Scale, Similarity, scale_of_numbers, taken_as
from dc2.cli.outputs import check_labels, check_names, check_outputs
from dc2.cli.progress import stage_bars
from dc2.cli.rows import ColumnChoice, Rows, csv_options
from dc2.cli.standard_input import with_standard_input
from dc2.cli.summary import ClusterSizes
from dc2.cli.workers import check_engine, workers
from dc2.cluster import DC2Clustering
from dc2.engines.base import Progress
from dc2.errors import ClustersDoNotShowWarning, MissingValuesError, PreparationNote
from dc2.facts import Facts
from dc2.facts.variance import variance_kept
from dc2.facts.verdict import verdict_in_words
from dc2.kernels import RPF
from dc2.sources import Source
from dc2.sources.tables import TableSource
from dc2.tables import TablePreparer

__all__ = ["run"]

KERNEL_SIGNATURES = 1000  # a dense kernel of many more takes too long


def run(wanted: ClusterOptions) -> None:
    """Cluster, write what is wanted and say what was done."""
    began = time.perf_counter()
    check_engine(wanted.engine, wanted.scheduler)
    with with_standard_input(wanted.data) as data:
        rows = Rows(data, ColumnChoice.of(wanted), wanted.engine, csv_options(wanted))
        files = check_outputs(
            {"labels": wanted.output, "model": wanted.model, "report": wanted.report},
            force=wanted.force,
            inputs=rows.paths,
        )
        categories, texts = taken_as(wanted.taken_as)
        if wanted.raw and wanted.taken_as:
            raise typer.BadParameter("--as says how columns are prepared, and --raw that none is. Give one.")
        if wanted.raw and wanted.prepare:
            raise typer.BadParameter("--prepare says that columns are prepared, and --raw that none is. Give one.")
        source = (None if wanted.raw else rows.table_to_fit([*categories, *texts])) or rows.to_fit()
        check_names(files.get("model"), source)
        check_labels(files.get("labels"), rows, source, wanted.label_column)
        with workers(wanted.engine, wanted.scheduler, wanted.jobs), stage_bars() as progress:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ClustersDoNotShowWarning)  # the verdict says it
                clusterer = fitted(wanted, source, progress)
            save(clusterer, files.get("model"))
            hint = hint_for(clusterer, source)
            source = rows.for_model(clusterer) if rows.ids or isinstance(source, TableSource) else source
            since = time.perf_counter()
            sizes = labelled(clusterer, source, files, wanted)
            labelling = time.perf_counter() - since
    if "report" in files:
        write_report(clusterer, files["report"], wanted.data)
    seconds = dict(clusterer.stage_seconds_)
    seconds |= {"populate": seconds["populate"] + labelling, "total": time.perf_counter() - began}
    tell(clusterer, sizes, seconds, files, hint, wanted.json)


def fitted(wanted: ClusterOptions, source: Source, progress: Progress) -> DC2Clustering:
    """Return the clusterer that the options ask for, fitted: numbers as they are, other tables prepared."""
    categories, texts = taken_as(wanted.taken_as)
    if not isinstance(source, TableSource):
        return configured(wanted, progress, None).fit(source)
    if source.is_numeric and not (wanted.taken_as or wanted.prepare):
        try:
            return configured(wanted, progress, None).fit(source.as_numbers())
        except MissingValuesError:
            pass  # which shows only when the rows are read
    if wanted.scale not in (None, Scale.none):
        raise typer.BadParameter(
            f"--scale {wanted.scale.value} is for numbers as they are, but the table has words or blanks, or --prepare "
            "was given, and preparing scales its columns. Leave --scale out, or give --raw and a table of numbers."
        )
    return configured(wanted, progress, TablePreparer(categories, texts=texts)).fit(source)


def configured(wanted: ClusterOptions, progress: Progress, prepare: TablePreparer | None) -> DC2Clustering:
    """Return the clusterer that the options ask for."""
    by_kernel = wanted.similarity is Similarity.rpf
    n_signatures = KERNEL_SIGNATURES if by_kernel and wanted.signatures == "auto" else wanted.signatures
    return DC2Clustering(
        wanted.clusters,
        n_signatures=n_signatures,
        similarity=RPF(bandwidth=wanted.bandwidth) if by_kernel else "ties",
        scale=scale_of_numbers(wanted.scale) if prepare is None else None,  # type: ignore[arg-type]
        prepare=prepare,
        metric=wanted.metric.value,
        noise=wanted.noise,
        min_cluster_share=wanted.min_cluster_share,
        n_jobs=wanted.jobs,
        random_state=wanted.seed,
        verbose=progress,
    )


def save(clusterer: DC2Clustering, path: Path | None) -> None:
    """Save the model, if it is wanted, before the labels are written: it is kept even if they cannot be."""
    if path is not None:
        with writing(path):
            clusterer.save(path)


def labelled(
    clusterer: DC2Clustering, source: Source, files: Mapping[str, Path], wanted: ClusterOptions
) -> ClusterSizes:
    """Write the labels, if they are wanted, and return the rows of each cluster.

    If the labels cannot be written the fit is not lost: its model has been saved, or is saved now.
    """
    if "labels" not in files:
        return cluster_weights(clusterer)
    try:
        with warnings.catch_warnings():
            # The levels it would count are not new, but too rare for the sample.
            warnings.simplefilter("ignore", PreparationNote)
            return write_and_count(clusterer, source, files["labels"], wanted.label_column)
    except Exception as error:
        raise kept_by_model(error, clusterer, files, wanted) from error


def write_report(clusterer: DC2Clustering, page: Path, data: list[str]) -> None:
    """Write the report of a fit."""
    from dc2.report import write_report as write

    with writing(page):
        write(clusterer, page, source_description=", ".join(data))


def hint_for(clusterer: DC2Clustering, source: Source) -> str:
    """Return a word on columns of a table that was not prepared but may need it."""
    if not isinstance(source, TableSource) or hasattr(clusterer, "preparer_"):
        return ""
    return hint_on_codes(source.as_numbers())


def prepared_facts(clusterer: DC2Clustering) -> dict[str, dict[str, str]]:
    """Return what was done with each column of a table that was prepared."""
    return {"prepared": clusterer.preparer_.decisions_} if hasattr(clusterer, "preparer_") else {}


def tell(
    clusterer: DC2Clustering,
    sizes: ClusterSizes,
    seconds: Mapping[str, float],
    files: Mapping[str, Path],
    hint: str,
    as_json: bool,
) -> None:
    """Say what was found."""
    kept, made = variance_kept(clusterer.signatures_), len(clusterer.signatures_)
    known: dict[str, Any] = {
        "rows": clusterer.n_rows_in_,
        "columns": clusterer.n_features_in_,
        "signatures": made,
        "distortion": clusterer.distortion_,
        "variance_kept": kept,
        "verdict": verdict_in_words(clusterer),
        "stability": {
            "overall": clusterer.overall_stability_,
            "clusters": clusterer.stability_.tolist(),
        },
        "remarks": Facts.of(clusterer).remarks,
        "bandwidth": getattr(clusterer, "bandwidth_", None),
        **prepared_facts(clusterer),
        **({"hint": hint} if hint else {}),
    }
    summary.tell(
        f"{len(sizes.sizes)} cluster{'s' if len(sizes.sizes) > 1 else ''} in {clusterer.n_rows_in_:,} rows of "
        f"{clusterer.n_features_in_} columns",
        {
            **{f"column {name}": words for name, words in prepared_facts(clusterer).get("prepared", {}).items()},
            **choice_facts(clusterer),
            "hint": hint,
            "distortion": f"{clusterer.distortion_:.4g}: {made:,} signatures keep {kept:.1%} of the variance",
        },
        known,
        sizes=sizes,
        seconds=seconds,
        files=files,
        as_json=as_json,
    )
