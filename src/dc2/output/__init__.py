"""Files that appear whole at the end, or not at all: labels, written as they come in row order, and texts."""

from dc2.output.labels import check_columns, check_output_path, check_room, write_labels
from dc2.output.target import check_target, renamed_at_the_end, write_whole

__all__ = [
    "check_columns",
    "check_output_path",
    "check_room",
    "check_target",
    "renamed_at_the_end",
    "write_labels",
    "write_whole",
]
