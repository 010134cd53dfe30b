"""SignatureMapDisplay: the signatures in the plane."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dc2.facts import Facts
from dc2.parameters import check_choice
from dc2.plots.matplotlib_axes import new_axes
from dc2.plots.palette import NOISE_COLOUR, colour, shape

__all__ = ["SignatureMapDisplay"]

MARKERS = {"circle": "o", "square": "s", "triangle": "^", "diamond": "D"}
LARGEST_AREA = 160.0


class SignatureMapDisplay:
    """A map of the signatures, coloured by cluster and sized by the rows they stand for.

    Make one with `from_estimator`.

    Parameters
    ----------
    xy : ndarray of shape (n_signatures, 2)
        Where each signature is drawn.
    labels : ndarray of shape (n_signatures,)
        Its cluster; -1 where all of its rows are noise.
    weights : ndarray of shape (n_signatures,)
        Its rows.
    x_title, y_title : str, default=""
        Titles of the axes; without any the axes mean nothing and show no numbers.

    Attributes
    ----------
    ax_, figure_
        Matplotlib's axes and figure.
    clusters_ : list of PathCollection
        The points of each cluster.
    noise_ : PathCollection or None
        Those of no cluster, grey crosses.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from dc2 import RPFCluster
    >>> from dc2.plots import SignatureMapDisplay
    >>> X, _ = make_moons(2_000, noise=0.05, random_state=0)
    >>> model = RPFCluster(n_clusters=2, n_signatures=100, random_state=0).fit(X)
    >>> display = SignatureMapDisplay.from_estimator(model)
    >>> len(display.clusters_)
    2
    """

    def __init__(
        self,
        *,
        xy: NDArray[np.float64],
        labels: NDArray[np.int32],
        weights: NDArray[np.float64],
        x_title: str = "",
        y_title: str = "",
    ) -> None:
        self.xy = xy
        self.labels = labels
        self.weights = weights
        self.x_title = x_title
        self.y_title = y_title

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        layout: Literal["auto", "columns", "variation", "neighbours"] = "auto",
        ax: Any = None,
        **scatter_kwargs: Any,
    ) -> SignatureMapDisplay:
        """Draw the signatures of a fitted clusterer.

        Parameters
        ----------
        estimator : DC2Clustering, RPFCluster, RASP or KASP
            Fitted or loaded.
        layout : {"auto", "columns", "variation", "neighbours"}, default="auto"
            The first two columns; the two directions of most variation; or signatures that the kernel finds alike
            together (t-SNE of their similarity). "auto" takes the columns of data that has one or two, and
            otherwise the neighbours.
        ax : matplotlib axes, optional
            Where to draw; None makes a new figure.
        **scatter_kwargs
            Passed to `matplotlib.axes.Axes.scatter`.
        """
        check_choice("layout", layout, ["auto", "columns", "variation", "neighbours"])
        facts = Facts.of(estimator)
        chosen, clusters = facts.layout(layout), facts.drawn_clusters
        display = cls(
            xy=chosen.xy,
            labels=clusters.labels,
            weights=clusters.weights,
            x_title=chosen.x_title,
            y_title=chosen.y_title,
        )
        return display.plot(ax=ax, **scatter_kwargs)

    def plot(self, *, ax: Any = None, **scatter_kwargs: Any) -> SignatureMapDisplay:
        """Draw the map.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; None makes a new figure.
        **scatter_kwargs
            Passed to `matplotlib.axes.Axes.scatter`.
        """
        ax = new_axes(ax, type(self).__name__)
        areas = LARGEST_AREA * self.weights / self.weights.max() + 4.0
        self.clusters_ = []
        for cluster in np.unique(self.labels[self.labels >= 0]):
            own = self.labels == cluster
            look = {
                "color": colour(cluster),
                "marker": MARKERS[shape(cluster)],
                "alpha": 0.8,
                "linewidths": 0,
            }
            points = ax.scatter(*self.xy[own].T, s=areas[own], label=f"{cluster}", **(look | scatter_kwargs))
            self.clusters_.append(points)
        self.noise_ = None
        out = self.labels < 0
        if out.any():
            look = {"color": NOISE_COLOUR, "marker": "x", "alpha": 0.8, "linewidths": 1}
            self.noise_ = ax.scatter(*self.xy[out].T, s=areas[out], label="noise", **(look | scatter_kwargs))
        ax.set(xlabel=self.x_title, ylabel=self.y_title)
        if not self.x_title and not self.y_title:
            ax.set(xticks=[], yticks=[])
        legend = ax.legend(title="cluster", ncols=1 + len(self.clusters_) // 15, loc="best", fontsize="small")
        for handle in legend.legend_handles:
            handle.set_sizes([30.0])
        self.ax_, self.figure_ = ax, ax.figure
        return self
