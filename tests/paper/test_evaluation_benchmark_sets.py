"""MNIST, labelled tables and the clustering batteries."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from dc2.errors import SourceError
from evaluation.data import (
    TABLES,
    DataNotFoundError,
    list_benchmark_sets,
    load_benchmark_set,
    load_mnist,
    load_table,
)


def test_mnist_has_its_70000_images(data_dir: Path) -> None:
    bunch = load_mnist(data_dir)
    assert bunch.data.shape == (70_000, 784)
    assert bunch.data.dtype == np.float32
    assert (bunch.data.min(), bunch.data.max()) == (0, 255)
    assert np.bincount(bunch.target).tolist() == [6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958]


def write_mnist(folder: Path, images: np.ndarray) -> None:
    for part in ("train", "t10k"):
        for kind, values in (
            ("images-idx3", images),
            ("labels-idx1", np.arange(len(images), dtype=np.uint8)),
        ):
            header = bytes([0, 0, 8, values.ndim]) + b"".join(size.to_bytes(4, "big") for size in values.shape)
            (folder / f"{part}-{kind}-ubyte").write_bytes(header + values.tobytes())


def test_mnist_files_may_lie_plain_in_the_folder(tmp_path: Path) -> None:
    images = np.arange(12, dtype=np.uint8).reshape(3, 2, 2)
    write_mnist(tmp_path, images)
    bunch = load_mnist(tmp_path, download=False)
    np.testing.assert_array_equal(bunch.data, np.vstack([images.reshape(3, 4)] * 2))
    assert bunch.target.tolist() == [0, 1, 2, 0, 1, 2]


def test_a_cut_idx_file_is_refused(tmp_path: Path) -> None:
    write_mnist(tmp_path, np.zeros((3, 2, 2), dtype=np.uint8))
    path = tmp_path / "t10k-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(SourceError, match="11 bytes"):
        load_mnist(tmp_path, download=False)
    path.write_bytes(b"no idx file")
    with pytest.raises(SourceError, match="not an idx file"):
        load_mnist(tmp_path, download=False)


def test_every_benchmark_set_has_a_label_per_row_in_every_labelling(data_dir: Path) -> None:
    names = list_benchmark_sets(data_dir)
    assert names == sorted(names)
    assert ("fcps", "lsun") in names
    for battery, name in names:
        data, labellings = load_benchmark_set(battery, name, data_dir)
        assert data.ndim == 2
        assert labellings
        for labels in labellings:
            assert labels.shape == (len(data),)
            assert set(labels) - {0} == set(range(1, labels.max() + 1)), "clusters are 1, 2, ...; 0 is noise"


def write_set(folder: Path, labels: list[str]) -> None:
    battery = folder / "clustering" / "mine"
    battery.mkdir(parents=True, exist_ok=True)
    with gzip.open(battery / "tiny.data.gz", "wt") as stream:
        stream.write("  1.5 2\n 3 4e0\n 5 6\n")
    for number, text in enumerate(labels):
        with gzip.open(battery / f"tiny.labels{number}.gz", "wt") as stream:
            stream.write(text)


def test_a_set_comes_with_all_its_labellings(tmp_path: Path) -> None:
    write_set(tmp_path, ["1\n1\n2\n", "0\n1\n1\n"])
    assert list_benchmark_sets(tmp_path) == [("mine", "tiny")]
    data, labellings = load_benchmark_set("mine", "tiny", tmp_path)
    assert data.tolist() == [[1.5, 2], [3, 4], [5, 6]]
    assert [labels.tolist() for labels in labellings] == [[1, 1, 2], [0, 1, 1]]


def test_missing_sets_and_labels_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataNotFoundError, match="mine/tiny"):
        load_benchmark_set("mine", "tiny", tmp_path)
    write_set(tmp_path, [])
    assert list_benchmark_sets(tmp_path) == []
    with pytest.raises(DataNotFoundError, match=r"tiny\.labels0\.gz"):
        load_benchmark_set("mine", "tiny", tmp_path)
    write_set(tmp_path, ["1\n2\n"])
    with pytest.raises(SourceError, match="2 labels for 3 rows"):
        load_benchmark_set("mine", "tiny", tmp_path)


@pytest.mark.parametrize(
    ("name", "shape", "n_classes"),
    [("pendigits", (10_992, 16), 10), ("satimage", (6_435, 36), 6), ("letter", (20_000, 16), 26)],
)
def test_tables_are_standardised_and_have_their_classes(
    data_dir: Path, name: str, shape: tuple[int, int], n_classes: int
) -> None:
    bunch = load_table(name, data_dir)
    assert name in TABLES
    assert bunch.data.shape == shape
    assert set(bunch.target) == set(range(n_classes))
    np.testing.assert_allclose(bunch.data.std(axis=0, dtype=np.float64), 1, atol=1e-4)


def test_a_table_takes_its_classes_from_the_last_column(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "letter.tsv").write_text("a\tb\ttarget\n1\t0\t7\n3\t0\t2\n")
    bunch = load_table("letter", tmp_path)
    assert bunch.data.tolist() == [[-1, 0], [1, 0]]
    assert bunch.target.tolist() == [1, 0]
    assert bunch.target_names.tolist() == ["2", "7"]
    assert bunch.feature_names == ["a", "b"]
    with pytest.raises(DataNotFoundError, match="pendigits"):
        load_table("pendigits", tmp_path)
