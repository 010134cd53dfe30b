"""How the site is built: ``make docs``. Nothing is fetched while it is."""

import re
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from _pages.commands import command_reference  # noqa: E402
from _pages.python_names import python_reference  # noqa: E402

from dc2 import __version__  # noqa: E402

project = "dc2"
author = "the dc2 developers"
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
exclude_patterns = ["_pages/*", "**/GALLERY_HEADER.rst", "gallery/*.py", "tutorials/*.py"]
templates_path = ["_templates"]
# Pages that a command writes begin with a second heading.
suppress_warnings = ["myst.header", "config.cache"]

myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": ["../examples/tutorials", "../examples/gallery"],
    "gallery_dirs": ["tutorials", "gallery"],
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "reset_modules": ("matplotlib",),
    "capture_repr": (),
    "write_computation_times": False,
    "abort_on_example_error": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "dc2"
html_static_path = ["_static"]
html_css_files = ["dc2.css"]
html_favicon = "_static/favicon.svg"
html_context = {"default_mode": "auto"}
html_show_sourcelink = False
html_theme_options = {
    "show_prev_next": False,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc", "sg_download_links"],
}
html_sidebars = {"index": []}
project_copyright = "the dc2 developers, BSD-3-Clause"

# Examples run on one machine among others' work: a slow core or many threads are no reason to stop a build.
warnings.filterwarnings("ignore", message="dc2 runs on its NumPy core", category=RuntimeWarning)


def write(path: Path, text: str) -> None:
    """Write a page that is made from the code, if it changed."""
    path.parent.mkdir(exist_ok=True)
    if not path.exists() or path.read_text("utf-8") != text:
        path.write_text(text, "utf-8")


write(HERE / "reference" / "python.rst", python_reference())
write(HERE / "reference" / "commands.md", command_reference())

# Documents at the root of the repository, which the site shows as pages of its own.
ROOT_PAGES = {
    "SECURITY.md": "security.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
}


def prepare_page(app, docname, source):
    """Give measured pages a title, and send links to files at the root to their pages."""
    text = source[0]
    if docname.startswith("measured/") and not text.startswith("# "):
        text = f"# Measured: {docname.removeprefix('measured/')}\n\n{text}"
    for file, page in ROOT_PAGES.items():
        text = text.replace(f"](../{file}", f"]({page}")
    source[0] = text


def prepare_included(app, relative_path, parent_docname, content):
    """Do the same for a document at the root that a page includes: its links begin at the root."""
    text = content[0]
    for file, page in ROOT_PAGES.items():
        text = text.replace(f"]({file}", f"]({page}")
    content[0] = re.sub(r"\]\(docs/", "](", text)


def skip_foreign(app, what, name, obj, skip, options):
    """Leave out what comes from scikit-learn: it is explained there."""
    home = getattr(getattr(obj, "fget", obj), "__module__", "") or ""
    return True if home.startswith("sklearn") or re.fullmatch(r"set_\w+_request", name) else skip


def setup(app):
    """Connect the above."""
    app.connect("source-read", prepare_page)
    app.connect("include-read", prepare_included)
    app.connect("autodoc-skip-member", skip_foreign)
