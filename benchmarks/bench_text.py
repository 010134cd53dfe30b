"""Sparse counts of words in very many columns: time, memory and agreement with the topics that made them.

Run as ``python benchmarks/bench_text.py [--rows 100000] [--svd-up-to 300000]``; it writes docs/measured/text.md. Five
topics with 500 words of their own; half of the 60 words of a text are of its topic, the others any of 100,000.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import scipy.sparse as sp
from common import in_new_process, machine, megabytes, table, with_memory, write_page
from sklearn.decomposition import TruncatedSVD
from sklearn.metrics import adjusted_rand_score

from dc2 import DC2Clustering

WIDTH, N_TOPICS, OWN_WORDS, WORDS = 100_000, 5, 500, 60
ROWS_AT_A_TIME = 50_000


def texts(n_rows: int) -> tuple[sp.csr_array, np.ndarray]:
    """Return counts of words, and the topic of each text; made piece by piece, to save memory."""
    draw = np.random.default_rng(0)
    topic = draw.integers(0, N_TOPICS, n_rows)
    pieces = []
    for start in range(0, n_rows, ROWS_AT_A_TIME):
        mine = topic[start : start + ROWS_AT_A_TIME]
        own = OWN_WORDS * mine[:, None] + draw.integers(0, OWN_WORDS, (len(mine), WORDS // 2))
        words = np.hstack([own, draw.integers(0, WIDTH, (len(mine), WORDS // 2))]).astype(np.int32)
        starts = np.arange(len(mine) + 1, dtype=np.int32) * WORDS
        ones = np.ones(words.size, np.float32)
        piece = sp.csr_array((ones, words.ravel(), starts), shape=(len(mine), WIDTH))
        piece.sum_duplicates()
        pieces.append(piece)
    return sp.vstack(pieces, format="csr"), topic


def fit(n_rows: int, components: int | None) -> tuple[float, float, int, int]:
    """Return seconds, agreement, and the peak of memory with and without the rows; after TruncatedSVD if asked for."""
    warnings.simplefilter("ignore")
    X, topic = texts(n_rows)
    since = time.perf_counter()

    def labels() -> np.ndarray:
        rows = X if components is None else TruncatedSVD(components, random_state=0).fit_transform(X)
        return DC2Clustering(N_TOPICS, metric="cosine", random_state=0).fit_predict(rows)

    found, memory = with_memory(labels)
    return time.perf_counter() - since, adjusted_rand_score(topic, found), memory.peak, memory.beyond


def main() -> None:
    parser = argparse.ArgumentParser(description="Sparse counts of words.")
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000], help="numbers of texts")
    parser.add_argument("--svd-up-to", type=int, default=300_000, help="most texts for which TruncatedSVD is tried")
    wanted = parser.parse_args()
    about = machine()
    lines = []
    for n_rows in wanted.rows:
        for name, components in (("as they are, projected to 1,024", None), ("TruncatedSVD(50) first", 50)):
            if components is not None and n_rows > wanted.svd_up_to:
                continue
            seconds, score, peak, beyond = in_new_process(fit, n_rows, components)
            sizes = [megabytes(peak), megabytes(beyond)]
            lines.append([f"{n_rows:,} x {WIDTH:,}", name, f"{seconds:.0f}", f"{score:.3f}", *sizes])
            print(*lines[-1], sep=" | ", flush=True)
    asked = " ".join(map(str, wanted.rows))
    found = [
        f"Counts of {WORDS} words a text. Five topics with {OWN_WORDS} words of their own; half of the words of a text "
        f"are of its topic, the others any of {WIDTH:,}. `DC2Clustering(5, metric='cosine')`, fit and labels.",
        table(["rows", "how", "seconds", "ARI", "peak of memory", "beyond the rows"], lines),
    ]
    write_page("text", "Sparse counts of words, measured", found, about, f" --rows {asked}")


if __name__ == "__main__":
    main()
