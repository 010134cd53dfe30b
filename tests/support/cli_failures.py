"""Commands that must fail, and the rows they are given."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dc2.cli import main

N = 400
FRAME = pd.DataFrame(np.random.default_rng(0).normal(size=(N, 2)), columns=["x", "y"])
QUICK = ("-k", "2", "--signatures", "20")


class Fails:
    """Runs commands that must fail."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder, self._capsys = folder, capsys

    def __call__(self, *arguments: str, code: int = 1) -> str:
        """What the command says on standard error; it leaves the folder as it was."""
        before = {path: path.lstat().st_mtime_ns for path in self._folder.rglob("*")}
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        out, err = self._capsys.readouterr()
        assert stop.value.code == code, err
        assert out == ""
        assert "Traceback" not in err
        assert {path: path.lstat().st_mtime_ns for path in self._folder.rglob("*")} == before
        if code == 1:
            assert err.startswith("Error: ")
            assert err.count("\n") == 1, "one line"
        return " ".join(err.split())
