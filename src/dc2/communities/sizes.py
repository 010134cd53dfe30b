"""How many nodes, and how many ties for each row."""

from __future__ import annotations

import math

FEWEST_ROWS_AS_NODES, MOST_ROWS_AS_NODES = 16_384, 100_000
ROWS_AS_NODES_PER_COLUMN = 1 << 12
NUMBERS_AS_NODES = 1 << 26
SIGNATURES_PER_CLUSTER = 10
FEWEST_SIGNATURES = 1000
COMPRESSED_TIES = 5


def ties_per_row(n_nodes: int, rows_per_node: float, n_columns: int) -> int:
    """Return how many nodes each row is tied to, including itself if rows are the nodes.

    If nodes stand for three rows or more, five ties are enough: rows between two nodes tie them. If rows are the
    nodes, ties must bridge gaps that are there by chance, and no others. With more rows such gaps become more, but
    not wider, so the number of ties grows slowly, with the fourth root, from 8 to 15 (spirals of 300 rows fuse from 12
    on; thousands of rows in two columns need 12 or more). In three columns or more there are more directions in which
    neighbours can lie, and at least 12. In one column a single gap separates all rows, whereas a cut through a plane
    crosses many; there it is twice the square root, at most 60.

    Examples
    --------
    >>> ties_per_row(300, 1, 2), ties_per_row(10_000, 1, 2), ties_per_row(1000, 1, 1), ties_per_row(1000, 100, 2)
    (8, 15, 60, 5)
    >>> ties_per_row(300, 1, 4)
    12
    """
    if rows_per_node >= 3:
        return min(COMPRESSED_TIES, n_nodes)
    ties = min(max(round(1.5 * math.sqrt(math.sqrt(n_nodes))), 8 if n_columns <= 2 else 12), 15)
    if n_columns == 1:
        ties = max(ties, min(round(2 * math.sqrt(n_nodes)), 60))
    # With only tens of rows, ties must still be fewer than the rows of a cluster.
    return max(1, min(ties, max(4, n_nodes // 4), n_nodes))


def rows_as_nodes(n_columns: int) -> int:
    """Return the largest number of distinct rows that are nodes themselves.

    In a few columns signatures are nearly as good, and far fewer. In many, rows lie near curved surfaces, but their
    means lie off them, so that clusters blur. Therefore the number grows with the columns, from 16,384 to 100,000 rows,
    with at most 64 million numbers to be kept.

    Examples
    --------
    >>> rows_as_nodes(2), rows_as_nodes(10), rows_as_nodes(50), rows_as_nodes(784)
    (16384, 40960, 100000, 85598)
    """
    by_columns = max(FEWEST_ROWS_AS_NODES, ROWS_AS_NODES_PER_COLUMN * n_columns)
    return min(by_columns, MOST_ROWS_AS_NODES, max(FEWEST_SIGNATURES, NUMBERS_AS_NODES // n_columns))


def signatures_for(n_distinct: int, n_columns: int, n_clusters: int | None) -> int | None:
    """Return how many signatures to make, or None if the distinct rows are the nodes.

    Rows themselves are the best nodes, if they are few enough (see `rows_as_nodes`). Beyond that, the number of
    signatures grows with the logarithm of rows and, slowly, with columns, and is at least ten for each cluster asked
    for. This tells hundreds of clusters apart, in at most one and a half times the time of 1000 signatures.

    Examples
    --------
    >>> signatures_for(10_000, 16, None) is None
    True
    >>> signatures_for(300_000, 16, None), signatures_for(300_000, 16, 1000)
    (3582, 10000)
    """
    wanted = SIGNATURES_PER_CLUSTER * (n_clusters or 1)
    if n_distinct <= rows_as_nodes(n_columns):
        return None
    grown = round(550 * math.log10(n_distinct) * math.pow(n_columns, 1 / 16))
    return min(max(grown, wanted), n_distinct)
