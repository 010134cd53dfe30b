"""ClusterProfileDisplay: what sets each cluster apart, as a heat map."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.facts import Facts
from dc2.parameters import check_integer
from dc2.plots.matplotlib_axes import new_axes

__all__ = ["ClusterProfileDisplay"]

STRONGEST = 2.0
MOST_NUMBERS = 400


class ClusterProfileDisplay:
    """How far each cluster's mean of a column lies from that of all rows, in standard deviations.

    Make one with `from_estimator`.

    Parameters
    ----------
    difference : ndarray of shape (n_clusters, n_columns)
        Standardised differences.
    names : sequence of str
        The columns.

    Attributes
    ----------
    ax_, figure_
        Matplotlib's axes and figure.
    image_ : AxesImage
        The heat map.

    Examples
    --------
    >>> import numpy as np
    >>> from dc2 import RPFCluster
    >>> from dc2.plots import ClusterProfileDisplay
    >>> X = np.random.default_rng(0).normal(size=(60, 3)) + np.repeat([[0.0, 0, 0], [0, 9, 0]], 30, axis=0)
    >>> model = RPFCluster(n_clusters=2, random_state=0).fit(X)
    >>> ClusterProfileDisplay.from_estimator(model, n_columns=1).names
    ['x1']
    """

    def __init__(self, *, difference: NDArray[np.float64], names: list[str]) -> None:
        self.difference = difference
        self.names = names

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, n_columns: int = 20, ax: Any = None, **imshow_kwargs: Any
    ) -> ClusterProfileDisplay:
        """Draw the profile of a fitted clusterer.

        Parameters
        ----------
        estimator : DC2Clustering, RPFCluster, RASP or KASP
            Fitted or loaded.
        n_columns : int, default=20
            At most so many columns: those in which clusters differ most.
        ax : matplotlib axes, optional
            Where to draw; None makes a new figure.
        **imshow_kwargs
            Passed to `matplotlib.axes.Axes.imshow`.
        """
        check_integer("n_columns", n_columns, low=1)
        profile = Facts.of(estimator).profile
        shown = profile.telling_columns(n_columns)
        display = cls(difference=profile.difference[:, shown], names=[profile.names[i] for i in shown])
        return display.plot(ax=ax, **imshow_kwargs)

    def plot(self, *, ax: Any = None, **imshow_kwargs: Any) -> ClusterProfileDisplay:
        """Draw the heat map: columns of the data downward, clusters to the right.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; None makes a new figure.
        **imshow_kwargs
            Passed to `matplotlib.axes.Axes.imshow`.
        """
        ax = new_axes(ax, type(self).__name__)
        look = {"cmap": "PuOr_r", "vmin": -STRONGEST, "vmax": STRONGEST, "aspect": "auto"} | imshow_kwargs
        heat = self.difference.T
        self.image_ = ax.imshow(heat, **look)
        ax.set_yticks(range(len(self.names)), self.names)
        ax.set_xticks(range(heat.shape[1]), [str(cluster) for cluster in range(heat.shape[1])])
        ax.set(xlabel="cluster")
        if heat.size <= MOST_NUMBERS:
            for (row, column), value in np.ndenumerate(heat):
                ink = "white" if abs(value) > 0.75 * STRONGEST else "black"
                ax.text(column, row, f"{value:+.1f}", ha="center", va="center", color=ink, fontsize="small")
        ax.figure.colorbar(self.image_, ax=ax, label="standard deviations from the mean", extend="both")
        self.ax_, self.figure_ = ax, ax.figure
        return self
