"""The report in a real browser: no errors, tips under the pointer, tables that sort, on a desk and on a phone."""

import io
import os
import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

from dc2 import DC2Clustering, RPFCluster
from dc2.report import write_report
from dc2.spectral import RPF

pytestmark = pytest.mark.slow

WIDTHS = {"desk": 1280, "phone": 390}


def installed_browser() -> tuple[str, str]:
    """Chromium and its driver, installed from Debian if possible; otherwise the test is skipped."""
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        if not (shutil.which("apt-get") and hasattr(os, "geteuid") and os.geteuid() == 0):
            pytest.skip("there is no chromium with chromedriver, and only root can install it with apt-get")
        install = "apt-get update -q && apt-get install -qy --no-install-recommends chromium chromium-driver"
        done = subprocess.run(install, shell=True, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"chromium could not be installed: {done.stderr.strip()[-300:]}")
    return shutil.which("chromium"), shutil.which("chromedriver")


@pytest.fixture(scope="module")
def browser():
    webdriver = pytest.importorskip("selenium.webdriver")
    chromium, driver = installed_browser()
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield browser
    browser.quit()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5, 12))[np.arange(20_000) % 5] * 3 + rng.normal(size=(20_000, 12))
    names = ["temperature", "humidity", "<script>alert(1)</script>", *(f"x{i}" for i in range(9))]
    model = RPFCluster(5, n_signatures=300, similarity=RPF(200, bandwidth=0.05), scale="standard", random_state=0)
    model.fit(pd.DataFrame(X, columns=names))
    folder = tmp_path_factory.mktemp("report")
    return write_report(model, folder / "report.html", title="Weather")


def opened(browser, report, where="desk", scheme="light"):
    """Open the report on a screen, and return the function that runs a script in it."""
    screen = {"width": WIDTHS[where], "height": 900, "deviceScaleFactor": 1, "mobile": where == "phone"}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    scheme_feature = {"name": "prefers-color-scheme", "value": scheme}
    still = {"name": "prefers-reduced-motion", "value": "reduce"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme_feature, still]})
    browser.get(report.as_uri())
    return browser.execute_script


def column(run, table: int, number: int) -> list[float]:
    script = """
    const table = document.querySelectorAll("table")[arguments[0]];
    return [...table.tBodies[0].rows].map((row) => Number(row.cells[arguments[1]].dataset.sort));
    """
    return run(script, table, number)


def tip(run) -> str | None:
    return run("const tip = document.getElementById('tip'); return tip.hidden ? null : tip.innerText")


def in_sight(browser, selector: str):
    """Scroll to an element and return it when the page has come to rest: scrolling hides the tip."""
    element = browser.find_element("css selector", selector)
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
    browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    return element


def pointer_over(browser, selector: str) -> None:
    from selenium.webdriver import ActionChains

    ActionChains(browser).move_to_element(in_sight(browser, selector)).perform()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("where", WIDTHS)
def test_the_page_opens_without_errors_and_fits_the_screen(browser, report, where, scheme):
    run = opened(browser, report, where, scheme)
    assert browser.get_log("browser") == []
    assert run("return document.documentElement.scrollWidth") <= WIDTHS[where]
    loaded = "return performance.getEntriesByType('resource').filter((e) => !e.name.startsWith('data:')).length"
    assert run(loaded) == 0


def test_dark_mode_is_dark(browser, report):
    script = "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
    assert sum(opened(browser, report, scheme="light")(script)) > 600
    assert sum(opened(browser, report, scheme="dark")(script)) < 150


def test_pointing_at_a_mark_shows_its_cluster_and_values(browser, report):
    run = opened(browser, report)
    pointer_over(browser, "#signature-map use:nth-child(20)")
    told = tip(run)
    assert told.startswith("Cluster ")
    assert "rows" in told
    assert "temperature" in told
    assert "<script>alert(1)</script>" in told
    pointer_over(browser, "h1")
    assert tip(run) is None


def test_a_tap_on_a_phone_shows_values_too(browser, report):
    run = opened(browser, report, "phone")
    in_sight(browser, "#signature-map svg")
    box = "document.querySelector('#signature-map use:nth-child(5)').getBoundingClientRect()"
    x, y = run(f"const box = {box}; return [box.x + box.width / 2, box.y + box.height / 2]")
    browser.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    browser.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    assert "temperature" in tip(run)


def test_arrow_keys_walk_over_the_map(browser, report):
    from selenium.webdriver import Keys

    run = opened(browser, report)
    drawing = in_sight(browser, "#signature-map svg")
    drawing.send_keys(Keys.ARROW_RIGHT)
    first = tip(run)
    drawing.send_keys(Keys.ARROW_RIGHT)
    assert tip(run) != first
    drawing.send_keys(Keys.ARROW_LEFT)
    assert tip(run) == first


def test_choosing_a_layout_moves_the_marks(browser, report):
    run = opened(browser, report)
    places = "return [...document.querySelectorAll('#signature-map use')].map((mark) => mark.style.transform)"
    before = run(places)
    browser.find_element("css selector", ".choices button:last-child").click()
    assert run(places) != before
    assert "directions" in browser.find_element("id", "map-note").text
    browser.find_element("css selector", ".choices button:first-child").click()
    assert [place.split(" scale")[0] for place in run(places)] == [place.split(" scale")[0] for place in before]


def test_choosing_a_cluster_fades_the_others(browser, report):
    run = opened(browser, report)
    faded = "return document.querySelectorAll('#signature-map use.faded').length"
    button = browser.find_element("css selector", "#signature-map .legend button")
    button.click()
    assert 0 < run(faded) < 300
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    assert run(faded) == 0


def test_tables_sort_both_ways_at_a_click(browser, report):
    run = opened(browser, report)
    header = browser.find_elements("css selector", "table")[0].find_elements("css selector", "th button")[1]
    header.click()
    assert column(run, 0, 1) == sorted(column(run, 0, 1), reverse=True)
    assert browser.find_element("css selector", "[aria-sort=descending]").text.startswith("Rows")
    header.click()
    assert column(run, 0, 1) == sorted(column(run, 0, 1))


def test_the_heat_map_and_the_matrix_tell_more(browser, report):
    run = opened(browser, report)
    pointer_over(browser, "table.heat td")
    assert re.match(r"Cluster 0, \w+: .*\d.*; all: .*\d", tip(run))
    pointer_over(browser, "#similarity-matrix svg")
    assert "shared leaves" in tip(run)


# --- other numbers of clusters --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def explored(tmp_path_factory):
    rng = np.random.default_rng(0)
    groups = np.repeat(rng.normal(size=(3, 4)) * 30, 3, axis=0) + rng.normal(size=(9, 4)) * 5
    X = groups[np.arange(2700) % 9] + rng.normal(size=(2700, 4))
    frame = pd.DataFrame(X, columns=["temperature", "humidity", "<script>alert(1)</script>", "wind"])
    model = DC2Clustering(noise=0.02, random_state=0).fit(frame)
    path = write_report(model, tmp_path_factory.mktemp("explored") / "report.html")
    return path, model


def cells(run, selector: str) -> list[str]:
    return run(f"return [...document.querySelectorAll('{selector} tbody tr')].map((row) => row.cells[1].textContent)")


def test_the_slider_switches_map_table_and_profile_and_back(browser, explored):
    from selenium.webdriver import Keys

    path, model = explored
    run = opened(browser, path)
    before = run("return document.querySelector('#sizes').innerHTML + document.querySelector('#heat').innerHTML")
    colours = "return [...document.querySelectorAll('#signature-map use')].map((mark) => mark.style.fill).join()"
    painted = run(colours)
    slider = browser.find_element("id", "view")
    slider.send_keys(Keys.ARROW_LEFT)
    fewer = int(browser.find_element("id", "view-number").text)
    assert fewer < model.n_clusters_
    assert len(cells(run, "#sizes")) == fewer + 1  # noise is the last
    told = [float(text.replace(",", "")) for text in cells(run, "#sizes")]
    assert sum(told) == pytest.approx(len(model.labels_))
    assert run("return document.querySelectorAll('#heat thead .swatch').length") == fewer
    assert run("return document.querySelectorAll('#signature-map .legend button').length") == fewer
    assert run(colours) != painted
    browser.find_element("id", "view-reset").click()
    assert run(colours) == painted
    after = run("return document.querySelector('#sizes').innerHTML + document.querySelector('#heat').innerHTML")
    assert after == before
    assert browser.get_log("browser") == []


def test_every_number_of_clusters_in_the_page_is_what_recluster_gives(browser, explored):
    path, model = explored
    run = opened(browser, path)
    views = run("return JSON.parse(document.getElementById('data-explore').textContent).views")
    assert [len(view["rows"]) for view in views] == sorted(len(view["rows"]) for view in views)
    chosen = next(view for view in views if view["chosen"])
    summary = model.summary()
    assert chosen["rows"] == summary["rows"][summary["cluster"] >= 0].tolist()
    assert chosen["stability"] == summary["stability"].dropna().round(3).tolist()


def test_two_clusters_are_compared_by_keyboard(browser, explored):
    from selenium.webdriver.support.select import Select

    run = opened(browser, explored[0])
    names = "return [...document.querySelectorAll('#compare-table tbody th')].map((cell) => cell.textContent)"
    assert "<script>alert(1)</script>" in run(names)
    first = run("return document.querySelector('#compare-table').innerText")
    Select(browser.find_element("id", "compare-b")).select_by_value("2")
    second = run("return document.querySelector('#compare-table').innerText")
    assert first != second
    assert "Cluster 2" in second
    run("document.getElementById('view').value = 0;document.getElementById('view').dispatchEvent(new Event('input'))")
    assert run("return document.getElementById('compare-a').options.length") == len(cells(run, "#sizes")) - 1


def test_noise_is_hidden_and_shown(browser, explored):
    run = opened(browser, explored[0])
    hidden = "return document.querySelector('#sizes .noise').closest('tr').hidden"
    button = browser.find_element("id", "noise")
    button.click()
    assert run(hidden)
    assert button.text == "Show noise"
    button.click()
    assert not run(hidden)


def test_noise_is_hidden_on_the_map_too_and_keys_pass_it_by(browser, explored):
    from selenium.webdriver import Keys

    run = opened(browser, explored[0])
    marks = "[...document.querySelectorAll('#signature-map use[href=\"#mark-noise\"]')]"
    assert run(f"return {marks}.length") > 0
    drawing = in_sight(browser, "#signature-map svg")
    drawing.send_keys(Keys.ARROW_LEFT)
    assert tip(run).startswith("Noise")
    run("document.getElementById('noise').click()")
    assert run(f"return {marks}.every((use) => use.style.display === 'none')")
    drawing.send_keys(Keys.ARROW_LEFT)
    assert tip(run).startswith("Cluster")
    run("document.getElementById('view').value = 0;document.getElementById('view').dispatchEvent(new Event('input'))")
    assert run(f"return {marks}.every((use) => use.style.display === 'none')")
    run("document.getElementById('noise').click()")
    assert run(f"return {marks}.every((use) => use.style.display === '')")
    assert browser.get_log("browser") == []


def test_the_table_is_downloaded_as_csv(browser, explored, tmp_path):
    path, model = explored
    run = opened(browser, path)
    script = """
    const kept = [];
    const make = URL.createObjectURL;
    URL.createObjectURL = (blob) => { kept.push(blob); return make.call(URL, blob); };
    HTMLAnchorElement.prototype.click = function () { window.named = this.download; };
    document.getElementById("download").click();
    kept[0].text().then(arguments[0]);
    """
    text = browser.execute_async_script(script)
    assert run("return window.named") == "clusters.csv"
    table = pd.read_csv(io.StringIO(text))
    assert table["rows"].tolist() == model.summary()["rows"].tolist()
    assert table["cluster"].tolist() == [*range(model.n_clusters_), -1]
