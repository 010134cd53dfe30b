"""The benchmark of quality: what it scores, what it keeps, and the tables that it makes of that."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

# The scripts import each other by their bare names.
sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import quality
from quality_data import KINDS, Case, cases, unit_vectors
from quality_methods import Method, Outcome, methods
from quality_report import write_tables
from quality_scores import scores
from quality_store import Store

Y = np.array([1, 1, 2, 2, 0])
NOISY = np.array([0, 0, 1, -1, 3], np.int32)


def test_noise_is_scored_as_a_cluster_and_left_out() -> None:
    both = scores(Y, [NOISY])
    assert both["ari_clustered"] == 1.0 > both["ari"]
    assert both["clustered"] == 0.75
    assert both["k_found"] == 3


@given(labels=st.lists(st.integers(0, 3), min_size=5, max_size=5))
def test_without_noise_both_scores_are_the_same(labels: list[int]) -> None:
    both = scores(Y, [np.array(labels, np.int32)])
    assert both["ari"] == both["ari_clustered"]
    assert both["clustered"] == 1.0


def test_of_several_labels_the_best_are_scored() -> None:
    assert scores(Y, [NOISY, np.array([0, 0, 1, 1, 1], np.int32)])["ari"] == 1.0


def case(kind: str = "shapes", drawn: bool = False) -> Case:
    return Case("two", kind, lambda seed: (np.arange(4.0)[:, None], [Y[:4]]), drawn)


def counting(name: str, calls: list[int], **properties: Any) -> Method:
    def run(X: np.ndarray, k: int, seed: int) -> Outcome:
        calls.append(k)
        return Outcome([np.array([0, 0, 1, 1], np.int32)], 0.5)

    return Method(name, run, **properties)


ABOUT = {"machine": "a machine; load averages at the start: 1", "python": "3"}


def test_what_is_kept_is_not_measured_again(tmp_path: Path) -> None:
    calls: list[int] = []
    for _ in range(2):
        store = Store(tmp_path / "r.jsonl")
        quality.run_case(case(), 0, [counting("KMeans", calls)], store, False, ABOUT)
    assert calls == [2]
    quality.run_case(case(), 0, [counting("KMeans", calls)], store, True, ABOUT)
    assert calls == [2, 2]
    assert len(Store(tmp_path / "r.jsonl").rows) == 1


def test_a_second_seed_of_the_same_answer_and_a_told_number_of_one_are_not_run(tmp_path: Path) -> None:
    calls: list[int] = []
    store = Store(tmp_path / "r.jsonl")
    quality.run_case(case(), 1, [counting("Birch", calls, random=False)], store, False, ABOUT)
    quality.run_case(case("none"), 0, [counting("KMeans", calls)], store, False, ABOUT)
    assert calls == []


def test_tables_are_rebuilt_from_what_is_kept(tmp_path: Path) -> None:
    store = Store(tmp_path / "r.jsonl")
    chosen = [
        counting("KMeans", []),
        counting("HDBSCAN", [], finds_k=True),
        counting("KASP", [], left_out=lambda n, d, k: "too many rows"),
    ]
    quality.run_case(case(), 0, chosen, store, False, ABOUT)
    quality.run_case(case("none", drawn=True), 0, chosen, store, True, ABOUT)
    write_tables(Store(tmp_path / "r.jsonl").rows, tmp_path / "measured")
    page = (tmp_path / "measured" / "quality.md").read_text("utf-8")
    assert page.startswith("`python benchmarks/quality.py`, 20")
    assert "a machine." in page
    assert "load averages" not in page
    assert "| HDBSCAN | 2 |" in page
    assert "| KASP | too many rows | two |" in page


def test_every_set_has_a_kind_and_every_name_is_one_of_a_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DC2_DATA", raising=False)
    found = list(cases())
    assert {one.kind for one in found} <= set(KINDS)
    for names in ([one.name for one in found], [method.name for method in methods()]):
        assert len(names) == len(set(names))


def test_unit_vectors_have_length_one_and_their_noise_is_marked() -> None:
    X, (y,) = unit_vectors(5000, 32, 0)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1, rtol=1e-5)
    assert set(y) == set(range(41))
    assert abs(np.mean(y == 0) - 0.05) < 0.02
