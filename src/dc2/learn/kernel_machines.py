"""KernelRegressor and KernelClassifier: kernel ridge regression on all rows, with automatic parameters."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from dc2.core.gpu.device_rows import host_array
from dc2.engines.engine import DEFAULT_BLOCK_BYTES
from dc2.engines.map_rows import RunOptions, Verbose, engine_for, mapped_rows
from dc2.errors import InputError, MissingValuesError
from dc2.io.columns import Columns, KnowsItsColumns
from dc2.io.model_file import SaveMixin, saved_model, saved_record
from dc2.io.outputs import check_output_path, check_room, write_labels
from dc2.io.paths import check_not_among
from dc2.io.resolve import as_table
from dc2.io.source import Block, Source, is_on_cuda
from dc2.learn.kernel_fit import KernelMachine, MachinePlan, fit_machine
from dc2.learn.kernel_functions import KERNELS, METRICS, RADIAL
from dc2.learn.kernel_rows import Targets, usable
from dc2.learn.kernel_search import SearchSpace, Trial, calibration_of, probabilities
from dc2.learn.targets import class_labels, numeric_targets, refused
from dc2.parameters import check_choice, check_integer, check_positive
from dc2.random import RandomStateLike, seed_sequence
from dc2.tables.auto_prepare import OpenedRows, Preparation
from dc2.tables.preparer import CountsUnseen, PreparedSource, TablePreparer

KernelName = Literal["auto", "gaussian", "matern52", "matern32", "laplacian", "rpf"]


@saved_record
@dataclass(frozen=True, eq=False)
class KernelRecord:
    """The result of a fit: of classifiers, with the floor and the exponent of probabilities."""

    columns: Columns
    machine: KernelMachine
    preparer: TablePreparer | None = None
    classes: NDArray[Any] | None = None
    calibration: tuple[float, float] = (1.0, 1.0)
    one_column: bool = True  # whether targets came in one dimension

    def check(self) -> None:
        """Raise if the parts do not fit together; called when read from a model file."""
        machine = self.machine
        if (
            machine.centres.shape[1] != self.columns.width
            or not all(0 < value < np.inf for value in self.calibration)
            or (self.classes is not None and self.classes.shape != machine.offset.shape)
            or (self.classes is None and self.one_column and len(machine.offset) != 1)
        ):
            raise InputError("the parts of a KernelRecord do not fit together.")


class KernelMachineBase(TransformerMixin, SaveMixin, KnowsItsColumns, BaseEstimator):
    """The base of the regressor and the classifier."""

    _record: KernelRecord

    def __init__(
        self,
        kernel: KernelName = "auto",
        *,
        bandwidth: float | Literal["auto"] = "auto",
        ridge: float | Literal["auto"] = "auto",
        n_centres: int | Literal["auto"] = "auto",
        n_parts: int | Literal["auto"] = "auto",
        metric: Literal["auto", "plain", "scaled", "learned"] = "auto",
        prepare: Literal["auto"] | TablePreparer | None = "auto",
        n_jobs: int | None = None,
        block_bytes: int = DEFAULT_BLOCK_BYTES,
        random_state: RandomStateLike = None,
        verbose: Verbose = 0,
    ) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.ridge = ridge
        self.n_centres = n_centres
        self.n_parts = n_parts
        self.metric = metric
        self.prepare = prepare
        self.n_jobs = n_jobs
        self.block_bytes = block_bytes
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | str | None = None) -> Self:
        """Learn from all rows.

        Parameters
        ----------
        X : array-like, data frame, path, list of paths, glob, callable, Dask collection or Source
            The rows.
        y : array-like or Dask collection, or str
            The targets; or the name of the column of a frame or of files that holds them, and is then no feature.
        sample_weight : array-like of shape (n_rows,), str or None
            Weights, or the name of the column that holds them. Integer weights equal repeated rows.
        """
        plan, options = self._plan(), RunOptions.of(self)
        preparation = Preparation.of(self.prepare, None, for_target=True)
        if y is None:
            raise InputError(f"{type(self).__name__} requires y to be passed, but the target y is None.", parameter="y")
        if isinstance(y, str):
            X, y, sample_weight = _without_target(X, y, sample_weight)
        if is_on_cuda(y):
            y = host_array(y)
        y = np.asarray(y) if hasattr(y, "__dask_graph__") else y  # computed once
        opened = preparation.opened(X, sample_weight, type(self).__name__)
        with threadpool_limits(limits=1):  # the engine's threads share the cores already
            try:
                self._record = self._learned(opened, y, plan, options)
            except MissingValuesError:
                prepared = None if opened.preparer is not None else preparation.with_blanks(X, sample_weight)
                if prepared is None:
                    raise
                self._record = self._learned(prepared, y, plan, options)
        return self

    @abstractmethod
    def _learned(self, opened: OpenedRows, y: Any, plan: MachinePlan, options: RunOptions) -> KernelRecord:
        """Fit a machine to rows and their targets."""

    def _plan(self) -> MachinePlan:
        """Check the parameters and return them as a plan."""

        def number(name: str, check: Callable[..., Any], **limits: Any) -> Any:
            value = getattr(self, name)
            return None if isinstance(value, str) and value == "auto" else check(name, value, **limits)

        check_choice("kernel", self.kernel, ("auto", *KERNELS))
        check_choice("metric", self.metric, ("auto", *METRICS))
        if self.kernel == "rpf" and self.metric == "learned":
            raise refused("metric", self.metric, "the rpf-kernel has no gradients.", "Use metric='auto'.")
        n_centres, n_parts = (number(name, check_integer, low=1) for name in ("n_centres", "n_parts"))
        space = SearchSpace(
            metrics=METRICS if self.metric == "auto" else (self.metric,),
            kernels=RADIAL if self.kernel == "auto" else (self.kernel,),
            bandwidth=number("bandwidth", check_positive),
            ridge=number("ridge", check_positive),
        )
        return MachinePlan(space, n_centres, n_parts)

    # --- what was learned ----------------------------------------------------------------------------------------

    @property
    def search_path_(self) -> list[Trial]:
        """The machines that the search evaluated, in this order, with their loss and error on held-out rows."""
        return list(self._record.machine.path)

    @property
    def kernel_(self) -> str:
        """The kernel chosen."""
        return self._record.machine.shape.name

    @property
    def bandwidth_(self) -> float:
        """The bandwidth chosen, in units of the metric."""
        return self._record.machine.shape.bandwidth

    @property
    def ridge_(self) -> float:
        """The ridge chosen, for the machine of all rows."""
        return self._record.machine.ridge

    @property
    def metric_(self) -> str:
        """How columns are scaled: "plain", "scaled" or "learned"."""
        return self._record.machine.metric.name

    @property
    def column_scale_(self) -> NDArray[np.float64]:
        """The factor of each column before rows are compared."""
        return self._record.machine.metric.factor

    @property
    def column_importances_(self) -> NDArray[np.float64]:
        """The share of each column in the gradient of the machine; they sum to one. NaN for the rpf-kernel."""
        return self._record.machine.importances

    @property
    def n_centres_(self) -> int:
        """Centres of the machine of all rows."""
        return len(self._record.machine.centres)

    @property
    def n_parts_(self) -> int:
        """Parts with machines of their own; 1 if all rows share one machine."""
        parts = self._record.machine.parts
        return 1 if parts is None else parts.tree.n_leaves

    # --- outputs for rows ----------------------------------------------------------------------------------------

    @abstractmethod
    def _predicted(self, outputs: NDArray[np.float64]) -> NDArray[Any]:
        """Return predictions from the outputs of a machine."""

    def predict(self, X: Any) -> Any:
        """Return the prediction for each row.

        Parameters
        ----------
        X : array-like, data frame, path, ... as in `fit`
            The rows. Columns with names are found by name.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_outputs)
            For a source that is not in memory, an iterator of such arrays, one per block; for a Dask collection, a
            lazy Dask array with the same chunks.
        """
        return self._map_outputs(X, self._predicted)

    def transform(self, X: Any) -> Any:
        """Return rows in the units of the metric: each column centred and times `column_scale_`.

        With ``metric="learned"`` distances then weigh each column by how much it explains the target: clusters of
        these rows follow the columns that matter.

        Parameters
        ----------
        X : array-like, data frame, path, ... as in `fit`
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            In the same form as of `predict`.
        """
        check_is_fitted(self)
        source, machine = self._source(X), self._record.machine
        names = source.feature_names
        return self._mapped(source, lambda block: machine.metric.apply(usable(block, names)), machine.centres[:1])

    def predict_to(
        self, X: Any, path: str | os.PathLike[str], *, id_columns: str | Sequence[str] = (), column: str = "prediction"
    ) -> int:
        """Write the prediction for each row to a file, in row order, with chosen columns of the data.

        Parameters
        ----------
        X : data frame, path, list of paths, glob, ... as in `fit`
            The rows. Columns with names are found by name.
        path : path
            A .parquet, .arrow, .feather, .csv, .csv.gz or .npy file. It appears only when it is complete, and replaces
            an older one. It must not be one of the files being read.
        id_columns : str or list of str, optional
            Columns of the data to write with the predictions.
        column : str, default="prediction"
            Name of the column of predictions; several outputs have their number after it.

        Returns
        -------
        int
            Number of rows written.
        """
        check_is_fitted(self)
        target = check_output_path(path)
        check_not_among(path, X)
        names = [id_columns] if isinstance(id_columns, str) else list(id_columns)
        source = self._source(X, names)
        check_room(target, source.n_rows)
        outputs_of = self._record.machine.predictor(source.feature_names)

        def predict_block(block: Block) -> tuple[Any, Any]:
            outputs = self._predicted(outputs_of(block))
            if outputs.ndim == 2:
                return {f"{column}{number}": values for number, values in enumerate(outputs.T)}, block.extra
            return outputs, block.extra

        counted = CountsUnseen(predict_block)
        with threadpool_limits(limits=1):
            blocks: Iterator[Any] = engine_for(source, RunOptions.of(self)).map(counted, source, stage="populate")
            return write_labels(target, counted.told(blocks), column)

    def _map_outputs(self, X: Any, finish: Callable[[NDArray[np.float64]], NDArray[Any]]) -> Any:
        check_is_fitted(self)
        source, machine = self._source(X), self._record.machine
        outputs_of = machine.predictor(source.feature_names)
        return self._mapped(source, lambda block: finish(outputs_of(block)), finish(machine.offset[None, :]))

    def _mapped(self, source: Source, function: Callable[[Block], NDArray[Any]], like: NDArray[Any]) -> Any:
        """Apply a function to each block; `like` shows the form of one row of the result."""
        counted = CountsUnseen(function)
        with threadpool_limits(limits=1):
            return counted.told(mapped_rows(source, counted, lambda: like, RunOptions.of(self)))

    def _source(self, X: Any, extra: Sequence[str] = ()) -> Source:
        preparer = self._record.preparer
        prepared = isinstance(X, PreparedSource)
        return super()._source(X, extra) if preparer is None or prepared else preparer.source(X, extra)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.non_deterministic = False
        return tags


@saved_model
class KernelRegressor(RegressorMixin, KernelMachineBase):
    """Kernel ridge regression on all rows, with automatic parameters.

    Held-out rows choose the scaling of columns, the kernel, its bandwidth, the ridge and the number of centres. A
    machine on centres learns from all rows. A tree then divides the rows, and each part learns the residuals.

    Parameters
    ----------
    kernel : {"auto", "gaussian", "matern52", "matern32", "laplacian", "rpf"}, default="auto"
        "auto" chooses among the four that depend on the Euclidean distance alone. "rpf" is the
        kernel of random projection forests grown on the centres.
    bandwidth : float or "auto", default="auto"
        What distances are divided by, in units of the metric; of "rpf" the b of exp((s - 1) / b).
    ridge : float or "auto", default="auto"
        The alpha of scikit-learn's `KernelRidge`.
    n_centres : int or "auto", default="auto"
        Centres of the machine of all rows. "auto" doubles them from 1000 on, with one pass for each number, while that
        lowers the loss on held-out rows and a pass takes about a minute of one core. 2500 rows or fewer are all
        centres.
    n_parts : int or "auto", default="auto"
        Parts that learn the residuals of the machine of all rows, each with about 1000 centres of its own. "auto" makes
        as many as the centres of a model of 128 MB allow, and drops them if they do not lower the loss on held-out
        rows; 1 makes none.
    metric : {"auto", "plain", "scaled", "learned"}, default="auto"
        How columns are scaled: not at all, by their standard deviation, or by that and the mean gradient of the machine
        along each, in up to three rounds. "auto" takes the best on held-out rows.
    prepare : {"auto", None} or TablePreparer, default="auto"
        "auto" prepares tables with text, dates or missing values; with None they raise.
    n_jobs, block_bytes, random_state, verbose
        As in `DC2Clustering`.

    Attributes
    ----------
    search_path_ : list of Trial
        The machines that the search evaluated, with their loss on held-out rows.
    kernel_, bandwidth_, ridge_, metric_, n_centres_, n_parts_
        The chosen parameters.
    column_importances_ : ndarray of shape (n_features,)
        The share of each column in the gradient of the machine.
    column_scale_ : ndarray of shape (n_features,)
        The factor of each column.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Notes
    -----
    With m centres a pass takes O(n m (m + d)) time, of many rows O(n m d); parts take O(n c (c + d)) with c of about
    1000. Besides the rows it needs about 40 m^2 bytes, and 8 m^2 for each thread. Machines are solved in float64;
    predictions are made in the dtype of the rows. The result does not depend on `n_jobs`; other blocks or files change
    rounding only.

    Examples
    --------
    >>> import numpy as np
    >>> from dc2 import KernelRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, (1000, 2))
    >>> y = np.sin(X[:, 0]) * X[:, 1]
    >>> model = KernelRegressor(random_state=0).fit(X[:800], y[:800])
    >>> model.score(X[800:], y[800:]) > 0.99
    True
    """

    def _learned(self, opened: OpenedRows, y: Any, plan: MachinePlan, options: RunOptions) -> KernelRecord:
        y = numeric_targets(y)
        one_column = y.ndim == 1
        fitted = fit_machine(
            opened.source, Targets(y.reshape(len(y), -1)), plan, options, seed_sequence(self.random_state)
        )
        return KernelRecord(opened.columns, fitted.machine, opened.preparer, one_column=one_column)

    def _predicted(self, outputs: NDArray[np.float64]) -> NDArray[Any]:
        return outputs[:, 0] if self._record.one_column else outputs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags


@saved_model
class KernelClassifier(ClassifierMixin, KernelMachineBase):
    """Kernel ridge classification on all rows, with automatic parameters and calibrated probabilities.

    The machine of `KernelRegressor` learns indicators of the classes. Probabilities are in proportion to powers of its
    outputs, not less than a floor; held-out rows choose the exponent and the floor with the lowest log loss.

    Parameters
    ----------
    kernel, bandwidth, ridge, n_centres, n_parts, metric, prepare, n_jobs, block_bytes, random_state, verbose
        As for `KernelRegressor`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    calibration_ : tuple of float
        The floor and the exponent.
    search_path_ : list of Trial
        The machines that the search evaluated, with their loss and error rate on held-out rows.
    kernel_, bandwidth_, ridge_, metric_, n_centres_, n_parts_, column_importances_, column_scale_
        As of `KernelRegressor`.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from dc2 import KernelClassifier
    >>> X, y = make_moons(2_000, noise=0.1, random_state=0)
    >>> model = KernelClassifier(random_state=0).fit(X[:1500], y[:1500])
    >>> model.score(X[1500:], y[1500:]) > 0.99
    True
    >>> model.predict_proba(X[1500:]).shape
    (500, 2)
    """

    def _learned(self, opened: OpenedRows, y: Any, plan: MachinePlan, options: RunOptions) -> KernelRecord:
        classes, codes = np.unique(class_labels(y, "KernelClassifier(...)"), return_inverse=True)
        fitted = fit_machine(
            opened.source, Targets(codes, len(classes)), plan, options, seed_sequence(self.random_state)
        )
        held = fitted.held
        calibration = calibration_of(fitted.outputs + held.base, held.Y + held.base, held.weights)
        return KernelRecord(opened.columns, fitted.machine, opened.preparer, classes, calibration)

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes, ascending."""
        classes = self._record.classes
        assert classes is not None
        return classes

    @property
    def calibration_(self) -> tuple[float, float]:
        """The floor and the exponent: probabilities are in proportion to max(output, floor) ** exponent."""
        return self._record.calibration

    def _predicted(self, outputs: NDArray[np.float64]) -> NDArray[Any]:
        return np.asarray(self.classes_[outputs.argmax(axis=1)])

    def decision_function(self, X: Any) -> Any:
        """Return the output of the machine for each row and class; with two classes, the second minus the first."""
        return self._map_outputs(X, lambda outputs: outputs[:, 1] - outputs[:, 0] if outputs.shape[1] == 2 else outputs)

    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each class for each row, in the same form as `predict`."""
        check_is_fitted(self)
        return self._map_outputs(X, lambda outputs: probabilities(outputs, *self._record.calibration))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = False
        return tags


def _without_target(X: Any, name: str, sample_weight: Any) -> tuple[Any, NDArray[Any], Any]:
    """Split a table into features and the target column; return them and the weights that are not in the table."""
    table = as_table(X, columns=[name])
    if table is None:
        raise InputError(
            f"y={name!r} names a column, but X is not a table with named columns. Give y as an array.",
            parameter="y",
            value=name,
            problem="X is not a table with named columns.",
        )
    rows: Iterator[Any] = (block.rows for block in table.blocks(DEFAULT_BLOCK_BYTES))
    y = np.concatenate([part.frame.get_column(name).to_numpy() for part in rows])
    weight = sample_weight if isinstance(sample_weight, str) else None
    others = as_table(X, drop=[name], weight=weight)
    assert others is not None
    return others.as_numbers() if others.is_numeric else others, y, None if weight else sample_weight
