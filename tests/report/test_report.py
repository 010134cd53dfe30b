"""Laws of the report: complete in itself, escaped, the same each time, readable at any size."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_moons
from sklearn.exceptions import NotFittedError
from sklearn.metrics import silhouette_samples, silhouette_score

import dc2
from dc2 import KASP, RASP, Compressor, DC2Clustering, RPFCluster
from dc2.compress import Signatures
from dc2.errors import InputTypeError, ParameterError
from dc2.report import ClusterStatistics, write_report
from dc2.report.page import number
from dc2.report.profiles import weighted_silhouette
from dc2.report.reproduce import command_line, python_snippet
from dc2.spectral import RPF, Gaussian
from support.page_outline import Outline

HOSTILE = "<script>alert('x')</script>\"&"
SECTIONS = [
    "Clusters",
    "Map",
    "What sets clusters apart",
    "Rules",
    "Compare two clusters",
    "How well they hold together",
    "Similarity",
    "How many clusters",
    "Time",
    "Do it again",
]


def rows(n: int = 3000, k: int = 3, d: int = 12) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(k, d))[np.arange(n) % k] * 4 + rng.normal(size=(n, d))
    names = ["temperature", "humidity", HOSTILE, *(f"x{i}" for i in range(d))][:d]
    return pd.DataFrame(X.astype(np.float32), columns=names)


def quick(k: int, **changes) -> RPFCluster:
    return RPFCluster(k, **({"n_signatures": 100, "similarity": RPF(60, bandwidth=0.05), "random_state": 0} | changes))


def written(model, folder: Path, **options) -> str:
    return write_report(model, folder / "report.html", **options).read_text("utf-8")


def data_of(page: str, name: str):
    return json.loads(re.search(rf'id="data-{name}">(.*?)</script>', page, re.DOTALL).group(1))


@pytest.fixture(scope="module")
def model() -> RPFCluster:
    return quick(3, scale="standard").fit(rows())


@pytest.fixture(scope="module")
def page(model, tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("report")
    return written(model, folder, source_description=f"days {HOSTILE}", title=f"Weather {HOSTILE}")


def test_every_section_is_there_and_the_page_is_sound(page):
    outline = Outline(page)
    assert outline.texts["h2"] == SECTIONS
    assert outline.texts["h1"] == [f"Weather {HOSTILE}"]
    ids = [attributes["id"] for _, attributes in outline.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_links_lead_to_sections(page):
    outline = Outline(page)
    ids = {attributes.get("id") for _, attributes in outline.elements}
    links = [attributes["href"] for name, attributes in outline.elements if name in ("a", "use")]
    assert {link.removeprefix("#") for link in links} <= ids


def test_nothing_is_fetched_from_anywhere(page):
    outline = Outline(page)
    for name, attributes in outline.elements:
        assert name != "link"
        assert not (attributes.get("src") or "data:").startswith(("http", "//", "/"))
    # The name of a kind of element looks like an address, but is none.
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    assert "url(" not in page


def test_names_and_titles_from_the_data_stay_text(page):
    outline = Outline(page)
    assert "<script>alert" not in page
    assert any(HOSTILE in text for text in outline.texts["th"])
    assert HOSTILE in data_of(page, "map")["names"]


def test_pictures_and_drawings_have_words_for_those_who_do_not_see_them(page):
    for name, attributes in Outline(page).elements:
        if name == "img":
            assert attributes["alt"]
        if name == "svg":
            assert attributes.get("aria-label") or attributes.get("aria-hidden")


def test_the_map_has_a_mark_and_values_for_every_signature(model, page):
    facts = data_of(page, "map")
    n = len(model.signatures_)
    assert Outline(page).count("use") == n
    assert len(facts["cluster"]) == len(facts["values"]) == len(facts["rows"]) == n
    assert all(len(layout["xy"]) == 2 * n for layout in facts["layouts"])
    np.testing.assert_array_equal(np.bincount(facts["cluster"]), np.bincount(model.signature_labels_))


def test_values_on_the_map_are_in_the_units_of_the_data(model, page):
    heaviest = int(np.argmax(model.signatures_.weights))
    values = ClusterStatistics.of(model).values[heaviest]
    assert data_of(page, "map")["values"][0][1::2] == [number(value) for value in values]


def test_cluster_sizes_are_those_of_the_labels(model, page):
    for size in np.bincount(model.labels_):
        assert f'data-sort="{float(size)}">{size:,}<' in page


def test_the_same_model_gives_the_same_file(model, page, tmp_path):
    again = written(model, tmp_path, source_description=f"days {HOSTILE}", title=f"Weather {HOSTILE}")
    assert again == page


def test_a_loaded_model_gives_the_same_file(model, tmp_path):
    model.save(tmp_path / "model.dc2")
    assert written(dc2.load(tmp_path / "model.dc2"), tmp_path) == written(model, tmp_path)


@pytest.mark.parametrize("k", [1, 2, 30])
def test_any_number_of_clusters_can_be_told_of(k, tmp_path):
    text = written(quick(k).fit(rows(2000, k)), tmp_path)
    assert Outline(text).texts["h2"][:3] == SECTIONS[:3]
    assert len(data_of(text, "matrix")["means"]) == k


def test_few_columns_are_mapped_as_they_are(tmp_path):
    X, _ = make_moons(1000, noise=0.05, random_state=0)
    for width in (1, 2):
        model = quick(2).fit(X[:, :width])
        (layout,) = data_of(written(model, tmp_path), "map")["layouts"]
        assert layout["note"].startswith("Across: x0, from")


def test_few_rows_stand_for_themselves(tmp_path):
    text = written(quick(2).fit(rows(8, 2, 3)), tmp_path)
    assert "dc2 keeps each of them" in text


def test_a_wide_table_with_many_clusters_stays_small_and_readable(tmp_path):
    model = quick(50, n_signatures=400, similarity=RPF(30, bandwidth=0.05)).fit(rows(4000, 50, 800))
    text = written(model, tmp_path)
    assert len(text.encode()) < 2_000_000
    assert "30 of 800 columns are shown" in text


@pytest.mark.parametrize("k", [40, 600])
def test_a_page_stays_small_however_many_signatures_and_clusters_there_are(k, tmp_path):
    """Its largest parts: 2000 marks with values of 50 columns, and 100 clusters in 30 columns of long names."""
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=1e3, size=(k, 50))
    points = centres[np.arange(6000) % k] + rng.normal(size=(6000, 50))
    signatures = Signatures(points.astype(np.float32), rng.integers(1, 99, 6000) + 0.123, np.ones(6000))
    model = DC2Clustering(k, random_state=0).fit_signatures(signatures)
    text = written(model, tmp_path)
    assert len(text.encode()) < 2_000_000
    assert "2,000 signatures are drawn, the heaviest of each cluster; 4,000 are not." in text
    assert ("The 100 largest clusters are listed" in text) == (k > 100)
    view = next(view for view in data_of(text, "explore")["views"] if view["chosen"])
    assert len(view["rows"]) == k
    assert len(view["words"]) == len(data_of(text, "matrix")["means"]) == min(k, 100)


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_the_numbers_of_the_report_are_those_of_the_summary(noise, tmp_path):
    model = DC2Clustering(noise=noise, random_state=0).fit(rows(900, 3, 4))
    summary, text = model.summary(), written(model, tmp_path)
    view = next(view for view in data_of(text, "explore")["views"] if view["chosen"])
    inside = summary[summary["cluster"] >= 0]
    assert summary["rows"].sum() == 900
    assert view["rows"] == inside["rows"].tolist()
    assert view["share"] == inside["share"].round(6).tolist()
    assert view["stability"] == inside["stability"].round(3).tolist()
    told = data_of(text, "explore")["noise"]
    assert (told is None) == (noise == 0)
    assert told is None or told["rows"] == summary["rows"].iloc[-1] == 45
    for column in ("rows", "spread"):
        assert all(f'data-sort="{float(value)}"' in text for value in inside[column])
    for nearest, words in zip(inside["nearest"], inside["sets_apart"], strict=True):
        assert f'data-sort="{nearest}"' in text
        first = re.match(r"(.*?) \S+ \(all", words)[1].rsplit(" ", 1)
        assert f"<b>{first[0]}</b> {first[1]}" in text


@pytest.mark.parametrize("kind", [RASP, KASP])
def test_rivals_have_a_report_too(kind, tmp_path):
    text = written(kind(3, n_signatures=40, random_state=0).fit(rows(300)), tmp_path)
    assert Outline(text).texts["h2"] == SECTIONS
    assert "dc2 cluster" not in text


def test_signatures_from_elsewhere_have_no_times(tmp_path):
    signatures = Compressor(n_signatures=80, random_state=0).fit(rows()).signatures_
    text = written(quick(3).fit_signatures(signatures), tmp_path)
    assert Outline(text).texts["h2"] == [title for title in SECTIONS if title != "Time"]
    assert "3,000" in text


def test_fractional_weights_are_not_called_rows(tmp_path):
    X = rows(600)
    text = written(quick(3).fit(X, sample_weight=np.full(len(X), 0.5)), tmp_path)
    assert ">Weight<" in text


def test_what_was_tried_is_shown_where_the_model_chose(tmp_path):
    model = quick((2, 4), similarity=RPF(60)).fit(rows(600))
    text = written(model, tmp_path)
    assert "What was tried" in text
    assert f"taken: {model.bandwidth_}" in text
    assert f"taken: {model.n_clusters_}" in text


def test_an_unusable_model_or_path_is_refused_and_leaves_no_file(model, tmp_path):
    with pytest.raises(NotFittedError):
        write_report(RPFCluster(2), tmp_path / "report.html")
    with pytest.raises(InputTypeError, match="got ndarray"):
        write_report(np.zeros(3), tmp_path / "report.html")
    with pytest.raises(ParameterError, match="no such folder"):
        write_report(model, tmp_path / "missing" / "report.html")
    with pytest.raises(ParameterError, match="it is a folder"):
        write_report(model, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "model",
    [
        RPFCluster((2, 4), similarity=RPF(bandwidth=0.1), scale="robust", random_state=3, n_jobs=2, verbose=print),
        RPFCluster(range(2, 5), similarity=Gaussian(), metric="cosine"),
        RPFCluster.paper(3, n_partitions=2, random_state=0),
        KASP(3, similarity=Gaussian(sigma=0.5)),
        DC2Clustering(similarity=RPF(bandwidth=0.1), compressor=Compressor(sharpen=0), random_state=0),
    ],
    ids=lambda model: repr(model).split("(")[0],
)
def test_the_snippet_makes_the_same_model(model):
    names: dict[str, object] = {}
    code = "\n".join(line for line in python_snippet(model).splitlines() if "fit" not in line)
    exec(code, names)
    unlike = {"n_jobs", "verbose"}
    made, wanted = (
        {name: repr(value) for name, value in each.get_params().items() if name not in unlike}
        for each in (names["model"], model)
    )
    assert made == wanted


def test_the_command_says_every_setting_or_there_is_none():
    assert command_line(DC2Clustering(4, n_signatures=500, random_state=3)) == (
        "dc2 cluster DATA -k 4 --signatures 500 --metric euclidean --scale none --seed 3 -o labels.parquet"
    )
    by_kernel = command_line(DC2Clustering(4, n_signatures=500, similarity=RPF(bandwidth=0.1)))
    assert "--similarity rpf --bandwidth 0.1" in by_kernel
    assert "-k 2-4 " in command_line(DC2Clustering((2, 4)))
    assert "-k 2-9 " in command_line(DC2Clustering(range(2, 10)))
    assert "--metric cosine" in command_line(DC2Clustering(4, metric="cosine"))
    assert "--noise 0.05 --min-cluster-share 0.01 " in command_line(
        DC2Clustering(4, noise=0.05, min_cluster_share=0.01)
    )


@pytest.mark.parametrize(
    "model",
    [
        RPFCluster(4),
        RASP(4),
        DC2Clustering(4, similarity="rpf"),  # the number of signatures is chosen in another way there
        DC2Clustering(4, n_signatures=500, similarity=RPF(n_trees=100)),
        DC2Clustering(4, n_signatures=500, similarity="gaussian"),
        DC2Clustering(4, compressor=Compressor(sharpen=0)),
    ],
    ids=repr,
)
def test_there_is_no_command_for_what_the_command_line_cannot_say(model):
    assert command_line(model) is None


@given(st.integers(2, 5), st.integers(0, 10_000))
@settings(max_examples=25)
def test_silhouettes_are_those_of_scikit_learn(k, seed):
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(k), rng.integers(0, k, 25)]).astype(np.int32)
    X = rng.normal(size=(len(labels), 3))
    found = weighted_silhouette(X, labels, np.ones(len(labels)))
    assert found.overall == pytest.approx(silhouette_score(X, labels))
    samples = silhouette_samples(X, labels)
    expected = [samples[labels == c].mean() for c in range(k)]
    np.testing.assert_allclose(found.per_cluster, expected, rtol=1e-5, atol=1e-8)
    assert all(found.closest != np.arange(k))


def test_one_cluster_has_no_silhouette():
    assert weighted_silhouette(np.zeros((3, 1)), np.zeros(3, np.int32), np.ones(3)) is None


def test_the_spread_of_a_cluster_is_that_of_its_rows():
    X = rows(900, 3, 4).to_numpy(np.float64)
    model = quick(3).fit(X)
    expected = [
        np.sqrt(((X[model.labels_ == c] - X[model.labels_ == c].mean(axis=0)) ** 2).sum(axis=1).mean())
        for c in range(3)
    ]
    np.testing.assert_allclose(ClusterStatistics.of(model).radii, expected, rtol=1e-6)
