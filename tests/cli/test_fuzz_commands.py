"""Some random command lines with faults; `tests/fuzz/fuzz_commands.py` runs more."""

import sys

import pytest

if not sys.platform.startswith("linux"):
    pytest.skip("memory is bounded and measured as Linux does it", allow_module_level=True)
pytest.importorskip("pyarrow")
pytest.importorskip("typer")

from fuzz import fuzz_commands
from support.bounded_process import campaign


def test_commands_with_faults_leave_whole_outputs_or_none_and_say_why() -> None:
    outcome = campaign(fuzz_commands.__file__, 60, seed=2026)
    assert outcome.failures == []
    assert 0 < outcome.accepted < 60
