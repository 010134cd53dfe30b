"""Kernel-quality clusters on millions of rows: divide, compress, conquer, populate."""

from dc2.versions import __version__, show_versions

__all__ = ["__version__", "show_versions"]
