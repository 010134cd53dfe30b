"""Some random fits: one law for every way to the same labels; `tests/fuzz/fuzz_labels.py` and `make fuzz` run more."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pandas")
pytest.importorskip("polars")
pytest.importorskip("pyarrow")

from fuzz import fuzz_labels
from fuzz.fuzz_cases import made
from fuzz.fuzz_labels import campaign
from fuzz.fuzz_log import Log, Outcome, Share
from fuzz.fuzz_share import run


def in_this_process(share: Share, folder: Path, minutes: float | None = None) -> Outcome:
    log = Log(folder / "log.jsonl")
    run(share, log, minutes)
    return log.outcome(share)


def test_the_same_rows_give_the_same_labels_for_a_minute(tmp_path):
    outcome = in_this_process(Share(2025, end=200), tmp_path, minutes=1.0)
    assert outcome.failures == []
    assert outcome.refused < outcome.cases


@pytest.mark.slow
def test_the_same_rows_give_the_same_labels_for_five_minutes(tmp_path):
    outcome = in_this_process(Share(2026), tmp_path, minutes=5.0)
    print(f"{outcome.cases} cases of seed 2026")
    assert outcome.failures == []


def test_a_case_is_made_from_its_number_alone():
    one, other = made(7, 3), made(7, 3)
    assert one.call == other.call
    assert one.X.tobytes() == other.X.tobytes()
    assert made(7, 4).call != one.call


@given(st.integers(0, 50), st.integers(0, 50), st.integers(1, 9))
def test_every_case_belongs_to_one_process(first, cases, jobs):
    share = Share(0, first, first + cases)
    dealt = [number for part in share.parts(jobs) for number in part.numbers()]
    assert sorted(dealt) == list(share.numbers())
    assert all(number in share for number in dealt)


def test_a_campaign_in_two_processes_runs_what_its_log_does_not_have(tmp_path):
    log, share = Log(tmp_path / "log.jsonl"), Share(1, first=15, end=19)
    log.write(1, 16, [])
    log.write(2, 17, [])
    campaign(share, log, jobs=2, minutes=None)
    assert list(log.missing(share)) == []
    assert log.path.read_text().count('"case": 16') == 1
    assert log.outcome(share).cases == 4


def test_a_case_that_ends_its_process_is_told_and_the_others_go_on(tmp_path, monkeypatch):
    log, share = Log(tmp_path / "log.jsonl"), Share(0, end=6)
    dies_at_two = """import os, sys
from pathlib import Path
from fuzz.fuzz_log import Log, Share
log = Log(Path(sys.argv[-1]))
for number in log.missing(Share(0, end=6)):
    if number == 2:
        os.abort()
    log.write(0, number, [])
"""
    (tmp_path / "share.py").write_text(dies_at_two)
    monkeypatch.setattr(fuzz_labels, "ONE_SHARE", tmp_path / "share.py")
    campaign(share, log, jobs=1, minutes=None)
    assert log.outcome(share).cases == 6
    assert [failure.split(":")[0] for failure in log.outcome(share).failures] == ["case 2 of seed 0"]
