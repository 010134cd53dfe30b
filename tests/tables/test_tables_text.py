"""Laws of texts in tables: asked for by name, they tell rows apart, and the same text is always in the same place."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import murmurhash3_32
from typer.testing import CliRunner

import dc2
from dc2 import DC2Clustering, TablePreparer
from dc2.cli.app import app
from dc2.errors import InputError, ParameterError
from dc2.report import ClusterStatistics
from dc2.tables import texts as ngrams
from dc2.tables.texts import BUCKETS, letter_groups, words_of

TOPICS = [
    [
        "parcel",
        "late",
        "delivery",
        "courier",
        "arrived",
        "broken",
        "waited",
        "shipping",
        "tracking",
        "address",
    ],
    [
        "card",
        "refund",
        "charged",
        "twice",
        "invoice",
        "bank",
        "payment",
        "money",
        "credit",
        "account",
        "billing",
    ],
    [
        "crash",
        "login",
        "password",
        "update",
        "screen",
        "button",
        "freeze",
        "version",
        "phone",
        "notification",
    ],
]
USUAL = [
    "the",
    "a",
    "to",
    "was",
    "is",
    "my",
    "it",
    "and",
    "for",
    "on",
    "with",
    "this",
    "that",
    "not",
    "have",
    "very",
]
TEXTS = st.lists(st.text(max_size=30), max_size=12)
pytestmark = pytest.mark.filterwarnings(
    "ignore::dc2.errors.ClustersDoNotShowWarning", "ignore::dc2.errors.PreparationNote"
)


def commented(n_rows: int, seed: int = 0) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """Return numbers that tell nothing beside comments on three topics, and the topic of each."""
    draw = np.random.default_rng(seed)
    topic = draw.integers(0, 3, n_rows)
    comments = [
        " ".join(str(draw.choice(TOPICS[one] if draw.random() < 0.5 else USUAL)) for _ in range(draw.integers(6, 16)))
        for one in topic
    ]
    table = pd.DataFrame({"x": draw.normal(size=n_rows), "y": draw.normal(size=n_rows), "comment": comments})
    table.loc[draw.random(n_rows) < 0.02, "comment"] = None
    return table, topic


TABLE, TOPIC = commented(3000)


@pytest.fixture(scope="module")
def preparer() -> TablePreparer:
    return TablePreparer(texts=["comment"]).fit(TABLE)


def stacked(texts: list[str]) -> NDArray[np.float64]:
    return np.vstack([np.empty((0, BUCKETS)), *(rows.toarray() for rows in letter_groups(texts))])


def groups_one_by_one(text: str) -> set[int]:
    """The columns of a text, letter by letter."""
    found = set()
    for word in (f" {word} " for word in words_of(text)):
        for length in ngrams.LENGTHS:
            for start in range(len(word) - length + 1):
                group = word[start : start + length].encode("utf-8", "replace")
                found.add(abs(murmurhash3_32(group)) % BUCKETS)
    return found


@given(TEXTS)
def test_groups_of_letters_are_those_found_letter_by_letter(texts: list[str]) -> None:
    for row, text in zip(stacked(texts), texts, strict=True):
        assert set(np.flatnonzero(row).tolist()) == groups_one_by_one(text)


@given(TEXTS, st.integers(1, 40))
def test_groups_do_not_depend_on_what_is_read_together(texts: list[str], letters: int) -> None:
    whole = stacked(texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ngrams, "LETTERS_AT_A_TIME", letters)
        np.testing.assert_array_equal(stacked(texts), whole)
    np.testing.assert_array_equal(stacked(texts[::-1]), whole[::-1])


def test_texts_are_left_out_unless_asked_for(preparer: TablePreparer) -> None:
    assert TablePreparer().fit(TABLE).decisions_["comment"].startswith("left out: text with many")
    assert preparer.decisions_["comment"].startswith("text: groups of its letters")


def test_texts_tell_what_numbers_do_not() -> None:
    model = DC2Clustering(3, prepare=TablePreparer(texts=["comment"]), random_state=0).fit(TABLE)
    there = TABLE["comment"].notna()
    assert adjusted_rand_score(TOPIC[there], model.labels_[there]) > 0.9


@pytest.mark.parametrize("words", [[*TOPICS[0], *TOPICS[1], *USUAL], USUAL[:8]], ids=["many words", "few words"])
def test_texts_that_tell_nothing_do_not_hide_what_numbers_tell(words: list[str]) -> None:
    draw = np.random.default_rng(1)
    group = draw.integers(0, 3, 2000)
    table = pd.DataFrame(
        {
            "x": draw.normal(10 * group, 1),
            "y": draw.normal(-10 * group, 1),
            "comment": [" ".join(draw.choice(words, 10)) for _ in group],
        }
    )
    model = DC2Clustering(3, prepare=TablePreparer(texts=["comment"]), random_state=0).fit(table)
    assert adjusted_rand_score(group, model.labels_) > 0.9


def test_components_are_named_by_words_that_lie_far_out(preparer: TablePreparer) -> None:
    names = [name for name in preparer.get_feature_names_out() if name.startswith("comment")]
    assert len(names) == 2  # three topics differ in two ways
    known = {word for topic in TOPICS for word in topic}
    for number, name in enumerate(names):
        assert name.startswith(f"comment {number + 1} (")
        assert set(name.partition("(")[2].removesuffix(")").split(", ")) <= known


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_chunks_equal_the_whole(preparer: TablePreparer, size: int) -> None:
    rows = TABLE.head(20 * size)
    parts = [preparer.transform(rows.iloc[start : start + size]) for start in range(0, len(rows), size)]
    np.testing.assert_array_equal(np.concatenate(parts), preparer.transform(rows))


@pytest.mark.parametrize("kind", [pl.from_pandas, lambda table: pl.from_pandas(table).to_arrow()])
def test_every_kind_of_frame_gives_the_same_numbers(kind: Any, preparer: TablePreparer) -> None:
    other = TablePreparer(texts="comment").fit(kind(TABLE))
    assert other.decisions_ == preparer.decisions_
    np.testing.assert_array_equal(other.transform(kind(TABLE)), preparer.transform(TABLE))


def test_files_in_any_blocks_and_threads_give_the_labels_of_the_frame(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    TABLE.to_csv(path, index=False)
    asked = {"n_clusters": 3, "prepare": TablePreparer(texts=["comment"]), "random_state": 0}
    labels = DC2Clustering(**asked).fit(TABLE).labels_
    for options in ({"block_bytes": 2**14, "n_jobs": 1}, {"block_bytes": 2**20, "n_jobs": 3}):
        found = DC2Clustering(**asked, **options).fit(path).predict(path)
        np.testing.assert_array_equal(np.concatenate(list(found)), labels)


def test_a_saved_model_reads_texts_as_it_did(tmp_path: Path) -> None:
    model = DC2Clustering(3, prepare=TablePreparer(texts=["comment"]), random_state=0).fit(TABLE)
    model.save(tmp_path / "model.dc2")
    loaded = dc2.load(tmp_path / "model.dc2")
    np.testing.assert_array_equal(loaded.predict(TABLE), model.labels_)
    assert loaded.preparer_.texts == ["comment"]


@pytest.mark.parametrize(
    "broken",
    [
        {"weights": np.zeros((3, 2), np.int32)},
        {"squares": np.full(BUCKETS, -1, np.int32)},
        {"middle": np.array([np.nan, 0.0])},
        {"factor": float("inf")},
        {"components": ()},
    ],
)
def test_a_part_that_does_not_fit_together_is_refused(preparer: TablePreparer, broken: dict[str, Any]) -> None:
    (part,) = preparer._record.texts
    part.check()
    with pytest.raises(InputError, match="TextTransform"):
        dataclasses.replace(part, **broken).check()


def test_blanks_and_texts_without_words_lie_in_the_middle(preparer: TablePreparer) -> None:
    (part,) = preparer._record.texts
    assert not part.places(["", "!?", "\n"]).any()
    rows = preparer.transform(TABLE)
    blank = TABLE["comment"].isna().to_numpy()
    assert not rows[blank, 2:].any()
    np.testing.assert_allclose(rows[~blank, 2:].mean(axis=0), 0, atol=1e-6)


def test_only_the_beginning_of_a_very_long_text_counts(preparer: TablePreparer) -> None:
    (part,) = preparer._record.texts
    long = "late parcel " * 2000
    np.testing.assert_array_equal(part.places([long[: ngrams.MOST_LETTERS]]), part.places([long + "refund"]))


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"texts": ["remark"]}, "texts names 'remark'"),
        ({"texts": ["comment"], "categories": ["comment"]}, "both name 'comment'"),
    ],
)
def test_texts_that_cannot_be_are_refused(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        TablePreparer(**parameters).fit(TABLE)


def test_lists_are_no_text() -> None:
    table = pl.DataFrame({"vec": [[1.0, 2.0]] * 30, "x": range(30)})
    with pytest.raises(ParameterError, match="cannot be a text"):
        TablePreparer(texts=["vec"]).fit(table)


@pytest.mark.parametrize("texts", [["same"] * 40, ["a b", "b a"] * 20, ["!", "?"] * 20])
def test_texts_of_the_same_letters_are_left_out(texts: list[str]) -> None:
    preparer = TablePreparer(texts=["comment"]).fit(pd.DataFrame({"x": np.arange(40) * 0.7 % 3, "comment": texts}))
    assert preparer.decisions_["comment"] == "left out: its texts are all made of the same letters"


@pytest.mark.parametrize("n_rows", [2, 3, 5, 30])
def test_few_texts_are_enough(n_rows: int) -> None:
    table = pd.DataFrame({"x": np.arange(n_rows) % 3 * 1.5, "comment": list(TABLE["comment"].dropna()[:n_rows])})
    assert np.isfinite(TablePreparer(texts=["comment"]).fit_transform(table)).all()


def test_numbers_that_were_measured_are_no_texts(tmp_path: Path) -> None:
    TABLE.assign(price=np.arange(len(TABLE)) * 0.75).to_csv(tmp_path / "table.csv", index=False)
    for table in (tmp_path / "table.csv", pd.read_csv(tmp_path / "table.csv")):
        with pytest.raises(ParameterError, match=r"'price'.*'0.75'"):
            TablePreparer(texts=["price"]).fit(table)


def test_whole_numbers_may_be_taken_as_texts_and_it_is_said() -> None:
    draw = np.random.default_rng(0)
    table = pd.DataFrame({"x": draw.normal(size=200), "code": draw.integers(10**6, 10**7, 200)})
    rows = TablePreparer(texts=["code"]).fit(table).transform(table)
    assert "though all are numbers" in TablePreparer(texts=["code"]).fit(table).decisions_["code"]
    as_words = table.assign(code=table["code"].astype(str))
    np.testing.assert_array_equal(rows, TablePreparer(texts=["code"]).fit(as_words).transform(as_words))


def test_what_is_told_of_clusters_names_words(tmp_path: Path) -> None:
    model = DC2Clustering(3, prepare=TablePreparer(texts=["comment"]), random_state=0).fit(TABLE)
    told = " ".join(record["sets_apart"] for record in ClusterStatistics.of(model).summary)
    assert "comment 1 (" in told
    assert "groups of its letters" in model.report(tmp_path / "report.html").read_text("utf-8")


def test_the_command_line_looks_into_texts(tmp_path: Path) -> None:
    path, labels, model = (str(tmp_path / name) for name in ("rows.csv", "labels.csv", "model.dc2"))
    TABLE.to_csv(path, index=False)
    asked = ["cluster", path, "-k", "3", "--as", "text:comment", "-o", labels, "--model", model]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0, result.output
    assert "text: groups of its letters" in result.output
    again = str(tmp_path / "again.csv")
    assert CliRunner().invoke(app, ["predict", model, path, "-o", again]).exit_code == 0
    assert Path(again).read_text() == Path(labels).read_text()
    wrong = CliRunner().invoke(app, ["cluster", path, "--as", "words:comment", "-o", f"{again}.gz"])
    assert wrong.exit_code == 2
