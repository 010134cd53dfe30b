"""How many nodes, and how many ties for each row."""

from __future__ import annotations

import math

ROWS_AS_NODES = 16_384
NUMBERS_AS_NODES = 1 << 23
SIGNATURES_PER_CLUSTER = 10
FEWEST_SIGNATURES = 1000
COMPRESSED_TIES = 5


def ties_per_row(n_nodes: int, rows_per_node: float, n_columns: int) -> int:
    """Return to how many nodes each row is tied, itself included where rows are the nodes.

    Where nodes stand for three rows or more, five ties are enough: rows between two nodes tie them. Where rows are
    the nodes, ties must bridge the gaps of chance and no others. Gaps of chance get no wider with more rows, but
    there are more of them, so the number grows slowly: with the fourth root, from 8 to 15 (spirals of 300
    rows fuse from 12 on, thousands of rows in two columns want 12 or more). In one column a single gap
    parts all rows, whereas a cut through a plane passes many: there twice the square root, at most 60.

    Examples
    --------
    >>> ties_per_row(300, 1, 2), ties_per_row(10_000, 1, 2), ties_per_row(1000, 1, 1), ties_per_row(1000, 100, 2)
    (8, 15, 60, 5)
    """
    if rows_per_node >= 3:
        return min(COMPRESSED_TIES, n_nodes)
    ties = min(max(round(1.5 * math.sqrt(math.sqrt(n_nodes))), 8), 15)
    if n_columns == 1:
        ties = max(ties, min(round(2 * math.sqrt(n_nodes)), 60))
    # Tens of rows: a cluster has more rows than that.
    return max(1, min(ties, max(4, n_nodes // 4), n_nodes))


def rows_as_nodes(n_columns: int) -> int:
    """Return up to how many distinct rows are the nodes themselves.

    Examples
    --------
    >>> rows_as_nodes(2), rows_as_nodes(784)
    (16384, 10699)
    """
    return min(ROWS_AS_NODES, max(FEWEST_SIGNATURES, NUMBERS_AS_NODES // n_columns))


def signatures_for(n_distinct: int, n_columns: int, n_clusters: int | None) -> int | None:
    """Return how many signatures to make, or None where the distinct rows are the nodes.

    Rows themselves are the best nodes, up to 16,384 of them with 8 million numbers at most. Beyond, signatures grow
    with the logarithm of rows and, slowly, with columns, and there are at least ten for each cluster asked for. So
    hundreds of clusters can be told apart, and a fit takes at most half as long again as with 1000 signatures.

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
