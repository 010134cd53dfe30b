"""Two hundred mutated model files: refused in a sentence, or models that work; `tests/fuzz_models.py` runs more."""

import sys

import pytest

if not sys.platform.startswith("linux"):
    pytest.skip("memory is bounded and measured as Linux does it", allow_module_level=True)
pytest.importorskip("pyarrow")
pytest.importorskip("typer")

from fuzz import fuzz_models
from support.bounded_process import campaign


def test_mutated_model_files_are_refused_or_work() -> None:
    outcome = campaign(fuzz_models.__file__, 200, seed=2024)
    assert outcome.failures == []
    assert 0 < outcome.accepted < 200
    assert outcome.peak_bytes < 500 * 2**20
