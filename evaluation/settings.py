"""What the evaluation depends on: the paper's parameters, and smaller ones for a quick look."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["FULL", "QUICK", "PAPER_TREES", "Settings"]

# The paper gives its bandwidth beta for counts of 800 trees; ours is b = beta / 800, whatever the number of trees.
PAPER_TREES = 800


@dataclass(frozen=True)
class Settings:
    """Parameters of all experiments; the defaults are the paper's.

    Attributes
    ----------
    runs : int
        Seeds 0, 1, ... of each experiment. The paper has 100.
    n_signatures, n_trees, forest_leaf_size
        Parameters of DC² and of the forest over signatures.
    betas : tuple of float
        Bandwidths of the rpf-kernel, for counts of 800 trees.
    sigmas : tuple of float
        Bandwidths of the Gaussian kernel.
    max_rows : int or None
        A data set with more rows is cut to this many, drawn at random.
    generated_rows : int
        Rows of generated data of known intrinsic dimension.
    theorem_points : int
        Points of the experiments on the theorem.
    n_jobs : int or None
        Threads of the methods, and processes of a sweep; None takes all cores.
    """

    runs: int = 5
    n_signatures: int = 1000
    n_trees: int = PAPER_TREES
    forest_leaf_size: int = 30
    betas: tuple[float, ...] = tuple(float(beta) for beta in range(10, 81))
    sigmas: tuple[float, ...] = (
        *(tenth / 10 for tenth in range(1, 10)),
        *(float(whole) for whole in range(1, 201)),
    )
    max_rows: int | None = None
    generated_rows: int = 100_000
    theorem_points: int = 1000
    n_jobs: int | None = None

    def identity(self) -> dict[str, Any]:
        """Return what the results of one seed depend on."""
        fields = asdict(self)
        return {name: value for name, value in fields.items() if name not in ("runs", "n_jobs")}


FULL = Settings()

# Slightly more than 20,000 rows: from there on KASP works in two stages, as it does on the full sets.
QUICK = Settings(
    runs=1, n_signatures=300, n_trees=200, max_rows=25_000, generated_rows=20_000, theorem_points=400
)  # fmt: skip
