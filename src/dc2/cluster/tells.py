"""What a fitted clusterer tells about its clusters: a summary, typical rows, a map, a report, a notebook view."""

from __future__ import annotations

import html
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from dc2.cluster.record import ClusterRecord
from dc2.compress.sample import take_sample
from dc2.engines import RunOptions, engine_for
from dc2.estimators.frames import as_frame, frame_kind
from dc2.parameters import check_integer
from dc2.sources import Block, as_source

if TYPE_CHECKING:
    from dc2.facts import Facts
    from dc2.report.inline import InlineReport

__all__ = ["TellsOfClusters"]

Value = TypeVar("Value")
MAP_SEED = 0x6D6170  # seed: which rows are drawn if there are too many


class TellsOfClusters:
    """Answers what people ask first about clusters: what they are, and whether they are real."""

    _record: ClusterRecord
    _fitted: Callable[[], ClusterRecord]
    _source: Callable[..., Any]
    _labels_of: Callable[[Any], Callable[[Block], NDArray[np.int32]]]
    _scores_of: Callable[[Any], Callable[[Block], NDArray[np.float64]]]

    def summary(self) -> Any:
        """Return a table with one row per cluster: its size, its stability and what sets it apart.

        Returns
        -------
        data frame
            With the columns

            - ``cluster``: its number, as in ``labels_``. A last row, cluster -1, is for rows in no cluster.
            - ``rows``, ``share``: how many rows it has, or their weight, and its share of all.
            - ``stability``: how much of it comes back, see ``stability_``.
            - ``spread``: root mean squared distance of its rows to their mean, in the scale they were clustered in.
            - ``nearest``: the other cluster that most of its rows are nearest to.
            - ``sets_apart``: columns in which its mean lies far from that of all rows, with the difference in standard
              deviations: "very high temperature (+1.8)".
            - ``typical``: its row of ``representatives_``, in these columns.

            Of the kind chosen by `set_output`, or else of the kind that the model was fitted on, or else of pandas,
            polars or pyarrow, whichever is installed. Without any of these it is a list of records.

        Examples
        --------
        >>> import numpy as np
        >>> from dc2 import DC2Clustering
        >>> X = np.repeat([[0.0, 1.0], [9.0, 1.0]], [60, 40], axis=0)
        >>> X += np.random.default_rng(0).normal(scale=0.1, size=X.shape)
        >>> DC2Clustering(random_state=0).fit(X).summary()[["cluster", "rows", "stability", "nearest"]]
           cluster  rows  stability  nearest
        0        0    60        1.0        1
        1        1    40        1.0        0
        """
        records = self._facts().summary
        return self._frame({name: [record[name] for record in records] for name in records[0]})

    @property
    def representatives_(self) -> NDArray[np.float64]:
        """A typical row of each cluster, the one nearest to its middle: ``(n_clusters_, n_features)``.

        A real row, not a mean: one of those that the fit kept, at most one per signature; exact except for rounding if
        columns were scaled. Saved and pickled models hold no rows of compressed data; there it is the signature nearest
        to the middle, the mean of a few similar rows.
        """
        from dc2.facts.representatives import representatives

        record = self._fitted()
        members = record.signatures.points if record.members is None else record.members
        return self._once(
            "representatives",
            lambda: representatives(self._facts().clusters, members, record.in_units),
        )

    def map(self, X: Any = None, n_rows: int = 10_000) -> Any:
        """Return places in the plane for rows, with their labels, ready to be drawn.

        Rows lie among their nearest signatures on the report's map. Data with two columns is its own map.

        Parameters
        ----------
        X : array-like, data frame, path, ... as in `fit`, optional
            The rows. None takes the rows that the model holds: one for each signature.
        n_rows : int, default=10_000
            How many rows to place. If there are more, those with the smallest hash of their number are taken: the same
            ones each time.

        Returns
        -------
        data frame
            With the columns ``row`` (its number, from 0; without X that of its signature), ``x``, ``y``, ``label``,
            ``layer_0`` (finest) and so on if there are layers, and ``score``, how far out the row lies, if rows are
            scored. It is the same kind of frame as that of `summary`.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from dc2 import DC2Clustering
        >>> X = load_digits().data
        >>> DC2Clustering(random_state=0).fit(X).map(X, n_rows=100).shape[0]
        100
        """
        from dc2.facts.rows_map import placed_rows

        check_is_fitted(self)
        record, facts = self._record, self._facts()
        rows, values = self._rows_to_place(X, check_integer("n_rows", n_rows, low=1))
        scaling = record.router.scaling
        scaled = values if scaling is None else scaling.apply(values)
        xy = placed_rows(scaled.astype(np.float64), values.astype(np.float64), facts.drawn_clusters, facts.layouts[0])
        block = Block(0, values)
        columns: dict[str, Any] = {"row": rows, "x": xy[:, 0], "y": xy[:, 1]}
        columns["label"] = self._labels_of(as_source(values))(block)
        ids = record.router.assign(values)
        layers = [] if record.conquest.communities is None else record.conquest.communities.layers
        columns |= {f"layer_{i}": record.of_id(layer)[ids] for i, layer in enumerate(layers)}
        if record.outliers is not None:
            columns["score"] = self._scores_of(record.outliers)(block)
        return self._frame({name: np.asarray(values).tolist() for name, values in columns.items()})

    def report(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        source_description: str | None = None,
        title: str | None = None,
    ) -> Path | InlineReport:
        """Show the report inline in a notebook, or write it to a file.

        Parameters
        ----------
        path : path, optional
            Where to write it, such as ``report.html``; None returns what a notebook shows.
        source_description : str, optional
            What the rows are, in your words; shown under the title.
        title : str, optional
        """
        from dc2.report import write_report
        from dc2.report.inline import InlineReport

        if path is not None:
            return write_report(self, path, source_description=source_description, title=title)
        return InlineReport.of(self._facts(), title=title, source_description=source_description)

    def _html_repr(self) -> str:
        """Return what a notebook shows: scikit-learn's diagram, and the summary once there are clusters."""
        diagram: str = estimator_html_repr(self)
        if not hasattr(self, "_record"):
            return diagram
        facts = self._facts()
        head = "".join(f"<th>{name.replace('_', ' ')}</th>" for name in facts.summary[0])
        body = "".join(
            f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in record.values())}</tr>" for record in facts.summary
        )
        said = "".join(f"<p>{html.escape(text)}</p>" for text in (facts.verdict, *facts.remarks) if text)
        return f"{diagram}{said}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _rows_to_place(self, X: Any, most: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Return the numbers and the values of the rows to be placed, in the units of the data."""
        record = self._record
        if X is None:
            held = record.signatures.points if record.members is None else record.members
            scaling = record.router.scaling
            source = as_source(held if scaling is None else scaling.undo(held))
        else:
            source = self._source(X)
        sample = take_sample(source, engine_for(source, RunOptions.of(self)), most, MAP_SEED)
        return sample.rows, sample.X

    def _frame(self, columns: dict[str, list[Any]]) -> Any:
        return as_frame(columns, frame_kind(self, self._fitted().columns.frame))

    def _facts(self) -> Facts:
        from dc2.facts import Facts

        check_is_fitted(self)
        return self._once("facts", lambda: Facts.of(self))

    def _once(self, name: str, find: Callable[[], Value]) -> Value:
        """Return what was computed from this record before, or compute it; nothing is kept for a new record."""
        record = self._fitted()
        of_record, found = self.__dict__.get("_found_later", (None, {}))
        if of_record is not record:
            found = {}
            self._found_later = (record, found)
        if name not in found:
            found[name] = find()
        value: Value = found[name]
        return value


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.3g}" if isinstance(value, float) else html.escape(str(value))
