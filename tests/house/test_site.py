"""The site that `make docs` builds, in a real browser: links lead somewhere, nothing fails, pictures have words."""

import importlib
import threading
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from report.test_report_browser import browser  # noqa: F401  (a fixture)

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "docs"

needs_site = pytest.mark.skipif(not (SITE / "index.html").exists(), reason="`make docs` has not built the site")
# One page of each kind; all pages are checked for links and pictures, which needs no browser.
OPENED = [
    "index.html",
    "start.html",
    "which-method.html",
    "quality.html",
    "gallery/index.html",
    "gallery/plot_01_comparison.html",
    "tutorials/plot_1_shapes.html",
    "reference/python.html",
    "reference/commands.html",
    "reference/names/dc2.DC2Clustering.html",
    "search.html?q=signatures",
]


MODULES = ("dc2", "dc2.spectral", "dc2.report", "dc2.datasets")


class Page(HTMLParser):
    """What a page holds: names of places, links, and pictures."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.places: set[str] = {"", "top"}
        self.links: list[str] = []
        self.wordless: list[str] = []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.places.update(value for key in ("id", "name") if (value := given.get(key)))
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag in ("img", "script") and given.get("src"):
            self.links.append(given["src"])
        if tag == "img" and "alt" not in given:
            self.wordless.append(given.get("src") or "")


@pytest.fixture(scope="module")
def pages() -> dict[Path, Page]:
    return {path.resolve(): Page(path) for path in sorted(SITE.rglob("*.html")) if "_static" not in path.parts}


class Quiet(SimpleHTTPRequestHandler):
    """Serves files without a word."""

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture(scope="module")
def address():
    """The site as it is served: from files a browser would not let the search read pages."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def broken(path: Path, link: str, pages: dict[Path, Page]) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return False
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.is_file():
        return True
    return target in pages and unquote(parts.fragment) not in pages[target].places


@pytest.mark.slow
@needs_site
def test_every_link_within_the_site_leads_somewhere(pages):
    assert len(pages) > 60
    lost = [
        f"{path.relative_to(SITE.resolve())}: {link}"
        for path, page in pages.items()
        for link in page.links
        if broken(path, link, pages)
    ]
    assert lost == []


@pytest.mark.slow
@needs_site
def test_nothing_is_loaded_from_elsewhere(pages):
    elsewhere = [link for page in pages.values() for link in page.links if link.endswith(".js") and "//" in link]
    assert elsewhere == []


@pytest.mark.slow
@needs_site
def test_pictures_have_words(pages):
    assert {str(path): page.wordless for path, page in pages.items() if page.wordless} == {}


@pytest.mark.slow
@needs_site
def test_every_public_name_has_a_page():
    for module in MODULES:
        for name in importlib.import_module(module).__all__:
            pages = [SITE / "reference" / "names" / f"{home}.{name}.html" for home in MODULES]
            assert name == "__version__" or any(page.exists() for page in pages), name


@pytest.mark.slow
@needs_site
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390], ids=["desk", "phone"])
def test_pages_open_without_errors_and_fit_the_screen(browser, address, width, scheme):  # noqa: F811
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    for page in OPENED:
        browser.get(f"{address}/{page}")
        assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == [], page
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width + 1, page
        assert browser.execute_script("return document.documentElement.dataset.theme") == scheme, page


@pytest.mark.slow
@needs_site
def test_search_finds_a_page(browser, address):  # noqa: F811
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(f"{address}/search.html?q=signatures")
    found = "return document.querySelectorAll('#search-results li').length"
    WebDriverWait(browser, 20).until(lambda b: b.execute_script(found) > 3)
