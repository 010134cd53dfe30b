"""Kernel k-means on the rpf-kernel: clusters of any shape among 20,000 rows, from 500 signatures.

Kernel k-means is k-means in the space whose inner products are the kernel: distances to a cluster's mean there need
only sums of kernel values. With each signature weighted by its total similarity d, and the kernel divided by d on both
sides, it minimises the normalized cut (Dhillon, Guan, Kulis: Kernel k-means, spectral clustering and normalized cuts,
2004). As they advise, it starts from k-means on the leading eigenvectors.
"""

import numpy as np
from sklearn.cluster import KMeans

from dc2 import Compressor, RPFKernel, clustering_accuracy
from dc2.datasets import make_bananas


def kernel_kmeans(K, weights, labels, n_clusters, n_steps=50):
    """Return labels that no step improves, and the scatter within clusters before and after."""
    scatter = []
    for _ in range(n_steps):
        member = np.eye(n_clusters)[labels] * weights[:, None]
        share = member / member.sum(axis=0)  # each cluster's mean, as weights of its points
        distances = K.diagonal()[:, None] - 2 * K @ share + ((K @ share) * share).sum(axis=0)
        scatter.append(weights @ distances[np.arange(len(K)), labels])
        if np.array_equal(labels, distances.argmin(axis=1)):
            break
        labels = distances.argmin(axis=1)
    return labels, scatter[0], scatter[-1]


def main():
    X, y = make_bananas(20_000)
    compressor = Compressor(n_signatures=500, random_state=0).fit(X)
    K = RPFKernel(n_trees=400, random_state=0).fit(compressor.signatures_.points).similarity_
    similarity = K.sum(axis=1)
    K = K / similarity[:, None] / similarity
    root = np.sqrt(similarity)
    eigenvalues, vectors = np.linalg.eigh(root[:, None] * K * root)
    leading = vectors[:, -2:] * np.sqrt(eigenvalues[-2:]) / root[:, None]
    start = KMeans(2, n_init=3, random_state=0).fit_predict(leading, sample_weight=similarity)
    labels, before, after = kernel_kmeans(K, similarity, start, n_clusters=2)
    accuracy = clustering_accuracy(y, labels[compressor.labels_])
    plain = clustering_accuracy(y, KMeans(2, n_init=1, random_state=0).fit_predict(X))
    print(f"scatter {before:.4f} -> {after:.4f}; accuracy: k-means {plain:.3f}, kernel k-means {accuracy:.3f}")
    return plain, accuracy


if __name__ == "__main__":
    main()
