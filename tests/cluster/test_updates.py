"""Laws of updates: names, copies, weights, blocks, engines, bounds, and what is refused."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

import dc2
from dc2 import DC2Clustering
from dc2.cluster.changes import changes_between, matched_names
from dc2.errors import InputError, ParameterError

CORNERS = np.array([[0.0, 0.0], [20.0, 0.0], [0.0, 20.0]])


def rows_at(places, each, seed=0, spread=1.0):
    draw = np.random.default_rng(seed)
    at = np.repeat(np.asarray(places, float), each, axis=0)
    return (at + draw.normal(0, spread, at.shape)).astype(np.float32)


def fitted(compressed=True, each=400, **parameters):
    parameters = {"n_signatures": 100, **parameters} if compressed else parameters
    return DC2Clustering(random_state=0, **parameters).fit(rows_at(CORNERS, each))


def same_record(a, b):
    ours, theirs = a.signatures_, b.signatures_
    return (
        all(np.array_equal(getattr(ours, name), getattr(theirs, name)) for name in ("points", "weights", "spread"))
        and np.array_equal(a.signature_labels_, b.signature_labels_)
        and np.array_equal(a.similarity_.graph.weights, b.similarity_.graph.weights)
        and np.array_equal(a.cluster_numbers_, b.cluster_numbers_)
    )


@pytest.mark.parametrize("compressed", [True, False])
def test_no_rows_change_nothing(compressed):
    model = fitted(compressed)
    labels = model.labels_
    changes = model.update(np.ones((3, 2)), sample_weight=np.zeros(3))
    assert changes.of("kept") == [0, 1, 2]
    assert np.array_equal(model.labels_, labels)
    assert model.n_rows_in_ == len(labels)


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("move", [True, False])
@pytest.mark.parametrize("overlapping", [True, False])
def test_copies_of_all_rows_change_no_label(compressed, move, overlapping):
    X = rows_at(CORNERS / (8 if overlapping else 1), 400)
    model = DC2Clustering(random_state=0, n_signatures=100 if compressed else "auto").fit(X)
    labels, weights = model.labels_, model.signatures_.weights
    changes = model.update(X, move=move)
    assert np.array_equal(model.predict(X), labels)
    assert np.array_equal(model.signatures_.weights, 2 * weights)
    assert len(changes.of("kept")) == model.n_clusters_
    assert changes.drift["beyond"] == 0


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([True, False]), st.sampled_from([True, False]))
def test_weights_are_repeats_and_blocks_and_threads_do_not_matter(seed, compressed, move):
    draw = np.random.default_rng(seed)
    X = rows_at([[0, 0], [20, 0], [20, 20]], 40, seed)
    w = draw.integers(0, 3, len(X))
    one, two = fitted(compressed, each=60), fitted(compressed, each=60, n_jobs=1, block_bytes=1000)
    one.update(X, sample_weight=w.astype(float), move=move)
    two.update(np.repeat(X, w, axis=0), move=move)
    assert np.array_equal(one.predict(X), two.predict(X))
    assert np.allclose(np.sort(one.signatures_.weights), np.sort(two.signatures_.weights))
    three, four = fitted(compressed, each=60), fitted(compressed, each=60, n_jobs=1, block_bytes=1000)
    three.update(X, move=move)
    four.update(X, move=move)
    assert same_record(three, four)


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("move", [True, False])
def test_saved_loaded_and_updated_equals_updated(compressed, move, tmp_path):
    model, new = fitted(compressed, scale="standard"), rows_at([[20, 20], [0, 0]], 200, 1)
    model.save(tmp_path / "model.dc2")
    loaded = dc2.load(tmp_path / "model.dc2")
    pickled = pickle.loads(pickle.dumps(model))
    for other in (model, loaded, pickled):
        other.update(new, move=move)
    model.save(tmp_path / "again.dc2")
    last = dc2.load(tmp_path / "again.dc2")
    assert same_record(model, loaded)
    assert same_record(model, pickled)
    assert same_record(model, last)
    assert last.changes_.to_json() == model.changes_.to_json()
    assert np.array_equal(last.predict(new), model.predict(new))
    for other in (model, last):
        other.update(rows_at([[-20, 0]], 300, 2), move=move)
    assert same_record(model, last)


@pytest.mark.parametrize("compressed", [True, False])
def test_a_new_cluster_gets_a_new_number_and_no_number_is_used_twice(compressed):
    model = fitted(compressed)
    seen = set(model.cluster_numbers_.tolist())
    for month, place in enumerate([(20, 20), (-20, 0), (0, -20)]):
        new = rows_at([place], 400, month)
        changes = model.update(new, forget=0.95)
        (number,) = changes.of("born")
        assert number not in seen
        assert set(model.predict(new).tolist()) == {number}
        seen.add(number)
    assert model.n_clusters_ == len(model.cluster_numbers_) < len(seen)
    assert model.summary()["cluster"].tolist() == model.cluster_numbers_.tolist()


def test_what_happened_is_named():
    model = fitted()
    assert model.update(rows_at(CORNERS[:2], 400, 1), forget=0.95).of("gone") == [2]
    assert model.update(rows_at([[0, 0], [20, 0], [20, 0], [20, 0]], 400, 2), forget=0.95).of("grown") == [1]
    assert model.update(rows_at([[0, 0]], 3000, 3), forget=0.95).of("gone") == [1]
    assert np.array_equal(model.cluster_numbers_, [0])


def test_clusters_that_drift_keep_their_numbers():
    model = fitted(n_clusters=3)
    for month in range(1, 6):
        moved = CORNERS + np.array([1.5, 0.5]) * month
        new = rows_at(moved, 400, month)
        model.update(new, forget=0.9)
        assert np.mean(model.predict(new) == np.repeat(fitted().predict(CORNERS.astype(np.float32)), 400)) > 0.97


@settings(max_examples=5, deadline=None)
@given(st.lists(st.tuples(st.integers(-30, 50), st.integers(-30, 50)), min_size=1, max_size=4))
def test_fixed_updates_never_change_a_label(places):
    model = fitted(each=100)
    known = rows_at(CORNERS, 100)
    labels = model.predict(known)
    for month, place in enumerate(places):
        new = rows_at([place, CORNERS[0]], 100, month)
        model.update(new, move=False)
        assert np.array_equal(model.predict(known), labels)
        known = np.concatenate([known, new])
        labels = model.predict(known)


def test_fixed_updates_make_new_clusters_of_far_rows():
    model, new = fitted(), rows_at([[20, 20]], 400, 1)
    changes = model.update(new, move=False)
    assert changes.of("born") == [3]
    assert set(model.predict(new).tolist()) == {3}
    assert model.stability_.shape == (4,)


def test_files_frames_and_named_weights(tmp_path):
    pd = pytest.importorskip("pandas")
    columns = ["a", "b"]
    model = DC2Clustering(random_state=0, n_signatures=50).fit(pd.DataFrame(rows_at(CORNERS, 100), columns=columns))
    other = pickle.loads(pickle.dumps(model))
    table = pd.DataFrame(rows_at([[20, 20]], 100, 1), columns=columns).assign(w=2.0)
    table.to_parquet(tmp_path / "new.parquet")
    model.update(table, sample_weight="w")
    other.update(tmp_path / "new.parquet", sample_weight="w")
    assert same_record(model, other)
    with pytest.raises(ValueError, match="names should match"):
        model.update(table[["a"]])


def test_tables_are_prepared_as_in_fit():
    pd = pytest.importorskip("pandas")
    x = rows_at(CORNERS, 200)
    table = pd.DataFrame({"x": x[:, 0], "y": x[:, 1], "kind": ["p", "q"] * 300})
    model = DC2Clustering(random_state=0, n_signatures=60, prepare=dc2.TablePreparer()).fit(table)
    labels = model.labels_
    model.update(table)
    assert np.array_equal(model.predict(table), labels)


@pytest.mark.parametrize("bad", [np.array([[np.nan, 1.0]]), np.ones((3, 3)), np.ones(3)])
def test_a_failed_update_changes_nothing(bad):
    model = fitted()
    before = model._record
    with pytest.raises(InputError):
        model.update(bad)
    assert model._record is before


@pytest.mark.parametrize("forget", [-0.1, np.inf, "half", None])
def test_an_impossible_share_to_forget_is_refused(forget):
    with pytest.raises(ParameterError):
        fitted().update(rows_at([[0, 0]], 10), forget=forget)


def test_models_that_cannot_be_updated_say_so():
    signatures = fitted().signatures_
    with pytest.raises(ParameterError):
        DC2Clustering(random_state=0).fit_signatures(signatures).update(rows_at([[0, 0]], 10))
    with pytest.raises(ParameterError):
        fitted(noise=0.05).update(rows_at([[0, 0]], 10), move=False)


def test_noise_keeps_its_threshold():
    model = fitted(noise=0.02)
    threshold = model.noise_threshold_
    changes = model.update(rows_at([[60, 60]], 30, 1))
    assert model.noise_threshold_ == threshold
    assert changes.drift["beyond"] > 0.9


def test_dense_similarities_can_be_updated():
    model = fitted(similarity="rpf", n_clusters=(2, 6))
    model.update(rows_at([[20, 20]], 400, 1))
    assert model.n_clusters_ == 4


@pytest.mark.parametrize("compressed", [True, False])
def test_a_stream_stays_bounded(compressed):
    model = DC2Clustering(random_state=0, n_signatures=60, n_clusters=3)
    for step in range(25):
        model.partial_fit(rows_at(CORNERS + step * 0.3, 10 if compressed else 3, step), None)
        assert len(model.signatures_) <= 90
    assert model.n_rows_in_ == 25 * (30 if compressed else 9)


def test_rows_as_signatures_equal_a_fit_of_all_rows():
    first, second = rows_at(CORNERS, 100), rows_at([[20, 20], [0, 0]], 100, 1)
    model = DC2Clustering(random_state=0).fit(first)
    model.update(second)
    whole = DC2Clustering(random_state=0).fit(np.concatenate([first, second]))
    assert adjusted_rand_score(model.predict(second), whole.predict(second)) == 1.0
    assert len(model.signatures_) == len(whole.signatures_)


def test_the_assignment_is_the_largest_overlap():
    overlap = np.array([[60.0, 30.0, 0.0], [50.0, 0.0, 0.0]])
    names, unused = matched_names(overlap, np.array([3, 7], np.int32), 8)
    assert names.tolist() == [7, 3, 8]
    assert unused == 9


def test_changes_name_splits_and_mergers():
    split = changes_between([(0, 0, 50.0, 50.0), (0, 5, 40.0, 40.0), (1, 1, 10.0, 10.0)])
    assert split.of("split") == [0, 5]
    merged = changes_between([(0, 0, 50.0, 50.0), (1, 0, 40.0, 40.0)])
    assert merged.of("merged") == [0, 1]
    gone = changes_between([(0, 0, 50.0, 50.0), (1, -1, 40.0, 0.0), (-1, 2, 0.0, 9.0)])
    assert gone.of("gone") == [1]
    assert gone.of("born") == [2]
    assert len(gone.to_frame()) == 3
    assert len(gone.sentences()) >= 2


def test_an_interrupted_update_leaves_the_model_as_it_was():
    model = fitted()
    before = model._record

    def stop(stage, rows_done, rows_total):
        if stage == "conquer":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.set_params(verbose=stop).update(rows_at([[20, 20]], 100))
    assert model._record is before


def test_a_refit_takes_over_the_numbers_of_an_older_fit():
    X = rows_at(CORNERS, [100, 200, 300])
    old, new = fitted(), DC2Clustering(random_state=0).fit(X)
    assert len(dc2.compare(old, new, X).of("kept", "grown", "shrunk")) == 3
    for relabelled in (new.relabel(old), new.relabel(old, X)):
        assert np.array_equal(relabelled.predict(X), old.predict(X))
