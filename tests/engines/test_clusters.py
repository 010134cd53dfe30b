"""Spark, Spark Connect and Ray for real, in an environment of their own that is kept in build/.

`real_clusters.py` holds the tests. DC2_CLUSTERS=lowest takes the oldest versions that are promised.
"""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import dc2

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
NEWEST = ["pyspark[connect]==4.3.0", "ray[data]==2.60.0"]


def lowest() -> list[str]:
    """The oldest versions that the extras promise."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    ranges = [requirement for requirement in (*extras["spark"], *extras["ray"]) if ",<" in requirement]
    return [requirement.partition(",<")[0].replace(">=", "==") for requirement in ranges]


CHOSEN = os.environ.get("DC2_CLUSTERS", "newest")
SECONDS = 600
TESTS = Path(__file__).with_name("real_clusters.py")


def install_java() -> None:
    if shutil.which("java"):
        return
    if not (shutil.which("apt-get") and hasattr(os, "geteuid") and os.geteuid() == 0):
        pytest.skip("there is no java, and only root can install it with apt-get")
    install = "apt-get update -q && apt-get install -qy --no-install-recommends default-jre-headless"
    done = subprocess.run(install, shell=True, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"java could not be installed: {done.stderr.strip()[-300:]}")


@pytest.fixture(scope="module")
def python() -> Path:
    """The interpreter of an environment that has Spark and Ray, and all packages of this one."""
    install_java()
    folder = ROOT / "build" / f"clusters-{CHOSEN}-{sys.version_info.major}.{sys.version_info.minor}"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        (packages,) = folder.glob("lib/python*/site-packages")
        (packages / "main.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
        wanted = lowest() if CHOSEN == "lowest" else NEWEST
        done = subprocess.run([python, "-m", "pip", "install", "-q", *wanted], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"Spark and Ray could not be installed: {done.stderr.strip()[-300:]}")
        (folder / "complete").touch()
    return python


@pytest.mark.parametrize("system", ["spark", "executors", "connect", "ray", "command"])
def test_a_real_cluster_gives_the_labels_of_memory(python: Path, system: str) -> None:
    sources = os.pathsep.join([str(Path(dc2.__file__).parents[1]), str(ROOT / "tests"), str(ROOT)])
    done = subprocess.run(
        [python, "-m", "pytest", "-qx", "-Wdefault", "-pno:cacheprovider", TESTS, "-k", f"test_{system}"],
        capture_output=True, text=True, timeout=SECONDS, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": sources, "PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": str(python),
             "OMP_NUM_THREADS": "1", "SPARK_LOCAL_IP": "127.0.0.1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
