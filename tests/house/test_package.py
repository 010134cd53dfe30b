"""The package as a user meets it: which core runs, what it reports, and how it installs without a compiler."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import dc2
from dc2 import core
from dc2.errors import ParameterError

ROOT = Path(__file__).parents[2]

FIT = """
import numpy as np, dc2
X = np.random.default_rng(0).normal(size=(300, 3))
compressor = dc2.Compressor(n_signatures=16, random_state=0).fit(X)
print(dc2.core.name, len(compressor.signatures_.points))
"""


def run_python(code: str, *, site: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a new process that does not inherit the choice of a core.

    With `site`, dc2 comes from that folder: -S keeps an editable install from stepping in before it.
    """
    inherited = {key: value for key, value in os.environ.items() if key != "DC2_CORE"}
    if site:
        environment["PYTHONPATH"] = os.pathsep.join([str(site), *sys.path])
    command = [sys.executable, *(["-S"] if site else []), "-c", code]
    return subprocess.run(command, env=inherited | environment, capture_output=True, text=True)


def test_an_unknown_core_is_refused_by_name() -> None:
    with pytest.raises(ParameterError, match=r"DC2_CORE='fortran'.*'native' or 'reference'"):
        core._choose("fortran")


def test_insisting_on_a_native_core_that_is_missing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dc2.core._native", None)
    with pytest.raises(ImportError, match=r"DC2_CORE=native.*C\+\+17 compiler"):
        core._choose("native")


def test_asking_for_the_reference_core_is_silent() -> None:
    done = run_python(FIT, DC2_CORE="reference", PYTHONWARNINGS="error")
    assert done.stdout.split() == ["reference", "16"], done.stderr


def test_a_missing_native_core_is_told_once_at_first_use_and_not_on_import() -> None:
    hide = "import sys; sys.modules['dc2.core._native'] = None; import dc2; print('imported', file=sys.stderr)"
    done = run_python(f"{hide}\n{FIT}\n{FIT}")
    before, after = done.stderr.split("imported")
    assert done.stdout.split() == ["reference", "16"] * 2, done.stderr
    assert before == ""
    assert after.count("SlowCoreWarning") == 1
    assert "C++17 compiler" in after


def test_show_versions_says_which_core_runs_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    dc2.show_versions()
    facts = dict(re.split(r"\s+", line, maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert facts["dc2"] == dc2.__version__
    assert facts["core"].startswith(core.name)
    assert {"python", "numpy", "scipy", "scikit-learn", "pyarrow", "platform", "cores"} <= set(facts)
    done = run_python("import dc2; dc2.show_versions()", DC2_CORE="reference")
    assert "reference (DC2_CORE=reference asks for it)" in done.stdout


def test_citation_and_changelog_know_the_version() -> None:
    assert f"\nversion: {dc2.__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"## {dc2.__version__}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_the_conda_recipe_knows_the_version_and_asks_for_what_the_command_line_needs() -> None:
    recipe = (ROOT / "conda" / "recipe.yaml").read_text("utf-8")
    assert f'version: "{dc2.__version__}"' in recipe
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras = project["project"]["optional-dependencies"]
    needs = [f"python{project['project']['requires-python']}", *project["project"]["dependencies"]]
    needs += [need for name in ("files", "plot", "notebook", "report", "cli") for need in extras[name]]
    wanted = {need.replace("matplotlib", "matplotlib-base").replace(">=", " >=") for need in needs}
    wanted = {need for need in wanted if not need.startswith("dc2[")}
    run = re.search(r"  run:\n((?:    - .*\n)+)", recipe)
    assert run is not None
    assert set(re.findall(r"- (.*)", run[1])) == wanted
    assert set(project["build-system"]["requires"]) <= {line.replace(" ", "") for line in re.findall(r"- (.*)", recipe)}


def build_wheel(folder: Path, **environment: str) -> Path:
    """Build the wheel of this checkout with the build tools of this environment."""
    pytest.importorskip("scikit_build_core")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run(
        [*command, "--wheel-dir", str(folder), str(ROOT)],
        env=os.environ | environment,
        check=True,
        timeout=600,
    )
    (wheel,) = folder.glob("*.whl")
    return wheel


def test_without_a_compiler_a_pure_python_wheel_is_built_that_fits_and_says_so(tmp_path: Path) -> None:
    wheel = build_wheel(tmp_path, CC="/bin/false", CXX="/bin/false")
    assert wheel.name == f"dc2-{dc2.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "site")
    assert not [name for name in names if name.endswith((".so", ".pyd"))]
    assert {"dc2/py.typed", "dc2/core/reference.py"} <= set(names)

    done = run_python(FIT + "print(dc2.__file__); dc2.show_versions()", site=tmp_path / "site")
    first, location, *facts = done.stdout.splitlines()
    assert first == "reference 16", done.stderr
    assert Path(location).is_relative_to(tmp_path)
    assert done.stderr.count("SlowCoreWarning") == 1
    assert any(line.startswith("core") and "cannot be loaded" in line for line in facts)


@pytest.mark.slow
def test_with_a_compiler_the_wheel_brings_the_native_core(tmp_path: Path) -> None:
    wheel = build_wheel(tmp_path)
    assert "none-any" not in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        assert [name for name in archive.namelist() if name.startswith("dc2/core/_native")]
        archive.extractall(tmp_path / "site")
    done = run_python(FIT + "print(dc2.__file__)", site=tmp_path / "site", PYTHONWARNINGS="error")
    core_name, signatures, location = done.stdout.split()
    assert (core_name, signatures) == ("native", "16"), done.stderr
    assert Path(location).is_relative_to(tmp_path)
