"""Laws of the report's building blocks: text, numbers, pictures and charts."""

import re
import sys
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dc2.report.page import Table, environment, number, percent, render, seconds
from dc2.report.svg import Mark, Series, chart, png_of_levels
from support.page_outline import Outline


@given(st.text(), st.text())
def test_text_and_attributes_survive_escaping(text, value):
    # A parser reads line ends and NUL in its own way; what a name looks like is not changed by that.
    text, value = (re.sub(r"[\r\x00]", "", given) for given in (text, value))
    element = environment().from_string('<b title="{{ value }}">{{ text }}</b>')
    outline = Outline(element.render(text=text, value=value))
    assert outline.elements == [("b", {"title": value})]
    assert "".join(outline.texts.get("b", [])) == text


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=1, max_size=8))
def test_cells_sort_by_exact_values(values):
    drawn = render("parts.html", parts=[Table("t", ["a", "b"], [["row", value] for value in values])])
    keys = [float(a["data-sort"]) for name, a in Outline(drawn).elements if name == "td"]
    assert keys == values


def test_markup_is_not_escaped_twice_and_text_is():
    inner = render("parts.html", parts=["a<b"])
    assert render("parts.html", parts=[inner]).count("a&lt;b") == 1


def test_without_jinja2_a_report_says_what_to_install(monkeypatch):
    environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r'pip install "dc2\[report\]"'):
        render("parts.html", parts=[])
    environment.cache_clear()


@given(st.floats(-1e300, 1e300))
def test_numbers_are_short_and_right_to_three_digits(value):
    text = number(value)
    assert len(text) <= 21
    read = float(text.replace("−", "-").replace(",", ""))
    assert read == pytest.approx(value, rel=6e-3)


@given(st.floats(0.0, 1.0))
def test_a_share_is_none_or_all_only_if_it_is(share):
    text = percent(share)
    assert (text == "0%") == (share == 0.0)
    assert (text == "100%") == (share == 1.0)


@given(st.floats(0.0, 1e7))
def test_durations_are_short(value):
    assert 0 < len(seconds(value)) < 15


def test_a_png_holds_its_levels():
    levels = np.random.default_rng(0).integers(0, 4, (5, 7)).astype(np.uint8)
    png = png_of_levels(levels, [(0, 0, 0), (1, 1, 1), (2, 2, 2), (255, 255, 255)])
    start = png.index(b"IDAT")
    size = int.from_bytes(png[start - 4 : start], "big")
    raw = np.frombuffer(zlib.decompress(png[start + 4 : start + 4 + size]), np.uint8).reshape(5, 8)
    np.testing.assert_array_equal(raw[:, 1:], levels)
    assert (raw[:, 0] == 0).all()


def drawn_chart(series, **options):
    return Outline(render("parts.html", parts=[chart(series, **options)]))


@pytest.mark.parametrize(("x_log", "y_log"), [(False, False), (True, False), (False, True), (True, True)])
def test_a_chart_draws_what_its_axes_can_show(x_log, y_log):
    x, y = [1.0, 2.0, np.nan, -1.0, 1000.0], [1e-6, 5.0, 1.0, 2.0, 0.0]
    drawn = drawn_chart([Series(x, y, "s")], alt="a", x_title="x", y_title="y", x_log=x_log, y_log=y_log,
                          marks=[Mark(2.0, "here")])  # fmt: skip
    assert drawn.count("circle") == 4 - x_log - y_log
    for name, attributes in drawn.elements:
        if name == "circle":
            assert 0 <= float(attributes["cx"]) <= 520
            assert 0 <= float(attributes["cy"]) <= 300


@given(st.floats(-1e6, 1e6, allow_subnormal=False), st.booleans())
def test_a_chart_of_one_value_can_be_drawn(value, log):
    drawn = drawn_chart([Series([1.0], [value], "s")], alt="a", x_title="x", y_title="y", y_log=log)
    assert drawn.count("circle") == int(value > 0 or not log)


@pytest.mark.parametrize("x", [(5e-324, 1e-310), (5e-324, 1e308), (1e308, 1.7e308), (1.0, 1.0)])
def test_charts_can_be_drawn_of_any_finite_numbers(x):
    assert drawn_chart([Series(x, (0.0, 1.0), "a")], alt="a", x_title="x", y_title="y", x_log=True).count("svg") == 1
