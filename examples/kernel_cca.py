"""Kernel CCA: what two views share, when they share it in no linear way.

One hidden angle drives both views. Linear CCA sees nearly nothing of it; scikit-learn's `CCA` on `SignatureNystroem`
features of each view, which is kernel CCA, finds it.
"""

import numpy as np
from sklearn.cross_decomposition import CCA

from dc2 import SignatureNystroem


def views(n, seed):
    rng = np.random.default_rng(seed)
    angle = rng.uniform(-np.pi, np.pi, n)
    circle = np.column_stack([np.cos(2 * angle), np.sin(2 * angle), rng.normal(size=n)])
    line = np.column_stack([np.abs(angle) * np.sign(rng.normal(size=n)), rng.normal(size=n)])
    return circle + 0.1 * rng.normal(size=circle.shape), line + 0.1 * rng.normal(size=line.shape)


def shared(A, B, A_new, B_new):
    """Return the correlation that CCA finds, measured on rows it has not seen."""
    a, b = CCA(n_components=1, max_iter=2_000).fit(A, B).transform(A_new, B_new)
    return abs(np.corrcoef(a[:, 0], b[:, 0])[0, 1])


def main():
    (A, B), (A_new, B_new) = views(5_000, seed=0), views(2_000, seed=1)
    linear = shared(A, B, A_new, B_new)
    of_a = SignatureNystroem(gamma=0.5, n_components=40, random_state=0).fit(A)
    of_b = SignatureNystroem(gamma=0.5, n_components=40, random_state=0).fit(B)
    kernel = shared(of_a.transform(A), of_b.transform(B), of_a.transform(A_new), of_b.transform(B_new))
    print(f"correlation found by linear CCA: {linear:.3f}; by kernel CCA: {kernel:.3f}")
    return linear, kernel


if __name__ == "__main__":
    main()
