"""What test files share: public data sets, threads, hypothesis without a clock, failing commands, Dask's schedulers."""

import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from support.cli_failures import Fails

# Before NumPy is loaded: test processes that run side by side share the cores instead of fighting for them.
_WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
_THREADS = str(max(1, (os.cpu_count() or 1) // _WORKERS))
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, _THREADS)
os.environ.setdefault("MPLBACKEND", "agg")

# An editable install leads to the checkout that it was made from; tests in another one, and the processes that they
# start, use theirs: a file of the same name hides the module that the environment loads at start.
_SOURCES = str(Path(__file__).parents[1] / "src")
for _finder in [one for one in sys.meta_path if type(one).__name__ == "ScikitBuildInplaceFinder"]:
    _found = _finder.find_spec("dc2", None)
    if _found is not None and not str(_found.origin).startswith(_SOURCES + os.sep):
        _hiding = tempfile.mkdtemp(prefix="dc2-tests-")
        Path(_hiding, f"{type(_finder).__module__}.py").touch()
        sys.meta_path.remove(_finder)
        sys.path.insert(0, _SOURCES)
        os.environ["PYTHONPATH"] = os.pathsep.join([_hiding, _SOURCES, os.environ.get("PYTHONPATH", "")])

import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

# Every run tries the same examples, so a new failure comes from a change; times are not asserted.
settings.register_profile("dc2", deadline=None, derandomize=True)
settings.load_profile("dc2")

# A plugin of `make sanitize`, and a campaign that needs atheris: both are started by hand.
collect_ignore = ["support/sanitized_core.py", "fuzz/fuzz_guided.py"]


def pytest_report_header() -> str:
    from dc2 import core

    return f"dc2 core: {core.name} ({core.reason})"


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of public data sets that the environment variable DC2_DATA names."""
    folder = os.environ.get("DC2_DATA")
    if not folder:
        pytest.skip("DC2_DATA is not set: it names the folder of public data sets")
    if not Path(folder).is_dir():
        pytest.skip(f"DC2_DATA={folder} is not a folder")
    return Path(folder)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with rows, where commands are run."""
    from support.cli_failures import FRAME

    monkeypatch.chdir(tmp_path)
    FRAME.to_parquet("rows.parquet")
    return tmp_path


@pytest.fixture
def fails(folder: Path, capsys: pytest.CaptureFixture[str]) -> "Fails":
    """Runs commands that must fail, in the folder with rows."""
    from support.cli_failures import Fails

    return Fails(folder, capsys)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two worker processes of Dask; tests that use it run there, the others on Dask's threads."""
    import dask
    from distributed import Client, LocalCluster

    with (
        # Dask would move rows to idle workers, but here transfers are counted.
        dask.config.set({"distributed.scheduler.work-stealing": False}),
        LocalCluster(2, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL) as local,
        Client(local, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(params=["threads", "one thread", "two processes"])
def scheduler(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Each way in which Dask runs; gives the client, if there is one."""
    import dask

    if request.param == "two processes":
        with request.getfixturevalue("cluster").as_current() as client:
            yield client
    else:
        with dask.config.set(scheduler="threads" if request.param == "threads" else "sync"):
            yield None
