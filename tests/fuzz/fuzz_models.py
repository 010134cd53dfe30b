"""A campaign against the model loader: mutated files are refused in a sentence, or give models that work.

``python tests/fuzz_models.py 10000`` runs that many cases, seeded and so repeatable, in a process whose memory is
bounded; ``--first 1234 --seed 7`` goes on there. It prints the failures, each with what repeats it, and the figure.
A crash, a hang, more memory than the bound, an error that is not dc2's, a label out of range: each is a failure.
"""

import json
import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import dc2
from dc2.cli.describe import model_facts
from dc2.errors import InputError, InputTypeError, ModelFileError, ParameterError
from dc2.report import write_report
from dc2.spectral import RPF
from support.bounded_process import Case, main
from support.model_mutations import mutated

MEMORY_BYTES = 400 * 2**20  # beyond what the process holds when all is imported
REPORT_EVERY = 3
RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(size=(150, 3)), RNG.normal(6.0, 1.0, size=(150, 3))])


def save_models(folder: Path) -> None:
    """Save a sound model of each kind."""
    few = RPF(n_trees=20)
    models = [
        dc2.DC2Clustering(n_signatures=40, scale="robust", random_state=0).fit(X),
        dc2.RPFCluster(2, n_signatures=20, similarity=few, scale="standard", random_state=0).fit(X),
        dc2.RPFCluster("auto", n_signatures=20, similarity=few, compressor=dc2.Compressor(populate="leaf")).fit(X),
        dc2.KASP(2, n_signatures=12, random_state=0).fit(X),
        dc2.Compressor(15, n_partitions=2, divide="sampling", random_state=0).fit(X),
    ]
    for number, model in enumerate(models):
        model.save(folder / f"{number}.dc2")


def prepare(folder: Path) -> Case:
    """Save models and use every one of them once, and return what mutates and uses one."""
    save_models(folder)
    honest = [path.read_bytes() for path in sorted(folder.glob("?.dc2"))]
    path = folder / "mutated.dc2"
    assert all(use(content, path, report=True) for content in honest)

    def run(case: int, chance: random.Random) -> bool:
        return use(mutated(chance.choice(honest), chance), path, report=case % REPORT_EVERY == 0)

    return run


def use(content: bytes, path: Path, report: bool) -> bool:
    """Load a model and do with it what people do; return whether it could be loaded."""
    path.write_bytes(content)
    try:
        model = dc2.load(path)
    except ModelFileError as refusal:
        if not str(refusal).isprintable():
            raise AssertionError(f"the refusal is {refusal!s}") from refusal
        return False
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            _ask(model, path)
            if report and hasattr(model, "signature_labels_"):
                write_report(model, path.with_suffix(".html"))
        except (InputError, InputTypeError, ParameterError):
            pass
    return True


def _ask(model: Any, path: Path) -> None:
    json.dumps(model_facts(path))
    rows = np.zeros((5, model.n_features_in_)) if model.n_features_in_ != 3 else X[:20]
    answer = model.predict(rows) if hasattr(model, "predict") else model.apply(rows)
    n_answers = model.n_clusters_ if hasattr(model, "predict") else len(model.signatures_)
    assert len(answer) == len(rows)
    assert ((answer >= 0) & (answer < n_answers)).all(), "a label is out of range"


if __name__ == "__main__":
    main("mutated model files", __doc__, MEMORY_BYTES, prepare)
