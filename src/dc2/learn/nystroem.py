"""SignatureNystroem: kernel features whose landmarks are signatures of all rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from dc2.compress.compressor import Compressor
from dc2.engines.engine import DEFAULT_BLOCK_BYTES
from dc2.engines.map_rows import Verbose
from dc2.errors import ParameterError
from dc2.learn.features import RowFeatures
from dc2.learn.kernel_functions import KernelAt, KernelShape
from dc2.learn.kernel_solver import kernel_matrix
from dc2.parameters import check_choice, check_integer, check_positive
from dc2.random import RandomStateLike, tree_seed

RPF_GAMMA = 5.0
"""Rows that share no tree have a kernel of 1 / 150 then: the kernel of a row to far centres must not vanish."""


@dataclass(frozen=True, eq=False)
class Landmarks:
    """Signatures, and what turns their kernel to a row into features; the forest, if that of rpf is the kernel."""

    points: NDArray[Any]
    normalization: NDArray[np.float64]
    eigenvalues: NDArray[np.float64]
    forest: KernelAt | None = None


class SignatureNystroem(RowFeatures):
    """Kernel features with signatures as landmarks: linear models become kernel machines on all rows.

    All rows are compressed to signatures S; a row x becomes the features K(x, S) U / sqrt(L), K(S, S) = U L U' being
    the eigendecomposition. Inner products of features are then the Nyström approximation K(x, S) K(S, S)^-1 K(S, y)
    of the kernel.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        Name of a kernel of `sklearn.metrics.pairwise.pairwise_kernels`, or a function of two rows. "rpf" is the kernel
        exp(gamma (s - 1)) of random projection forests grown on the signatures, with s the share of 200 trees in which
        two rows share a leaf.
    gamma, coef0, degree : float or None, default=None
        Parameters of the kernel; None is scikit-learn's default, for gamma 1 / n_features; for "rpf" gamma is 5.
    kernel_params : dict or None, default=None
        Other parameters, of a kernel that is a function.
    n_components : int, default=1000
        Number of signatures, and so the largest number of features.
    sharpen, populate, sample_size
        How rows become signatures; see `Compressor`. ``populate="nearest"``, the default here, makes landmarks as good
        as those of K-means for a small part of the cost.
    n_jobs, block_bytes, random_state, verbose
        As in `DC2Clustering`.

    Attributes
    ----------
    components_ : ndarray of shape (n_signatures, n_features)
        The landmarks.
    normalization_ : ndarray of shape (n_signatures, n_features_out), float64
        U / sqrt(L): columns in order of falling eigenvalues.
    eigenvalues_ : ndarray of shape (n_features_out,), float64
        The eigenvalues L that are more than rounding; there may be fewer than signatures.
    compressor_ : Compressor
        With the signatures, their weights and spread.
    n_features_in_, feature_names_in_

    Notes
    -----
    With m signatures `fit` takes one compression and O(m^2 d + m^3); `transform` O(m d + m^2) per row. Kernels are
    computed in float64, because eigenvalues down to 1e-13 of the largest are used; features have the dtype of the
    rows. `transform` of rows that are not in memory is an iterator over blocks of features, for `partial_fit`; of Dask
    collections an array that is computed on demand.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from dc2 import SignatureNystroem
    >>> X, y = make_moons(5_000, noise=0.1, random_state=0)
    >>> model = make_pipeline(SignatureNystroem(gamma=2, n_components=50, random_state=0), LogisticRegression())
    >>> model.fit(X, y).score(X, y) > 0.99
    True

    Two distinct rows make no more than two features:

    >>> SignatureNystroem().fit_transform([[0.0], [1.0], [1.0]]).shape
    (3, 2)
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        gamma: float | None = None,
        coef0: float | None = None,
        degree: float | None = None,
        kernel_params: dict[str, Any] | None = None,
        n_components: int = 1000,
        sharpen: int = 2,
        populate: Literal["leaf", "nearest"] = "nearest",
        sample_size: int | Literal["auto"] | None = "auto",
        n_jobs: int | None = None,
        block_bytes: int = DEFAULT_BLOCK_BYTES,
        random_state: RandomStateLike = None,
        verbose: Verbose = 0,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.kernel_params = kernel_params
        self.n_components = n_components
        self.sharpen = sharpen
        self.populate = populate
        self.sample_size = sample_size
        self.n_jobs = n_jobs
        self.block_bytes = block_bytes
        self.random_state = random_state
        self.verbose = verbose

    def _checked_compressor(self, seeds: SeedSequence) -> Compressor:
        self._check_kernel()
        check_integer("n_components", self.n_components, low=1)
        return Compressor(
            self.n_components, sharpen=self.sharpen, populate=self.populate, refine=5, sample_size=self.sample_size,
            n_jobs=self.n_jobs, block_bytes=self.block_bytes, random_state=seeds, verbose=self.verbose,
        )  # fmt: skip

    def _learn(self, points: NDArray[Any], seeds: SeedSequence) -> Landmarks:
        if not self._by_forest:
            return Landmarks(points, *inverse_root(self._kernel(points, points)))
        gamma = RPF_GAMMA if self.gamma is None else self.gamma
        shape = KernelShape("rpf", 1.0 / gamma, tree_seed(seeds.spawn(1)[0]))
        return Landmarks(points, *inverse_root(kernel_matrix(shape, points)), shape.at(points))

    @property
    def _by_forest(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "rpf"

    @property
    def components_(self) -> NDArray[Any]:
        """The landmarks."""
        return self._landmarks.points

    @property
    def normalization_(self) -> NDArray[np.float64]:
        """U / sqrt(L), with columns in order of falling eigenvalues."""
        return self._landmarks.normalization

    @property
    def eigenvalues_(self) -> NDArray[np.float64]:
        """The eigenvalues L that are more than rounding."""
        return self._landmarks.eigenvalues

    @property
    def _landmarks(self) -> Landmarks:
        landmarks: Landmarks = self._record.learned
        return landmarks

    def _features(self, X: NDArray[Any]) -> NDArray[Any]:
        forest = self._landmarks.forest
        K = self._kernel(X, self.components_) if forest is None else forest(X.astype(np.float64, copy=False))
        return np.asarray(K @ self.normalization_, dtype=X.dtype)

    @property
    def _width(self) -> int:
        return len(self.components_)

    @property
    def _n_features_out(self) -> int:
        return int(self.normalization_.shape[1])

    def _kernel(self, X: NDArray[Any], landmarks: NDArray[Any]) -> NDArray[np.float64]:
        params = dict(self.kernel_params or {})
        if not callable(self.kernel):
            params |= {"gamma": self.gamma, "coef0": self.coef0, "degree": self.degree}
            params = {name: value for name, value in params.items() if value is not None}
        A, B = (points.astype(np.float64, copy=False) for points in (X, landmarks))
        kernel: NDArray[np.float64] = pairwise_kernels(A, B, metric=self.kernel, filter_params=True, **params)
        return kernel

    def _check_kernel(self) -> None:
        if not callable(self.kernel):
            check_choice("kernel", self.kernel, sorted((*PAIRWISE_KERNEL_FUNCTIONS, "rpf")))
        elif (self.gamma, self.coef0, self.degree) != (None, None, None):
            raise ParameterError(
                "kernel is a function: gamma, coef0 and degree are for named kernels. Use kernel_params.",
                parameter="kernel_params",
                problem="gamma, coef0 and degree are for named kernels.",
            )
        if self.gamma is not None:
            check_positive("gamma", self.gamma)


def inverse_root(K: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return U / sqrt(L) and L of a kernel matrix U L U', without the eigenvalues that are rounding."""
    eigenvalues, vectors = np.linalg.eigh((K + K.T) / 2)
    cut_off = len(K) * np.finfo(np.float64).eps * max(eigenvalues[-1], 0.0)
    kept = max(1, int(np.count_nonzero(eigenvalues > cut_off)))
    eigenvalues, vectors = eigenvalues[::-1][:kept], vectors[:, ::-1][:, :kept]
    # A kernel that is zero everywhere leaves one column of zeros.
    scale = np.where(eigenvalues > cut_off, 1.0 / np.sqrt(np.maximum(eigenvalues, np.finfo(float).tiny)), 0.0)
    return vectors * scale, eigenvalues
