"""Print the plan of the package: rooms, files, lines, and which room imports which. A test holds the limits."""

from __future__ import annotations

import ast
import statistics
from collections import Counter
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "dc2"


def files() -> list[Path]:
    """Return every Python file of the package."""
    return sorted(PACKAGE.rglob("*.py"))


def rooms() -> list[str]:
    """Return the folders of the package."""
    return sorted(folder.name for folder in PACKAGE.iterdir() if (folder / "__init__.py").exists())


def imported_modules(path: Path) -> set[str]:
    """Return the modules of dc2 that a file imports, at its top or inside a function."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "dc2":
            found |= {f"dc2.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return {name for name in found if name.startswith("dc2.")}


def room_imports() -> dict[str, set[str]]:
    """Return the rooms that each room imports; single files such as `errors.py` are no rooms."""
    graph: dict[str, set[str]] = {room: set() for room in rooms()}
    for path in files():
        room = path.relative_to(PACKAGE).parts[0]
        if room in graph:
            graph[room] |= {name.split(".")[1] for name in imported_modules(path)} & set(graph) - {room}
    return graph


def depth(graph: dict[str, set[str]]) -> int:
    """Return the number of rooms on the longest chain of imports."""

    @cache
    def below(room: str) -> int:
        return 1 + max((below(other) for other in graph[room]), default=0)

    return max(below(room) for room in graph)


def repeated_names() -> list[str]:
    """Return the names of files that occur more than once."""
    counts = Counter(path.name for path in files() if path.name != "__init__.py")
    return sorted(name for name, count in counts.items() if count > 1)


def repeated_classes() -> list[str]:
    """Return the names of public classes that are defined more than once."""
    counts = Counter(
        node.name
        for path in files()
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    return sorted(name for name, count in counts.items() if count > 1)


def lines(path: Path) -> int:
    """Return the number of lines of a file."""
    return len(path.read_text("utf-8").splitlines())


def main() -> None:
    """Print the plan."""
    graph = room_imports()
    for room, others in graph.items():
        inside = sorted((PACKAGE / room).rglob("*.py"))
        print(f"{room:9} {len(inside):3} files {sum(map(lines, inside)):6} lines  imports {', '.join(sorted(others))}")
    sizes = [lines(path) for path in files()]
    print(f"{len(graph)} rooms, {len(sizes)} files, {sum(sizes)} lines, median file {statistics.median(sizes):g} lines")
    print(f"{sum(map(len, graph.values()))} imports from room to room, depth {depth(graph)}")
    print(f"file names that repeat: {', '.join(repeated_names()) or 'none'}")
    print(f"public classes that repeat: {', '.join(repeated_classes()) or 'none'}")


if __name__ == "__main__":
    main()
