"""``dc2 predict``: labels for new rows."""

import time
from dataclasses import dataclass, field

from dc2.cli import options

__all__ = ["PredictOptions", "predict"]


@dataclass(frozen=True, kw_only=True)
class PredictOptions:
    """The options of ``dc2 predict``."""

    model: options.ModelFile
    data: options.Data
    output: options.LabelsFile
    delimiter: options.Delimiter = None
    no_header: options.NoHeader = False
    encoding: options.Encoding = "utf-8"
    columns: options.Columns = field(default_factory=list)
    id_columns: options.RowIds = field(default_factory=list)
    label_column: options.LabelColumn = "label"
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
    from dc2.cli.labels import write_and_count
    from dc2.cli.model_facts import load_clusterer
    from dc2.cli.outputs import check_labels, check_outputs
    from dc2.cli.progress import stage_bars
    from dc2.cli.rows import ColumnChoice, Rows, csv_options
    from dc2.cli.standard_input import with_standard_input

    clusterer = load_clusterer(wanted.model)
    with with_standard_input(wanted.data) as data, stage_bars() as progress:
        rows = Rows(data, ColumnChoice.of(wanted), csv=csv_options(wanted))
        inputs = [str(wanted.model), *rows.paths]
        files = check_outputs({"labels": wanted.output}, force=wanted.force, inputs=inputs)
        source = rows.for_model(clusterer)
        check_labels(files["labels"], rows, source, wanted.label_column)
        clusterer.set_params(n_jobs=wanted.jobs, verbose=progress)
        sizes = write_and_count(clusterer, source, files["labels"], wanted.label_column)
    summary.tell(
        f"{sizes.total:,} rows labelled",
        {},
        {"rows": sizes.total},
        sizes=sizes,
        seconds={"total": time.perf_counter() - began},
        files=files,
        as_json=wanted.json,
    )
