"""The reference of the library: a page for every public name, read from the modules themselves."""

import inspect
from importlib import import_module

__all__ = ["python_reference", "public_names"]

SECTIONS = {
    "Clusterers": ("DC2Clustering", "RPFCluster", "RASP", "KASP", "spectral_clustering", "compare", "Changes"),
    "Compression and neighbours": ("Compressor", "Signatures", "RPTree", "RPForest", "RPNeighbors"),
    "Kernel learning": ("KernelRegressor", "KernelClassifier", "DC2", "SignatureNystroem", "RPFFeatures"),
    "Data, models and scores": (),  # and every name that has no place above
}
MODULES = {
    "dc2.spectral": "Similarities and spectral clustering",
    "dc2.report": "Plots",
    "dc2.datasets": "Generated shapes",
}

INTRODUCTION = "Everything public, with links to its source. Both kernels can be had from ``dc2`` as well."


def public_names(module: str) -> list[str]:
    """The names a module offers that have their page here: no plain values, and each name in one place.

    A name that both dc2 and one of its modules offer stands with the module: links from a source file back to its
    pages can name one module only.
    """
    home = import_module(module)
    elsewhere = {name for other in MODULES if module == "dc2" for name in import_module(other).__all__}
    return [name for name in home.__all__ if name not in elsewhere and _has_page(getattr(home, name))]


def _has_page(thing: object) -> bool:
    return inspect.isclass(thing) or inspect.isroutine(thing)


def python_reference() -> str:
    """The text of the page, in reStructuredText."""
    names = public_names("dc2")
    placed = {name for listed in SECTIONS.values() for name in listed}
    sections = {
        title: [name for name in listed if name in names] or [name for name in names if name not in placed]
        for title, listed in SECTIONS.items()
    }
    parts = [_heading("API reference", "="), INTRODUCTION, ""]
    parts += [_section(title, "dc2", listed) for title, listed in sections.items()]
    parts += [".. py:data:: dc2.__version__\n   :type: str\n\n   The version, as ``dc2.show_versions()`` tells it.\n"]
    parts += [_section(title, module, public_names(module)) for module, title in MODULES.items()]
    return "\n".join(parts)


def _section(title: str, module: str, names: list[str]) -> str:
    listed = "\n".join(f"   {name}" for name in names)
    return (
        f"{_heading(title, '-')}\n.. currentmodule:: {module}\n\n"
        f".. autosummary::\n   :toctree: names\n   :nosignatures:\n\n{listed}\n"
    )


def _heading(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}\n"
