"""The examples run, and show what they say."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


def result_of(path: Path) -> Any:
    """What the main function of an example returns."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    return example.main()


def covers(estimate: Any, error: Any, whole: Any) -> bool:
    """Return whether error bars are about as large as those of rows (0.01) and cover the fit of all rows."""
    sound = bool((error > 0.005).all() and (error < 0.02).all())
    return sound and bool((abs(estimate - whole) < 1.96 * error).all())


SHOWN = {
    "kernel_kmeans": lambda plain, kernel: plain < 0.8 and kernel > 0.98,
    "kernel_pca": lambda linear, kernel: linear < 0.8 and kernel > 0.98,
    "kernel_cca": lambda linear, bare, kernel: linear < 0.1 and bare < kernel - 0.1 and kernel > 0.9,
    "kernel_ica": lambda linear, kernel: min(linear) < 0.9 and min(kernel) > 0.99,
    "sites_inference": lambda *fits: all(covers(*fit) for fit in fits),
    "watch_folder": lambda *numbers: sorted(numbers) == [0, 1, 2],
    "sites": lambda together, apart: apart > together - 0.01,
}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_shows_what_it_says(path: Path) -> None:
    result = result_of(path)
    assert path.stem not in SHOWN or SHOWN[path.stem](*result)
