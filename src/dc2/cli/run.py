"""The work of ``dc2 cluster``, ``dc2 update`` and ``dc2 compress``."""

import json
import os
import shlex
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, asdict, fields
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray

from dc2.cli import summary
from dc2.cli.describe import choice_facts, cluster_weights, labelled_clusters, load_clusterer
from dc2.cli.error_messages import INTERRUPTED, TERMINATED, CommandError, sentence, writing
from dc2.cli.inputs import ColumnChoice, Rows, check_engine, csv_options, with_standard_input, workers
from dc2.cli.options import (
    ClusterOptions,
    CompressOptions,
    LabelsOptions,
    Metric,
    Scale,
    SimilarityName,
    UpdateOptions,
    scale_of_numbers,
    taken_as,
)
from dc2.cli.summary import ClusterSizes, stage_bars
from dc2.cluster.base import SignatureClusterer
from dc2.cluster.dc2_clustering import DC2Clustering
from dc2.compress.compressor import Compressor
from dc2.engines.engine import Progress
from dc2.errors import ClustersDoNotShowWarning, MissingValuesError, ParameterError, PreparationNote
from dc2.io.model_file import has_control_characters
from dc2.io.outputs import check_columns, check_output_path, check_room, check_target, write_labels
from dc2.io.resolve import TableSource
from dc2.io.source import Source, listed
from dc2.report.cluster_report import write_report
from dc2.report.cluster_statistics import ClusterStatistics, variance_kept
from dc2.report.page import count, environment, percent
from dc2.spectral.rpf import RPF
from dc2.tables.preparer import TablePreparer

LOOKED_AT_BYTES, MOST_VALUES, ROWS_PER_VALUE = 2**20, 20, 4


def hint_on_codes(source: Source) -> str:
    """Return a hint on columns of few whole numbers beside columns of many values; empty if there are none.

    The first rows decide. Many rows share such a value, and a rating from 1 to 5 may split clusters into five.
    """
    first = next(source.blocks(LOOKED_AT_BYTES)).X
    names = source.feature_names or [str(place) for place in range(first.shape[1])]
    values = {name: np.unique(column) for name, column in zip(names, first.T, strict=True)}
    most = min(MOST_VALUES, len(first) / ROWS_PER_VALUE)
    coded = [name for name, distinct in values.items() if 1 < len(distinct) <= most and (distinct % 1 == 0).all()]
    if not coded or max(map(len, values.values())) <= MOST_VALUES:
        return ""
    return (
        f"{listed(coded)} {'holds' if len(coded) == 1 else 'hold'} few whole numbers, and may split clusters at each "
        f"of them. Use --prepare for counts or ratings, --as category:{coded[0]} for codes."
    )


def is_here(source: Source) -> bool:
    """Return whether this machine reads the rows, and not the workers of Spark or Ray."""
    return getattr(source, "remote", None) is None


def check_outputs(outputs: Mapping[str, Path | None], *, force: bool, inputs: Sequence[str] = ()) -> dict[str, Path]:
    """Return the wanted files, by what they are, if each can be written and is not read by the command; else raise."""
    wanted = {what: path.expanduser() for what, path in outputs.items() if path is not None}
    seen = {os.path.realpath(path) for path in inputs}
    for what, path in wanted.items():
        try:
            check_target(path, f"The {what}")
        except ParameterError as error:
            raise CommandError(str(error)) from error
        if os.path.realpath(path) in seen:
            raise CommandError(f"{str(path)!r} is used twice in this command. Choose another file for the {what}.")
        if path.exists() and not force:
            raise CommandError(f"{str(path)!r} exists already. Replace it with --force, or choose another name.")
        seen.add(os.path.realpath(path))
    return wanted


def check_labels(path: Path | None, rows: Rows, source: Source, label_column: str) -> None:
    """Raise if the labels of a source, with ids beside them, cannot be written to this kind of file."""
    if path is None:
        return
    check_output_path(path)
    if path.suffix.lower() == ".npy" and rows.ids:
        raise typer.BadParameter("A .npy file holds labels alone; write .parquet to keep the --id columns.")
    if label_column in rows.ids:
        raise typer.BadParameter(
            f"The --id columns have a column {label_column!r} already; name the labels with --label-column."
        )
    check_room(path, source.n_rows)
    if rows.ids and is_here(source):
        check_columns(path, rows.first_ids(source))


def check_names(model: Path | None, source: Source) -> None:
    """Raise if a model is to be saved but the name of a column cannot be stored in a model file."""
    names = [name for name in source.feature_names or () if has_control_characters(name)]
    if model is not None and names:
        raise CommandError(
            f"The data has columns whose names hold control characters: {listed(names)}. Rename them, or leave them "
            "out with --drop."
        )


def write_and_count(
    model: SignatureClusterer, source: Source, path: Path, column: str, *, overwrite: bool, top: int | None = None
) -> ClusterSizes:
    """Write the label of each row to a file and return how many rows each cluster has."""
    if not is_here(source):
        model.predict_to(source, path, column=column, overwrite=overwrite)
        return cluster_weights(model)
    numbers = labelled_clusters(model)
    counts = np.zeros(int(numbers.max()) + 2, np.int64)  # the first is that of -1

    def count(labels: NDArray[np.int32]) -> None:
        counts[:] += np.bincount(labels + 1, minlength=len(counts))

    with writing(path):
        model.predict_to(source, path, column=column, top=top, seen=count, overwrite=overwrite)
    noise = int(counts[0]) if hasattr(model, "noise_weights_") else None
    return ClusterSizes(counts[1 + numbers].tolist(), noise, numbers.tolist())


def write_each(writers: Mapping[str, Callable[[], Any]], keep: Callable[[list[str]], str] | None = None) -> None:
    """Write outputs, each even if another fails; if one does, raise with what `keep` says of those that are missing."""
    problems, missing, code = [], [], 1
    for what, write in writers.items():
        try:
            write()
        except Exception as error:
            problems.append(sentence(error))
            missing.append(what)
        except (KeyboardInterrupt, SystemExit) as stopped:
            code = INTERRUPTED if isinstance(stopped, KeyboardInterrupt) else TERMINATED
            problems.append(f"Stopped before the {what} {'were' if what.endswith('s') else 'was'} complete.")
            missing += list(writers)[list(writers).index(what) :]
            break
    if problems:
        raise CommandError(" ".join([*problems, *([] if keep is None else [keep(missing)])]), code)


def kept_fit(model: DC2Clustering, files: Mapping[str, Path], missing: list[str], wanted: LabelsOptions) -> str:
    """Return where the model is, which is saved if it was not, and the command that writes what is missing."""
    saved = _saved_in_private(model, files) if "model" in missing or "model" not in files else files["model"]
    if saved is None:
        return "The model could not be saved either."
    commands = []
    if "report" in missing:
        commands.append(["dc2", "report", str(saved), "-o", str(files["report"])])
    if "labels" in missing:
        commands.append(["dc2", "predict", str(saved), *wanted.data, "-o", str(files["labels"])])
        commands[-1] += reading_words(wanted, by_name=hasattr(model, "feature_names_in_"))
    go_on = f" Go on with: {' && '.join(map(shell_line, commands))}" if commands else ""
    return f"The fit is kept: the model is {str(saved)!r}.{go_on}"


def shell_line(words: Sequence[str]) -> str:
    r"""Return a command that a shell reads as these words, which may hold bytes that are no text.

    Examples
    --------
    >>> print(shell_line(["dc2", "info", "my rows.csv", "a\x1b.csv"]))
    dc2 info 'my rows.csv' $'a\x1b.csv'
    """

    def spelled(byte: int) -> str:
        return chr(byte) if 32 <= byte < 127 and byte not in b"'\\" else f"\\x{byte:02x}"

    return " ".join(
        shlex.quote(word) if word.isprintable() else f"$'{''.join(map(spelled, os.fsencode(word)))}'" for word in words
    )


def reading_words(wanted: LabelsOptions, by_name: bool) -> list[str]:
    """Return the options of a command that ``dc2 predict`` needs too; columns only if they are not found by name."""
    words: list[str] = []
    for field in fields(LabelsOptions):
        value = getattr(wanted, field.name)
        default = [] if field.default is MISSING else field.default
        if value != default and field.name not in ("data", "json", "debug", "columns" if by_name else ""):
            option = "--id" if field.name == "id_columns" else f"--{field.name.replace('_', '-')}"
            each = value if isinstance(value, list) else [value]
            words += [option] if value is True else [word for one in each for word in (option, str(one))]
    return words


def _saved_in_private(model: DC2Clustering, files: Mapping[str, Path]) -> Path | None:
    """Save a model in a new folder that only the user can open."""
    for place in (Path(tempfile.gettempdir()), *(path.parent for path in files.values())):
        try:
            folder = Path(tempfile.mkdtemp(prefix="dc2-", dir=place))
        except OSError:
            continue
        path = folder / "model.dc2"
        try:
            model.save(path)
            path.chmod(0o600)
        except (OSError, ValueError):
            shutil.rmtree(folder, ignore_errors=True)
            continue
        return path
    return None


KERNEL_SIGNATURES = 1000  # a dense kernel of many more takes too long


def run_cluster(wanted: ClusterOptions) -> None:
    """Cluster, write what is wanted and say what was done."""
    began = time.perf_counter()
    check_engine(wanted.engine, wanted.scheduler, wanted.master)
    raw = wanted.raw or wanted.metric is Metric.haversine
    if raw and (wanted.taken_as or wanted.prepare):
        option, other = "--raw" if wanted.raw else "--metric haversine", "--as" if wanted.taken_as else "--prepare"
        raise typer.BadParameter(f"{option}: prepares no column, but {other} prepares some. Give one of them.")
    with with_standard_input(wanted.data) as data:
        rows = Rows(
            data, ColumnChoice.of(wanted), wanted.engine, csv_options(wanted), wanted.master or wanted.scheduler
        )
        files = check_outputs(
            {"labels": wanted.output, "model": wanted.model, "report": wanted.report},
            force=wanted.force,
            inputs=rows.paths,
        )
        if "report" in files:
            environment()
        source = (None if raw else rows.table_to_fit(chain(*taken_as(wanted.taken_as)))) or rows.to_fit()
        check_names(files.get("model"), source)
        check_labels(files.get("labels"), rows, source, wanted.label_column)
        with workers(wanted.engine, wanted.scheduler, wanted.jobs), stage_bars() as progress:
            clusterer = fitted(wanted, source, progress, rows.labels())
            hint = hint_for(clusterer, source)
            seconds = dict(clusterer.stage_seconds_)
            source = rows.for_model(clusterer) if rows.ids or isinstance(source, TableSource) else source
            sizes = write_outputs(clusterer, source, files, wanted, seconds)
    total = time.perf_counter() - began
    # What no stage counts: imports, checks, the model, the report.
    seconds |= {"other": max(total - sum(seconds.values()), 0.0), "total": total}
    print_clusters(clusterer, sizes, seconds, files, hint, wanted.json)


def fitted(wanted: ClusterOptions, source: Source, progress: Progress, labels: Any) -> DC2Clustering:
    """Return the clusterer that the options ask for, fitted.

    Numbers are scaled unless the user says otherwise; a table that dc2 prepares is scaled by that.
    """
    categories, texts = taken_as(wanted.taken_as)
    always = bool(wanted.taken_as or wanted.prepare)
    prepare: Any = TablePreparer(categories, texts=texts) if always else "auto"
    table = source
    if wanted.scale is Scale.none and isinstance(source, TableSource) and source.is_numeric and not always:
        source = source.as_numbers()
    clusterer = configured(wanted, progress, prepare if isinstance(source, TableSource) else None)
    if always and wanted.scale is None:
        clusterer.set_params(scale=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClustersDoNotShowWarning)  # the verdict says it
        warnings.simplefilter("ignore", PreparationNote)  # the summary says it
        try:
            clusterer.fit(source, labels)
        except MissingValuesError:
            if source is table:
                raise
            clusterer.set_params(prepare="auto").fit(table, labels)  # a table with missing values is prepared
        except ParameterError as error:
            if error.parameter != "scale" or wanted.scale is not None:
                raise
            clusterer.set_params(scale=None).fit(source, labels)
    return clusterer


def configured(wanted: ClusterOptions, progress: Progress, prepare: Any) -> DC2Clustering:
    """Return the clusterer that the options ask for."""
    by_kernel = wanted.similarity is SimilarityName.rpf
    n_signatures = KERNEL_SIGNATURES if by_kernel and wanted.signatures == "auto" else wanted.signatures
    return DC2Clustering(
        wanted.clusters,
        n_signatures=n_signatures,
        similarity=RPF(bandwidth=wanted.bandwidth) if by_kernel else "graph",
        scale=scale_of_numbers(wanted.scale, wanted.metric),  # type: ignore[arg-type]
        prepare=prepare,
        metric=wanted.metric.value,  # type: ignore[arg-type]
        noise=wanted.noise,
        min_cluster_share=wanted.min_cluster_share,
        min_cluster_size=wanted.min_cluster_size,
        max_cluster_size=wanted.max_cluster_size,
        n_jobs=wanted.jobs,
        random_state=wanted.seed,
        verbose=progress,
    )


def write_outputs(
    clusterer: DC2Clustering,
    source: Source,
    files: Mapping[str, Path],
    wanted: ClusterOptions | UpdateOptions,
    seconds: dict[str, float],
) -> ClusterSizes:
    """Write the model, the labels and the report, and return the rows of each cluster; no fit is lost."""
    sizes = cluster_weights(clusterer)

    def write_labels_of_rows() -> None:
        nonlocal sizes
        began = time.perf_counter()
        with warnings.catch_warnings():
            # The categories it would count are not new, but too rare for the sample.
            warnings.simplefilter("ignore", PreparationNote)
            sizes = write_and_count(clusterer, source, files["labels"], wanted.label_column, overwrite=wanted.force)
        seconds["populate"] = seconds.get("populate", 0.0) + time.perf_counter() - began

    def write_page() -> None:
        with writing(files["report"]):
            write_report(clusterer, files["report"], source_description=", ".join(wanted.data), overwrite=wanted.force)

    writers = {
        "model": lambda: save(clusterer, files["model"], wanted.force),
        "labels": write_labels_of_rows,
        "report": write_page,
    }
    write_each(
        {what: write for what, write in writers.items() if what in files},
        lambda missing: kept_fit(clusterer, files, missing, wanted),
    )
    return sizes


def save(model: DC2Clustering | Compressor, path: Path, overwrite: bool) -> None:
    """Save a model."""
    with writing(path):
        model.save(path, overwrite=overwrite)


def hint_for(clusterer: DC2Clustering, source: Source) -> str:
    """Return a hint on columns of a table that was not prepared but may need it."""
    if not isinstance(source, TableSource) or hasattr(clusterer, "preparer_") or not is_here(source):
        return ""
    return hint_on_codes(source.as_numbers())


MOST_DECISIONS = 12


def decision_facts(decisions: Mapping[str, str]) -> dict[str, str]:
    """Return what was done with columns, a line for equal decisions, columns that were left out first.

    Examples
    --------
    >>> decision_facts({"a": "scaled", "b": "scaled", "c": "left out: constant"})
    {'column c': 'left out: constant', 'columns a, b': 'scaled'}
    """
    named: dict[str, list[str]] = {}
    for name, decision in decisions.items():
        named.setdefault(decision, []).append(name)
    order = sorted(named, key=lambda decision: not decision.startswith("left out"))
    facts = {}
    for decision in order[:MOST_DECISIONS]:
        names = named[decision]
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        facts[f"column{'s' if len(names) > 1 else ''} {shown}"] = decision
    if len(order) > MOST_DECISIONS:
        rest = sum(len(named[decision]) for decision in order[MOST_DECISIONS:])
        facts["more columns"] = f"{rest} others were prepared; the report and --json say how"
    return facts


def print_clusters(
    clusterer: DC2Clustering,
    sizes: ClusterSizes,
    seconds: Mapping[str, float],
    files: Mapping[str, Path],
    hint: str,
    as_json: bool,
) -> None:
    """Print what was found."""
    statistics = ClusterStatistics.of(clusterer)
    kept = percent(statistics.variance_kept)
    made, n_rows, n_columns = len(clusterer.signatures_), clusterer.n_rows_in_, clusterer.n_features_in_
    classes = clusterer.classes_.tolist() if hasattr(clusterer, "classes_") else []
    decisions = clusterer.preparer_.decisions_ if hasattr(clusterer, "preparer_") else {}
    described = {record["cluster"]: [record["sets_apart"]] for record in statistics.summary}
    for k, rule in statistics.rules.items():
        described[k].append(f"rule: {rule}")
    known: dict[str, Any] = {
        "rows": n_rows,
        "columns": n_columns,
        "signatures": made,
        "distortion": clusterer.distortion_,
        "variance_kept": statistics.variance_kept,
        "verdict": statistics.verdict,
        "stability": {"overall": clusterer.overall_stability_, "clusters": clusterer.stability_.tolist()},
        "remarks": statistics.remarks,
        "sets_apart": [record["sets_apart"] for record in statistics.summary][: len(sizes.sizes)],
        "rules": [{"cluster": k, **asdict(rule)} for k, rule in statistics.rules.items()],
        "bandwidth": getattr(clusterer, "bandwidth_", None),
        **({"prepared": decisions} if decisions else {}),
        **({"classes": classes} if classes else {}),
        **({"hint": hint} if hint else {}),
    }
    summary.print_summary(
        f"{count(len(sizes.sizes), 'cluster')} in {count(n_rows, 'row')} of {count(n_columns, 'column')}",
        {
            **decision_facts(decisions),
            **choice_facts(clusterer, statistics),
            "known": ", ".join(f"cluster {k} is {name!r}" for k, name in enumerate(classes) if name is not None),
            "hint": hint,
            "distortion": f"{clusterer.distortion_:.4g}: {made:,} signatures keep {kept} of the variance",
            "labels": "" if "labels" in files else "not written: --output FILE writes them",
        },
        known,
        sizes=sizes,
        described=described,
        seconds=seconds,
        files=files,
        as_json=as_json,
    )


def run_update(wanted: UpdateOptions) -> None:
    """Update a saved model with new rows, write what is wanted, and say what changed."""
    began = time.perf_counter()
    clusterer = load_clusterer(wanted.model)
    if not hasattr(clusterer, "update"):
        raise CommandError(f"{str(wanted.model)!r} holds a {type(clusterer).__name__}; only DC2Clustering is updated.")
    old, new = (path and os.path.realpath(path.expanduser()) for path in (wanted.model, wanted.new_model))
    in_place = wanted.force and old == new
    with with_standard_input(wanted.data) as data, stage_bars() as progress:
        rows = Rows(data, ColumnChoice.of(wanted), csv=csv_options(wanted))
        inputs = [*([] if in_place else [str(wanted.model)]), *rows.paths]
        outputs = {"labels": wanted.output, "model": wanted.new_model, "report": wanted.report}
        files = check_outputs(outputs, force=wanted.force, inputs=inputs)
        if "report" in files:
            environment()
        source = rows.for_model(clusterer)
        check_labels(files.get("labels"), rows, source, wanted.label_column)
        clusterer.set_params(n_jobs=wanted.jobs, verbose=progress)
        changes = clusterer.update(source, forget=wanted.forget, move=not wanted.fixed)
        sizes = write_outputs(clusterer, source, files, wanted, {})
    summary.print_summary(
        f"{changes.drift.get('rows', 0):,.6g} new rows, {count(clusterer.n_clusters_, 'cluster')}",
        {"changes": " ".join(changes.sentences())},
        {"rows": clusterer.n_rows_in_, "changes": json.loads(changes.to_json())},
        sizes=sizes,
        seconds={"total": time.perf_counter() - began},
        files=files,
        as_json=wanted.json,
    )


# Names that columns of real data hardly ever have.
WEIGHT_COLUMN, SPREAD_COLUMN = "dc2_weight", "dc2_spread"


def run_compress(wanted: CompressOptions) -> None:
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
        compressor = Compressor(
            wanted.signatures,
            scale=scale_of_numbers(wanted.scale, wanted.metric),  # type: ignore[arg-type]
            metric=wanted.metric.value,  # type: ignore[arg-type]
            n_jobs=wanted.jobs,
            random_state=wanted.seed,
        )
        with stage_bars() as progress:
            compressor.set_params(verbose=progress).fit(source)

    def write_signatures() -> None:
        with writing(files["signatures"]):
            write_labels(files["signatures"], [table(compressor, names)], overwrite=wanted.force)

    save_model = {"model": lambda: save(compressor, files["model"], wanted.force)} if "model" in files else {}
    write_each({**save_model, "signatures": write_signatures})
    made, kept = compressor.signatures_, variance_kept(compressor.signatures_)
    summary.print_summary(
        f"{len(made):,} signatures of {source.n_rows:,} rows of {source.n_features} columns",
        {"distortion": f"{compressor.distortion_:.4g}: {percent(kept)} of the variance is kept"},
        {
            "rows": source.n_rows,
            "columns": source.n_features,
            "signatures": len(made),
            "distortion": compressor.distortion_,
            "variance_kept": kept,
        },
        seconds={"total": time.perf_counter() - began},
        files=files,
        as_json=wanted.json,
    )


def column_names(source: Source) -> Sequence[str]:
    """Return the names of the columns to write, or raise if one of them is a name that we need."""
    names = source.feature_names or [f"x{index}" for index in range(source.n_features)]
    for name in (WEIGHT_COLUMN, SPREAD_COLUMN):
        if name in names:
            raise typer.BadParameter(f"The data has a column {name!r} already; leave it out with --drop.")
    return names


def table(compressor: Compressor, names: Sequence[str]) -> dict[str, Any]:
    """Return the signatures as columns, in the units of the data."""
    signatures, scaling = compressor.signatures_, compressor.router_.scaling
    points = signatures.points if scaling is None else scaling.undo(signatures.points)
    columns = dict(zip(names, points.T, strict=True))
    return {**columns, WEIGHT_COLUMN: signatures.weights, SPREAD_COLUMN: signatures.spread}
