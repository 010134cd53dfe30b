"""The report on a fitted clusterer: one HTML file that needs nothing else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from dc2.facts import Facts
from dc2.output import check_target
from dc2.report.explore import compare_section, controls, explore_data
from dc2.report.html import Html
from dc2.report.numbers import count
from dc2.report.page import page, write_page
from dc2.report.sections import (
    choices,
    overview,
    preparation,
    profile,
    quality,
    resolutions,
    settings,
    signature_map,
    similarity,
    sizes,
    spectrum,
    timings,
)
from dc2.versions import __version__

__all__ = ["write_report"]


def write_report(
    model: Any,
    path: str | os.PathLike[str],
    *,
    source_description: str | None = None,
    title: str | None = None,
) -> Path:
    """Write what a model found to an HTML file, and return its path.

    The page shows cluster sizes, a map of the signatures, what sets each cluster apart, how well they hold together,
    the similarity matrix, how their number was found, what was done with columns, times and settings. Where communities
    made the clusters a slider shows other numbers of them. It opens in any browser without a network.

    Parameters
    ----------
    model : DC2Clustering, RPFCluster, RASP or KASP
        Fitted or loaded.
    path : path
        The file, such as ``report.html``; it appears when it is complete.
    source_description : str, optional
        What the rows are, in your words; stands under the title.
    title : str, optional

    Returns
    -------
    Path

    Notes
    -----
    It takes a few seconds, whatever the number of rows: only signatures are looked at. The file holds averages of
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
    target = check_target(path, "A report")  # before any work
    return write_page(target, cluster_page(Facts.of(model), title, source_description))


def cluster_page(facts: Facts, title: str | None = None, source_description: str | None = None) -> Html:
    """Return the page."""
    k = facts.clusters.n_clusters
    map_section, map_data = signature_map.section(facts)
    matrix_section, matrix_data = similarity.section(facts)
    sections = [
        sizes.section(facts),
        map_section,
        profile.section(facts),
        compare_section(facts),
        quality.section(facts),
        matrix_section,
        resolutions.section(facts),
        spectrum.section(facts),
        choices.section(facts),
        preparation.section(facts),
        timings.section(facts),
        settings.section(facts),
    ]
    return page(
        title or f"{count(k, 'cluster')}, found by {type(facts.model).__name__}",
        overview.intro(facts, source_description),
        [section for section in sections if section is not None],
        controls=controls(facts),
        data={"map": map_data, "matrix": matrix_data, "explore": explore_data(facts)},
        footer=f"Written by dc2 {__version__}. This page is complete in itself and uses no network.",
    )
