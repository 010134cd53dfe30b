"""Kernel ICA: independent causes behind rows that depend on them in no linear way.

Two coins are tossed for each row: one says on which of two rings it lies, the other on which half. `FastICA` on the
rows finds the half, but never the ring; on the leading `SignatureNystroem` features, which is ICA in feature space, it
finds both.
"""

import numpy as np
from sklearn.decomposition import FastICA

from dc2 import SignatureNystroem


def found(components, causes):
    """Return, for each cause, its largest correlation with a component."""
    correlations = np.corrcoef(components.T, causes.T)[: components.shape[1], components.shape[1] :]
    return np.abs(correlations).max(axis=0)


def main():
    rng = np.random.default_rng(0)
    ring, half = causes = rng.choice([-1.0, 1.0], size=(2, 20_000))
    angle = half * rng.uniform(0.1, np.pi - 0.1, size=20_000)
    radius = 2 + ring + 0.15 * rng.normal(size=20_000)
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])

    linear = found(FastICA(2, random_state=0).fit_transform(X), causes.T)
    features = SignatureNystroem(gamma=0.1, n_components=200, random_state=0).fit_transform(X)
    kernel = found(FastICA(5, random_state=0, max_iter=1_000).fit_transform(features[:, :5]), causes.T)
    print("correlation with the ring and the half: linear ICA", linear.round(2), "kernel ICA", kernel.round(2))
    return linear, kernel


if __name__ == "__main__":
    main()
