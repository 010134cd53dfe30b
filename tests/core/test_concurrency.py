"""Fits side by side: in threads, in forked and in fresh processes, the labels are those of a fit alone."""

import multiprocessing
import os
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from dc2 import Compressor, DC2Clustering, RPFCluster, core
from dc2.spectral import RPF

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(centre, 1.0, size=(200, 4)) for centre in (0, 6, 12)])


def labels_of(kind: str, n_jobs: int = 2) -> bytes:
    own = {"n_jobs": n_jobs, "block_bytes": 2048, "random_state": 0}
    models = {
        "DC2Clustering": DC2Clustering(3, n_signatures=60, noise=0.05, **own),
        "RPFCluster": RPFCluster(3, n_signatures=40, similarity=RPF(20), **own),
        "Compressor": Compressor(50, **own),
    }
    return models[kind].fit(X).labels_.tobytes()


KINDS = ("DC2Clustering", "RPFCluster", "Compressor")
alone = {kind: labels_of(kind, 1) for kind in KINDS}


def test_fits_in_threads_give_the_labels_of_a_fit_alone():
    with ThreadPoolExecutor(4) as pool:
        jobs = [(kind, pool.submit(labels_of, kind)) for kind in 3 * KINDS]
        assert all(job.result(timeout=300) == alone[kind] for kind, job in jobs)


def test_one_model_answers_many_threads():
    model = DC2Clustering(3, n_signatures=60, random_state=0, n_jobs=2).fit(X)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: model.predict(X).tobytes(), range(12), timeout=300))
    assert set(answers) == {model.labels_.tobytes()}


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_fits_in_processes_give_the_labels_of_a_fit_alone(method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    if method != "fork" and "sanitized_core" in sys.modules:
        pytest.skip("a fresh process would load the ordinary core")
    if "TSAN_OPTIONS" in os.environ:
        pytest.skip("ThreadSanitizer ends processes that are forked from one with threads")
    with ProcessPoolExecutor(2, multiprocessing.get_context(method)) as pool:
        jobs = [(kind, pool.submit(labels_of, kind)) for kind in KINDS]
        assert all(job.result(timeout=300) == alone[kind] for kind, job in jobs)


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has the GIL")
def test_the_native_core_does_not_bring_the_gil_back():
    assert core.name == "native"
    assert not sys._is_gil_enabled()


WITHOUT_GIL = next(filter(None, map(shutil.which, ("python3.14t", "python3.13t"))), None)
CHECKED_THERE = ("tests/core", "tests/trees", "tests/engines/test_engine_threads.py", "tests/cluster/test_cluster.py")


@pytest.mark.slow
@pytest.mark.skipif(WITHOUT_GIL is None, reason="no Python without the GIL is installed")
def test_dc2_builds_and_runs_without_the_gil(tmp_path):
    root, python = Path(__file__).parents[2], tmp_path / "room" / "bin" / "python"
    subprocess.run([WITHOUT_GIL, "-m", "venv", tmp_path / "room"], check=True)
    packages = [str(root), "pytest", "hypothesis", "tqdm"]
    subprocess.run([python, "-m", "pip", "install", "-q", *packages], check=True, timeout=1800)
    inherited = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "DC2_CORE")}
    # From another folder, or the sources would be imported in place of the module that was built.
    tests = [str(root / place) for place in CHECKED_THERE]
    command = [python, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider", "--rootdir", root, *tests]
    done = subprocess.run(command, cwd=tmp_path, env=inherited, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout[-3000:]
