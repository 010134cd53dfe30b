"""Laws of the command line: it does what the library does, on files, and says what it did."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_moons

import dc2
import dc2.spectral

pytest.importorskip("typer")
pytest.importorskip("pyarrow")

from dc2.cli import main

ROOT = Path(__file__).parents[2]
N = 3000
X, TRUTH = make_moons(N, noise=0.05, random_state=0)
FRAME = pd.DataFrame(
    {
        "name": [f"row {row}" for row in range(N)],
        "x": X[:, 0] * 1000,
        "y": X[:, 1],
        "weight": np.arange(N) % 3,
        "truth": TRUTH,
    }
)
QUICK = ("-k", "2", "--signatures", "100")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the rows in several formats, where commands are run."""
    monkeypatch.chdir(tmp_path)
    FRAME.to_parquet("rows.parquet")
    FRAME.to_csv("rows.csv", index=False)
    np.save("rows.npy", FRAME[["x", "y"]].to_numpy())
    return tmp_path


class Dc2:
    """Runs commands in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str, code: int = 0) -> str:
        """What the command prints; it must end with this code."""
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        out, err = self._capsys.readouterr()
        assert (stop.value.code or 0) == code, out + err
        return out if code == 0 else err


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Dc2:
    return Dc2(capsys)


def in_python(**parameters: Any) -> Any:
    model = dc2.DC2Clustering(2, n_signatures=100, scale="standard", random_state=0)
    return model.set_params(**parameters).fit(FRAME[["x", "y"]])


def test_cluster_writes_the_labels_of_the_library(folder: Path, run: Dc2) -> None:
    run("cluster", "rows.parquet", *QUICK, "-o", "labels.parquet", "--columns", "x,y")
    labels = pd.read_parquet("labels.parquet")
    assert list(labels) == ["label"]
    np.testing.assert_array_equal(labels["label"], in_python().labels_)


@pytest.mark.parametrize(
    ("option", "parameters"),
    [
        (["--scale", "none"], {"scale": None, "prepare": None}),
        (["--scale", "robust"], {"scale": "robust"}),
        (["--scale", "none", "--metric", "cosine"], {"scale": None, "metric": "cosine"}),
        (["--similarity", "rpf", "--bandwidth", "0.2"], {"similarity": dc2.spectral.RPF(bandwidth=0.2)}),
        (["-k", "auto"], {"n_clusters": "auto"}),
        (["-k", "3-6"], {"n_clusters": (3, 6)}),
        (["--seed", "7", "--jobs", "1"], {"random_state": 7}),
        (["-k", "3", "--signatures", "50"], {"n_clusters": 3, "n_signatures": 50}),
    ],
)
def test_options_are_parameters_of_the_library(
    option: list[str], parameters: dict[str, Any], folder: Path, run: Dc2
) -> None:
    run("cluster", "rows.parquet", *QUICK, *option, "-o", "labels.npy", "--columns", "x,y")
    np.testing.assert_array_equal(np.load("labels.npy"), in_python(**parameters).labels_)


@pytest.mark.parametrize("data", [["rows.parquet"], ["rows.csv"], ["rows.npy"], ["parts"], ["parts/*.csv"]])
def test_the_same_rows_get_the_same_labels_whatever_the_files(data: list[str], folder: Path, run: Dc2) -> None:
    (folder / "parts").mkdir()
    for number, start in enumerate(range(0, N, 1100)):
        FRAME[start : start + 1100].to_csv(f"parts/{number}.csv", index=False)
    choice = [] if data == ["rows.npy"] else ["--columns", "x,y"]
    run("cluster", *data, *QUICK, "-o", "labels.npy", *choice)
    np.testing.assert_array_equal(np.load("labels.npy"), in_python().labels_)


def test_columns_of_npy_files_are_numbers(folder: Path, run: Dc2) -> None:
    np.save("wide.npy", np.column_stack([np.arange(N), FRAME["x"], FRAME["y"]]))
    for choice in (["--columns", "1,2"], ["--drop", "0"]):
        run("cluster", "wide.npy", *QUICK, *choice, "-o", "labels.npy", "--force")
        np.testing.assert_array_equal(np.load("labels.npy"), in_python().labels_)
    assert "numbers, from 0" in run("cluster", "wide.npy", *QUICK, "--drop", "x", "-o", "other.npy", code=2)


def test_ids_stand_beside_the_labels_and_are_not_clustered_by(folder: Path, run: Dc2) -> None:
    run("cluster", "rows.csv", *QUICK, "-o", "labels.csv", "--id", "name,truth", "--drop", "weight")
    labels = pd.read_csv("labels.csv")
    assert list(labels) == ["name", "truth", "label"]
    assert labels["name"].tolist() == FRAME["name"].tolist()
    np.testing.assert_array_equal(labels["label"], in_python().labels_)


def test_labels_can_have_another_name(folder: Path, run: Dc2) -> None:
    run("cluster", "rows.csv", *QUICK, "-o", "out.csv", "--columns", "x,y", "--label-column", "group")
    assert list(pd.read_csv("out.csv")) == ["group"]


def test_weights_mean_repeats(folder: Path, run: Dc2) -> None:
    few = FRAME[:300]
    few.to_parquet("few.parquet")
    few.loc[few.index.repeat(few["weight"])].to_parquet("repeated.parquet")
    told = []
    for options in (["few.parquet", "--weight", "weight"], ["repeated.parquet"]):
        exact = ["-k", "2", "--signatures", "300", "--columns", "x,y", "--model", "model.dc2", "--force"]
        run("cluster", *options, *exact)
        told.append(json.loads(run("info", "model.dc2", "--json")))
    assert told[0]["cluster_sizes"] == told[1]["cluster_sizes"]
    assert sum(told[0]["cluster_sizes"]) == few["weight"].sum()


def test_predict_gives_the_labels_of_cluster_with_the_scaling_of_the_model(folder: Path, run: Dc2) -> None:
    chosen = ["--columns", "x,y", "--scale", "robust"]
    run("cluster", "rows.parquet", *QUICK, *chosen, "-o", "labels.npy", "--model", "model.dc2")
    # The columns are found by name: others may be there, in any order.
    FRAME[["truth", "y", "x", "name"]].to_csv("new.csv", index=False)
    run("predict", "model.dc2", "new.csv", "-o", "new.parquet", "--id", "name")
    labels = pd.read_parquet("new.parquet")
    assert labels["name"].tolist() == FRAME["name"].tolist()
    np.testing.assert_array_equal(labels["label"], np.load("labels.npy"))
    # A file without names is taken by position.
    run("predict", "model.dc2", "rows.npy", "-o", "positions.npy")
    np.testing.assert_array_equal(np.load("positions.npy"), np.load("labels.npy"))


def test_the_saved_model_is_that_of_the_library(folder: Path, run: Dc2) -> None:
    run("cluster", "rows.parquet", *QUICK, "--columns", "x,y", "--model", "model.dc2")
    model, expected = dc2.load("model.dc2"), in_python()
    rows = FRAME[["x", "y"]]
    np.testing.assert_array_equal(model.predict(rows), expected.predict(rows))
    assert list(model.feature_names_in_) == ["x", "y"]
    assert set(model.stage_seconds_) == {"divide", "compress", "conquer", "populate"}


def test_the_summary_for_machines_counts_what_was_written(folder: Path, run: Dc2) -> None:
    outputs = ["-o", "labels.npy", "--model", "model.dc2"]
    told = json.loads(run("cluster", "rows.csv", *QUICK, *outputs, "--columns", "x,y", "--json"))
    assert (told["rows"], told["columns"], told["signatures"]) == (N, 2, 100)
    sizes = [cluster["rows"] for cluster in told["clusters"]]
    assert sizes == np.bincount(np.load("labels.npy")).tolist()
    assert told["distortion"] == dc2.load("model.dc2").distortion_
    assert 0 < told["variance_kept"] < 1
    seconds = told["seconds"]
    assert set(seconds) == {"divide", "compress", "conquer", "populate", "other", "total"}
    assert sum(seconds.values()) - seconds["total"] == pytest.approx(seconds["total"])
    assert len(told["sets_apart"]) == 2
    assert told["peak_memory_bytes"] > 10**6
    assert told["files"] == {"labels": "labels.npy", "model": "model.dc2"}
    predicted = json.loads(run("predict", "model.dc2", "rows.csv", "-o", "again.npy", "--json"))
    assert predicted["clusters"] == told["clusters"]


def test_the_summary_for_people_has_clusters_distortion_seconds_memory_and_files(folder: Path, run: Dc2) -> None:
    told = run("cluster", "rows.csv", *QUICK, "-o", "labels.npy", "--columns", "x,y")
    assert told.startswith("2 clusters in 3,000 rows of 2 columns")
    sizes = [f"{size:,}" for size in np.bincount(np.load("labels.npy"))]
    for part in (*sizes, "distortion", "divide", "populate", "total", "peak memory", "labels.npy"):
        assert part in told
    assert "\x1b" not in told


def test_without_outputs_there_is_a_summary_that_describes_each_cluster(folder: Path, run: Dc2) -> None:
    before = sorted(folder.iterdir())
    lines = run("cluster", "rows.csv", "--columns", "x,y", "--signatures", "100", "-k", "2").splitlines()
    assert lines[0].startswith("2 clusters in 3,000 rows")
    first = next(place for place, line in enumerate(lines) if line.split()[:1] == ["0"])
    for place in (first, first + 3):
        assert "%" in lines[place]
        assert re.search(r"\(all \S+\)|average", lines[place + 1])
        assert "precision" in lines[place + 2]
    assert sorted(folder.iterdir()) == before


def test_what_was_chosen_is_told(folder: Path, run: Dc2) -> None:
    options = ["--signatures", "100", "--similarity", "rpf"]
    told = run("cluster", "rows.npy", *options, "-o", "labels.npy")
    assert re.search(r"bandwidth +0\.\d+, chosen", told)


@pytest.mark.parametrize(
    ("options", "named"),
    [((), True), (("--prepare",), False), (("--as", "category:rating"), False), (("--raw",), False)],
)
def test_a_column_of_codes_beside_others_gives_a_hint(
    options: tuple[str, ...], named: bool, folder: Path, run: Dc2
) -> None:
    FRAME[["x", "y"]].assign(rating=np.arange(N) % 5 + 1).to_csv("codes.csv", index=False)
    told = run("cluster", "codes.csv", *QUICK, *options, "--model", "codes.dc2")
    assert ("'rating' holds few whole numbers" in told) == named
    assert ("--as category:rating" in told) == named


def test_codes_alone_and_measures_alone_give_no_hint(folder: Path, run: Dc2) -> None:
    rows = np.random.default_rng(0).integers(0, 5, (N, 2))
    pd.DataFrame(rows, columns=["a", "b"]).to_csv("codes.csv", index=False)
    for path in ("codes.csv", "rows.csv"):
        told = run(
            "cluster",
            path,
            *QUICK,
            *(["--columns", "x,y"] if path == "rows.csv" else []),
            "-o",
            f"{path}.npy",
        )
        assert "few whole numbers" not in told


def test_many_clusters_are_cut_short(folder: Path, run: Dc2) -> None:
    told = run("cluster", "rows.npy", "-k", "25", "--signatures", "100", "-o", "labels.npy")
    assert "and 5 more clusters" in told


def test_compress_writes_points_in_the_units_of_the_data(folder: Path, run: Dc2) -> None:
    told = run(
        "compress",
        "rows.csv",
        "-o",
        "s.parquet",
        "--signatures",
        "80",
        "--columns",
        "x,y",
        "--model",
        "c.dc2",
    )
    assert told.startswith("80 signatures of 3,000 rows of 2 columns")
    signatures = pd.read_parquet("s.parquet")
    assert list(signatures) == ["x", "y", "dc2_weight", "dc2_spread"]
    assert signatures["dc2_weight"].sum() == N
    assert (signatures["dc2_spread"] >= 0).all()
    for name in ("x", "y"):
        mean = np.average(signatures[name], weights=signatures["dc2_weight"])
        assert mean == pytest.approx(FRAME[name].mean())
    compressor = dc2.load("c.dc2")
    np.testing.assert_array_equal(compressor.signatures_.weights, signatures["dc2_weight"])
    assert "has no clusters" in run("predict", "c.dc2", "rows.csv", "-o", "labels.npy", code=1)


def test_compress_names_columns_that_have_no_names(folder: Path, run: Dc2) -> None:
    run("compress", "rows.npy", "-o", "s.csv", "--signatures", "10")
    assert list(pd.read_csv("s.csv")) == ["x0", "x1", "dc2_weight", "dc2_spread"]


def test_info_of_a_model(folder: Path, run: Dc2) -> None:
    run("cluster", "rows.csv", *QUICK, "--columns", "x,y", "--model", "model.dc2", "--scale", "robust")
    told = json.loads(run("info", "model.dc2", "--json"))
    assert told["model"] == "DC2Clustering"
    assert told["written_by"] == f"dc2 {dc2.__version__}"
    assert told["column_names"] == ["x", "y"]
    assert sum(told["cluster_sizes"]) == told["rows"] == N
    assert told["settings"]["scale"] == "robust"
    words = run("info", "model.dc2")
    assert "scale=robust" in words
    assert re.search(r"column names\s+x, y", words)


def test_info_of_data_needs_no_numbers(folder: Path, run: Dc2) -> None:
    told = json.loads(run("info", "rows.parquet", "--json"))
    assert (told["files"], told["rows"], told["columns"]) == (1, N, 5)
    assert list(told["column_types"]) == list(FRAME)
    assert json.loads(run("info", "rows.csv", "--json"))["rows"] == N
    assert json.loads(run("info", "rows.npy", "--json"))["column_types"] == {"0": "float64", "1": "float64"}


def test_a_report_is_written_with_the_clusters_or_from_the_model(folder: Path, run: Dc2) -> None:
    pytest.importorskip("dc2.report")
    run("cluster", "rows.csv", *QUICK, "--columns", "x,y", "--model", "model.dc2", "--report", "r.html")
    assert "model.html" in run("report", "model.dc2")
    for page in ("r.html", "model.html"):
        assert "<html" in Path(page).read_text("utf-8")[:1000]
    assert "--force" in run("report", "model.dc2", code=1)
    run("report", "model.dc2", "--force", "-o", "r.html")


def test_the_demo_leaves_data_labels_a_model_a_report_and_a_picture(folder: Path, run: Dc2) -> None:
    pytest.importorskip("dc2.report")
    told = run("demo", "--rows", "4000", "--folder", "shown")
    written = {path.name for path in (folder / "shown").iterdir()}
    assert written == {"shapes.parquet", "labels.parquet", "model.dc2", "report.html", "demo.png"}
    scores = [float(line.split()[-1]) for line in told.splitlines() if "in memory" in line or "to report" in line]
    by_kmeans, in_memory, from_file = scores
    assert by_kmeans < 0.5 < 0.8 < from_file
    assert in_memory == from_file


def test_the_version_is_told(run: Dc2) -> None:
    assert run("--version") == f"dc2 {dc2.__version__}\n"


COMMANDS = ["cluster", "predict", "compress", "info", "report", "demo"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str, run: Dc2) -> None:
    assert command in run("--help")
    assert "Usage: dc2 " + command in run(command, "--help")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_in_the_documentation(command: str, run: Dc2) -> None:
    pages = (ROOT / "docs" / "cli.md").read_text("utf-8")
    options = set(re.findall(r"--[a-z][a-z-]+", run(command, "--help"))) - {"--help"}
    assert {option for option in options if f"`{option}" not in pages} == set()


def test_the_package_brings_the_command() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["scripts"]["dc2"] == "dc2.cli:main"
