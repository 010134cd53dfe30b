"""Sparse counts of words in very many columns: time, memory and agreement with the topics that made them.

Run as ``python benchmarks/bench_text.py [ROWS]``; without a number it writes docs/measured/text.md. Five topics with
500 words of their own; half of the 60 words of a text are of its topic, the others any of 100,000.
"""

import sys
import time
import warnings

import numpy as np
import scipy.sparse as sp
from common import in_new_process, machine, megabytes, table, with_memory, write_page
from sklearn.decomposition import TruncatedSVD
from sklearn.metrics import adjusted_rand_score

from dc2 import DC2Clustering

WIDTH, N_TOPICS, OWN_WORDS = 100_000, 5, 500


def texts(n_rows: int) -> tuple[sp.csr_array, np.ndarray]:
    """Return counts of words, and the topic of each row."""
    draw = np.random.default_rng(0)
    topic = draw.integers(0, N_TOPICS, n_rows)
    own = OWN_WORDS * topic[:, None] + draw.integers(0, OWN_WORDS, (n_rows, 30))
    words = np.hstack([own, draw.integers(0, WIDTH, (n_rows, 30))])
    rows = np.repeat(np.arange(n_rows), 60)
    counts = sp.csr_array((np.ones(words.size, np.float32), (rows, words.ravel())), shape=(n_rows, WIDTH))
    return counts, topic


def fit(n_rows: int, components: int | None) -> tuple[float, float, int]:
    """Return seconds, agreement and memory beyond the rows; by TruncatedSVD first where components are given."""
    warnings.simplefilter("ignore")
    X, topic = texts(n_rows)
    since = time.perf_counter()

    def labels() -> np.ndarray:
        rows = X if components is None else TruncatedSVD(components, random_state=0).fit_transform(X)
        return DC2Clustering(N_TOPICS, metric="cosine", random_state=0).fit_predict(rows)

    found, memory = with_memory(labels)
    return time.perf_counter() - since, adjusted_rand_score(topic, found), memory.beyond


def main() -> None:
    n_rows = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    by = machine()
    print(by)
    rows = []
    for name, components in (("as they are", None), ("`TruncatedSVD(50)` first", 50)):
        seconds, score, memory = in_new_process(fit, n_rows, components)
        rows.append([name, f"{seconds:.0f}", f"{score:.3f}", megabytes(memory)])
        print(*rows[-1], sep=" | ", flush=True)
    if len(sys.argv) == 1:
        found = [
            f"{n_rows:,} texts of 60 words in {WIDTH:,} columns.",
            table(["rows", "seconds", "ARI", "memory beyond the rows"], rows),
        ]
        write_page("text", "Sparse counts of words, measured", found, by)


if __name__ == "__main__":
    main()
