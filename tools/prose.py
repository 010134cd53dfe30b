"""Find words in docstrings, comments, messages and pages for which readers know a standard term.

Each rule is a pattern and the term to use instead. `make lint` runs this; it prints file, line, word and term.

    python tools/prose.py [path ...]
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CHECKED = ("src/dc2", "docs", "tests", "README.md", "CONTRIBUTING.md")

WRITTEN_BY_COMMANDS = ("docs/measured", "docs/reference", "docs/gallery", "docs/tutorials", "docs/paper")

RULES = {
    r"\bties? (graph|to|between|of its|the|its|their)\b|\btied (to|together)\b|\buntied\b": "edge, connected",
    r"\bwish(es|ed)?\b": "requested number of clusters",
    r"\bstrays?\b": "isolated node, outlier",
    r"\bvalleys?\b": "density gap",
    r"\bmass(es)?\b": "weight",
    r"\bdonors?\b": "complete row",
    r"\banew\b": "again",
    r"\bonce more\b": "again",
    r"\bmended\b": "fixed",
    r"\bgoes by\b|\bgo by\b": "uses, depends on",
    r"\btold apart\b|\btells? apart\b": "distinguish",
    r"\bcomes? back\b|\bcame back\b": "is found again; bootstrap stability",
    r"\bcount(s)? as they are\b": "is not scaled",
    r"\blooked (over|into|upon)\b|\blooks? into\b": "checked, analysed",
    r"\bis told\b|\bare told\b|\bnobody told\b|\btold the number\b": "given",
    r"\bis said\b|\bare said\b": "dc2 reports",
    r"\bspread within (its|their) steps\b": "jitter",
    r"(?<!=)\b(?!blank[\"'])blanks?\b(?! :)": "missing value",
    r"\bthe card\b|\ba card\b|\bgraphics cards?\b|\bcards\b": "GPU",
    r"\bhabits?\b": "conventions",
    r"\bmeans? repeats\b|\bare repeats\b": "equals repeated rows",
    r"\bshortlists?\b": "neighbour lists",
    r"\bno more and no less\b|\bto the letter\b": "exactly",
    r"\blies?\b(?= (in|on|at|near|far|deep|out|among|beside|to|together|inside|within)\b)": "is",
    r"\blie (?=in\b|on\b|at\b|near|far\b|deep|out\b|among|beside|together|inside|within)": "are",
    r"\bwords and blanks\b": "text and missing values",
    r"\bin words\b": "as text",
}


def comments_and_strings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each comment, docstring and message of a Python file; code is not prose."""
    for token in tokenize.generate_tokens(io.StringIO(path.read_text("utf-8")).readline):
        is_text = token.type == tokenize.COMMENT or (token.type == tokenize.STRING and " " in token.string)
        is_text |= token.type == getattr(tokenize, "FSTRING_MIDDLE", -1)
        if is_text:
            for offset, line in enumerate(token.string.splitlines()):
                yield token.start[0] + offset, line


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of prose in a file: no code blocks, no names in backquotes."""
    if path.suffix == ".py":
        lines: Iterator[tuple[int, str]] = comments_and_strings(path)
    else:
        lines = enumerate(path.read_text("utf-8").splitlines(), start=1)
    in_code = False
    for number, line in lines:
        if path.suffix == ".md" and line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code and not line.lstrip().startswith((">>>", "...")):
            yield number, re.sub(r"`[^`]*`|\([\w/.-]+\.(md|rst)\)", "", line)


def findings(path: Path) -> Iterator[str]:
    """Yield what to change in a file."""
    for number, line in prose(path):
        for pattern, term in RULES.items():
            for found in re.finditer(pattern, line, re.IGNORECASE):
                yield f"{path.relative_to(ROOT)}:{number}: {found.group()!r}: write {term}"


def files() -> list[Path]:
    """Return the files to check."""
    found = []
    for name in CHECKED:
        place = ROOT / name
        found += [place] if place.is_file() else [*place.rglob("*.py"), *place.rglob("*.md")]
    left_out = [ROOT / name for name in WRITTEN_BY_COMMANDS]
    return sorted(path for path in found if not any(path.is_relative_to(place) for place in left_out))


def main(names: list[str]) -> int:
    """Print what to change; return 1 if there is anything."""
    found = [text for path in ([Path(name).resolve() for name in names] or files()) for text in findings(path)]
    print("\n".join(found) or "prose: nothing to change")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
