"""What every test file shares: the folder of public data sets, threads, and hypothesis without a clock."""

import os
from pathlib import Path

# Before NumPy is loaded: test processes that run side by side share the cores instead of fighting for them.
_WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
_THREADS = str(max(1, (os.cpu_count() or 1) // _WORKERS))
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, _THREADS)
os.environ.setdefault("MPLBACKEND", "agg")

import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

# Every run tries the same examples, so that a change is judged by what it changes; times are not asserted.
settings.register_profile("dc2", deadline=None, derandomize=True)
settings.load_profile("dc2")


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
