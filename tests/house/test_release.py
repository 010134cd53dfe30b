"""A release, rehearsed: what would be uploaded is served by a local index and installed from there."""

import os
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import copy

import pytest

import dc2

ROOT = Path(__file__).parents[2]
SDIST = "import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])"


def run(*command: object, cwd: Path = ROOT) -> str:
    inherited = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "DC2_CORE")}
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=inherited, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_sdist_and_its_wheel_install_from_an_index_and_run(tmp_path: Path) -> None:
    pytest.importorskip("scikit_build_core")
    project = tmp_path / "index" / "simple" / "dc2"
    project.mkdir(parents=True)
    run(sys.executable, "-c", SDIST, project)
    (sdist,) = project.glob("*.tar.gz")
    assert sdist.name == f"dc2-{dc2.__version__}.tar.gz"
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", project, sdist)
    python = tmp_path / "room" / "bin" / "python"
    run(sys.executable, "-m", "venv", tmp_path / "room")
    (site,) = (tmp_path / "room" / "lib").glob("python*/site-packages")
    # What dc2 needs is found where the tests run; dc2 itself comes from the index.
    (site / "others.pth").write_text("\n".join(place for place in sys.path if place.endswith("site-packages")))
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "index"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        index = f"http://127.0.0.1:{server.server_port}/simple"
        command = [python, "-m", "pip", "--isolated", "install", "-q", "--no-deps", "--ignore-installed"]
        run(*command, "--index-url", index, f"dc2[cli]=={dc2.__version__}", cwd=tmp_path)
        server.shutdown()
    place = run(python, "-c", "import dc2; print(dc2.__file__)", cwd=tmp_path)
    assert Path(place.strip()).is_relative_to(site)
    copy(ROOT / "tools" / "smoke.py", tmp_path)
    run(python, "smoke.py", cwd=tmp_path)
    run(python.with_name("dc2"), "demo", "--rows", "2000", "--folder", tmp_path / "demo", cwd=tmp_path)
    assert {"labels.parquet", "model.dc2", "report.html"} <= {path.name for path in (tmp_path / "demo").iterdir()}
