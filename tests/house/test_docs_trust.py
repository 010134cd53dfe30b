"""The page on trust: its examples run, and what it says about stability is true."""

import re
from pathlib import Path

import numpy as np

from dc2 import DC2Clustering

PAGE = Path(__file__).parents[2] / "docs" / "trust.md"


def test_the_examples_of_the_page_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    exec("\n".join(examples), {})  # the page is ours
    said = capsys.readouterr().out
    assert "clusters" in said
    assert "stability" in said
    assert "layer_0" in said
    assert (tmp_path / "report.html").exists()


def test_the_page_names_what_a_verdict_says():
    page = PAGE.read_text("utf-8")
    cloud = np.random.default_rng(0).normal(size=(2000, 8))
    verdict = str(DC2Clustering(5, random_state=0).fit(cloud).verdict_)
    assert verdict.split("(")[0] in page  # in brackets follows the bootstrap agreement
    assert "the rows are one cloud." in str(DC2Clustering(random_state=0).fit(cloud).verdict_)
    assert "the rows are one cloud." in page
