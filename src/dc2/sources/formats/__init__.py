"""File formats, one per file; a new one is listed here and nowhere else."""

from __future__ import annotations

from dataclasses import replace

from dc2.sources.formats.arrow import Arrow
from dc2.sources.formats.csv import Csv, CsvOptions
from dc2.sources.formats.json_lines import JsonLines
from dc2.sources.formats.npy import Npy
from dc2.sources.formats.parquet import Parquet
from dc2.sources.found import Format

__all__ = ["CsvOptions", "FORMATS", "format_of"]

FORMATS: dict[str, Format] = {
    ".parquet": Parquet(),
    ".pq": Parquet(),
    ".arrow": Arrow(),
    ".feather": Arrow(),
    ".ipc": Arrow(),
    **{f".csv{packed}": Csv() for packed in ("", ".gz", ".zst")},
    **{f".tsv{packed}": Csv(separator="\t") for packed in ("", ".gz", ".zst")},
    **{f".jsonl{packed}": JsonLines() for packed in ("", ".gz", ".zst")},
    ".npy": Npy(),
}
"""The format of each suffix."""


def format_of(path: str, csv: CsvOptions | None = None) -> Format | None:
    """Return the format that belongs to the suffix of a path, or None.

    Examples
    --------
    >>> format_of("rows.TSV.gz").name
    'csv'
    >>> format_of("rows.xlsx") is None
    True
    """
    found = next((made for suffix, made in FORMATS.items() if path.lower().endswith(suffix)), None)
    return replace(found, options=csv) if csv is not None and isinstance(found, Csv) else found
