"""A campaign for labels: the same rows give the same labels, whatever they come from and whoever works on them.

``python tests/fuzz_labels.py --cases 100000`` runs that many random cases, ``--minutes 5`` as many as time allows.
Each is made from the seed and its number alone. A log (``--log``) has a line for every case; a campaign with the same
log and seed goes on where the last one ended. A failure is printed with the law that broke, the call, and what repeats
it: ``python tests/fuzz_labels.py --seed 0 --only 1234``.
"""

import argparse
import faulthandler
import json
import pickle
import random
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

import dc2
from dc2 import KASP, RASP, Compressor, DC2Clustering, RPFCluster, core
from dc2.core import _TWINS
from dc2.errors import InputError, InputTypeError, ModelFileError, ParameterError
from dc2.kernels import RPF
from source_kinds import IN_MEMORY, STREAMED

REFUSALS = (InputError, InputTypeError, ParameterError, ModelFileError)
HANG_SECONDS = 120
MOST_ROWS_OF_TWIN = 80
AS_FLOAT64 = ("list", "csv", "csv.gz")  # text and Python's numbers have no other type
KINDS = (*2 * ("auto", "DC2Clustering", "RPFCluster", "Compressor"), "RASP", "KASP")
SHAPES = (
    "normal",
    "blobs",
    "line",
    "grid",
    "constant columns",
    "outliers",
    "offset",
    "tiny",
    "huge",
    "denormal",
)


@dataclass(frozen=True, eq=False)
class Case:
    """Rows, a model for them, and another way to bring them."""

    number: int
    shape: str
    X: np.ndarray
    weights: np.ndarray | None
    model: Any
    source: str
    cuts: tuple[float, ...]

    @property
    def call(self) -> str:
        weighted = "" if self.weights is None else ", sample_weight=integers"
        rows = f"{self.shape} {self.X.dtype} {self.X.shape}"
        return f"{' '.join(repr(self.model).split())}.fit(<{rows}>{weighted}), also from {self.source!r}"


@dataclass
class Outcome:
    """What a campaign found."""

    cases: int = 0
    refused: int = 0
    failures: list[str] = field(default_factory=list)


# --- cases ------------------------------------------------------------------------------------------------------------


def made(seed: int, number: int) -> Case:
    """Make a case from its number."""
    chance = random.Random(f"{seed} {number}")
    shape = chance.choice(SHAPES)
    rng = np.random.default_rng(chance.getrandbits(64))
    X = rows_of(shape, chance.choice((2, 5, 17, 60, 150)) + chance.randrange(20), chance.randint(1, 9), rng)
    with np.errstate(over="ignore", under="ignore"):
        X = X.astype(chance.choice((np.float32, np.float64)))
    if not np.isfinite(X).all():
        X = np.where(np.isfinite(X), X, 0).astype(X.dtype)
    weights = rng.integers(0, 4, len(X)).astype(np.float64) if chance.random() < 0.25 else None
    if weights is not None and not weights.any():
        weights[0] = 1.0
    model = model_for(chance, len(X))
    kinds = [*IN_MEMORY, "dask"] if isinstance(model, KASP) else [*IN_MEMORY, *STREAMED, "dask"]
    kinds = [kind for kind in kinds if kind != "dask" or not isinstance(model, KASP)]
    cuts = tuple(sorted(chance.random() for _ in range(chance.randrange(3))))
    return Case(number, shape, X, weights, model, chance.choice(kinds), cuts)


def rows_of(shape: str, n_rows: int, width: int, rng: np.random.Generator) -> np.ndarray:
    """Make rows of a shape."""
    X = rng.normal(size=(n_rows, width))
    if shape == "blobs":
        X += 9.0 * rng.integers(0, 4, (n_rows, 1))
    elif shape == "line":
        X = np.arange(n_rows, dtype=float)[:, None] * np.ones(width)
    elif shape == "grid":
        X = rng.integers(0, 4, (n_rows, width)).astype(float)
    elif shape == "constant columns":
        X[:, ::2] = 7.25
    elif shape == "outliers":
        X[rng.random(n_rows) < 0.05] *= 1e6
    elif shape == "offset":
        X += 10.0 ** rng.integers(3, 7)
    elif shape == "tiny":
        X *= 2.0 ** -int(rng.integers(60, 1000))
    elif shape == "huge":
        X *= 2.0 ** int(rng.integers(60, 1000))
    elif shape == "denormal":
        X = np.ldexp(np.round(100 * X), -1074)
    return X


def model_for(chance: random.Random, n_rows: int) -> Any:
    """Make a model with random parameters."""
    n_clusters = chance.choice((1, 2, 3, 5))
    n_signatures = max(n_clusters, chance.randint(2, max(2, n_rows)))
    own: dict[str, Any] = {"n_jobs": 1, "random_state": chance.randrange(1000)}
    scale = {
        "scale": chance.choice((None, None, "standard", "robust")),
        "metric": chance.choice(("euclidean", "euclidean", "cosine")),
    }
    compressor = Compressor(
        refine=chance.choice((0, 1)),
        populate=chance.choice(("nearest", "nearest", "leaf")),
        signature=chance.choice(("centroid", "centroid", "member")),
        cut=chance.choice(("median", "mean", "quantile", "uniform")),
        sharpen=chance.randrange(3),
        n_partitions=chance.choice((1, 1, 1, 2)),
        divide=chance.choice(("projection", "projection", "sampling")),
    )
    kind = chance.choice(KINDS)
    if kind == "auto":
        noise = chance.choice((0.0, 0.0, 0.05, 0.2))
        wish = chance.choice((n_clusters, "auto", (1, 6)))
        return DC2Clustering(wish, noise=noise, **scale, **own)
    if kind == "DC2Clustering":
        return DC2Clustering(n_clusters, n_signatures=n_signatures, compressor=compressor, **scale, **own)
    if kind == "RPFCluster":
        similarity = chance.choice((RPF(n_trees=chance.randint(1, 20)), "gaussian", "ties"))
        wish = n_clusters if chance.random() < 0.7 else chance.choice(("auto", (1, 4)))
        weighted = chance.random() < 0.3
        return RPFCluster(
            wish, n_signatures=n_signatures, similarity=similarity, weighted=weighted,
            assign=chance.choice(("kmeans", "ncut")), compressor=compressor, **scale, **own,
        )  # fmt: skip
    if kind == "RASP":
        return RASP(n_clusters, n_signatures=n_signatures, **own)
    if kind == "KASP":
        return KASP(n_clusters, n_signatures=min(n_signatures, 12), **own)
    return clone(compressor).set_params(n_signatures=n_signatures, **scale, **own)


# --- laws -------------------------------------------------------------------------------------------------------------


def answer(model: Any, X: Any) -> np.ndarray:
    said = model.predict(X) if hasattr(model, "predict") else model.apply(X)
    return np.asarray(said)


def essence(model: Any, X: Any) -> tuple[bytes, ...]:
    """What a fitted model is, to the bit."""
    signatures = model.signatures_
    parts = (signatures.points, signatures.weights, signatures.spread, answer(model, X))
    return tuple(np.ascontiguousarray(part).tobytes() for part in parts)


def fitted(case: Case, data: Any = None, weights: Any = None, **changes: Any) -> Any:
    model = clone(case.model).set_params(**changes)
    return model.fit(case.X if data is None else data, sample_weight=weights)


def equal(case: Case, other: Any, base: Any) -> None:
    assert essence(other, case.X) == essence(base, case.X), "another model"


def training_labels(case: Case, base: Any, folder: Path) -> None:
    if getattr(base, "divide", None) == "sampling" or dealt(base):
        return  # rows are dealt at random there, and new ones go to the nearest
    np.testing.assert_array_equal(base.labels_, answer(base, case.X))


def fit_and_predict(case: Case, base: Any, folder: Path) -> None:
    if hasattr(base, "fit_predict") and not dealt(base):
        labels = clone(case.model).fit_predict(case.X, sample_weight=case.weights)
        np.testing.assert_array_equal(labels, answer(base, case.X))


def threads_and_blocks(case: Case, base: Any, folder: Path) -> None:
    equal(case, fitted(case, weights=case.weights, n_jobs=3, block_bytes=256), base)


def both_cores(case: Case, base: Any, folder: Path) -> None:
    if len(case.X) > MOST_ROWS_OF_TWIN:
        return  # it is slow
    with reference_core():
        equal(case, fitted(case, weights=case.weights), base)


def other_source(case: Case, base: Any, folder: Path) -> None:
    """Files and frames hold no weights here, and text no float32."""
    as_64 = case.source in AS_FLOAT64 and case.X.dtype != np.float64
    if case.weights is not None or as_64:
        case = replace(case, X=case.X.astype(np.float64) if as_64 else case.X, weights=None)
        try:
            base = fitted(case)
        except REFUSALS:
            return  # rows that had no weight and cannot be used
    if case.source == "dask":
        with dask.config.set(scheduler="threads"):
            chunked = da.from_array(case.X, chunks=(max(1, len(case.X) // 3), -1))
            equal(case, fitted(case, chunked), base)
        return
    maker = (IN_MEMORY | STREAMED)[case.source]
    equal(case, fitted(case, maker(case.X, folder, case.cuts), block_bytes=512), base)


def pickled(case: Case, base: Any, folder: Path) -> None:
    equal(case, pickle.loads(pickle.dumps(base)), base)


def saved(case: Case, base: Any, folder: Path) -> None:
    base.save(folder / "model.dc2")
    equal(case, dc2.load(folder / "model.dc2"), base)


def repeats(case: Case, base: Any, folder: Path) -> None:
    """Rows in place of weights, but where chance goes by row: K-means, members, and rows dealt by their number.

    Rows without weight are rows enough for a number of clusters; left out, they may be too few.
    """
    if case.weights is None or isinstance(base, KASP) or members(base) or dealt(base):
        return
    wish = getattr(base, "n_clusters", None)
    if isinstance(wish, int) and np.count_nonzero(case.weights) < wish:
        return
    again = fitted(case, np.repeat(case.X, case.weights.astype(int), axis=0))
    np.testing.assert_array_equal(answer(again, case.X), answer(base, case.X))


def number_of_clusters(case: Case, base: Any, folder: Path) -> None:
    """As wished, but for a forest of few trees: what shares all leaves cannot be told apart, which is a warning.

    Members that are equal rows may stand in two clusters.
    """
    wish = getattr(base, "n_clusters", None)
    few_trees = isinstance(getattr(base, "similarity", None), RPF)
    if (
        isinstance(wish, int)
        and not few_trees
        and not members(base)
        and case.shape in ("normal", "blobs", "line", "grid")
    ):
        there = len(np.unique(base.signatures_.points[base.signatures_.weights > 0], axis=0))
        assert base.n_clusters_ == min(wish, there), (
            f"{base.n_clusters_} clusters of {wish}, {there} distinct"
        )


def probabilities(case: Case, base: Any, folder: Path) -> None:
    if not hasattr(base, "predict_proba") or dealt(base):
        return
    shares = base.predict_proba(case.X)
    assert np.isfinite(shares).all(), "a probability is not finite"
    assert (shares >= 0).all()
    assert (shares.sum(axis=1) <= 1 + 1e-9).all(), "probabilities above 1"


def noise_share(case: Case, base: Any, folder: Path) -> None:
    noise = getattr(base, "noise", 0)
    if noise:
        weights = np.ones(len(case.X)) if case.weights is None else case.weights
        outside = weights[base.labels_ < 0].sum()
        assert outside <= noise * weights.sum() + 1e-9, f"{outside} rows are noise, more than {noise}"


LAWS: tuple[Callable[[Case, Any, Path], None], ...] = (
    training_labels,
    fit_and_predict,
    threads_and_blocks,
    both_cores,
    other_source,
    pickled,
    saved,
    repeats,
    number_of_clusters,
    probabilities,
    noise_share,
)


def members(model: Any) -> bool:
    """Whether signatures are rows drawn from their leaves."""
    compressor = getattr(model, "compressor", None) or model
    return getattr(compressor, "signature", "") == "member"


def dealt(model: Any) -> bool:
    """Whether rows are dealt to partitions by their number."""
    compressor = getattr(model, "compressor", None) or model
    return getattr(compressor, "divide", "") == "sampling" and compressor.n_partitions > 1


@contextmanager
def reference_core() -> Iterator[None]:
    """The NumPy twin of the native core."""
    ours = {name: getattr(core, name) for name in _TWINS}
    try:
        for name, module in _TWINS.items():
            setattr(core, name, getattr(import_module(module), name))
        yield
    finally:
        for name, function in ours.items():
            setattr(core, name, function)


# --- the campaign -----------------------------------------------------------------------------------------------------


def broken_laws(case: Case) -> tuple[list[str], bool]:
    """Return the laws that a case breaks, and whether its rows were refused."""
    broken = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        warnings.filterwarnings("ignore", ".*do not show in the data")
        try:
            base = fitted(case, weights=case.weights)
        except REFUSALS:
            return [], True
        except Exception as error:
            return [f"fit: {told(error)}"], False
        for law in LAWS:
            try:
                law(case, base, Path(folder))
            except Exception as error:
                broken.append(f"{law.__name__}: {told(error)}")
    return broken, False


def told(error: Exception) -> str:
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]} ({Path(where.filename).name}:{where.lineno})"


def smaller(case: Case, law: str) -> Case:
    """Drop rows and columns while the law stays broken."""
    rows, columns = np.arange(len(case.X)), np.arange(case.X.shape[1])
    while True:
        halves = [(half, columns) for half in np.array_split(rows, 2)]
        halves += [(rows, half) for half in np.array_split(columns, 2)]
        for fewer, narrower in halves:
            weights = None if case.weights is None else case.weights[fewer]
            tried = replace(case, X=case.X[np.ix_(fewer, narrower)], weights=weights)
            fewest = min(tried.X.shape) > 0 and tried.X.size < rows.size * columns.size
            if fewest and any(name.startswith(f"{law}:") for name in broken_laws(tried)[0]):
                rows, columns = fewer, narrower
                break
        else:
            weights = None if case.weights is None else case.weights[rows]
            return replace(case, X=case.X[np.ix_(rows, columns)], weights=weights)


def campaign(
    cases: int | None = None,
    minutes: float | None = None,
    seed: int = 0,
    first: int = 0,
    log: Path | None = None,
) -> Outcome:
    """Run cases until there are so many, or the time is over."""
    outcome, number, end = Outcome(), first, time.monotonic() + 60 * (minutes or 1e9)
    if log is not None and log.exists():
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        number = max([1 + line["case"] for line in lines if line["seed"] == seed], default=first)
    last = number + cases if cases is not None else sys.maxsize
    while number < last and time.monotonic() < end:
        faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
        case = made(seed, number)
        broken, refused = broken_laws(case)
        if broken:
            least = smaller(case, broken[0].split(":")[0])
            outcome.failures.append(
                f"case {number} of seed {seed}: {'; '.join(broken)}\n  {case.call}\n  still so with {least.X.shape} "
                f"rows and columns\n  repeat: python tests/fuzz_labels.py --seed {seed} --only {number}"
            )
        faulthandler.cancel_dump_traceback_later()
        if log is not None:
            with log.open("a") as lines_out:
                print(
                    json.dumps({"seed": seed, "case": number, "broken": broken, "refused": refused}),
                    file=lines_out,
                )
        outcome.cases, outcome.refused, number = outcome.cases + 1, outcome.refused + refused, number + 1
    return outcome


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--only", type=int, help="run this one case and show what it is")
    return parser.parse_args()


if __name__ == "__main__":
    given = _arguments()
    if given.only is not None:
        print(made(given.seed, given.only).call)
        found = campaign(1, seed=given.seed, first=given.only)
    else:
        limit = given.minutes or (None if given.cases else 1.0)
        found = campaign(given.cases, limit, given.seed, given.first, given.log)
    print(*found.failures, sep="\n")
    print(f"{found.cases} cases: {len(found.failures)} failures; {found.refused} were refused")
    sys.exit(bool(found.failures))
