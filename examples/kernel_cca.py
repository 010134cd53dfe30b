"""Kernel CCA: what two views share, when they share it in no linear way.

One hidden angle drives both views. Linear CCA sees nearly nothing of it. Kernel CCA does: canonical correlations of
`SignatureNystroem` features. It must be regularised, for with many features some combination of either view follows
any other on the rows at hand: without a ridge the correlation on new rows is lower than it promised.
"""

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from sklearn.cross_decomposition import CCA

from dc2 import SignatureNystroem


def views(n, seed):
    rng = np.random.default_rng(seed)
    angle = rng.uniform(-np.pi, np.pi, n)
    circle = np.column_stack([np.cos(2 * angle), np.sin(2 * angle), rng.normal(size=n)])
    line = np.column_stack([np.abs(angle) * np.sign(rng.normal(size=n)), rng.normal(size=n)])
    return circle + 0.1 * rng.normal(size=circle.shape), line + 0.1 * rng.normal(size=line.shape)


def regularised_cca(A, B, ridge):
    """Return the directions of either view with the largest (A a)'(B b), where ||A a||^2 + n ridge ||a||^2 is one."""
    n = len(A)
    roots = [cholesky(Z.T @ Z / n + ridge * np.eye(Z.shape[1])) for Z in (A, B)]
    between = solve_triangular(roots[0], A.T @ B / n, trans=1)
    left, _, right = np.linalg.svd(solve_triangular(roots[1], between.T, trans=1).T)
    return solve_triangular(roots[0], left[:, 0]), solve_triangular(roots[1], right[0])


def correlation(a, b):
    return abs(np.corrcoef(a, b)[0, 1])


def main():
    (A, B), (A_new, B_new) = views(1_000, seed=0), views(5_000, seed=1)
    linear = correlation(*(part[:, 0] for part in CCA(n_components=1).fit(A, B).transform(A_new, B_new)))
    of_a, of_b = (SignatureNystroem(gamma=0.5, n_components=200, random_state=0).fit(view) for view in (A, B))
    middles = of_a.transform(A).mean(axis=0), of_b.transform(B).mean(axis=0)
    taught = of_a.transform(A) - middles[0], of_b.transform(B) - middles[1]
    new = of_a.transform(A_new) - middles[0], of_b.transform(B_new) - middles[1]
    kernel = {}
    for ridge in (1e-9, 1e-3):
        a, b = regularised_cca(*taught, ridge)
        promised, kernel[ridge] = correlation(taught[0] @ a, taught[1] @ b), correlation(new[0] @ a, new[1] @ b)
        print(f"kernel CCA, ridge {ridge:g}: correlation {promised:.3f} on its rows, {kernel[ridge]:.3f} on new ones")
    print(f"linear CCA: {linear:.3f} on new rows")
    return linear, kernel[1e-9], kernel[1e-3]


if __name__ == "__main__":
    main()
