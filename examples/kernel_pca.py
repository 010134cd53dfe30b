"""Kernel PCA on the rpf-kernel: rings that no line separates fall apart in ten components.

The kernel matrix is made from 500 signatures of 20,000 rows; other rows are projected by their similarity to those.
"""

from sklearn.decomposition import KernelPCA
from sklearn.linear_model import LogisticRegression

from dc2 import Compressor, RPFKernel
from dc2.datasets import make_rings


def main():
    X, y = make_rings(20_000, n_rings=2)
    X_new, y_new = make_rings(2_000, seed=1, n_rings=2)
    signatures = Compressor(n_signatures=500, random_state=0).fit(X).signatures_
    kernel = RPFKernel(n_trees=400, bandwidth=0.5, random_state=0).fit(signatures.points)
    pca = KernelPCA(n_components=10, kernel="precomputed").fit(kernel.similarity_)

    def project(rows):
        return pca.transform(kernel.similarity(rows))

    on_rows = LogisticRegression().fit(X, y).score(X_new, y_new)
    on_components = LogisticRegression(C=100.0).fit(project(X[:2_000]), y[:2_000]).score(project(X_new), y_new)
    print(f"a linear classifier: on the rows {on_rows:.3f}, on their components {on_components:.3f}")
    return on_rows, on_components


if __name__ == "__main__":
    main()
