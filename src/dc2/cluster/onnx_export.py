"""A fitted clusterer's `predict` as an ONNX graph: every signature is compared, in float64."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.cluster.record import ClusterRecord
from dc2.compress.places import EARTH_RADIUS_KM, Sphere
from dc2.compress.routing import Router, StagedRouter
from dc2.compress.scaling import Scaling
from dc2.errors import ParameterError
from dc2.io.outputs import check_target, renamed_at_the_end
from dc2.io.source import listed
from dc2.tables.column_transforms import CategoryTransform, NumberTransform, TableTransforms
from dc2.versions import __version__

OPSET, OPSET_ML, IR_VERSION = 17, 3, 8  # what runtimes from 2022 on understand
MISSING = ""  # a missing category


def write_onnx(record: ClusterRecord, path: str | os.PathLike[str], *, overwrite: bool) -> Path:
    """Write the graph of a record to a file; see `SignatureClusterer.to_onnx`."""
    target = check_target(path, "An ONNX model")
    graph = OnnxGraph()
    _raise_if_not_by_nearest(record)
    rows = graph.matrix(record) if record.preparer is None else graph.table(record.preparer._record)
    graph.outputs(record, graph.scaled(rows, record.router.scaling, record.router.centres.dtype))
    with renamed_at_the_end(target, overwrite=overwrite) as temporary:
        temporary.write_bytes(graph.serialized())
    return target


def _raise_if_not_by_nearest(record: ClusterRecord) -> None:
    router = record.router
    if isinstance(router, Router) and (len(router.trees) > 1 or router.neighbor_lists is None):
        raise ParameterError(
            "to_onnx: predict sends rows through trees here, and an ONNX graph compares them with every signature. "
            "Fit with divide='projection' and populate='nearest'."
        )
    if isinstance(router, StagedRouter):
        raise ParameterError(
            "to_onnx: an update with move=False keeps the label of every row by comparing in stages, and an ONNX graph "
            "compares with all signatures at once. Update with move=True, or fit again."
        )
    if record.outliers is not None and record.outliers.threshold is not None:
        raise ParameterError("to_onnx: noise needs outlier scores, which an ONNX graph has not. Fit with noise=0.")
    if record.columns.projection is not None:
        raise ParameterError(
            f"to_onnx: sparse rows of {record.columns.n_features:,} columns are projected by dc2. Reduce them first, "
            "for instance by sklearn.decomposition.TruncatedSVD, and fit on the result."
        )


class OnnxGraph:
    """An ONNX graph in the making; values are known by name."""

    def __init__(self) -> None:
        try:
            import onnx
        except ModuleNotFoundError as error:
            raise ImportError('to_onnx needs onnx, which is not installed: pip install "dc2[onnx]"') from error
        self.onnx, self.helper = onnx, onnx.helper
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.given: list[Any] = []
        self.results: list[Any] = []

    def op(self, kind: str, *inputs: str | float | NDArray[Any], n_outputs: int = 1, **attributes: Any) -> Any:
        """Add a node and return the names of its outputs; numbers become float64 constants."""
        names = [value if isinstance(value, str) else self.constant(np.asarray(value)) for value in inputs]
        outputs = [f"{kind}_{len(self.nodes)}_{place}" for place in range(n_outputs)]
        domain = "ai.onnx.ml" if kind == "LabelEncoder" else ""
        self.nodes.append(self.helper.make_node(kind, names, outputs, domain=domain, **attributes))
        return outputs[0] if n_outputs == 1 else outputs

    def constant(self, value: NDArray[Any]) -> str:
        """Add a constant and return its name."""
        name = f"constant_{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def cast(self, value: str, dtype: Any) -> str:
        """Return a value in another dtype."""
        name: str = self.op("Cast", value, to=self.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
        return name

    def input(self, name: str, dtype: Any, width: int) -> str:
        """Add an input of shape (n_rows, width)."""
        kind = self.onnx.TensorProto.STRING if dtype is str else self.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self.given.append(self.helper.make_tensor_value_info(name, kind, ["n_rows", width]))
        return name

    def output(self, name: str, value: str, dtype: Any) -> None:
        """Make a value with an entry per row an output."""
        self.nodes.append(self.helper.make_node("Identity", [value], [name]))
        kind = self.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self.results.append(self.helper.make_tensor_value_info(name, kind, ["n_rows"]))

    def serialized(self) -> bytes:
        """Return the checked model as bytes."""
        model = self.helper.make_model(
            self.helper.make_graph(self.nodes, "dc2", self.given, self.results, self.constants),
            opset_imports=[self.helper.make_opsetid("", OPSET), self.helper.make_opsetid("ai.onnx.ml", OPSET_ML)],
            producer_name="dc2",
            producer_version=__version__,
            ir_version=IR_VERSION,
        )
        self.onnx.checker.check_model(model)
        written: bytes = model.SerializeToString()
        return written

    # --- rows to the units of clustering --------------------------------------------------------------------------

    def matrix(self, record: ClusterRecord) -> str:
        """Add the input of a model that was fitted on numbers."""
        return self.input("X", record.router.centres.dtype, record.columns.width)

    def scaled(self, rows: str, scaling: Scaling | Sphere | None, dtype: np.dtype[Any]) -> str:
        """Return rows as they are compared, in float64 but rounded where predict rounds."""
        if isinstance(scaling, Sphere):
            return self._on_sphere(self.cast(rows, np.float64), scaling, dtype)
        if scaling is not None and scaling.exponents is not None:
            powers = np.ldexp(1.0, -scaling.exponents)
            rows = self.cast(self.op("Mul", self.cast(rows, np.float64), powers), dtype)
        if scaling is not None and scaling.kind is not None:
            shifted = self.op("Sub", rows, scaling.shift.astype(dtype))
            rows = self.op("Mul", shifted, scaling.factor.astype(dtype))
        rows = self.cast(rows, np.float64)
        if scaling is not None and scaling.unit:
            rows = self.op("Div", rows, self.op("ReduceMax", self.op("Abs", rows), axes=[1], keepdims=1))
            rows = self.op("Div", rows, self.op("ReduceL2", rows, axes=[1], keepdims=1))
        return rows

    def _on_sphere(self, degrees: str, sphere: Sphere, dtype: np.dtype[Any]) -> str:
        latitude, longitude = (
            self.op("Mul", self.op("Gather", degrees, np.array([column]), axis=1), np.pi / 180)
            for column in (sphere.latitude, 1 - sphere.latitude)
        )
        from_axis = self.op("Cos", latitude)
        across = self.op("Mul", from_axis, self.op("Cos", longitude))
        along = self.op("Mul", from_axis, self.op("Sin", longitude))
        points = self.op("Concat", across, along, self.op("Sin", latitude), axis=1)
        return self.cast(self.cast(self.op("Mul", points, EARTH_RADIUS_KM), dtype), np.float64)

    def table(self, parts: TableTransforms) -> str:
        """Add an input for each column of a prepared table, and return the rows as numbers."""
        _raise_if_not_plain(parts)
        numbers = [self.input(part.name, np.float64, 1) for part in parts.numbers]
        columns, blanks = [], {}
        for part, value in zip(parts.numbers, numbers, strict=True):
            blanks[part.name] = self.op("IsNaN", value)
            filled = self.op("Where", blanks[part.name], np.array(part.fill), value)
            columns.append(self._number(part, filled))
        rows = [self._imputed(columns, list(blanks.values()), parts.complete_rows)] if columns else []
        places = [self._places(part, blanks) for part in parts.categories]
        rows += [self.op("Sum", *places)] if places else []
        return self.cast(self.op("Concat", *rows, axis=1), np.float32)

    def _number(self, part: NumberTransform, value: str) -> str:
        if part.knots is None or part.heights is None:
            scaled: str = self.op("Mul", self.op("Sub", value, part.shift), part.factor)
            return scaled
        widths = np.diff(part.knots)
        rise = np.divide(np.diff(part.heights), widths, out=np.zeros_like(widths), where=widths > 0)
        reached = self.op("Min", self.op("Max", self.op("Sub", value, part.knots[:-1]), 0.0), widths)
        curve: str = self.op("Add", self.op("MatMul", reached, rise[:, None]), part.heights[0])
        return curve

    def _imputed(self, columns: list[str], blanks: list[str], complete: NDArray[np.float64]) -> str:
        """Return numbers, missing ones from the complete row that is nearest in the others."""
        rows, blank = self.op("Concat", *columns, axis=1), self.op("Concat", *blanks, axis=1)
        if not len(complete):
            return str(rows)
        there = self.op("Sub", 1.0, self.cast(blank, np.float64))
        crossed = self.op("MatMul", self.op("Mul", rows, there), -2.0 * complete.T)
        nearest = self.op(
            "ArgMin", self.op("Add", crossed, self.op("MatMul", there, complete.T**2)), axis=1, keepdims=0
        )
        some = self.op("Greater", self.op("ReduceMax", there, axes=[1], keepdims=1), 0.0)
        taken: str = self.op("Where", self.op("And", blank, some), self.op("Gather", complete, nearest), rows)
        return taken

    def _places(self, part: CategoryTransform, blanks: dict[str, str]) -> str:
        n_levels = len(part.levels)
        if part.name in blanks:
            codes = self.op("Add", self.cast(blanks[part.name], np.int64), np.array(n_levels))
        else:
            given = {one.name for one in self.given}
            value = part.name if part.name in given else self.input(part.name, str, 1)
            levels = () if part.reading == "blank" else part.levels
            codes = self.op(
                "LabelEncoder",
                value,
                keys_strings=[MISSING, *levels],
                values_int64s=[n_levels + 1, *range(len(levels))],
                default_int64=n_levels,
            )
        return str(self.op("Gather", part.places, self.op("Squeeze", codes, np.array([1]))))

    # --- labels ---------------------------------------------------------------------------------------------------

    def outputs(self, record: ClusterRecord, rows: str) -> None:
        """Add the label of each row."""
        labels = record.of_id(record.signature_labels).astype(np.int64)
        centres = record.router.centres
        # About their mean, |c|^2 - 2 x c loses few digits.
        middle = centres.mean(axis=0, dtype=np.float64)
        points = self.op("Sub", self.cast(self.constant(centres), np.float64), middle)
        rows = self.op("Sub", rows, middle)
        crossed = self.op("MatMul", rows, self.op("Mul", self.op("Transpose", points), -2.0))
        compared = self.op("Add", crossed, self.op("ReduceSumSquare", points, axes=[1], keepdims=0))
        nearest = self.op("ArgMin", compared, axis=1, keepdims=0)
        self.output("label", self.op("Gather", labels, nearest), np.int64)


def _raise_if_not_plain(parts: TableTransforms) -> None:
    """Raise if a column is prepared in a way that the graph has no operation for."""
    numbers = {part.name for part in parts.numbers}
    kinds = {
        "dates": [part.name for part in parts.numbers if part.reading == "time"],
        "cycles": [part.name for part in parts.cycles],
        "texts": [part.name for part in parts.texts],
        "lists of numbers": [part.name for part in parts.vectors],
        "counts with jitter": [part.name for part in parts.numbers if part.step],
        "numbers taken as categories": [
            part.name for part in parts.categories if part.name in numbers and part.reading == "level"
        ],
    }
    found = [f"{listed(names)} ({kind})" for kind, names in kinds.items() if names]
    if found:
        raise ParameterError(
            f"to_onnx: columns that dc2 prepares in its own way: {', '.join(found)}. Leave them out by "
            "TablePreparer(drop=...), or prepare the table first, and fit on the numbers."
        )
