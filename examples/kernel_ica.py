"""Kernel ICA: mixed signals are parted by making them independent, as a kernel measures it.

The contrast of Bach and Jordan (Kernel independent component analysis, 2002) is -log(1 - rho^2) / 2, where rho is the
first regularised canonical correlation of kernel features of two components. It is zero only where they are
independent. `FastICA` looks at one moment of each component, and is lost where that is the same as of a Gaussian. Here
both sources are: their fourth moment is that of a Gaussian, though each has two humps.
"""

import numpy as np
from scipy.optimize import brentq
from sklearn.decomposition import FastICA

from dc2 import SignatureNystroem

RIDGE = 2e-3


def sources(n):
    """Return two independent signals of two humps, one of them uneven, with the kurtosis of a Gaussian."""
    rng = np.random.default_rng(0)
    share = brentq(lambda p: (1 - 6 * p * (1 - p)) / (p * (1 - p)), 0.1, 0.4)  # excess kurtosis of a coin: none
    coins = rng.random((n, 2)) < share
    signals = coins + 0.08 * rng.normal(size=(n, 2))
    return (signals - signals.mean(axis=0)) / signals.std(axis=0)


def contrast(parts):
    """Return -log(1 - rho^2) / 2 of two components."""
    whitened = []
    for part in parts.T:
        Z = SignatureNystroem(gamma=2.0, n_components=30, random_state=0, n_jobs=1).fit_transform(part[:, None])
        U, scale, _ = np.linalg.svd(Z - Z.mean(axis=0), full_matrices=False)
        whitened.append(U * (scale / np.sqrt(scale**2 + len(Z) * RIDGE)))
    rho = np.linalg.norm(whitened[0].T @ whitened[1], ord=2)
    return -np.log(1 - rho**2) / 2


def rotation(angle):
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def found(components, causes):
    """Return, for each cause, its largest correlation with a component."""
    return np.abs(np.corrcoef(components.T, causes.T)[:2, 2:]).max(axis=0)


def main():
    causes = sources(5_000)
    X = causes @ np.array([[2.0, 1.0], [1.0, 1.5]])
    X = X - X.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(X.T))
    white = X @ vectors / np.sqrt(values)
    angles = np.linspace(0, np.pi / 2, 46)[:-1]  # further on, the components only change places
    best = min(angles, key=lambda angle: contrast(white @ rotation(angle)))
    kurtosis = found(FastICA(2, fun="cube", random_state=0, max_iter=2_000, tol=1e-3).fit_transform(X), causes)
    kernel = found(white @ rotation(best), causes)
    print("correlation with the two sources: FastICA", kurtosis.round(3), "kernel ICA", kernel.round(3))
    return kurtosis, kernel


if __name__ == "__main__":
    main()
