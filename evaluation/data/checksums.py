"""Checksums of first downloads, in a file that ``sha256sum --check`` reads."""

from pathlib import Path

from dc2.io.outputs import write_whole

__all__ = ["Checksums"]


class Checksums:
    """The file ``sha256.txt`` of a folder.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Checksums(Path(folder)).pin("rows.txt", "ab12")
    ...     Checksums(Path(folder)).get("rows.txt")
    'ab12'
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "sha256.txt"

    def get(self, name: str) -> str | None:
        """Return the checksum of a file, or None where it was never downloaded."""
        return self._read().get(name)

    def pin(self, name: str, checksum: str) -> None:
        """Keep the checksum of a file."""
        entries = self._read() | {name: checksum}
        write_whole(self._path, "".join(f"{entries[name]}  {name}\n" for name in sorted(entries)))

    def _read(self) -> dict[str, str]:
        if not self._path.exists():
            return {}
        lines = self._path.read_text("utf-8").splitlines()
        return {name: checksum for checksum, name in (line.split("  ", 1) for line in lines if line)}
