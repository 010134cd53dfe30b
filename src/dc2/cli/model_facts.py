"""What can be told of a fitted model."""

from pathlib import Path
from typing import Any

import numpy as np

from dc2.cli.failures import CommandError
from dc2.cli.summary import ClusterSizes
from dc2.facts import Facts
from dc2.facts.variance import variance_kept
from dc2.facts.verdict import verdict_in_words
from dc2.loading import load, read_header
from dc2.parameters import is_plain

__all__ = ["choice_facts", "cluster_weights", "load_clusterer", "load_model", "model_facts"]


def cluster_weights(model: Any) -> ClusterSizes:
    """Return the rows (or their weight) of each cluster and of none, from the signatures."""
    labels, weights = model.signature_labels_, model.signatures_.weights
    noise = getattr(model, "noise_weights_", None)
    if noise is None:
        return ClusterSizes(np.bincount(labels, weights).tolist())
    inside = labels >= 0
    sizes = np.bincount(labels[inside], (weights - noise)[inside])
    return ClusterSizes(sizes.tolist(), float(noise.sum()))


def choice_facts(model: Any) -> dict[str, str]:
    """Return what speaks for the number of clusters, and what else was chosen, in words."""
    facts = {}
    verdict = verdict_in_words(model)
    if verdict is not None:
        facts["verdict"] = verdict
    if model.n_clusters_ > 1:
        facts["stability"] = f"{model.overall_stability_:.2f} of 1 comes back when signatures are drawn anew"
    remarks = Facts.of(model).remarks
    if remarks:
        facts["columns"] = " ".join(remarks)
    if hasattr(model, "bandwidth_path_"):
        facts["bandwidth"] = f"{model.bandwidth_:g}, chosen"
    return facts


def load_model(path: Path) -> Any:
    """Return a saved model, or say why there is none."""
    path = path.expanduser()
    if path.is_dir():
        raise CommandError(f"{str(path)!r} is a folder. Name the model file, which dc2 cluster --model writes.")
    if not path.exists():
        raise CommandError(f"There is no file {str(path)!r}. dc2 cluster --model writes a model.")
    return load(path)


def load_clusterer(path: Path) -> Any:
    """Return a saved model that has clusters."""
    model = load_model(path)
    if not hasattr(model, "signature_labels_"):
        raise CommandError(
            f"{str(path)!r} holds a {type(model).__name__}, which has no clusters. Use a model that dc2 cluster "
            "--model saved."
        )
    return model


def model_facts(path: Path) -> dict[str, Any]:
    """Return what a model file holds."""
    model, header = load_model(path), read_header(path)
    names = getattr(model, "feature_names_in_", None)
    sizes = cluster_weights(model) if hasattr(model, "signature_labels_") else None
    return {
        "model": header.class_name,
        "written_by": f"dc2 {header.dc2_version}",
        "file_bytes": path.stat().st_size,
        "rows": getattr(model, "n_rows_in_", None),
        "columns": model.n_features_in_,
        "column_names": None if names is None else list(names),
        "signatures": len(model.signatures_),
        "distortion": model.distortion_,
        "variance_kept": variance_kept(model.signatures_),
        "cluster_sizes": None if sizes is None else list(sizes.sizes),
        **({} if sizes is None or sizes.noise is None else {"noise": sizes.noise}),
        "settings": {
            name: value if is_plain(value) else repr(value)
            for name, value in model.get_params(deep=False).items()
            if name != "verbose"
        },
    }
