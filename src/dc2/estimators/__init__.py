"""What all estimators share: the columns they were fitted on, and the containers of their output."""

from dc2.estimators.columns import Columns, KnowsItsColumns, fitted_source, matching_source

__all__ = ["Columns", "KnowsItsColumns", "fitted_source", "matching_source"]
