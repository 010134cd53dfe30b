"""DC2: any scikit-learn estimator on millions of rows, by way of their signatures."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, TransformerMixin, clone
from sklearn.utils import TransformerTags, get_tags

from dc2.compress.compressor import Compressor
from dc2.compress.signatures import Signatures
from dc2.io.columns import fitted_source
from dc2.learn.metadata_routing import metadata_router, takes_weights
from dc2.learn.predictions import LearnedRecord, Predictions
from dc2.learn.targets import Kind, TrainingSet, has_transform, kind_of, refused, training_set
from dc2.parameters import check_integer
from dc2.random import RandomStateLike


class DC2(Predictions, MetaEstimatorMixin, TransformerMixin, BaseEstimator):
    """Fit any scikit-learn estimator to signatures of millions of rows: divide, compress, conquer, populate.

    An estimator whose time grows with the square or the cube of the rows learns from about a thousand signatures
    instead; every row, trained on or new, then gets its result.

    Parameters
    ----------
    estimator : estimator
        What conquers the signatures:

        - a clusterer (`SpectralClustering`, `HDBSCAN`, ...): every row gets the cluster of its signature, also new
          rows, and also where the estimator itself has no `predict`;
        - a regressor with a squared error (`KernelRidge`, `Ridge`, trees, ...): the target of a signature is the mean
          of its rows, from which it learns the same as from all of them;
        - any other regressor (`QuantileRegressor`, `GaussianProcessRegressor`, `SVR`, ...): it may learn the spread of
          targets, so rows are drawn from the signatures, with their own targets;
        - a classifier (`SVC`, ...): rows are compressed within each class; with several labels for each row, rows are
          drawn from the signatures of all;
        - a transformer (`KernelPCA`, `Isomap`, ...): rows are transformed by the estimator or, where it cannot
          (`SpectralEmbedding`), through their signature;
        - one of `LabelSpreading`, `LabelPropagation` and `SelfTrainingClassifier`, also in a pipeline: rows with target
          -1 are not labelled; they are compressed too, and spread the labels of the others;
        - anything else that learns without a target, such as `OneClassSVM` or `KernelDensity`.
    compressor : Compressor or None, default=None
        How rows become signatures; None is ``Compressor(refine=5)``, with 1000 signatures.
    min_per_class : int, default=10
        Signatures are shared out in proportion to the rows of each class, but at least so many each (if the class
        has as many rows, and the number of signatures allows it).
    random_state : int, RandomState, Generator or None, default=None
        Seed of the compression, for results that repeat.

    Attributes
    ----------
    estimator_ : estimator
        Fitted on the signatures.
    compressors_ : list of Compressor
        The fitted compressor; for classifiers one per class, in the order of the classes.
    signatures_ : Signatures
        What the estimator was fitted on.
    signature_target_ : ndarray of shape (n_signatures,) or (n_signatures, n_outputs), or None
        Their targets.
    weights_used_ : bool
        Whether the rows of each signature were passed on as `sample_weight`. They are if the estimator's `fit` takes
        it; C or alpha then mean what they mean with all rows.
    labels_ : ndarray of shape (n_rows,)
        Clusterers: the cluster of each training row; for rows in memory only.
    signature_labels_ : ndarray of shape (n_signatures,)
        Clusterers: the cluster of each signature.
    classes_ : ndarray
        Classifiers: the classes.
    offset_ : float
        Outlier detectors: `decision_function` is `score_samples` less this.
    distortion_ : float
        Mean squared distance of a row to its signature.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Notes
    -----
    Costs one compression, and the estimator's time for as many rows as there are signatures. Answers by the estimator
    itself are given block by block, so that the kernel between rows and signatures never exceeds the compressor's
    `block_bytes`; with keyword arguments (such as ``return_std=True``) it gets all rows at once. For rows that are
    not in memory `predict`, `transform` and the like return an iterator over blocks; for Dask collections an array
    that is computed on demand, where the rows are. Only to compress each class apart do rows of Dask
    collections come here, chunk by chunk, in two passes per class.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.svm import SVC
    >>> from dc2 import Compressor, DC2
    >>> X, y = make_moons(20_000, noise=0.1, random_state=0)
    >>> model = DC2(SVC(), compressor=Compressor(200, random_state=0)).fit(X, y)
    >>> model.score(X, y) > 0.99, model.weights_used_, len(model.signatures_)
    (True, True, 200)

    A clusterer that cannot predict does so through signatures:

    >>> from sklearn.cluster import AgglomerativeClustering
    >>> single = AgglomerativeClustering(2, linkage="single")
    >>> model = DC2(single, compressor=Compressor(300, random_state=0)).fit(X)
    >>> model.predict(X).shape, hasattr(single, "predict")
    ((20000,), False)
    """

    def __init__(
        self,
        estimator: Any,
        *,
        compressor: Compressor | None = None,
        min_per_class: int = 10,
        random_state: RandomStateLike = None,
    ) -> None:
        self.estimator = estimator
        self.compressor = compressor
        self.min_per_class = min_per_class
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | str | None = None) -> Self:
        """Compress rows and fit the estimator on their signatures.

        Parameters
        ----------
        X : array-like, data frame, path, list of paths, glob, callable, Dask collection or Source
            The rows.
        y : array-like or Dask collection, of shape (n_rows,) or, for regressors that take it, (n_rows, n_outputs)
            The targets; ignored by estimators that learn without.
        sample_weight : array-like of shape (n_rows,), str or None
            Weights, or the name of the column that holds them. An integer weight means as many repeats of the row.
        """
        kind = kind_of(self.estimator)
        compressor = self._checked_compressor()
        check_integer("min_per_class", self.min_per_class, low=1)
        weights_used = takes_weights(self, sample_weight)
        source, columns = fitted_source(X, sample_weight, type(self).__name__)
        training = training_set(kind, self.estimator, compressor, source, y, self.min_per_class, weights_used)
        learned = self._conquer(kind, training, weights_used, source.in_memory)
        self._record = LearnedRecord(columns, training, weights_used=weights_used, **learned)
        return self

    def _conquer(self, kind: Kind, training: TrainingSet, weights_used: bool, in_memory: bool) -> dict[str, Any]:
        """Fit the estimator on signatures, and return what it knows of them."""
        points = training.signatures.points
        weights = np.ascontiguousarray(training.signatures.weights)  # some estimators insist
        params = {"sample_weight": weights} if weights_used else {}
        estimator = clone(self.estimator)
        if kind is Kind.TRANSFORMER and not hasattr(estimator, "transform"):
            embedding = np.asarray(estimator.fit_transform(points, training.target, **params))
            return {"estimator": estimator, "embedding": embedding}
        estimator.fit(points, training.target, **params)
        if kind is not Kind.CLUSTERER:
            return {"estimator": estimator}
        of_signatures = _labels_of(estimator, points)
        labels = of_signatures[training.compressors[0].labels_] if in_memory else None
        return {"estimator": estimator, "signature_labels": of_signatures, "labels": labels}

    @property
    def estimator_(self) -> Any:
        """The estimator, fitted on the signatures."""
        return self._record.estimator

    @property
    def compressors_(self) -> list[Compressor]:
        """The fitted compressors."""
        return self._record.training.compressors

    @property
    def signatures_(self) -> Signatures:
        """What the estimator was fitted on."""
        return self._record.training.signatures

    @property
    def signature_target_(self) -> NDArray[Any] | None:
        """The targets of the signatures."""
        return self._record.training.target

    @property
    def weights_used_(self) -> bool:
        """Whether the rows of each signature were passed on as weights."""
        return self._record.weights_used

    @property
    def signature_labels_(self) -> NDArray[Any]:
        """The cluster of each signature."""
        labels = self._record.signature_labels
        if labels is None:
            raise AttributeError("signature_labels_ exists only if the estimator is a clusterer.")
        return labels

    @property
    def labels_(self) -> NDArray[Any]:
        """The cluster of each training row."""
        labels = self._record.labels if hasattr(self, "_record") else None
        if labels is None:
            raise AttributeError(
                "labels_ exists only for clusterers and rows in memory. predict(source) returns the cluster of each "
                "row, block by block."
            )
        return labels

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes, as the estimator has them."""
        classes: NDArray[Any] = self.estimator_.classes_
        return classes

    @property
    def offset_(self) -> Any:
        """What separates outliers from the rest in the scores of an outlier detector."""
        return self.estimator_.offset_

    @property
    def distortion_(self) -> float:
        """Mean squared distance of a row to its signature."""
        return self.signatures_.distortion

    def get_metadata_routing(self) -> Any:
        """Return which metadata goes where: `fit` uses sample_weight itself, the rest is the estimator's."""
        return metadata_router(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        own = get_tags(self.estimator)
        tags.estimator_type = own.estimator_type
        tags.target_tags = own.target_tags
        tags.classifier_tags, tags.regressor_tags = own.classifier_tags, own.regressor_tags
        if own.transformer_tags is not None or not has_transform(self.estimator):
            tags.transformer_tags = own.transformer_tags
        else:  # SpectralEmbedding and its like do not call themselves transformers
            tags.transformer_tags = TransformerTags(preserves_dtype=[])
        tags.non_deterministic = own.non_deterministic
        return tags

    def _checked_compressor(self) -> Compressor:
        if self.compressor is None:
            return Compressor(refine=5, random_state=self.random_state)
        if not isinstance(self.compressor, Compressor):
            raise refused("compressor", self.compressor, "not a dc2.Compressor.", "Give one, or None.")
        own: Compressor = clone(self.compressor)
        if self.random_state is not None:
            seed = self.compressor.random_state
            if seed is not None and seed is not self.random_state and seed != self.random_state:
                problem = f"the compressor has random_state={seed!r}."
                raise refused("random_state", self.random_state, problem, "Give one of them.")
            own.set_params(random_state=self.random_state)
        return own


def _labels_of(estimator: Any, points: NDArray[Any]) -> NDArray[Any]:
    """Return the cluster of each point an estimator was fitted on."""
    name = type(estimator).__name__
    if not hasattr(estimator, "labels_") and not hasattr(estimator, "predict"):
        fix = "Use a clusterer that has, such as AgglomerativeClustering()."
        raise refused("estimator", estimator, "it has neither labels_ nor predict after fit.", fix, shown=name)
    labels = np.asarray(estimator.labels_ if hasattr(estimator, "labels_") else estimator.predict(points))
    if len(labels) != len(points):
        problem = f"it returned {len(labels)} labels for {len(points)} signatures."
        fix = "Use a clusterer of rows, such as AgglomerativeClustering()."
        raise refused("estimator", estimator, problem, fix, shown=name)
    return labels
