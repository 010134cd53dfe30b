"""Connect-4: all legal positions after eight moves, and who wins them."""

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from dc2.errors import SourceError
from evaluation.data.bounded import open_bytes
from evaluation.data.download import Archive, DataFile, obtain
from evaluation.data.location import Folder
from evaluation.data.standardise import standardise

__all__ = ["load_connect4"]

_ARCHIVE = Archive(
    "https://archive.ics.uci.edu/static/public/26/connect+4.zip",
    (DataFile("connect-4.data", "063152e6eadbb424c7ef4645df76e493a43812edd9c992400983da4fa54f8cba"),),
    max_bytes=20_000_000,
)
_SQUARES = tuple(f"{column}{row}" for column in "abcdefg" for row in range(1, 7))
_PIECES = b"box"  # blank, second player, first player: coded 0, 1, 2
_RESULTS = ("draw", "loss", "win")

_DESCR = """Connect-4 (UCI). One row per legal position after eight moves in which neither player has won and the
next move is not forced; 67,557 rows, 42 squares, and the result for the first player under best play. Prepared as in
the DC2 paper: blank, o and x are coded 0, 1 and 2, and every column is standardised."""


def load_connect4(data_home: Folder | None = None, *, download: bool = True) -> Bunch:
    """Load Connect-4, 67,557 rows x 42 columns, 3 classes, as the paper prepares it.

    Returns
    -------
    sklearn.utils.Bunch
        `data` (n, 42), `target` (n,) with 0 draw, 1 loss, 2 win, `target_names`, `feature_names`, `DESCR`.
    """
    (path,) = obtain(_ARCHIVE, data_home, download=download)
    with open_bytes(path) as stream:
        lines = stream.read().split()
    pieces, target = _parse(lines, str(path))
    data = pieces.astype(np.float32)
    standardise(data)
    return Bunch(data=data, target=target, target_names=np.array(_RESULTS), feature_names=list(_SQUARES), DESCR=_DESCR)


def _parse(lines: list[bytes], where: str) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """Read ``b,o,x,...,win`` lines: 42 one-letter squares, each with its comma, and a result."""
    board_chars = 2 * len(_SQUARES)
    board = np.frombuffer(b"".join(line[:board_chars].ljust(board_chars) for line in lines), dtype=np.uint8)
    code = np.full(256, 255, dtype=np.uint8)
    code[list(_PIECES)] = range(len(_PIECES))
    pieces = code[board.reshape(len(lines), board_chars)[:, ::2]]
    results = {name.encode(): number for number, name in enumerate(_RESULTS)}
    target = np.array([results.get(line[board_chars:], -1) for line in lines], dtype=np.int32)
    wrong = np.flatnonzero((pieces == 255).any(axis=1) | (target < 0))
    if not lines or wrong.size:
        line = f"line {wrong[0] + 1:,} is {lines[wrong[0]]!r}" if lines else "it is empty"
        raise SourceError(
            f"{where} is not UCI's connect-4.data: {line}; 42 of b, o, x and one of {', '.join(_RESULTS)} are "
            "expected. Fetch the file again."
        )
    return pieces, target
