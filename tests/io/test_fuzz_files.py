"""Damaged data files are refused by name or read; `tests/fuzz_files.py` runs more of them."""

import sys

import pytest

if not sys.platform.startswith("linux"):
    pytest.skip("memory is bounded and measured as Linux does it", allow_module_level=True)
pytest.importorskip("pyarrow")

from fuzz import fuzz_files
from support.bounded_process import campaign


def test_damaged_files_are_refused_or_read() -> None:
    outcome = campaign(fuzz_files.__file__, 300, seed=0)
    assert outcome.failures == []
    assert 0 < outcome.accepted < 300
    assert outcome.peak_bytes < 500 * 2**20
