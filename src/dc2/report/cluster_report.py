"""The report on a fitted clusterer: one HTML file that needs nothing else."""

from __future__ import annotations

import html
import os
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from dc2.io.outputs import check_target
from dc2.report.cluster_statistics import ClusterStatistics, FittedClusterer
from dc2.report.displays import N_COLOURS, SHAPES
from dc2.report.drawings import changes_section, map_section, similarity_section
from dc2.report.page import count, environment, number, page, percent, render, write_page
from dc2.report.profiles import MOST_WORDS
from dc2.report.reproduce import settings_section
from dc2.report.sections import (
    MOST_COLUMNS,
    choices_section,
    clusters_section,
    compare_section,
    preparation_section,
    profile_section,
    quality_section,
    resolutions_section,
    rules_section,
    spectrum_section,
    timings_section,
)
from dc2.versions import __version__

HEIGHT = 800


class InlineReport:
    """The report on a model, shown in a frame of its own by Jupyter."""

    def __init__(self, page: str) -> None:
        self._page = page

    @classmethod
    def of(cls, statistics: ClusterStatistics, **texts: Any) -> InlineReport:
        """Make one from the statistics of a model."""
        return cls(cluster_page(statistics, **texts))

    def _repr_html_(self) -> str:
        # The frame keeps the style of the page from that of the notebook; scripts run in it and reach nothing else.
        page = html.escape(self._page, quote=True)
        return (
            f'<iframe srcdoc="{page}" width="100%" height="{HEIGHT}" style="border:0" '
            'sandbox="allow-scripts allow-downloads" title="dc2 report"></iframe>'
        )

    def __repr__(self) -> str:
        return f"InlineReport({len(self._page) // 1000} kB): shown in a notebook; report(path) writes it to a file"


def write_report(
    model: FittedClusterer,
    path: str | os.PathLike[str],
    *,
    source_description: str | None = None,
    title: str | None = None,
    overwrite: bool = True,
) -> Path:
    """Write what a model found to an HTML file, and return its path.

    The page shows cluster sizes, a map of the signatures, what sets each cluster apart, silhouettes,
    the similarity matrix, how their number was chosen, what was done with columns, times and settings. If communities
    made the clusters, a slider shows other numbers of them. It opens in any browser without a network.

    Parameters
    ----------
    model : DC2Clustering, RPFCluster, RASP or KASP
        Fitted or loaded.
    path : path
        The file, such as ``report.html``; it appears when it is complete.
    source_description : str, optional
        What the rows are, in your words; stands under the title.
    title : str, optional
    overwrite : bool, default=True
        Whether an existing file is replaced; if not, ParameterError is raised.

    Returns
    -------
    Path

    Notes
    -----
    It takes a few seconds, whatever the number of rows: only signatures are used. The file holds averages of
    groups of rows, and the rows themselves where there were no more rows than signatures. The same model gives the
    same file.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import make_moons
    >>> from dc2 import RPFCluster
    >>> from dc2.report import write_report
    >>> X, _ = make_moons(1_000, noise=0.05, random_state=0)
    >>> model = RPFCluster(n_clusters=2, n_signatures=100, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report = write_report(model, Path(folder, "report.html"), source_description="Two moons")
    ...     report.name, "Two moons" in report.read_text("utf-8")
    ('report.html', True)
    """
    environment()  # what is missing shows before any work
    target = check_target(path, "A report")
    content = cluster_page(ClusterStatistics.of(model), title, source_description)
    return write_page(target, content, overwrite=overwrite)


def cluster_page(statistics: ClusterStatistics, title: str | None = None, source_description: str | None = None) -> str:
    """Return the page."""
    model = statistics.model
    map_, map_data = map_section(statistics)
    matrix, matrix_data = similarity_section(statistics)
    sections = [
        changes_section(statistics),
        clusters_section(statistics),
        map_,
        profile_section(statistics),
        rules_section(statistics),
        compare_section(statistics),
        quality_section(statistics),
        matrix,
        resolutions_section(statistics),
        spectrum_section(statistics),
        choices_section(statistics),
        preparation_section(statistics),
        timings_section(statistics),
        settings_section(statistics),
    ]
    spent = getattr(model, "stage_seconds_", {})
    return page(
        title or f"{count(statistics.n_clusters, 'cluster')}, found by {type(model).__name__}",
        render("intro.html", statistics=statistics, described=source_description, spent=spent),
        [section for section in sections if section is not None],
        controls=_controls(statistics),
        data={"map": map_data, "matrix": matrix_data, "explore": explore_data(statistics)},
        footer=f"Written by dc2 {__version__}. This page is complete in itself and uses no network.",
    )


def _controls(statistics: ClusterStatistics) -> str | None:
    """Return the slider for the number of clusters, if there are several to choose from."""
    partitions = statistics.other_partitions
    if len(partitions) < 2:
        return None
    chosen = partitions.index(statistics)
    note = _partition_note(statistics, chosen=True)
    return render("controls.html", statistics=statistics, partitions=partitions, chosen=chosen, note=note)


def explore_data(statistics: ClusterStatistics) -> dict[str, Any]:
    """Return what the script reads: for each number of clusters the numbers that the sections show."""
    columns = statistics.profile.differing_columns(MOST_COLUMNS)
    noise = statistics.noise
    return {
        "colours": N_COLOURS,
        "shapes": list(SHAPES),
        "unit": statistics.unit,
        "columns": [statistics.names[column] for column in columns.tolist()],
        "overall": [number(statistics.profile.middles(column)[1]) for column in columns.tolist()],
        "views": [_partition_data(statistics, partition, columns) for partition in statistics.other_partitions],
        "noise": {
            "rows": noise,
            "share": round(noise / statistics.total, 6),
            "signatures": int((statistics.labels < 0).sum()),
        }
        if noise
        else None,
    }


def _partition_data(own: ClusterStatistics, partition: ClusterStatistics, columns: NDArray[Any]) -> dict[str, Any]:
    profile, listed, chosen = partition.profile, partition.n_listed, partition is own
    return {
        "chosen": chosen,
        "note": _partition_note(partition, chosen),
        "cluster": partition.labels[own.drawn].tolist(),
        "rows": partition.sizes.tolist(),
        "rowsText": [number(size) for size in partition.sizes.tolist()],
        "share": partition.shares.round(6).tolist(),
        "shareText": [percent(share) for share in partition.shares.tolist()],
        "signatures": partition.signatures_of_clusters,
        "stability": own.stability[: partition.n_clusters].round(3).tolist() if chosen else None,
        "words": [
            [
                [word, profile.names[column], number(profile.middles(column)[0][k]), number(profile.middles(column)[1])]
                for word, column in profile.words(k, MOST_WORDS)
            ]
            for k in range(listed)
        ],
        "difference": profile.difference[:listed, columns].round(2).tolist(),
        "middles": [[number(profile.middles(column)[0][k]) for column in columns.tolist()] for k in range(listed)],
    }


def _partition_note(partition: ClusterStatistics, chosen: bool) -> str:
    is_chosen = "The number of clusters of the model" if chosen else "Not the number of clusters of the model"
    layers = " and ".join(map(str, partition.layers))
    return f"{is_chosen}; layer {layers}." if layers else f"{is_chosen}."
