"""Laws of model files from strangers: little memory, consistent or refused, and no control of the terminal."""

import io
import json
import os
import re
import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dc2
from dc2 import RPFCluster
from dc2.errors import ModelFileError
from dc2.io.model_file import read_header
from dc2.report import write_report
from dc2.spectral import RPF

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(size=(200, 3)), RNG.normal(6.0, 1.0, size=(200, 3))])
ESCAPE = "\x1b]0;owned\x07"

Members = dict[str, bytes]


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Members:
    path = tmp_path_factory.mktemp("honest") / "model.dc2"
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    RPFCluster(2, n_signatures=12, similarity=RPF(n_trees=20), random_state=0).fit(frame).save(path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(members: Members, path: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def with_header(members: Members, change: Callable[[dict[str, Any]], Any]) -> Members:
    header = json.loads(members["model.json"])
    change(header)
    return members | {"model.json": json.dumps(header).encode()}


def fields(header: dict[str, Any], name: str | None = None) -> dict[str, Any]:
    """The fields of the record of a fit, or of a record in it."""
    found: dict[str, Any] = header["fitted"]["_record"]["fields"]
    return found if name is None else found[name]["fields"]


def npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def changed(members: Members, ending: str, change: Callable[[Any], Any]) -> Members:
    """The members with another array in place of the one whose name ends so."""
    (name,) = (name for name in members if name.endswith(f"{ending}.npy"))
    return members | {name: npy(change(np.load(io.BytesIO(members[name]))))}


def put(array: Any, place: Any, value: Any) -> Any:
    array = array.copy()
    array[place] = value
    return array


def test_what_is_honest_is_loaded(honest: Members, tmp_path: Path) -> None:
    assert dc2.load(packed(honest, tmp_path / "model.dc2")).signature_labels_.max() == 1


@pytest.mark.parametrize("member", ["model.json", "bomb.npy"])
def test_a_bomb_is_refused_before_it_is_unpacked(honest: Members, member: str, tmp_path: Path) -> None:
    path = packed({name: content for name, content in honest.items() if name != member}, tmp_path / "model.dc2")
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive, archive.open(member, "w") as sink:
        for _ in range(200):
            sink.write(b" " * 2**20)
    assert path.stat().st_size < 2**19
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match="would unpack to 20"):
            dc2.load(path)
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()


def test_a_header_of_many_megabytes_is_refused(honest: Members, tmp_path: Path) -> None:
    path = packed(honest | {"model.json": b"[" + b"[]," * 10**7 + b"[]]"}, tmp_path / "model.dc2")
    with pytest.raises(ModelFileError, match=r"model\.json claims to have"):
        dc2.load(path)


def test_a_header_of_great_depth_is_refused(honest: Members, tmp_path: Path) -> None:
    path = packed(honest | {"model.json": b"[" * 10**6}, tmp_path / "model.dc2")
    with pytest.raises(ModelFileError, match="damaged"):
        dc2.load(path)


def test_an_array_that_claims_more_than_it_holds_is_refused(honest: Members, tmp_path: Path) -> None:
    (name,) = (name for name in honest if name.endswith("points.npy"))
    content = honest[name].replace(b"'shape': (12, 3)", b"'shape': (12000000000, 3)")
    content = content[: content.index(b")") + 40] + honest[name][-96:]
    with pytest.raises(ModelFileError, match="damaged"):
        dc2.load(packed(honest | {name: content}, tmp_path / "model.dc2"))


@pytest.mark.parametrize("dtype", [">f4", "<f2", "<c8", "<M8[s]", "|V4", "<U1"])
def test_arrays_of_other_types_are_refused_or_understood(honest: Members, dtype: str, tmp_path: Path) -> None:
    raw = changed(honest, "signatures/points", lambda array: array.astype(np.float32))
    strange = changed(raw, "signatures/points", lambda array: np.zeros((12, 3), dtype))
    try:
        model = dc2.load(packed(strange, tmp_path / "model.dc2"))
    except ModelFileError:
        return
    assert dtype == ">f4"
    assert model.signatures_.points.dtype.isnative


def test_one_array_cannot_stand_in_many_places(honest: Members, tmp_path: Path) -> None:
    def multiply(header: dict[str, Any]) -> None:
        header["fitted"]["copies_"] = [fields(header)["signatures"]] * 10**4

    with pytest.raises(ModelFileError, match="damaged"):
        dc2.load(packed(with_header(honest, multiply), tmp_path / "model.dc2"))


def test_other_ways_of_packing_are_refused(honest: Members, tmp_path: Path) -> None:
    path = tmp_path / "model.dc2"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        for name, content in honest.items():
            archive.writestr(name, content)
    with pytest.raises(ModelFileError, match="packed as save never packs"):
        dc2.load(path)


@pytest.mark.parametrize(
    ("array", "change"),
    [
        ("conquest/labels", lambda array: put(array, 0, 2**31 - 1)),
        ("conquest/labels", lambda array: put(array, 0, -1)),
        ("conquest/labels", lambda array: array[:-1]),
        ("conquest/labels", lambda array: array.astype(np.int64)),
        ("conquest/labels", lambda array: array[:, None]),
        ("embedding", lambda array: array[:-1]),
        ("embedding", lambda array: put(array, 0, np.nan)),
        ("eigenvalues", lambda array: put(array, 0, np.inf)),
        ("signatures/points", lambda array: put(array, (0, 0), np.nan)),
        ("signatures/points", lambda array: array[:, :2]),
        ("signatures/points", lambda array: array[:0]),
        ("signatures/weights", lambda array: -array),
        ("signatures/weights", lambda array: 0 * array),
        ("signatures/spread", lambda array: put(array, 0, np.inf)),
        ("centres", lambda array: put(array, (0, 0), np.inf)),
    ],
)
def test_what_contradicts_itself_is_refused(
    honest: Members, array: str, change: Callable[[Any], Any], tmp_path: Path
) -> None:
    with pytest.raises(ModelFileError, match="damaged"):
        dc2.load(packed(changed(honest, array, change), tmp_path / "model.dc2"))


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header.update(format_version=-5),
        lambda header: header.update(format_version=0),
        lambda header: header.update(format_version=True),
        lambda header: header.update(format_version="2"),
        lambda header: header.update(format_version=2.0),
        lambda header: header.pop("format_version"),
        lambda header: header.pop("dc2_version"),
        lambda header: header.update(dc2_version=7),
        lambda header: header.update(dc2_version=ESCAPE),
        lambda header: header.update(dc2_version="1" * 10**5),
        lambda header: header.update(model=["RPFCluster"]),
        lambda header: header.update(parameters=[]),
        lambda header: header.update(parameters={"no_such": 1}),
        lambda header: header["parameters"].update(assign=ESCAPE),
        lambda header: fields(header, "columns").update(n_features=4),
        lambda header: fields(header, "columns").update(n_features="3"),
        lambda header: fields(header).update(n_rows=None),
        lambda header: fields(header).update(n_rows=-1),
        lambda header: fields(header, "columns").update(names={"tuple": ["a", "b"]}),
        lambda header: fields(header, "columns").update(names={"tuple": ["a", "b", ESCAPE]}),
        lambda header: fields(header, "columns").update(names={"tuple": ["a", "b", 3]}),
        lambda header: fields(header).pop("conquest"),
        lambda header: fields(header).update(conquest=None),
        lambda header: fields(header).update(similarity=3),
        lambda header: fields(header).update(similarity=fields(header)["signatures"]),
        lambda header: fields(header).update(similarity=fields(header)["columns"]),
        lambda header: fields(header).update(router=fields(header)["signatures"]),
        lambda header: fields(header).update(seed=None),
        lambda header: fields(header).update(requested=7),
        lambda header: fields(header, "router").update(deal_seed=-1),
        lambda header: fields(header, "router").update(deal_seed=0.5),
        lambda header: header["fitted"].pop("_record"),
        lambda header: header["fitted"].update(_record=3),
        lambda header: header["fitted"].update(predict=1),
        lambda header: header["fitted"].update(n_jobs=1),
        lambda header: header["fitted"].update(__dict__=1),
        lambda header: header.update(fitted=None),
        lambda header: header.update(fitted=10**400),
    ],
)
def test_a_header_that_is_not_sane_is_refused(
    honest: Members, change: Callable[[dict[str, Any]], Any], tmp_path: Path
) -> None:
    with pytest.raises(ModelFileError, match=r"damaged|not know|control") as refusal:
        dc2.load(packed(with_header(honest, change), tmp_path / "model.dc2"))
    assert str(refusal.value).isprintable()


@pytest.mark.parametrize("read", [dc2.load, read_header])
def test_a_model_of_the_first_format_is_to_be_fitted_again(
    honest: Members, read: Callable[[Path], Any], tmp_path: Path
) -> None:
    def older(header: dict[str, Any]) -> None:
        header.update(format_version=1, dc2_version="0.1.0", **{"class": header.pop("model")})

    path = packed(with_header(honest, older), tmp_path / "model.dc2")
    with pytest.raises(ModelFileError, match=r"written by dc2 0\.1\.0.*fit and save the model again"):
        read(path)


def test_a_column_whose_name_steers_a_terminal_is_told_before_the_file_is_written(tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=["a", "b", ESCAPE])
    model = RPFCluster(2, n_signatures=12, similarity=RPF(n_trees=20), random_state=0).fit(frame)
    with pytest.raises(ModelFileError, match="no control characters") as refusal:
        model.save(tmp_path / "model.dc2")
    assert str(refusal.value).isprintable()
    assert os.listdir(tmp_path) == []


def test_names_with_line_breaks_are_kept(tmp_path: Path) -> None:
    names = ["height\n(m)", "b\tc", "größe"]
    model = RPFCluster(2, n_signatures=12, similarity=RPF(n_trees=20), random_state=0).fit(
        pd.DataFrame(X, columns=names)
    )
    model.save(tmp_path / "model.dc2")
    assert list(dc2.load(tmp_path / "model.dc2").feature_names_in_) == names


def test_what_packs_very_well_can_be_loaded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dc2.io.model_file.UNPACKED_BYTES", 2**16)
    rows = np.zeros((300, 2000))
    rows[:, 0] = np.arange(300)
    model = RPFCluster(2, n_signatures=100, similarity=RPF(n_trees=20), random_state=0).fit(rows)
    model.save(tmp_path / "model.dc2")
    np.testing.assert_array_equal(dc2.load(tmp_path / "model.dc2").predict(rows), model.predict(rows))


@pytest.mark.parametrize("factor", [1e-310, 1e-200, 1e-40, 1e40, 1e150])
@pytest.mark.parametrize("n_columns", [2, 3])
def test_points_of_any_size_can_be_reported(factor: float, n_columns: int, tmp_path: Path) -> None:
    model = RPFCluster(2, n_signatures=30, similarity=RPF(n_trees=20), random_state=0).fit(X[:, :n_columns])
    record, signatures = model._record, model.signatures_
    moved = replace(signatures, points=signatures.points * factor, spread=signatures.spread * factor**2)
    router = replace(record.router, centres=record.router.centres * factor)
    model._record = replace(record, signatures=moved, router=router)
    model.save(tmp_path / "model.dc2")
    write_report(dc2.load(tmp_path / "model.dc2"), tmp_path / "report.html")
    places = re.findall(r'<circle[^>]* cx="([^"]*)"', (tmp_path / "report.html").read_text("utf-8"))
    assert all(np.isfinite(float(place)) for place in places)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_pipes_and_devices_are_refused_before_they_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.dc2")
    (tmp_path / "link.dc2").symlink_to("/dev/zero")
    for path in ("pipe.dc2", "link.dc2"):
        with pytest.raises(ModelFileError, match="a pipe or a device"):
            dc2.load(tmp_path / path)


def test_a_refusal_is_one_line_whatever_the_file_says(honest: Members, tmp_path: Path) -> None:
    wrong = honest["model.json"].replace(b'"metric"', rb'"me\t\n\u001b[2Jtric"')
    assert wrong != honest["model.json"]
    with pytest.raises(ModelFileError) as refusal:
        dc2.load(packed(honest | {"model.json": wrong}, tmp_path / "model.dc2"))
    assert str(refusal.value).isprintable()
