"""What all estimators share: the columns they were fitted on, and the containers of their output."""

from dc2.estimators.columns import Columns, KnowsItsColumns, fitted_source, matching_source
from dc2.estimators.containers import SourceTransformer, in_container

__all__ = [
    "Columns",
    "KnowsItsColumns",
    "SourceTransformer",
    "fitted_source",
    "in_container",
    "matching_source",
]
