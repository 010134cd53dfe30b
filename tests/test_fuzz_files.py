"""Damaged data files are refused by name or read; `tests/fuzz_files.py` runs more of them."""

import sys

import pytest

if not sys.platform.startswith("linux"):
    pytest.skip("memory is bounded and measured as Linux does it", allow_module_level=True)
pytest.importorskip("pyarrow")

from fuzz_files import campaign


def test_damaged_files_are_refused_or_read() -> None:
    outcome = campaign(300, seed=0)
    assert outcome.failures == []
    assert 0 < outcome.read < 300
    assert outcome.peak_bytes < 500 * 2**20
