"""The shape of the package: few rooms, imports that point downward, light imports, a sorted table of contents."""

import ast
import graphlib
import importlib
import inspect
import re
import statistics
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest

import dc2
from tools import house

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "dc2"
MODULES = sorted(
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
)
OPTIONAL = ("dask", "distributed", "jinja2", "matplotlib", "pandas", "polars", "pyarrow", "rich", "tqdm", "typer")


def floors() -> dict[str, int]:
    """Each room and its line in the drawing of docs/design.md, 0 on top."""
    design = (ROOT / "docs" / "design.md").read_text("utf-8")
    drawing = design.split("\nsrc/dc2/\n")[1].split("\nnative/")[0]
    return {
        room: floor
        for floor, line in enumerate(drawing.splitlines())
        for room in re.findall(r"(\w+)(?:/|\.py)(?!\S)", line)
        if (PACKAGE / room).is_dir() or (PACKAGE / f"{room}.py").exists()
    }


def test_there_are_few_rooms_and_files() -> None:
    assert len(house.rooms()) <= 12
    assert len(house.files()) <= 140
    assert statistics.median(map(house.lines, house.files())) >= 150


def test_few_rooms_import_each_other_and_chains_are_short() -> None:
    graph = house.room_imports()
    assert sum(map(len, graph.values())) <= 50
    assert house.depth(graph) <= 7


def test_no_file_name_and_no_public_class_name_repeats() -> None:
    assert house.repeated_names() == []
    assert house.repeated_classes() == []


def room_of(module: str) -> str:
    """The room of a module: `dc2.trees.forest` lives in `trees`, `dc2` itself is the table of contents."""
    return module.split(".")[1] if "." in module else "__init__"


def text_of(module: str) -> str:
    path = PACKAGE.parent.joinpath(*module.split("."))
    return (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text("utf-8")


def all_imports(module: str) -> set[str]:
    """Whatever a module imports, by its whole name."""
    found = set()
    for node in ast.walk(ast.parse(text_of(module))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def imported_modules(module: str) -> set[str]:
    """The modules of dc2 that a module imports anywhere in its text; modules named in strings count too."""
    found = set()
    for node in ast.walk(ast.parse(text_of(module))):
        if isinstance(node, ast.Constant) and node.value in MODULES and node.value != "dc2":
            found.add(node.value)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively; write the whole name"
            # `from dc2 import core` means dc2.core, while `from dc2.core import scan` means dc2.core.
            found |= {f"dc2.{alias.name}" for alias in node.names} if node.module == "dc2" else {node.module or ""}
    return {name for name in found if name == "dc2" or name.startswith("dc2.")}


def room_imports() -> dict[str, set[str]]:
    """The rooms and single files that each imports; the table of contents imports what it lists and is left out."""
    graph: dict[str, set[str]] = {}
    for module in MODULES:
        if module != "dc2":
            room = room_of(module)
            graph.setdefault(room, set()).update({room_of(name) for name in imported_modules(module)} - {room})
    return graph


def test_every_room_has_its_place_in_the_design() -> None:
    assert {room_of(module) for module in MODULES} - set(floors()) == set()


def test_every_file_that_the_design_names_is_there() -> None:
    design = (ROOT / "docs" / "design.md").read_text("utf-8")
    named = re.findall(r"`((?:\w+/)+(?:\w+\.\w+)?)`", design)
    assert len(named) > 30
    assert [name for name in named if not any((folder / name).exists() for folder in (ROOT, PACKAGE))] == []


def test_imports_point_downward() -> None:
    floor = floors()
    upward = [
        f"{room} imports {other}"
        for room, others in room_imports().items()
        for other in others
        if floor[other] < floor[room]
    ]
    assert upward == []


def test_rooms_on_one_floor_do_not_import_each_other_in_a_circle() -> None:
    graphlib.TopologicalSorter(room_imports()).prepare()


def test_a_module_that_a_string_names_counts_as_imported() -> None:
    assert "dc2.compress" in imported_modules("dc2")


def test_every_package_that_is_imported_is_declared() -> None:
    with open(ROOT / "pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    wanted = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    declared = {re.split(r"[\[<>=]", requirement)[0].replace("scikit-learn", "sklearn") for requirement in wanted}
    declared |= {"cupy", "cupyx"} if "cupy-cuda13x" in declared else set()  # one package, named for its CUDA
    imported = {name.partition(".")[0] for module in MODULES for name in all_imports(module)}
    assert imported - declared - set(sys.stdlib_module_names) - {"dc2"} == set()


@pytest.mark.parametrize("module", MODULES)
def test_nothing_private_of_another_package_is_imported(module: str) -> None:
    private = [name for name in all_imports(module) if not name.startswith("dc2") and "._" in name]
    assert private == []


@pytest.mark.parametrize("module", MODULES)
def test_every_module_can_be_imported(module: str) -> None:
    importlib.import_module(module)


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_dc2_can_be_imported_where_nothing_optional_is_installed() -> None:
    run_python(f"import sys; sys.modules.update(dict.fromkeys({OPTIONAL})); import dc2")


def test_importing_dc2_loads_nothing_optional_that_scikit_learn_does_not_load() -> None:
    code = f"""
import sys, sklearn.cluster, sklearn.metrics
before = set(sys.modules)
import dc2
print(*sorted(set({OPTIONAL}) & (set(sys.modules) - before)))
"""
    assert run_python(code) == ""


def test_the_table_of_contents_is_sorted() -> None:
    assert dc2.__all__ == sorted(dc2.__all__)


@pytest.mark.parametrize("name", dc2.__all__)
def test_every_public_name_is_documented(name: str) -> None:
    thing = getattr(dc2, name)
    if callable(thing):
        assert thing.__doc__, f"dc2.{name} has no docstring"
        is_error = inspect.isclass(thing) and issubclass(thing, Exception)
        assert is_error or ">>>" in thing.__doc__, f"the docstring of dc2.{name} shows no example"
