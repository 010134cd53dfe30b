"""The paper's sets: genuine files where they are at hand, small files in UCI's own format elsewhere."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from dc2.errors import SourceError
from evaluation import data as datasets

CENSUS_LINE = (
    "{age}, {work}, 4, 34, Some college but no degree, 0, Not in universe, Divorced, Construction, Sales, White, "
    "{origin}, Male, Not in universe, Not in universe, Full-time schedules, 0, 0, 0, Single, South, {state}, "
    "Householder, Householder, 1053.55, ?, ?, ?, No, ?, 1, Not in universe, Peru, Peru, Peru, "
    "Foreign born- Not a citizen of U S , 0, Not in universe, 2, 52, 94, {income}"
)
HT_HEADER = "id time       R1         R2       R3       R4       R5       R6       R7       R8       Temp.    Humidity"
HT_METADATA = (
    "id\tdate        class\tt0      dt\n"
    "0\t07-04-15\tbanana\t13.49\t1.64 \n"
    "1\t07-05-15\twine\t19.61\t0.54 \n"
    "7\t08-03-15\tbackground\t15.42\t0.98 \n"
)
GAS_HEADER = "Time (seconds), CO conc (ppm), Ethylene conc (ppm), sensor readings (16 channels)"


def is_standardised(X: np.ndarray) -> bool:
    return bool(
        np.allclose(X.mean(axis=0, dtype=np.float64), 0, atol=1e-4)
        and np.allclose(X.std(axis=0, dtype=np.float64), 1, atol=1e-4)
    )


def test_connect4_has_the_papers_size_and_is_standardised(data_dir: Path) -> None:
    bunch = datasets.load_connect4(data_dir)
    assert bunch.data.shape == (67_557, 42)
    assert bunch.data.dtype == np.float32
    assert is_standardised(bunch.data)
    assert np.bincount(bunch.target).tolist() == [6_449, 16_635, 44_473]
    assert len(bunch.feature_names) == 42
    assert all(len(np.unique(column)) <= 3 for column in bunch.data.T)


def test_usci_has_the_papers_size_and_is_standardised(data_dir: Path) -> None:
    bunch = datasets.load_usci(data_dir)
    assert bunch.data.shape == (285_779, 37)
    assert is_standardised(bunch.data)
    assert bunch.target.shape == (285_779,)
    assert round(float(np.mean(bunch.target == 0)), 3) == 0.939
    assert len(bunch.feature_names) == 37


def test_covertype_has_the_papers_size_and_ten_standardised_columns(data_dir: Path) -> None:
    bunch = datasets.load_covertype(data_dir)
    assert bunch.data.shape == (568_772, 54)
    assert bunch.data.dtype == np.float32
    assert is_standardised(bunch.data[:, :10])
    assert set(np.unique(bunch.data[:, 10:])) == {0.0, 1.0}
    assert np.bincount(bunch.target).tolist() == [211_840, 283_301, 35_754, 17_367, 20_510]
    assert len(bunch.target_names) == 5


def test_connect4_reads_pieces_and_results(tmp_path: Path) -> None:
    boards = ["b," * 41 + "x,win", "o," * 42 + "draw", "x," * 42 + "loss"]
    (tmp_path / "connect-4.data").write_text("\n".join(boards) + "\n")
    bunch = datasets.load_connect4(tmp_path, download=False)
    assert bunch.target_names[bunch.target].tolist() == ["win", "draw", "loss"]
    np.testing.assert_allclose(bunch.data[:, 0], np.array([-1, 0, 1]) * np.sqrt(1.5), rtol=1e-6)


@pytest.mark.parametrize("line", ["b,o,win", "b," * 41 + "q,win", "b," * 42 + "won", ""])
def test_connect4_refuses_other_files(tmp_path: Path, line: str) -> None:
    (tmp_path / "connect-4.data").write_text(f"{line}\n")
    with pytest.raises(SourceError, match=r"connect-4\.data"):
        datasets.load_connect4(tmp_path, download=False)


def write_census(folder: Path, rows: list[dict[str, object]]) -> None:
    usual = {"age": 58, "work": "Private", "origin": "All other", "state": "Utah", "income": "- 50000."}
    lines = [CENSUS_LINE.format(**{**usual, **row}) for row in rows]
    (folder / "census-income.data").write_text("\n".join(lines[:-1]) + "\n")
    with gzip.open(folder / "census-income.test.gz", "wt") as stream:
        stream.write(lines[-1] + "\n")


def test_usci_drops_question_marks_but_keeps_na(tmp_path: Path) -> None:
    write_census(
        tmp_path,
        [
            {"age": 30, "work": "Private"},
            {"age": 40, "state": "?"},
            {"age": 50, "work": "Federal government", "origin": "NA"},
            {"age": 70, "work": "Private", "income": "50000+."},
        ],
    )
    bunch = datasets.load_usci(tmp_path, download=False)
    assert bunch.data.shape == (3, 37)
    assert bunch.target.tolist() == [0, 0, 1]
    age = (np.array([30, 50, 70]) - 50) / np.std([30, 50, 70])
    np.testing.assert_allclose(bunch.data[:, bunch.feature_names.index("age")], age, rtol=1e-6)
    work = bunch.data[:, bunch.feature_names.index("class_of_worker")]
    assert work[1] < work[0] == work[2], "categories are numbered in alphabetical order"
    assert "migration_sunbelt" not in bunch.feature_names
    constant = bunch.data[:, bunch.feature_names.index("year")]
    assert not constant.any()


def test_usci_refuses_short_lines_and_strange_classes(tmp_path: Path) -> None:
    write_census(tmp_path, [{}, {"income": "rich"}])
    with pytest.raises(SourceError, match="rich"):
        datasets.load_usci(tmp_path, download=False)
    (tmp_path / "census-income.data").write_text("1, 2, 3\n")
    with pytest.raises(SourceError, match="42 fields"):
        datasets.load_usci(tmp_path, download=False)


def test_covertype_leaves_out_classes_4_and_5(tmp_path: Path) -> None:
    rows = np.zeros((7, 55), dtype=int)
    rows[:, 0] = np.arange(7) * 100
    rows[:, 12] = 1
    rows[:, -1] = np.arange(1, 8)
    np.savetxt(tmp_path / "covtype.data", rows, fmt="%d", delimiter=",")
    bunch = datasets.load_covertype(tmp_path, download=False)
    assert bunch.target.tolist() == [0, 1, 2, 3, 4]
    assert bunch.data[:, 12].tolist() == [1.0] * 5
    assert is_standardised(bunch.data[:, :1])


def write_ht(folder: Path, ids: list[int], metadata: str = HT_METADATA) -> np.ndarray:
    rng = np.random.default_rng(0)
    values = rng.uniform(-1, 60, size=(len(ids), 11)).round(4)
    lines = [
        "  ".join([str(number), *(f"{value:.6f}" for value in row)]) for number, row in zip(ids, values, strict=True)
    ]
    (folder / "HT_Sensor_dataset.dat").write_text("\n".join([HT_HEADER, *lines]) + "\n")
    (folder / "HT_Sensor_metadata.dat").write_text(metadata)
    return values


def test_ht_sensor_joins_readings_with_the_class_of_their_recording(tmp_path: Path) -> None:
    values = write_ht(tmp_path, [0, 0, 1, 7, 7, 7])
    bunch = datasets.load_ht_sensor(tmp_path, download=False)
    np.testing.assert_allclose(bunch.data, values, rtol=1e-6)
    assert bunch.target_names[bunch.target].tolist() == ["banana"] * 2 + ["wine"] + ["background"] * 3
    assert bunch.recording.tolist() == [0, 0, 1, 7, 7, 7]
    assert bunch.feature_names[0] == "time"
    assert bunch.data.flags.c_contiguous


def test_ht_sensor_names_a_recording_without_class_and_a_broken_line(tmp_path: Path) -> None:
    write_ht(tmp_path, [0, 5])
    with pytest.raises(SourceError, match="recording 5"):
        datasets.load_ht_sensor(tmp_path, download=False)
    write_ht(tmp_path, [0], metadata=HT_METADATA.replace("wine", "beer"))
    with pytest.raises(SourceError, match=r"line 3.*beer"):
        datasets.load_ht_sensor(tmp_path, download=False)


def test_gas_sensor_joins_both_mixtures_without_time(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    tables = []
    for name, n_rows, header in (
        ("ethylene_CO.txt", 5, GAS_HEADER),
        ("ethylene_methane.txt", 3, GAS_HEADER.replace("CO", "Methane")),
    ):
        table = rng.normal(2000, 900, size=(n_rows, 19)).round(2)
        lines = ["  ".join(f"{value:.2f}" for value in row) + " " for row in table]
        (tmp_path / name).write_text("\n".join([header, *lines]) + "\n")
        tables.append(table)
    bunch = datasets.load_gas_sensor(tmp_path, download=False)
    raw = np.vstack(tables)[:, 1:]
    np.testing.assert_allclose(bunch.data, (raw - raw.mean(axis=0)) / raw.std(axis=0), rtol=1e-5)
    assert bunch.target.tolist() == [0] * 5 + [1] * 3
    assert len(bunch.feature_names) == 18


@pytest.mark.parametrize("loader", ["connect4", "usci", "covertype", "ht_sensor", "poker", "gas_sensor", "mnist"])
def test_every_loader_says_which_file_is_missing_and_where_to_put_it(tmp_path: Path, loader: str) -> None:
    with pytest.raises(datasets.DataNotFoundError, match=r"(?s)not found in .*put .* into"):
        getattr(datasets, f"load_{loader}")(tmp_path, download=False)
