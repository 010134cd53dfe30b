"""``dc2 predict``: labels for new rows."""

import time

from dc2.cli import options

__all__ = ["predict"]


def predict(
    model: options.ModelFile,
    data: options.Data,
    output: options.LabelsFile,
    columns: options.Columns = [],  # noqa: B006 - typer copies it
    id_columns: options.RowIds = [],  # noqa: B006
    label_column: options.LabelColumn = "label",
    jobs: options.Jobs = None,
    force: options.Force = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Label rows with a model that was saved.

    Columns are found by the names the model was made with; others may be there too.

    Example: dc2 predict model.dc2 new.parquet -o labels.parquet --id customer
    """
    began = time.perf_counter()

    from dc2.cli import summary
    from dc2.cli.model_facts import load_clusterer
    from dc2.cli.outputs import check_labels_file, check_outputs
    from dc2.cli.populate import write_and_count
    from dc2.cli.progress import stage_bars
    from dc2.cli.rows import Rows

    clusterer = load_clusterer(model)
    ids = options.split_names(id_columns)
    rows = Rows(data, options.split_names(columns), ids=ids)
    files = check_outputs(
        {"labels": output}, force=force, inputs=[str(model), *(file.path for file in rows.files)]
    )
    check_labels_file(output, ids, label_column)
    source = rows.like(getattr(clusterer, "feature_names_in_", None))
    with stage_bars() as progress:
        clusterer.set_params(n_jobs=jobs, verbose=progress)
        sizes = write_and_count(clusterer, source, files["labels"], label_column)
    summary.tell(
        f"{sum(sizes):,} rows labelled",
        {},
        {"rows": sum(sizes)},
        sizes=sizes,
        seconds={"total": time.perf_counter() - began},
        files=files,
        as_json=json,
    )
