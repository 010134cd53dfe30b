"""The page on which method when says what the measured pages say."""

import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "benchmarks" / "which_method.py"))


def test_the_figures_are_those_of_the_measured_pages(script: dict[str, Any]) -> None:
    written = (ROOT / "docs" / "measured" / "which-method.md").read_text("utf-8")
    assert written == script["page"](), "run python benchmarks/which_method.py"


def test_a_cell_is_found_by_the_words_before_its_table(script: dict[str, Any], tmp_path: Path) -> None:
    page = "## One\n\n| a | b<br>2 |\n| --- | --: |\n| x | 1 |\n\n## Two\n\n| a | b |\n|---|---|\n| x | **3** |\n"
    (tmp_path / "p.md").write_text(page, "utf-8")
    figure = script["Figure"]
    assert figure("p", ("## One",), ("x",), "b").read(tmp_path) == "1"
    assert figure("p", ("## Two",), ("x",), "b").read(tmp_path) == "3"
    with pytest.raises(ValueError, match="substring"):
        figure("p", ("## Three",), ("x",), "b").read(tmp_path)
