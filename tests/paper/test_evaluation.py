"""The evaluation by one command: resumable, honest about where data come from, and complete."""

import csv
import html
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from dc2 import clustering_accuracy
from dc2.errors import ParameterError
from evaluation.__main__ import main
from evaluation.claims import CLAIMS, NOT_RUN, UNTESTABLE, judge_all
from evaluation.figures import FIGURES
from evaluation.landmarks import RIVALS
from evaluation.measures import Found, gaps_to_kmeans, lost_points, partition_times, time_over, time_over_slowest
from evaluation.plan import EXPERIMENTS, pieces
from evaluation.run import run
from evaluation.sets import PAPER_SETS, clumps, load
from evaluation.settings import FULL, QUICK, Settings
from evaluation.store import Store, Table
from evaluation.summary import Summary, slope

TINY = Settings(
    runs=1, n_signatures=40, n_trees=30, forest_leaf_size=8, betas=(10.0, 40.0, 80.0), sigmas=(0.5, 5.0, 50.0),
    max_rows=600, generated_rows=600, theorem_points=120,
)  # fmt: skip
# Sets that need no file.
FREE = ("poker", "gas_sensor", "intrinsic_2", "separated", "overlapping")


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny evaluation on data that are made on the spot."""
    folder = tmp_path_factory.mktemp("results")
    nothing = tmp_path_factory.mktemp("no-data")
    run(
        folder,
        settings=TINY,
        sets=FREE,
        data_home=nothing,
        n_jobs=1,
        docs=folder / "docs.md",
        tell=lambda text: None,
    )
    return folder


def rows(folder: Path, table: str) -> list[dict[str, str]]:
    with (folder / f"{table}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_every_experiment_leaves_a_tidy_table_that_says_what_computed_it(done: Path) -> None:
    for experiment in EXPERIMENTS:
        for row in rows(done, experiment.name):
            assert row["data_set"] in FREE
            assert row["seed"] == "0"
            assert row["variant"]
            assert "numpy" in row["versions"]
            assert "1 of" in row["machine"]
            assert row["date"]


def test_every_figure_is_drawn_as_png_and_svg(done: Path) -> None:
    for name in FIGURES:
        assert (done / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (done / "figures" / f"{name}.svg").read_text("utf-8")


def test_the_report_is_one_file_with_all_figures_in_it(done: Path) -> None:
    page = (done / "report.html").read_text("utf-8")
    assert page.count("data:image/png;base64,") == len(FIGURES)
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "The paper's claims" in html.unescape(page)


@pytest.mark.parametrize("name", ["report.md", "docs.md"])
def test_regenerated_and_simulated_data_are_called_so_wherever_they_show(done: Path, name: str) -> None:
    for line in (done / name).read_text("utf-8").splitlines():
        if line.startswith("|"):
            assert line.count("Gas Sensor") == line.count("Gas Sensor (sim") + line.count(
                "HT Sensor and Gas Sensor"
            ) or ("simulated" in line)
            assert "Poker Hand" not in line or "regenerated" in line


def test_simulated_data_have_times_but_no_scores_and_no_search(done: Path) -> None:
    simulated = [row for row in rows(done, "accuracy") if row["origin"] == "simulated"]
    assert simulated
    assert all(float(row["seconds"]) > 0 and not row["accuracy"] and not row["nmi"] for row in simulated)
    assert {row["data_set"] for row in rows(done, "sweep")} == {"poker"}


def test_the_oracle_is_kept_apart_and_never_worse_than_what_it_searched(done: Path) -> None:
    accuracy = rows(done, "accuracy")
    for variant in ("RASP", "KASP", "rpfCluster+(1)", "rpfCluster+(2)"):
        mine = [row for row in accuracy if row["variant"] == variant and row["data_set"] == "poker"]
        searched = [float(row["accuracy"]) for row in rows(done, "sweep") if row["variant"] == variant]
        (best,) = (float(row["accuracy"]) for row in mine if row["selection"] == "oracle")
        assert best == max(searched)
        assert len(searched) == 3
    assert all(row["floor"] and row["ari"] and row["nmi"] for row in accuracy if row["accuracy"])


def test_claims_on_sensors_cannot_be_tested_offline(done: Path) -> None:
    claims = judge_all(Store(done))
    on_sensors = [claim for claim in claims if "HT Sensor and Gas Sensor" in claim.claim.text]
    assert len(on_sensors) == 2
    assert all(claim.verdict == UNTESTABLE for claim in on_sensors)


def test_without_results_no_claim_gets_a_verdict(tmp_path: Path) -> None:
    verdicts = {claim.verdict for claim in judge_all(Store(tmp_path))}
    assert verdicts == {NOT_RUN}


def test_an_interrupted_run_goes_on_where_it_was_and_then_has_nothing_to_do(tmp_path: Path) -> None:
    class Interrupted(Exception):
        """Raised in the middle of a run."""

    said: list[str] = []

    def interrupt(text: str) -> None:
        said.append(text)
        if len(said) == 3:
            raise Interrupted

    chosen: dict[str, Any] = {"settings": TINY, "sets": ["intrinsic_1"], "only": ["distortion", "radius"]}
    with pytest.raises(Interrupted):
        run(tmp_path, tell=interrupt, **chosen)
    left = rows(tmp_path, "distortion")
    assert len(left) == 2
    for expected in ("1 pieces", "0 pieces"):
        said.clear()
        run(tmp_path, tell=said.append, **chosen)
        assert said[0].startswith(expected)
    assert rows(tmp_path, "distortion") == left
    assert rows(tmp_path, "radius")


_KILLED = """
import sys
sys.path[:0] = {path!r}
from evaluation.run import run
from paper.test_evaluation import TINY
run({folder!r}, settings=TINY, runs=30, sets=["intrinsic_1"], only=["distortion"], tell=lambda text: None)
"""


@pytest.mark.skipif(os.name == "nt", reason="no such signal")
def test_a_run_that_was_killed_has_lost_no_more_than_the_piece_at_work(tmp_path: Path) -> None:
    script = _KILLED.format(path=[*sys.path, str(Path(__file__).parents[1])], folder=str(tmp_path))
    process = subprocess.Popen([sys.executable, "-c", script])
    while not (tmp_path / "distortion.csv").exists() or len(rows(tmp_path, "distortion")) < 3:
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    left = rows(tmp_path, "distortion")
    assert all(row["ratio"] and row["work_seconds"] for row in left)
    said: list[str] = []
    run(tmp_path, settings=TINY, runs=30, sets=["intrinsic_1"], only=["distortion"], tell=said.append)
    assert said[0].startswith(f"{60 - len(left)} pieces")
    assert rows(tmp_path, "distortion")[: len(left)] == left


def test_seeds_come_one_after_the_other_and_the_slowest_method_last() -> None:
    planned = pieces(3)
    quick = [piece.seed for piece in planned if not piece.is_slow]
    assert quick == sorted(quick)
    slow = [piece for piece in planned if piece.is_slow]
    assert {piece.variant for piece in slow} == {"KASP"}
    assert planned[-len(slow) :] == slow
    assert [piece.seed for piece in slow] == sorted(piece.seed for piece in slow)
    assert len(set(planned)) == len(planned)


def test_without_minutes_only_the_reports_are_written(tmp_path: Path) -> None:
    said: list[str] = []
    report = run(tmp_path, settings=TINY, sets=["intrinsic_1"], minutes=0, tell=said.append)
    assert said[-1].startswith("Time is up; 3 pieces")
    assert report.exists()
    assert "not run" in (tmp_path / "report.md").read_text("utf-8")


def test_a_method_that_takes_too_long_is_left_out_and_the_report_says_so(tmp_path: Path) -> None:
    chosen: dict[str, Any] = {"settings": TINY, "sets": ["poker"], "only": ["accuracy"], "n_jobs": 1}
    said: list[str] = []
    run(tmp_path, skip_longer=1e-9, data_home=tmp_path, tell=said.append, **chosen)
    assert "KASP, seed 0: left out, one fit would take about" in said[-1]
    (line,) = (line for line in (tmp_path / "report.md").read_text("utf-8").splitlines() if "one fit would" in line)
    assert line.startswith("| accuracy | Poker Hand | KASP | all |")
    run(tmp_path, skip_longer=1e9, data_home=tmp_path, tell=said.append, **chosen)
    assert "one fit would" not in (tmp_path / "report.md").read_text("utf-8")


def test_more_runs_add_to_those_done(tmp_path: Path) -> None:
    for runs in (1, 2):
        run(
            tmp_path,
            settings=TINY,
            runs=runs,
            sets=["intrinsic_1"],
            only=["distortion"],
            tell=lambda text: None,
        )
    assert sorted(row["seed"] for row in rows(tmp_path, "distortion")) == ["0", "0", "1", "1"]


def test_other_settings_cannot_share_a_folder(done: Path) -> None:
    with pytest.raises(ParameterError, match="n_trees"):
        run(done, quick=True, tell=lambda text: None)


@pytest.mark.parametrize(
    ("parameter", "value"), [("only", ["nothing"]), ("sets", ["iris"]), ("skip", ["KISP"]), ("runs", 0)]
)
def test_unknown_names_are_refused_before_any_work(tmp_path: Path, parameter: str, value: object) -> None:
    with pytest.raises(ParameterError, match=parameter):
        run(tmp_path / "out", **{parameter: value})  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


def test_a_set_that_cannot_be_had_is_left_out_with_a_word(tmp_path: Path) -> None:
    said: list[str] = []
    empty = tmp_path / "empty"
    empty.mkdir()
    run(
        tmp_path / "out",
        settings=TINY,
        sets=["connect4"],
        only=["distortion"],
        data_home=empty,
        tell=said.append,
    )
    assert "Connect-4 is left out" in said[1]
    assert "connect-4.data" in said[1]


def test_the_command_line_reaches_the_same_function(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(tmp_path), "--quick", "--only", "radius", "--sets", "intrinsic_1"])
    assert "report.html" in capsys.readouterr().out
    assert json.loads((tmp_path / "settings.json").read_text())["n_trees"] == QUICK.n_trees


def test_a_table_replaces_the_rows_of_the_same_piece_of_work(tmp_path: Path) -> None:
    table = Table(tmp_path / "t.csv")
    key = {"data_set": "a", "variant": "b", "seed": 0}
    table.put([{**key, "score": 0.25}, {**key, "score": None}])
    table.put([{**key, "score": 0.5, "more": "x, y"}])
    assert Table(tmp_path / "t.csv").rows == [
        {"data_set": "a", "variant": "b", "seed": "0", "score": "0.5", "more": "x, y"}
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv"]


def test_the_full_settings_are_the_papers() -> None:
    assert (FULL.n_signatures, FULL.n_trees, FULL.forest_leaf_size, FULL.max_rows) == (1000, 800, 30, None)
    assert FULL.betas == tuple(range(10, 81))
    assert len(FULL.sigmas) == 209
    np.testing.assert_allclose(FULL.sigmas[:11], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 2.0])
    assert FULL.sigmas[-1] == 200


def test_the_laplacian_follows_the_square_of_small_noise() -> None:
    from evaluation.theorem import THEOREM

    results = THEOREM.work(clumps("separated", 150), "gaussian, noise", 0, TINY)["theorem"]
    small = [row for row in results if row["sigma2"] < 0.01]
    fitted = slope([row["sigma2"] for row in small], [row["laplacian2"] for row in small])
    assert fitted == pytest.approx(1.0, abs=0.05)
    assert all(row["loss"] == 0 for row in small)


def test_a_slope_needs_three_positive_pairs() -> None:
    assert slope([1, 2, 3], [1, 0, 9]) is None


def test_a_quick_run_cuts_genuine_data_to_the_same_rows_each_time(data_dir: Path) -> None:
    first, second = (load("connect4", TINY, data_dir) for _ in range(2))
    assert first.origin == "genuine"
    assert first.X.shape == (600, 42)
    np.testing.assert_array_equal(first.X, second.X)
    assert first.n_clusters == 3


def test_scores_are_averaged_by_mean_and_times_by_median() -> None:
    table = [
        {"data_set": "usci", "origin": "genuine", "variant": "v", "seed": str(seed), "x": str(value)}
        for seed, value in enumerate((1.0, 2.0, 9.0))
    ]
    summary = Summary(table)
    assert summary.mean("x", data_set="usci") == 4.0
    assert summary.median("x", data_set="usci") == 2.0
    assert summary.sets() == ["usci"]
    assert set(PAPER_SETS) >= set(summary.sets())


def verdict_on(begin: str, found: Found) -> str:
    claim = next(one for one in CLAIMS if one.text.startswith(begin))
    return replace(claim, measure=lambda store: found, note=None).judge(Store(Path("nowhere"))).verdict


@pytest.mark.parametrize(
    ("figures", "excluded", "verdict"),
    [
        ([1.0, 9.0, 9.0], {}, "holds"),
        ([1.0, 1.0, 9.0], {}, "holds only for c"),
        ([1.0, 1.0, 1.0], {}, "does not hold"),
        ([1.0, 9.0, 9.0], {"d": "simulated"}, "holds where tested"),
        ([9.0, 9.0, 9.0], {"b": "at or below the floor"}, "holds where tested"),
        ([9.0, 9.0, 9.0], {"a": "at or below the floor", "b": "no KASP"}, UNTESTABLE),
        ([9.0], {"b": "simulated", "c": "simulated"}, UNTESTABLE),
        ([], {"a": NOT_RUN}, NOT_RUN),
        ([], {"a": NOT_RUN, "b": "simulated"}, UNTESTABLE),
    ],
)
def test_a_verdict_says_what_it_covers(figures: list[float], excluded: dict[str, str], verdict: str) -> None:
    found = Found(dict(zip("abc", figures, strict=False)), excluded)
    assert verdict_on("K-means is much less accurate", found) == verdict


def test_one_set_alone_is_no_exception() -> None:
    assert verdict_on("KASP is the slowest", Found({"a": 0.5})) == "does not hold"


def stored(tmp_path: Path, table: str, results: list[dict[str, Any]]) -> Store:
    store = Store(tmp_path)
    store.table(table).put({"origin": "genuine", "seed": 0, **row} for row in results)
    return store


def test_a_set_without_one_of_the_methods_compared_is_not_covered(tmp_path: Path) -> None:
    methods = ("K-means", "RASP", "rpfCluster+(1)", "rpfCluster+(2)")
    quick = [
        {"data_set": name, "variant": one, "selection": "no labels", "seconds": 1.0}
        for name in ("usci", "poker")
        for one in (*methods, *(["KASP"] if name == "usci" else []))
    ]
    found = time_over_slowest(stored(tmp_path, "accuracy", quick))
    assert found.counted == {"USCI": 1.0}
    assert found.excluded["Poker Hand"] == "no KASP"
    assert found.n_wanted == len(PAPER_SETS)


@pytest.mark.parametrize(("floor", "counts"), [(0.5, True), (0.795, False), (0.9, False)])
def test_accuracy_counts_only_above_the_floor_and_without_degenerate_bandwidths(
    tmp_path: Path, floor: float, counts: bool
) -> None:
    scores = {"K-means": 0.6, "RASP": 0.7, "KASP": 0.75, "rpfCluster+(1)": 0.8, "rpfCluster+(2)": 0.8}
    rows = [
        {"data_set": "usci", "variant": one, "selection": by, "accuracy": score + bonus, "floor": floor}
        for one, score in scores.items()
        for by, bonus in (
            [("no labels", 0.0)] if one == "K-means" else [("oracle", 0.1), ("oracle, not degenerate", 0.0)]
        )
    ]
    found = gaps_to_kmeans("oracle, not degenerate")(stored(tmp_path, "accuracy", rows))
    assert found.figures == pytest.approx({"USCI": 10.0})
    assert ("USCI" in found.counted) == counts


def test_losses_of_partitions_beside_the_floor_prove_nothing(tmp_path: Path) -> None:
    best = {"data_set": "usci", "selection": "oracle, not degenerate", "accuracy": 0.9, "floor": 0.899}
    rows = [best | {"variant": variant} for variant in ("projection 1", "projection 3")]
    assert not lost_points("projection")(stored(tmp_path, "partitions", rows)).counted


@pytest.mark.parametrize(("cores", "covered"), [(1, 0), (2, 1), (3, 2)])
def test_partitions_in_parallel_need_a_core_each(tmp_path: Path, cores: int, covered: int) -> None:
    rows = [
        {"data_set": "usci", "variant": f"projection {n}", "selection": "no labels", "cores": cores}
        | {"seconds": 1 / n, "seconds_sequential": 2.0}
        for n in (1, 2, 3)
    ]
    store = stored(tmp_path, "partitions", rows)
    assert len(partition_times("seconds")(store).counted) == covered
    assert partition_times("seconds_sequential")(store).counted == {
        "USCI with 2 partitions": 1,
        "USCI with 3 partitions": 1,
    }


@pytest.mark.parametrize(("load", "covered"), [(2.0, 1), (9.0, 0)])
def test_times_of_a_busy_machine_do_not_count(tmp_path: Path, load: float, covered: int) -> None:
    rows = [
        {"data_set": "usci", "variant": one, "selection": "no labels", "seconds": 1.0, "load": load}
        | {"machine": "a processor, 2 of 4 cores"}
        for one in ("RASP", "rpfCluster+(1)")
    ]
    found = time_over("rpfCluster+(1)", "RASP")(stored(tmp_path, "accuracy", rows))
    assert (len(found.figures), len(found.counted)) == (1, covered)


@pytest.mark.parametrize("method", RIVALS)
def test_clusters_are_found_through_landmarks(method: str) -> None:
    X, y = make_blobs(3_000, centers=4, cluster_std=0.5, random_state=0)
    assert clustering_accuracy(y, RIVALS[method](X.astype(np.float32), 4, 200, 0)) > 0.98
