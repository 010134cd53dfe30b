"""Laws of the plots: what they compute, and that they draw it in scikit-learn's way."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from matplotlib import pyplot
from sklearn.datasets import make_circles
from sklearn.exceptions import NotFittedError

from dc2 import KASP, RASP, RPFCluster
from dc2.errors import InputTypeError, ParameterError
from dc2.report import ClusterProfileDisplay, ClusterStatistics, SignatureMapDisplay, SpectrumDisplay
from dc2.report.cluster_statistics import gap_after
from dc2.report.displays import DARK_COLOURS, LIGHT_COLOURS
from dc2.report.layout import variation_layout
from dc2.report.profiles import cluster_profile
from dc2.spectral import RPF


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    pyplot.close("all")


def weather_rows(n: int = 3000) -> pd.DataFrame:
    """Three kinds of days; in the second it is hot and dry."""
    rng = np.random.default_rng(0)
    centres = np.array([[10.0, 60.0, 1000.0, 5.0], [35.0, 20.0, 1000.0, 5.0], [10.0, 60.0, 1000.0, 30.0]])
    rows = np.repeat(centres, n // 3, axis=0) + rng.normal(size=(n, 4)) * [2.0, 4.0, 8.0, 2.0]
    return pd.DataFrame(rows, columns=["temperature", "humidity", "pressure", "wind"])


def quick(k: int, **changes) -> RPFCluster:
    return RPFCluster(k, **({"n_signatures": 50, "similarity": RPF(100, bandwidth=0.05), "random_state": 0} | changes))


@pytest.fixture(scope="module")
def model() -> RPFCluster:
    return quick(3, n_signatures=120, scale="standard").fit(weather_rows())


def hot_cluster(model: RPFCluster) -> int:
    return int(model.predict(weather_rows().iloc[[1500]])[0])


def test_values_are_in_the_units_of_the_data_and_points_as_clustered(model):
    clusters = ClusterStatistics.of(model)
    share = clusters.weights / clusters.weights.sum()
    np.testing.assert_allclose(share @ clusters.values, weather_rows().mean(), rtol=1e-4)
    np.testing.assert_allclose(share @ clusters.points, 0.0, atol=1e-3)


def test_sizes_are_those_of_the_labels(model):
    np.testing.assert_array_equal(ClusterStatistics.of(model).sizes, np.bincount(model.labels_))


def test_cluster_means_are_means_of_rows(model):
    clusters = ClusterStatistics.of(model)
    means = weather_rows().groupby(model.labels_).mean().to_numpy()
    np.testing.assert_allclose(clusters.means(clusters.values), means, rtol=1e-4)


def test_a_hot_and_dry_cluster_is_called_so(model):
    phrase = cluster_profile(ClusterStatistics.of(model)).sentence(hot_cluster(model))
    assert "high temperature" in phrase
    assert "low humidity" in phrase
    assert "pressure" not in phrase


def test_every_cluster_finds_its_largest_difference_among_those_shown(model):
    profile = cluster_profile(ClusterStatistics.of(model))
    shown = profile.differing_columns(3)
    for own in np.abs(profile.difference):
        assert own.argmax() in shown


def test_the_similarity_is_the_one_the_model_used(model):
    similarity = model.similarity_.matrix()
    assert model.similarity_.bandwidth == model.bandwidth_
    own = model.signature_labels_[:, None] == model.signature_labels_
    assert similarity[own].mean() > 10 * similarity[~own].mean()


def test_the_variation_layout_is_centred_and_its_first_direction_is_the_widest(model):
    clusters = ClusterStatistics.of(model)
    xy = variation_layout(clusters).xy
    share = clusters.weights / clusters.weights.sum()
    np.testing.assert_allclose(share @ xy, 0.0, atol=1e-9)
    assert share @ xy[:, 0] ** 2 >= share @ xy[:, 1] ** 2


@given(arrays(float, st.integers(2, 12), elements=st.floats(1e-7, 1.0)))
def test_a_gap_lies_between_two_eigenvalues_and_at_a_jump(costs):
    eigenvalues = 1.0 - np.sort(np.concatenate([[0.0], costs]))
    gap = gap_after(eigenvalues)
    if gap is not None:
        assert 2 <= gap < len(eigenvalues)
        assert eigenvalues[gap - 1] > eigenvalues[gap]


def test_separate_pieces_are_the_gap():
    assert gap_after(np.array([1.0, 1.0, 1.0 - 1e-15, 0.9, 0.8])) == 3


def test_the_map_draws_every_signature_in_its_cluster(model):
    display = SignatureMapDisplay.from_estimator(model)
    drawn = [len(points.get_offsets()) for points in display.clusters_]
    np.testing.assert_array_equal(drawn, np.bincount(model.signature_labels_))
    assert display.figure_ is display.ax_.figure


@pytest.mark.parametrize("layout", ["columns", "variation", "neighbours"])
def test_the_map_draws_on_given_axes_with_given_looks(model, layout):
    _, ax = pyplot.subplots()
    display = SignatureMapDisplay.from_estimator(model, layout=layout, ax=ax, alpha=0.3)
    assert display.ax_ is ax
    assert display.clusters_[0].get_alpha() == 0.3
    assert bool(ax.get_xlabel()) == (layout != "neighbours")


def test_two_columns_are_drawn_as_they_are():
    X = weather_rows(600)[["temperature", "humidity"]]
    display = SignatureMapDisplay.from_estimator(quick(2, similarity=RPF(20, bandwidth=0.05)).fit(X))
    assert display.ax_.get_xlabel() == "temperature"
    assert display.ax_.get_ylabel() == "humidity"


def test_the_spectrum_marks_the_gap_of_two_rings():
    X, _ = make_circles(2000, noise=0.03, factor=0.4, random_state=0)
    fitted = quick(2, n_signatures=200, similarity=RPF(200, bandwidth=0.05)).fit(X)
    display = SpectrumDisplay.from_estimator(fitted)
    assert display.gap_ == 2
    assert any("gap after 2" in text.get_text() for text in display.ax_.get_legend().get_texts())


def test_the_profile_draws_columns_by_clusters(model):
    display = ClusterProfileDisplay.from_estimator(model, n_columns=2)
    assert display.image_.get_array().shape == (2, 3)
    assert set(display.names) <= {"temperature", "humidity", "wind"}


@pytest.mark.parametrize("kind", [RASP, KASP])
def test_rivals_can_be_drawn_too(kind):
    fitted = kind(2, n_signatures=40, random_state=0).fit(weather_rows(300))
    for display in (SignatureMapDisplay, SpectrumDisplay, ClusterProfileDisplay):
        assert display.from_estimator(fitted).ax_ is not None


@pytest.mark.parametrize("display", [SignatureMapDisplay, SpectrumDisplay, ClusterProfileDisplay])
def test_what_cannot_be_drawn_is_refused(display):
    with pytest.raises(NotFittedError):
        display.from_estimator(RPFCluster(2))
    with pytest.raises(InputTypeError, match="got str"):
        display.from_estimator("model")


def test_unknown_layouts_and_no_columns_are_refused(model):
    with pytest.raises(ParameterError, match="layout"):
        SignatureMapDisplay.from_estimator(model, layout="umap")
    with pytest.raises(ParameterError, match="n_columns"):
        ClusterProfileDisplay.from_estimator(model, n_columns=0)


def test_without_matplotlib_plots_can_be_imported_and_say_what_to_install():
    code = """
import sys
sys.modules["matplotlib"] = None
import numpy as np
from dc2.report import SpectrumDisplay
try:
    SpectrumDisplay(eigenvalues=np.array([1.0, 0.5]), n_clusters=1).plot()
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'dc2[plot]'" in done.stdout


# Machado, Oliveira, Fernandes (2009): linear RGB as seen without red, green and blue cones.
SIGHTS = {
    "normal": np.eye(3),
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritanopia": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}


def oklab(linear: np.ndarray) -> np.ndarray:
    cones = np.array([[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]])
    opponents = np.array([[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]])
    return np.cbrt(linear @ cones.T) @ opponents.T


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("colours", [LIGHT_COLOURS, DARK_COLOURS], ids=["light", "dark"])
def test_any_two_of_twenty_colours_differ_for_every_kind_of_sight(colours, sight):
    parts = np.array([[int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)] for colour in colours])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    seen = oklab(np.clip(linear @ np.asarray(SIGHTS[sight]).T, 0.0, 1.0))
    apart = np.linalg.norm(seen[:, None] - seen, axis=-1)[np.triu_indices(len(colours), 1)]
    assert len(colours) == 20
    assert apart.min() > 0.045  # 0.02 is what a careful eye can just distinguish
