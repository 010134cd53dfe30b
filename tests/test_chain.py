"""The way from a command to the native core is short: every function on it adds an idea."""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dc2
from dc2 import core
from dc2.cli.cluster import ClusterOptions, cluster

PACKAGE = str(Path(dc2.__file__).parent)
LONGEST = 12
HOT_LOOPS = {"grow_tree", "scan", "leiden"}


def our_functions_on_the_stack() -> list[str]:
    """The functions of dc2 that are running now, innermost first; comprehensions and lambdas are no steps."""
    frame, names = sys._getframe(1), []
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(PACKAGE) and not code.co_name.startswith("<"):
            names.append(f"{Path(code.co_filename).stem}.{code.co_name}")
        frame = frame.f_back
    return names


@pytest.fixture
def chains(monkeypatch) -> dict[str, list[str]]:
    """The longest chain of calls to each function of the core, filled as they are called."""
    longest: dict[str, list[str]] = {}

    def watched(name, function):
        def call(*args, **kwargs):
            longest[name] = max(longest.get(name, []), our_functions_on_the_stack(), key=len)
            return function(*args, **kwargs)

        return call

    for name in core.__all__:
        function = getattr(core, name)
        if callable(function) and not isinstance(function, type):
            monkeypatch.setattr(core, name, watched(name, function))
    return longest


# Five clusters of a cloud are found by searching for a resolution, which is the longest way to take.
@pytest.mark.parametrize("clusters", ["auto", 5])
def test_a_fit_from_a_file_reaches_the_core_in_few_steps(tmp_path, chains, capsys, clusters):
    rows = np.random.default_rng(0).normal(size=(20_000, 5))
    pq.write_table(pa.table({f"c{i}": column for i, column in enumerate(rows.T)}), tmp_path / "rows.parquet")
    cluster(ClusterOptions(data=[str(tmp_path / "rows.parquet")], output=tmp_path / "labels.csv", clusters=clusters))
    assert set(chains) >= HOT_LOOPS
    assert {name: chain for name, chain in chains.items() if len(chain) > LONGEST} == {}
