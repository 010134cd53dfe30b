"""Laws of saved models: the same predictions to the bit, small files, nothing executed, nothing broken accepted."""

import dataclasses
import errno
import io
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import dc2
from dc2 import KASP, RASP, Compressor, RPFCluster
from dc2.errors import ModelFileError, ParameterError
from dc2.io.model_file import read_header
from dc2.spectral import RPF

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(size=(400, 4)), RNG.normal(5.0, 2.0, size=(400, 4))])
NEW = RNG.normal(2.0, 3.0, size=(500, 4))


def small(n_clusters: Any, **changes: Any) -> RPFCluster:
    return RPFCluster(n_clusters, **({"n_signatures": 60, "similarity": RPF(n_trees=50)} | changes))


MODELS = {
    "leaf": small(3, compressor=Compressor(populate="leaf"), random_state=0),
    "nearest": small(3, scale="standard", random_state=1),
    "robust": small(2, scale="robust", random_state=2),
    "cosine": small(2, metric="cosine", random_state=2),
    "scaled cosine": small(2, scale="standard", metric="cosine", random_state=2),
    "dealt": small(2, compressor=Compressor(n_partitions=3, divide="sampling"), random_state=2),
    "every row": small(2, n_signatures=len(X), random_state=3),
    "gaussian": small(2, similarity="gaussian", random_state=3),
    "paper": RPFCluster.paper(2, n_partitions=2, n_signatures=60, random_state=3),
    "RASP": RASP(2, n_signatures=50, random_state=0),
    "KASP": KASP(2, n_signatures=20, random_state=0),
    "Compressor": Compressor(40, populate="nearest", random_state=0),
}


@pytest.fixture(scope="module", params=MODELS)
def model(request: pytest.FixtureRequest) -> Any:
    name: str = request.param
    return MODELS[name].fit(X)


def answer(model: Any, rows: Any) -> Any:
    return model.apply(rows) if isinstance(model, Compressor) else model.predict(rows)


def saved(model: Any, folder: Path) -> Path:
    path = folder / "model.dc2"
    model.save(path)
    return path


def assert_same(model: Any, again: Any) -> None:
    assert type(again) is type(model)
    assert repr(again.get_params()) == repr(model.get_params())
    for rows in (X, NEW, NEW.astype(np.float32)):
        assert answer(again, rows).tobytes() == answer(model, rows).tobytes()
        assert again.transform(rows).tobytes() == model.transform(rows).tobytes()
    for before, after in zip(
        dataclasses.astuple(model.signatures_), dataclasses.astuple(again.signatures_), strict=True
    ):
        assert before.dtype == after.dtype
        assert before.tobytes() == after.tobytes()
    assert again.distortion_ == model.distortion_


def test_a_loaded_model_predicts_the_same_bits(model: Any, tmp_path: Path) -> None:
    assert_same(model, dc2.load(saved(model, tmp_path)))


def test_what_was_learned_comes_back(tmp_path: Path) -> None:
    model = MODELS["leaf"].fit(X)
    again = dc2.load(saved(model, tmp_path))
    assert again.bandwidth_ == model.bandwidth_
    assert again.n_clusters_ == model.n_clusters_
    for name in ("signature_labels_", "embedding_", "eigenvalues_"):
        assert getattr(again, name).tobytes() == getattr(model, name).tobytes()
    assert again.stage_seconds_ == model.stage_seconds_
    assert again.n_rows_in_ == len(X)
    assert again.n_features_in_ == X.shape[1]


def test_a_loaded_model_can_be_clustered_anew(tmp_path: Path) -> None:
    model = MODELS["leaf"].fit(X)
    again = dc2.load(saved(model, tmp_path))
    assert again.recluster(4).predict(X).tobytes() == model.recluster(4).predict(X).tobytes()


def test_a_range_of_clusters_comes_back_as_it_was(tmp_path: Path) -> None:
    model = small((2, 4), random_state=0).fit(X)
    again = dc2.load(saved(model, tmp_path))
    assert again.n_clusters == (2, 4)
    np.testing.assert_array_equal(again.n_clusters_path_["score"], model.n_clusters_path_["score"])


def test_a_new_fitted_attribute_is_saved_without_further_ado(tmp_path: Path) -> None:
    model = small(2, n_signatures=20, random_state=0).fit(X)
    model.path_ = {0.05: [0.5, None], 0.1: (1, "auto", np.float64(2.5))}
    model.counts_ = np.arange(6, dtype=np.int16).reshape(2, 3)
    again = dc2.load(saved(model, tmp_path))
    assert again.path_ == model.path_
    assert again.counts_.dtype == np.int16
    np.testing.assert_array_equal(again.counts_, model.counts_)


def test_an_attribute_that_cannot_be_written_down_is_named(tmp_path: Path) -> None:
    model = small(2, n_signatures=20, random_state=0).fit(X)
    model.thing_ = object()
    with pytest.raises(ModelFileError, match="fitted/thing_ is a object"):
        model.save(tmp_path / "model.dc2")
    assert list(tmp_path.iterdir()) == []


def test_column_names_come_back_and_are_checked(tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=["höhe", "b", "c d", "e"])
    again = dc2.load(saved(small(2, n_signatures=40, random_state=0).fit(frame), tmp_path))
    assert list(again.feature_names_in_) == list(frame.columns)
    np.testing.assert_array_equal(again.predict(frame[frame.columns[::-1]]), again.predict(frame))
    with pytest.raises(ValueError, match="höhe"):
        again.predict(frame.rename(columns={"höhe": "width"}))


def test_a_stream_is_saved_as_what_it_has_come_to(tmp_path: Path) -> None:
    compressor = Compressor(30, sample_size=500, random_state=0)
    for part in np.array_split(X, 4):
        compressor.partial_fit(part)
    assert_same(compressor, dc2.load(saved(compressor, tmp_path)))


def test_a_model_of_merged_signatures_comes_back(tmp_path: Path) -> None:
    signatures = Compressor(80, random_state=0).fit(X).signatures_
    model = RPFCluster(2, random_state=0, n_signatures=80).fit_signatures(signatures)
    assert_same(model, dc2.load(saved(model, tmp_path)))


def test_generators_and_callbacks_are_saved_as_defaults(tmp_path: Path) -> None:
    model = RPFCluster(2, n_signatures=20, random_state=np.random.default_rng(0), verbose=lambda *news: None)
    again = dc2.load(saved(model.fit(X), tmp_path))
    assert again.random_state is None
    assert again.verbose == 0


def test_the_file_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    sizes = []
    for copies in (1, 20):
        rows = np.tile(X, (copies, 1))
        model = small(3, random_state=0).fit(rows)
        sizes.append(saved(model, tmp_path).stat().st_size)
    assert sizes[1] < 1.1 * sizes[0] < 50_000


def test_saving_twice_gives_equal_files(tmp_path: Path) -> None:
    model = MODELS["nearest"].fit(X)
    model.save(tmp_path / "one.dc2")
    model.save(tmp_path / "two.dc2")
    assert (tmp_path / "one.dc2").read_bytes() == (tmp_path / "two.dc2").read_bytes()


def test_labels_of_the_training_rows_are_not_kept(tmp_path: Path) -> None:
    again = dc2.load(saved(MODELS["leaf"].fit(X), tmp_path))
    with pytest.raises(AttributeError, match="predict"):
        _ = again.labels_


def test_numpy_can_open_the_file_without_pickle(tmp_path: Path) -> None:
    path = saved(MODELS["leaf"].fit(X), tmp_path)
    with open(path, "rb") as file, np.load(file, allow_pickle=False) as content:
        assert content["fitted/_record/signatures/points"].shape == (60, 4)


def test_the_header_names_class_and_versions(tmp_path: Path) -> None:
    header = read_header(saved(MODELS["RASP"].fit(X), tmp_path))
    assert (header.class_name, header.dc2_version, header.format_version) == ("RASP", dc2.__version__, 2)


@pytest.mark.parametrize("library", [pickle, joblib], ids=["pickle", "joblib"])
def test_pickle_and_joblib_keep_the_predictions(model: Any, library: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.pickle"
    with open(path, "wb") as file:
        library.dump(model, file)
    with open(path, "rb") as file:
        assert_same(model, library.load(file))


def test_skops_keeps_the_predictions_and_needs_trust_in_dc2_alone(model: Any) -> None:
    skops = pytest.importorskip("skops.io")
    content = skops.dumps(model)
    foreign = skops.get_untrusted_types(data=content)
    assert all(name.startswith("dc2.") for name in foreign)
    assert_same(model, skops.loads(content, trusted=foreign))


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_an_unfitted_model_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        RPFCluster().save(tmp_path / "model.dc2")
    assert list(tmp_path.iterdir()) == []


def test_a_class_of_ones_own_is_not_saved(tmp_path: Path) -> None:
    class Mine(RPFCluster):
        def __init__(self, n_clusters: int = 2) -> None:
            super().__init__(n_clusters, n_signatures=20)

    with pytest.raises(ModelFileError, match=r"not Mine\. Use pickle"):
        Mine().fit(X).save(tmp_path / "model.dc2")


def test_a_model_needs_a_folder_and_a_file_name(tmp_path: Path) -> None:
    model = MODELS["leaf"].fit(X)
    with pytest.raises(ParameterError, match="no such folder"):
        model.save(tmp_path / "absent" / "model.dc2")
    with pytest.raises(ParameterError, match="it is a folder"):
        model.save(tmp_path)


def test_a_failed_save_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = MODELS["leaf"].fit(X)
    path = saved(model, tmp_path)
    before = path.read_bytes()

    def full(*arguments: Any, **keywords: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", full)
    with pytest.raises(OSError, match="No space left"):
        model.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


class Trap:
    """Unpickling this runs code."""

    def __reduce__(self) -> Any:
        return (pytest.fail, ("a model file executed code",))


@pytest.mark.parametrize(
    "content",
    [b"", b"hello", pickle.dumps(Trap()), b"PK\x03\x04 and then nothing"],
    ids=["empty", "text", "pickle", "cut"],
)
def test_foreign_files_are_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.dc2"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=r"model\.dc2' is (not a dc2 model|damaged)"):
        dc2.load(path)


def test_a_zip_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "arrays.npz"
    np.savez(path, a=np.arange(3))
    with pytest.raises(ModelFileError, match="is not a dc2 model"):
        dc2.load(path)


def rewritten(path: Path, **changes: Any) -> Path:
    """The same file with another header or other members."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(members["model.json"]) | changes.pop("header", {})
    members |= {"model.json": json.dumps(header).encode()} | changes
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def test_a_newer_file_is_refused_with_both_versions(tmp_path: Path) -> None:
    path = saved(MODELS["leaf"].fit(X), tmp_path)
    rewritten(path, header={"format_version": 3, "dc2_version": "9.9"})
    with pytest.raises(ModelFileError, match=rf"dc2 9\.9 in format 3, but dc2 {dc2.__version__}.*newer dc2"):
        dc2.load(path)


@pytest.mark.parametrize("name", ["os", "Popen", "dc2.cluster.RPFCluster", "Router", None, 3])
def test_a_class_that_is_not_in_the_table_is_refused(name: Any, tmp_path: Path) -> None:
    path = rewritten(saved(MODELS["leaf"].fit(X), tmp_path), header={"model": name})
    with pytest.raises(ModelFileError):
        dc2.load(path)


def test_a_record_that_is_not_in_the_table_is_refused(tmp_path: Path) -> None:
    fitted = {"x_": {"record": "Popen", "fields": {"args": ["true"]}}}
    path = rewritten(saved(MODELS["leaf"].fit(X), tmp_path), header={"fitted": fitted})
    with pytest.raises(ModelFileError, match="damaged"):
        dc2.load(path)


def test_an_array_of_pickled_objects_is_refused(tmp_path: Path) -> None:
    path = saved(MODELS["leaf"].fit(X), tmp_path)
    buffer = io.BytesIO()
    np.save(buffer, np.array([Trap()], dtype=object), allow_pickle=True)
    rewritten(path, **{"fitted/_record/signatures/points.npy": buffer.getvalue()})
    with pytest.raises(ModelFileError, match="damaged"):
        dc2.load(path)


def as_npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("member", "change"),
    [
        ("trees/0/children", lambda array: array + 1),
        ("trees/0/children", lambda array: np.where(array > 0, 0, array)),
        ("trees/0/children", lambda array: np.where(array < 0, -1_000_000, array)),
        ("trees/0/children", lambda array: array.astype(np.int64)),
        ("trees/0/thresholds", lambda array: array[:-1]),
        ("trees/0/directions", lambda array: array[:, :2]),
        ("neighbor_lists", lambda array: array + 10**6),
        ("neighbor_lists", lambda array: array - 1),
        ("gaps", lambda array: array[:, :-1]),
        ("centres", lambda array: array[:-1]),
    ],
)
def test_arrays_that_would_send_rows_astray_are_refused(member: str, change: Any, tmp_path: Path) -> None:
    path = saved(MODELS["nearest"].fit(X), tmp_path)
    name = f"fitted/_record/router/{member}.npy"
    with zipfile.ZipFile(path) as archive:
        array = np.load(io.BytesIO(archive.read(name)))
    rewritten(path, **{name: as_npy(change(array))})
    with pytest.raises(ModelFileError, match="damaged"):
        dc2.load(path)


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes, Any]:
    folder = tmp_path_factory.mktemp("damage")
    model = small(2, n_signatures=12, similarity=RPF(n_trees=20), random_state=0).fit(X)
    path = saved(model, folder)
    return path, path.read_bytes(), model.predict(NEW)


@given(place=st.floats(0, 1, exclude_max=True), change=st.integers(1, 255))
def test_a_changed_byte_is_noticed_or_does_no_harm(intact: tuple[Path, bytes, Any], place: float, change: int) -> None:
    path, content, labels = intact
    index = int(place * len(content))
    path.write_bytes(content[:index] + bytes([content[index] ^ change]) + content[index + 1 :])
    try:
        model = dc2.load(path)
    except ModelFileError:
        return
    np.testing.assert_array_equal(model.predict(NEW), labels)


@given(share=st.floats(0, 1, exclude_max=True))
def test_a_file_that_was_cut_short_is_refused(intact: tuple[Path, bytes, Any], share: float) -> None:
    path, content, _ = intact
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ModelFileError):
        dc2.load(path)


def test_rows_that_are_signatures_are_in_the_file_once(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(500, 40)) + 9 * np.eye(40)[:2].repeat(250, axis=0)
    model = dc2.DC2Clustering(random_state=0).fit(X)
    model.save(tmp_path / "m.dc2")
    with zipfile.ZipFile(tmp_path / "m.dc2") as archive:
        names = archive.namelist()
    assert sum(name.endswith(("/centres.npy", "/points.npy")) for name in names) == 1, names
    loaded = dc2.load(tmp_path / "m.dc2")
    assert loaded.signatures_.points is loaded.router_.centres
    np.testing.assert_array_equal(loaded.predict(X), model.labels_)
