"""Which weights and metadata reach the estimator."""

from __future__ import annotations

from typing import Any

from sklearn import get_config
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    get_routing_for_object,
    process_routing,
)
from sklearn.utils.validation import has_fit_parameter

__all__ = ["metadata_router", "routed", "takes_weights"]

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
    """Return whether the estimator is given the rows of each signature as its sample_weight.

    It is, if its fit has the parameter. With metadata routing its request counts too: False keeps weights from it,
    and weights that the user gives need a request, as everywhere in scikit-learn.
    """
    if not get_config()["enable_metadata_routing"]:
        return bool(has_fit_parameter(owner.estimator, "sample_weight"))
    if sample_weight is not None:
        given = process_routing(owner, "fit", sample_weight=sample_weight)["estimator"]["fit"]
        return "sample_weight" in given
    requests = get_routing_for_object(owner.estimator)
    if has_fit_parameter(owner.estimator, "sample_weight"):
        asked = getattr(getattr(requests, "fit", None), "requests", {}).get("sample_weight")
        return asked is not False
    return "sample_weight" in requests.consumes("fit", ["sample_weight"])
