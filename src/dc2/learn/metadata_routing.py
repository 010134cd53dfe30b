"""Which weights and metadata reach the estimator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, get_routing_for_object, process_routing
from sklearn.utils.validation import has_fit_parameter

from dc2.engines.map_rows import stacked
from dc2.errors import InputError
from dc2.io.source import Block, Source
from dc2.trees.tree import raise_unusable, values_usable


class SelectedRows:
    """The rows of a source that a mask selects, numbered from 0."""

    def __init__(self, source: Source, selected: NDArray[np.bool_]) -> None:
        self._source, self._selected = source, selected
        self.n_features: int = source.n_features
        self.feature_names: tuple[str, ...] | None = source.feature_names
        self.n_rows: int = int(np.count_nonzero(selected))
        self.dtype: np.dtype[Any] = source.dtype
        self.in_memory: bool = source.in_memory

    def blocks(self, block_bytes: int) -> Iterator[Block]:
        """Start a fresh pass over the source."""
        start = stop = 0
        for block in self._source.blocks(block_bytes):
            stop = block.stop
            check_length(len(self._selected), stop, at_least=True)
            selected = self._selected[block.start : stop]
            if selected.any():
                X = block.X[selected]
                if not values_usable(X):  # raised here, where rows still have the numbers that the user knows
                    raise_unusable(block.X, self.feature_names, block.start)
                weights = None if block.weights is None else block.weights[selected]
                yield Block(start, X, weights)
                start += int(np.count_nonzero(selected))
        check_length(len(self._selected), stop)


def check_length(n_targets: int, n_rows: int | None, at_least: bool = False) -> None:
    """Raise if there is not one target for each row."""
    if n_rows is None or n_targets == n_rows or (at_least and n_rows < n_targets):
        return
    raise InputError(f"y has {n_targets} values but X has {n_rows} rows: give one each.", parameter="y")


def weights_of(source: Source, block_bytes: int) -> NDArray[np.float64] | None:
    """Return the weights of all rows of a source, or None if it has none."""
    parts = []
    for block in source.blocks(block_bytes):
        if block.weights is None:
            return None
        parts.append(block.weights)
    return np.concatenate(parts)


def whole(source: Source) -> Any:
    """Return all rows of a source in memory as one array; a view where they are one."""
    return stacked([block.X for block in source.blocks(2**62)])


ROUTED = (
    "fit", "predict", "predict_proba", "predict_log_proba", "decision_function", "score", "transform",
    "inverse_transform",
)  # fmt: skip


def metadata_router(owner: Any) -> MetadataRouter:
    """Return which metadata goes where: sample_weight to the owner, to the estimator what it asks for."""
    mapping = MethodMapping()
    for method in ROUTED:
        mapping.add(caller=method, callee=method)
    router = MetadataRouter(owner=owner).add_self_request(owner)
    return router.add(estimator=owner.estimator, method_mapping=mapping)


def routed(owner: Any, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments of a call that are meant for the estimator."""
    if not params or not get_config()["enable_metadata_routing"]:
        return params
    return dict(process_routing(owner, method, **params)["estimator"][method])


def takes_weights(owner: Any, sample_weight: Any) -> bool:
    """Return whether the estimator receives the rows of each signature as `sample_weight`.

    It does if its fit has the parameter and, with metadata routing, if its request allows weights.
    """
    if not get_config()["enable_metadata_routing"]:
        return bool(has_fit_parameter(owner.estimator, "sample_weight"))
    if sample_weight is not None:
        given = process_routing(owner, "fit", sample_weight=sample_weight)["estimator"]["fit"]
        return "sample_weight" in given
    requests = get_routing_for_object(owner.estimator)
    if has_fit_parameter(owner.estimator, "sample_weight"):
        wanted = getattr(getattr(requests, "fit", None), "requests", {}).get("sample_weight")
        return wanted is not False
    return "sample_weight" in requests.consumes("fit", ["sample_weight"])
