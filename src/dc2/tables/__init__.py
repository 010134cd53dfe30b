"""Tables of mixed columns become rows of numbers: decided from a sample, applied block by block."""

from dc2.tables.preparer import PreparedSource, TablePreparer

__all__ = ["PreparedSource", "TablePreparer"]
