"""The recipes of the pages on data run as they stand."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
RECIPES = {
    "tables.md": "city: left out: tells nothing about any other column",
    "embeddings.md": "4 clusters in 64 columns from vec[0]",
    "text.md": "ARI 1.00 from 330 words",
    "places.md": "4 clusters",
    "updates.md": "Cluster 2 is gone",
    "known.md": "teams of 250",
    "databases.md": "2 clusters, whoever reads the rows",
}


@pytest.mark.parametrize("page", RECIPES)
def test_the_recipe_of_the_page_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if page == "databases.md":
        pytest.importorskip("adbc_driver_sqlite")
    monkeypatch.chdir(tmp_path)
    recipes = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text("utf-8"), re.DOTALL)
    exec(compile("\n".join(recipes), page, "exec"), {})  # the page is ours
    assert RECIPES[page] in capsys.readouterr().out
