"""SpectrumDisplay: the eigenvalues, and the gap that speaks for a number of clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.facts import Facts
from dc2.facts.spectrum import cut_costs, gap_after
from dc2.plots.matplotlib_axes import new_axes
from dc2.plots.palette import colour

__all__ = ["SpectrumDisplay"]


class SpectrumDisplay:
    """The leading eigenvalues of the normalized similarity, drawn as 1 - eigenvalue on a logarithmic axis.

    The i-th is about the price of cutting the signatures into i groups. Where it jumps, the next cut would go through
    a cluster: the jump is marked, if one stands out. Make one with `from_estimator`.

    Parameters
    ----------
    eigenvalues : ndarray of shape (m,)
        In descending order.
    n_clusters : int
        Number of clusters that were made.

    Attributes
    ----------
    ax_, figure_
        Matplotlib's axes and figure.
    gap_ : int or None
        Number of groups before the jump, if there is one.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from dc2 import RPFCluster
    >>> from dc2.plots import SpectrumDisplay
    >>> X, _ = make_circles(2_000, noise=0.03, factor=0.4, random_state=0)
    >>> model = RPFCluster(n_clusters=2, n_signatures=200, random_state=0).fit(X)
    >>> SpectrumDisplay.from_estimator(model).gap_
    2
    """

    def __init__(self, *, eigenvalues: NDArray[np.float64], n_clusters: int) -> None:
        self.eigenvalues = eigenvalues
        self.n_clusters = n_clusters

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **plot_kwargs: Any) -> SpectrumDisplay:
        """Draw the eigenvalues of a fitted clusterer.

        Parameters
        ----------
        estimator : DC2Clustering, RPFCluster, RASP or KASP
            Fitted or loaded.
        ax : matplotlib axes, optional
            Where to draw; None makes a new figure.
        **plot_kwargs
            Passed to `matplotlib.axes.Axes.plot`.
        """
        n_clusters = Facts.of(estimator).clusters.n_clusters
        display = cls(eigenvalues=estimator.eigenvalues_, n_clusters=n_clusters)
        return display.plot(ax=ax, **plot_kwargs)

    def plot(self, *, ax: Any = None, **plot_kwargs: Any) -> SpectrumDisplay:
        """Draw the spectrum.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; None makes a new figure.
        **plot_kwargs
            Passed to `matplotlib.axes.Axes.plot`.
        """
        ax = new_axes(ax, type(self).__name__)
        self.gap_ = gap_after(self.eigenvalues)
        groups = np.arange(1, len(self.eigenvalues) + 1)
        costs = cut_costs(self.eigenvalues)
        made = groups <= self.n_clusters
        look = {"marker": "o", "linestyle": "none"} | plot_kwargs
        # Into one group nothing needs to be cut: the first eigenvalue is always 1.
        ax.plot(groups[made][1:], costs[made][1:], **({"color": colour(0), "label": "clusters"} | look))
        ax.plot(groups[~made], costs[~made], **({"color": "0.6", "label": "further cuts"} | look))
        if self.gap_ is not None:
            ax.axvline(self.gap_ + 0.5, color=colour(1), linestyle="--", label=f"gap after {self.gap_}")
        ax.set(xlabel="groups", ylabel="1 - eigenvalue", yscale="log")
        ax.xaxis.get_major_locator().set_params(integer=True)
        if len(groups) > 1:
            ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self
