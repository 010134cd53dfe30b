"""Places: distances on the globe, in degrees in and kilometres out."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import haversine_distances

import dc2
from dc2 import Compressor, DC2Clustering, RPFCluster, TablePreparer
from dc2.compress.places import EARTH_RADIUS_KM, Sphere, arc_length
from dc2.errors import InputError, ParameterError

TRUTH = np.repeat(np.arange(5), 400)
rng = np.random.default_rng(0)
PLACES = np.array([[0.0, 180.0], [0.0, 0.0], [48.9, 2.3], [-33.9, 151.2], [52.5, 13.4]])[TRUTH]
PLACES += rng.normal(0, 0.2, PLACES.shape)
PLACES[:, 1] = (PLACES[:, 1] + 180) % 360 - 180  # the first cluster is on both sides of the date line
PLACES[TRUTH == 1, 0] = 90 - np.abs(PLACES[TRUTH == 1, 0])  # the second is around the north pole
PLACES[TRUTH == 1, 1] = rng.uniform(-180, 180, 400)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.floats(-90, 90), st.floats(-360, 360)), min_size=2, max_size=20), st.booleans())
def test_distances_are_those_of_scikit_learn_and_degrees_come_back(degrees, swapped):
    X = np.array(degrees)
    sphere = Sphere(int(swapped))
    given_order = X[:, ::-1] if swapped else X
    points = sphere.apply(given_order)
    straight = np.linalg.norm(points[:, None] - points[None], axis=2)
    expected = haversine_distances(np.radians(X)) * EARTH_RADIUS_KM
    assert arc_length(straight) == pytest.approx(expected, abs=1e-3)  # both lose digits at opposite points
    again = sphere.apply(sphere.undo(points))
    assert again == pytest.approx(points, abs=1e-6)


def test_one_place_has_one_point_whatever_its_longitude_is_called():
    points = Sphere().apply(
        np.array([[3.0, 180], [3, -180], [90, 5], [90, -77], [-90, 1], [-90, 2], [8, 10], [8, -350]])
    )
    for first, second in ((0, 1), (2, 3), (4, 5), (6, 7)):
        assert points[first].tobytes() == points[second].tobytes()


@pytest.mark.parametrize("n_signatures", ["auto", 100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_clusters_at_the_date_line_and_the_pole_are_whole(n_signatures, dtype, tmp_path):
    X = PLACES.astype(dtype)
    model = DC2Clustering(n_signatures=n_signatures, metric="haversine", random_state=0).fit(X)
    assert adjusted_rand_score(TRUTH, model.labels_) == 1
    assert np.array_equal(model.predict(X), model.labels_)
    model.save(tmp_path / "model.dc2")
    loaded = dc2.load(tmp_path / "model.dc2")
    assert np.array_equal(loaded.predict(X), model.labels_)
    first = model.labels_[0]
    spread = model.summary()["spread"][first]
    degree = EARTH_RADIUS_KM * np.pi / 180
    assert spread == pytest.approx(0.2 * degree * np.sqrt(2), rel=0.1)
    latitude, longitude = model.representatives_[first]
    assert abs(latitude) < 0.3
    assert abs(longitude) > 179.7
    report = loaded.report(tmp_path / "report.html").read_text("utf-8")
    assert "Spread (km)" in report
    assert "longitude" in report


def test_labels_do_not_depend_on_threads_blocks_or_the_order_of_columns(tmp_path):
    frame = pd.DataFrame({"Lng": PLACES[:, 1], "Lat": PLACES[:, 0]})
    frame.to_csv(tmp_path / "places.csv", index=False)
    own = DC2Clustering(n_signatures=100, metric="haversine", random_state=0)
    labels = own.fit(PLACES).labels_
    others = [{"n_jobs": 3}, {"block_bytes": 4_096}]
    for params in others:
        assert np.array_equal(own.set_params(**params).fit(PLACES).labels_, labels)
    model = own.fit(frame)
    assert np.array_equal(model.labels_, labels)
    assert np.array_equal(model.predict(frame[["Lat", "Lng"]]), labels)
    assert list(model.representatives_.columns) == ["Lng", "Lat"]
    drawn = model.map(frame, n_rows=10)
    assert np.allclose(drawn["x"], frame["Lng"][drawn["row"]])
    from_file = own.fit(str(tmp_path / "places.csv"))
    assert np.array_equal(np.concatenate(list(from_file.predict(str(tmp_path / "places.csv")))), labels)


def test_the_other_estimators_take_places_too():
    labels = RPFCluster(5, metric="haversine", n_signatures=100, random_state=0).fit_predict(PLACES)
    assert adjusted_rand_score(TRUTH, labels) == 1
    compressor = Compressor(50, metric="haversine", random_state=0)
    for fitted in (clone(compressor).fit(PLACES), compressor.partial_fit(PLACES)):
        assert fitted.transform(PLACES[:7]).shape == (7, 3)
        assert len(fitted.get_feature_names_out()) == 3
        # Means of near points lie a little inside the sphere.
        assert np.linalg.norm(fitted.signatures_.points, axis=1) == pytest.approx(EARTH_RADIUS_KM, rel=1e-2)


@pytest.mark.parametrize(
    ("X", "params", "words"),
    [
        (PLACES[:, ::-1], {}, "row 0 has the latitude"),
        (np.array([[1.0, 2.0]] * 7 + [[3.0, 400.0]]), {}, "row 7 has the longitude 400"),
        (PLACES[:, :1], {}, "1 column"),
        (np.hstack([PLACES, PLACES]), {}, "4 columns"),
        (np.full((9, 2), np.nan), {}, "NaN"),
        (PLACES, {"scale": "standard"}, "scale=None"),
        (PLACES, {"prepare": TablePreparer()}, "prepare=None"),
    ],
)
def test_what_is_no_place_is_refused(X, params, words):
    with pytest.raises((InputError, ParameterError), match=words):
        DC2Clustering(metric="haversine", **params).fit(X)


def test_a_new_row_that_is_no_place_is_named():
    model = DC2Clustering(metric="haversine", random_state=0).fit(PLACES)
    with pytest.raises(InputError, match="row 2 has the latitude 91"):
        model.predict(np.array([[1.0, 2.0], [3.0, 4.0], [91.0, 0.0]]))
