"""Reports as single HTML files."""

from dc2.report.cluster_report import write_report

__all__ = ["write_report"]
