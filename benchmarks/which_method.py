"""The table of which method to use when; each line has its figures, taken from the measured pages.

Run as ``python benchmarks/which_method.py`` after a benchmark was run again. It measures nothing itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MEASURED = Path(__file__).parents[1] / "docs" / "measured"
HEAD = ["your data, your wish", "take", "why", "measured"]
BATTERIES, LARGE, SHAPES = "Batteries of up to 20,000 rows", "Batteries of 100,000 rows", "Shapes"
BLOBS, UNIT = "Many or uneven blobs", "Unit vectors: 40 clusters and 5% noise"


@dataclass(frozen=True)
class Figure:
    """One cell of a measured page, found by words before its table and by the beginnings of its row and column."""

    page: str
    after: tuple[str, ...]  # words that come one after the other before the table
    line: tuple[str, ...]
    column: str

    def read(self, folder: Path = MEASURED) -> str:
        """Return the text of the cell."""
        text = (folder / f"{self.page}.md").read_text("utf-8")
        for words in self.after:
            text = text[text.index(words) :]
        head, _, *lines = (_cells(line) for line in _first_table(text))
        column = next(place for place, name in enumerate(head) if name.startswith(self.column))
        found = next(line for line in lines if tuple(line[: len(self.line)]) == self.line)
        return found[column].strip("*")


def _first_table(text: str) -> list[str]:
    """Return the lines of the first table of a text."""
    found = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE)
    return found[0].splitlines() if found else []


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def quality(heading: str, method: str, column: str = "mean") -> Figure:
    """An adjusted Rand index of the page on quality."""
    return Figure("quality", (f"\n## {heading}\n",), (method,), column)


def summary(method: str, kind: str) -> Figure:
    """A mean of the summary on quality."""
    return quality("Summary", method, kind)


@dataclass(frozen=True)
class Line:
    """A wish, what to take, why, and figures put into a text."""

    requested: str
    take: str
    why: str
    measured: str
    figures: Sequence[Figure] = ()

    def row(self) -> list[str]:
        """Return the row of the table."""
        return [self.requested, self.take, self.why, self.measured.format(*(one.read() for one in self.figures))]


LINES = [
    Line(
        "round clusters of about equal size, and you know how many",
        "**K-means**",
        "it is made for them",
        "birch1, 100 round clusters: K-means {}, `DC2Clustering(k)` {}",
        [quality(LARGE, "KMeans", "birch1"), quality(LARGE, "DC2Clustering, k given", "birch1")],
    ),
    Line(
        "round clusters that overlap, and you want probabilities",
        "**a Gaussian mixture**",
        "`predict_proba` of dc2 is not calibrated",
        "s4: mixture {}, `DC2Clustering(k)` {}; engytime: {}, {}",
        [
            quality(BATTERIES, method, column)
            for column in ("s4", "engytime")
            for method in ("GaussianMixture", "DC2Clustering, k given")
        ],
    ),
    Line(
        "shapes, rings, chains; any number of rows",
        "**`DC2Clustering`**",
        "follows shapes, and its cost grows with rows only",
        "shapes: `DC2Clustering(k)` {}, K-means {}",
        [summary("DC2Clustering, k given", SHAPES), summary("KMeans", SHAPES)],
    ),
    Line(
        "you do not know the number of clusters",
        "**`DC2Clustering`**",
        "it chooses, says how sure it is, and shows coarser and finer answers",
        "25 small sets: `DC2Clustering()` {}, HDBSCAN {}, Leiden {}; one cluster where there is one: {}, {}, {}",
        [
            *(summary(name, BATTERIES) for name in ("DC2Clustering", "HDBSCAN", "Leiden")),
            *(quality("Data without clusters", name, "one cluster") for name in ("DC2Clustering", "HDBSCAN", "Leiden")),
        ],
    ),
    Line(
        "sparse rows between dense clusters are to be called noise",
        "**HDBSCAN**",
        "it decides by density; dc2 takes a share that you name (`noise=`)",
        "the rows that HDBSCAN clusters, in brackets their share: on target {}, s1 {}",
        [
            Figure("quality", (f"\n## {BATTERIES}\n", "Of clustered rows only"), ("HDBSCAN",), name)
            for name in ("target", "s1")
        ],
    ),
    Line(
        "embeddings whose clusters are clear directions",
        '**`DC2Clustering(metric="cosine")`**, EVoC or UMAP with HDBSCAN',
        "all find them; dc2 needs no memory for the rows",
        "unit vectors: `DC2Clustering` {}, EVoC {}, UMAP + HDBSCAN {}",
        [summary(name, UNIT) for name in ("DC2Clustering", "EVoC", "UMAP + HDBSCAN")],
    ),
    Line(
        "images or embeddings on a curved surface, up to some 100,000 rows",
        "**`DC2Clustering`**; **EVoC** or Leiden if there are more rows and time to look at each",
        "dc2 takes up to 100,000 rows as they are; beyond that it sees signatures, and averages blur",
        "MNIST: EVoC {}, Leiden {}, UMAP + HDBSCAN {}, `DC2Clustering()` {}",
        [
            quality("Images and a large table", name, "MNIST")
            for name in ("EVoC", "Leiden", "UMAP + HDBSCAN", "DC2Clustering")
        ],
    ),
    Line(
        "a table of measurements",
        "**`DC2Clustering`**, or `RPFCluster(k)` if you know the number",
        "no method is best on all; scale the columns first",
        "seven tables: `RPFCluster(k)` {}, `DC2Clustering()` {}, K-means {}, UMAP + HDBSCAN {}",
        [
            summary(name, "Tables of measurements")
            for name in ("RPFCluster", "DC2Clustering", "KMeans", "UMAP + HDBSCAN")
        ],
    ),
    Line(
        "a table of numbers, words, dates and gaps",
        "**`DC2Clustering`**, or k-prototypes on few rows",
        "it prepares the table and says how ([tables](../tables.md))",
        "customers, 20,000 rows: `DC2Clustering(k)` {}, k-prototypes {}, K-means on one-hot {}",
        [
            Figure("tables", (), ("customers", "20,000", name), "ARI")
            for name in ("DC2Clustering", "k-prototypes", "K-means, one-hot")
        ],
    ),
    Line(
        "more rows than memory, or files",
        "**`DC2Clustering`**",
        "two passes over files, memory bounded",
        "100,000,000 rows: {} s, {} beyond the rows",
        [
            Figure("costs", ("**Time and memory against rows",), ("100,000,000",), column)
            for column in ("seconds", "memory")
        ],
    ),
    Line(
        "a few thousand rows in two or three columns, number known, at once",
        "**Genie**",
        "it is the fastest, and follows shapes",
        "25 small sets: Genie {} in {} s, `DC2Clustering(k)` {} in {} s (median)",
        [
            summary(name, column)
            for name in ("genieclust", "DC2Clustering, k given")
            for column in (BATTERIES, "median seconds")
        ],
    ),
    Line(
        "a support vector machine on more rows than it can bear",
        "**`DC2(SVC())`**",
        "it learns from signatures",
        "Cover Type, share wrong: 500,000 rows by 2000 signatures {}, `SVC` on 2,000 rows {}, on 10,000 rows {}",
        [
            Figure("learn", ("**Cover Type",), ("500,000",), "DC2, 2000 signatures"),
            Figure("learn", ("**Cover Type",), ("2,000",), "SVC: error"),
            Figure("learn", ("**Cover Type",), ("10,000",), "SVC: error"),
        ],
    ),
]
PURPOSES = [
    Line(
        "a picture of the data in two dimensions",
        "**UMAP**",
        "dc2 draws signatures, but is no map maker",
        "–",
    ),
    Line(
        "rows that may not leave their sites",
        "**`Compressor` and `Signatures.merge`**",
        "only signatures travel",
        "–",
    ),
    Line(
        "the same labels tomorrow, on another machine",
        "**`DC2Clustering`**",
        "the same bits for any threads, blocks and files",
        "[reliability](../reliability.md)",
    ),
]


def page() -> str:
    """Return the page."""
    rows = [HEAD, ["---"] * len(HEAD), *(line.row() for line in [*LINES, *PURPOSES])]
    return "\n".join(
        [
            "# Which method when, with figures",
            "",
            "Written by `python benchmarks/which_method.py` from the pages beside this one, which say when and on what "
            "machine each figure was measured: [quality](quality.md), [tables](tables.md), [costs](costs.md), "
            "[kernel learning](learn.md). Figures are adjusted Rand indices (1 is perfect, 0 is chance) unless said "
            "otherwise, in brackets where a method did not run on all sets of the kind.",
            "",
            *("| " + " | ".join(row) + " |" for row in rows),
            "",
        ]
    )


if __name__ == "__main__":
    (MEASURED / "which-method.md").write_text(page(), "utf-8")
