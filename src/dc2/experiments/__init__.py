"""The paper's whole evaluation: ``python -m dc2.experiments``."""

from dc2.experiments.evaluation import run

__all__ = ["run"]
