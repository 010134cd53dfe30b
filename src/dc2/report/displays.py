"""Plots with matplotlib: the map of signatures, the profile of clusters, the spectrum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from dc2.parameters import check_choice, check_integer
from dc2.report.cluster_statistics import ClusterStatistics, cut_costs, gap_after


def new_axes(ax: Any, who: str) -> Any:
    """Return the axes given, or those of a new figure; say what to install where matplotlib is missing."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(f"{who} draws with matplotlib: pip install 'dc2[plot]'.") from error
    if ax is not None:
        return ax
    _, axes = pyplot.subplots(layout="constrained")
    return axes


# Chosen so that any two stay apart (OKLab) for normal sight and for the three kinds of colour blindness, and that
# the first few are far from each other. One set for a white page, one for a dark page.
LIGHT_COLOURS = (
    "#1769aa", "#e8920c", "#0f9d8a", "#a3284f", "#6cc0f5", "#5b3a9e", "#8a6d1a", "#9870fc", "#6c2a01", "#a4c9a2",
    "#ee5866", "#502c5d", "#d568cb", "#28616d", "#735cdb", "#dd8fc0", "#9196fc", "#11869e", "#ebb16b", "#8b8b03",
)  # fmt: skip
DARK_COLOURS = (
    "#58a6ee", "#f5a93f", "#c8446b", "#a5efd6", "#6e4ad1", "#f1f135", "#fe72a3", "#b68910", "#1cd8fa", "#983793",
    "#a83a0e", "#7277f8", "#986eb4", "#c7c496", "#76a171", "#bbe679", "#167a58", "#b36111", "#f5abd4", "#df7bd0",
)  # fmt: skip
N_COLOURS = len(LIGHT_COLOURS)
NOISE_COLOUR = "#888888"

# Clusters beyond the twentieth use the colours again, with the next shape.
SHAPES = ("circle", "square", "triangle", "diamond")


def colour(cluster: int) -> str:
    """Return the colour of a cluster on a white page.

    Examples
    --------
    >>> colour(0), colour(20) == colour(0)
    ('#1769aa', True)
    """
    return LIGHT_COLOURS[cluster % N_COLOURS]


def shape(cluster: int) -> str:
    """Return the shape of a cluster's points: a circle for the first twenty.

    Examples
    --------
    >>> shape(19), shape(20)
    ('circle', 'square')
    """
    return SHAPES[cluster // N_COLOURS % len(SHAPES)]


MARKERS = {"circle": "o", "square": "s", "triangle": "^", "diamond": "D"}
LARGEST_AREA = 160.0


class Display:
    """A plot: what is drawn, and how; subclasses have `from_estimator` too.

    Attributes
    ----------
    ax_, figure_
        Matplotlib's axes and figure.
    """

    def plot(self, *, ax: Any = None, **look: Any) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; None makes a new figure.
        **look
            Passed to the method of the axes that draws: `scatter`, `imshow` or `plot`.
        """
        self.ax_ = new_axes(ax, type(self).__name__)
        self.figure_ = self.ax_.figure
        self._draw(self.ax_, look)
        return self

    def _draw(self, ax: Any, look: dict[str, Any]) -> None:
        raise NotImplementedError


@dataclass(kw_only=True, eq=False, repr=False)
class SignatureMapDisplay(Display):
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
    clusters_ : list of PathCollection
        The points of each cluster.
    noise_ : PathCollection or None
        Those of no cluster, grey crosses.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from dc2 import RPFCluster
    >>> from dc2.report import SignatureMapDisplay
    >>> X, _ = make_moons(2_000, noise=0.05, random_state=0)
    >>> model = RPFCluster(n_clusters=2, n_signatures=100, random_state=0).fit(X)
    >>> display = SignatureMapDisplay.from_estimator(model)
    >>> len(display.clusters_)
    2
    """

    xy: NDArray[np.float64]
    labels: NDArray[np.int32]
    weights: NDArray[np.float64]
    x_title: str = ""
    y_title: str = ""

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        layout: Literal["auto", "columns", "variation", "neighbours"] = "auto",
        ax: Any = None,
        **look: Any,
    ) -> SignatureMapDisplay:
        """Draw the signatures of a fitted clusterer.

        Parameters
        ----------
        estimator : DC2Clustering, RPFCluster, RASP or KASP
            Fitted or loaded.
        layout : {"auto", "columns", "variation", "neighbours"}, default="auto"
            The first two columns; the two directions of most variation; or a t-SNE of the similarity. "auto" takes
            the columns of data that has one or two, and otherwise the neighbours.
        ax, **look
            As in `plot`.
        """
        check_choice("layout", layout, ["auto", "columns", "variation", "neighbours"])
        statistics = ClusterStatistics.of(estimator)
        chosen, clusters = statistics.layout(layout), statistics.drawn_signatures
        display = cls(
            xy=chosen.xy,
            labels=clusters.labels,
            weights=clusters.weights,
            x_title=chosen.x_title,
            y_title=chosen.y_title,
        )
        return display.plot(ax=ax, **look)

    def _draw(self, ax: Any, look: dict[str, Any]) -> None:
        areas = LARGEST_AREA * self.weights / self.weights.max() + 4.0
        self.clusters_ = []
        for cluster in np.unique(self.labels[self.labels >= 0]):
            own = self.labels == cluster
            usual = {"color": colour(cluster), "marker": MARKERS[shape(cluster)], "alpha": 0.8, "linewidths": 0}
            points = ax.scatter(*self.xy[own].T, s=areas[own], label=f"{cluster}", **(usual | look))
            self.clusters_.append(points)
        self.noise_ = None
        out = self.labels < 0
        if out.any():
            usual = {"color": NOISE_COLOUR, "marker": "x", "alpha": 0.8, "linewidths": 1}
            self.noise_ = ax.scatter(*self.xy[out].T, s=areas[out], label="noise", **(usual | look))
        ax.set(xlabel=self.x_title, ylabel=self.y_title)
        if not self.x_title and not self.y_title:
            ax.set(xticks=[], yticks=[])
        legend = ax.legend(title="cluster", ncols=1 + len(self.clusters_) // 15, loc="best", fontsize="small")
        for handle in legend.legend_handles:
            handle.set_sizes([30.0])


STRONGEST = 2.0
MOST_NUMBERS = 400


@dataclass(kw_only=True, eq=False, repr=False)
class ClusterProfileDisplay(Display):
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
    image_ : AxesImage
        The heat map.

    Examples
    --------
    >>> import numpy as np
    >>> from dc2 import RPFCluster
    >>> from dc2.report import ClusterProfileDisplay
    >>> X = np.random.default_rng(0).normal(size=(60, 3)) + np.repeat([[0.0, 0, 0], [0, 9, 0]], 30, axis=0)
    >>> model = RPFCluster(n_clusters=2, random_state=0).fit(X)
    >>> ClusterProfileDisplay.from_estimator(model, n_columns=1).names
    ['x1']
    """

    difference: NDArray[np.float64]
    names: list[str]

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, n_columns: int = 20, ax: Any = None, **look: Any
    ) -> ClusterProfileDisplay:
        """Draw the profile of a fitted clusterer.

        Parameters
        ----------
        estimator : DC2Clustering, RPFCluster, RASP or KASP
            Fitted or loaded.
        n_columns : int, default=20
            At most so many columns: those in which clusters differ most.
        ax, **look
            As in `plot`.
        """
        check_integer("n_columns", n_columns, low=1)
        profile = ClusterStatistics.of(estimator).profile
        shown = profile.differing_columns(n_columns)
        display = cls(difference=profile.difference[:, shown], names=[profile.names[i] for i in shown])
        return display.plot(ax=ax, **look)

    def _draw(self, ax: Any, look: dict[str, Any]) -> None:
        usual = {"cmap": "PuOr_r", "vmin": -STRONGEST, "vmax": STRONGEST, "aspect": "auto"}
        heat = self.difference.T
        self.image_ = ax.imshow(heat, **(usual | look))
        ax.set_yticks(range(len(self.names)), self.names)
        ax.set_xticks(range(heat.shape[1]), [str(cluster) for cluster in range(heat.shape[1])])
        ax.set(xlabel="cluster")
        if heat.size <= MOST_NUMBERS:
            for (row, column), value in np.ndenumerate(heat):
                ink = "white" if abs(value) > 0.75 * STRONGEST else "black"
                ax.text(column, row, f"{value:+.1f}", ha="center", va="center", color=ink, fontsize="small")
        ax.figure.colorbar(self.image_, ax=ax, label="standard deviations from the mean", extend="both")


@dataclass(kw_only=True, eq=False, repr=False)
class SpectrumDisplay(Display):
    """The leading eigenvalues of the normalized similarity, drawn as 1 - eigenvalue on a logarithmic axis.

    The i-th is about the cost of cutting the signatures into i groups. If it jumps, the next cut would go through
    a cluster; the jump is marked if it stands out. Make one with `from_estimator`.

    Parameters
    ----------
    eigenvalues : ndarray of shape (m,)
        In descending order.
    n_clusters : int
        Number of clusters that were made.

    Attributes
    ----------
    gap_ : int or None
        Number of groups before the jump, if there is one.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from dc2 import RPFCluster
    >>> from dc2.report import SpectrumDisplay
    >>> X, _ = make_circles(2_000, noise=0.03, factor=0.4, random_state=0)
    >>> model = RPFCluster(n_clusters=2, n_signatures=200, random_state=0).fit(X)
    >>> SpectrumDisplay.from_estimator(model).gap_
    2
    """

    eigenvalues: NDArray[np.float64]
    n_clusters: int

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **look: Any) -> SpectrumDisplay:
        """Draw the eigenvalues of a fitted clusterer.

        Parameters
        ----------
        estimator : DC2Clustering, RPFCluster, RASP or KASP
            Fitted or loaded.
        ax, **look
            As in `plot`.
        """
        n_clusters = ClusterStatistics.of(estimator).n_clusters
        display = cls(eigenvalues=estimator.eigenvalues_, n_clusters=n_clusters)
        return display.plot(ax=ax, **look)

    def _draw(self, ax: Any, look: dict[str, Any]) -> None:
        self.gap_ = gap_after(self.eigenvalues)
        groups = np.arange(1, len(self.eigenvalues) + 1)
        costs = cut_costs(self.eigenvalues)
        made = groups <= self.n_clusters
        look = {"marker": "o", "linestyle": "none"} | look
        # Into one group nothing needs to be cut: the first eigenvalue is always 1.
        ax.plot(groups[made][1:], costs[made][1:], **({"color": colour(0), "label": "clusters"} | look))
        ax.plot(groups[~made], costs[~made], **({"color": "0.6", "label": "further cuts"} | look))
        if self.gap_ is not None:
            ax.axvline(self.gap_ + 0.5, color=colour(1), linestyle="--", label=f"gap after {self.gap_}")
        ax.set(xlabel="groups", ylabel="1 - eigenvalue", yscale="log")
        ax.xaxis.get_major_locator().set_params(integer=True)
        if len(groups) > 1:
            ax.legend()
