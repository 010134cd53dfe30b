"""Some random fits: one law for every way to the same labels; `tests/fuzz_labels.py` and `make fuzz` run more."""

import pytest

pytest.importorskip("dask")
pytest.importorskip("pandas")
pytest.importorskip("polars")
pytest.importorskip("pyarrow")

from fuzz_labels import campaign, made


def test_the_same_rows_give_the_same_labels_for_a_minute():
    outcome = campaign(cases=60, minutes=1.0, seed=2025)
    assert outcome.failures == []
    assert outcome.cases > 0
    assert outcome.refused < outcome.cases


@pytest.mark.slow
def test_the_same_rows_give_the_same_labels_for_five_minutes():
    outcome = campaign(minutes=5.0, seed=2026)
    print(f"{outcome.cases} cases of seed 2026")
    assert outcome.failures == []


def test_a_case_is_made_from_its_number_alone():
    one, other = made(7, 3), made(7, 3)
    assert one.call == other.call
    assert one.X.tobytes() == other.X.tobytes()
    assert made(7, 4).call != one.call


def test_a_campaign_goes_on_where_its_log_ends(tmp_path):
    log = tmp_path / "log.jsonl"
    for _ in range(2):
        assert campaign(1, seed=1, first=15, log=log).cases == 1
    assert ['"case": 15,' in line or '"case": 16,' in line for line in log.read_text().splitlines()] == [
        True
    ] * 2
