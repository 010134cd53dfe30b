"""Coverage-guided fuzzing of the model loader and of the readers of CSV and NPY.

It needs atheris (``pip install atheris``). ``python tests/fuzz_guided.py model --seconds 1200 --corpus build/corpus``
looks for that long, starting from sound files and from what earlier runs kept in the corpus; ``csv`` and ``npy`` are
the other targets. It stops at the first error that is not dc2's, hang, or use of much memory, and keeps the input;
``python tests/fuzz_guided.py model FILE`` repeats it.
"""

import argparse
import io
import random
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import atheris
import numpy as np

with atheris.instrument_imports(include=["dc2"]):
    from dc2 import as_source
    from dc2.errors import InputError, InputTypeError
    from fuzz import fuzz_models
from fuzz.fuzz_files import honest_files

MEMORY_MB = 700  # with all that is imported
HANG_SECONDS = 60
LARGEST_INPUT = 2**16
Target = Callable[[bytes], None]


def load_model(folder: Path) -> Target:
    """Load what may be a model, and ask it."""
    return lambda content: void(fuzz_models.use(content, folder / "model.dc2", report=False))


def read_file(folder: Path, suffix: str) -> Target:
    """Read what may be a data file, in small blocks, with and without one column as ids."""

    def read(content: bytes) -> None:
        path = folder / f"data{suffix}"
        path.write_bytes(content)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            for drop in [None] if suffix == ".npy" else [None, ["id"]]:
                try:
                    for _ in as_source(path, drop=drop, extra=drop or ()).blocks(1024):
                        pass
                except (InputError, InputTypeError):
                    pass

    return read


def void(_: object) -> None:
    """Forget a value: atheris wants none."""


def mutated_inside(content: bytes, most: int, seed: int) -> bytes:
    """Mutate one part of a zip and pack it again; otherwise its checksum would stop the reader at once."""
    chance = random.Random(seed)
    try:
        members = _unpacked(content)
    except Exception:  # no zip any more
        return bytes(atheris.Mutate(content, most))
    if not members or chance.random() < 0.2:
        return bytes(atheris.Mutate(content, most))
    name = "model.json" if "model.json" in members and chance.random() < 0.5 else chance.choice(list(members))
    members[name] = atheris.Mutate(members[name], 2 * len(members[name]) + 64)
    whole = _packed(members)
    return whole if len(whole) <= most else content


def _unpacked(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if sum(info.file_size for info in archive.infolist()) > 16 * LARGEST_INPUT:
            raise ValueError("a bomb")
        return {info.filename: archive.read(info) for info in archive.infolist()}


def _packed(members: dict[str, bytes]) -> bytes:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return whole.getvalue()


def write_seeds(target: str, folder: Path, corpus: Path) -> None:
    """Put intact files into the corpus, unless they are there already."""
    if target == "model":
        fuzz_models.save_models(folder)
        seeds = {path.name: _packed(_unpacked(path.read_bytes())) for path in folder.glob("?.dc2")}
    else:
        seeds = {name: content for name, content in honest_files(folder).items() if name.endswith(target)}
    corpus.mkdir(parents=True, exist_ok=True)
    for name, content in seeds.items():
        (corpus / name).write_bytes(content)


def main() -> None:
    """Run what the command line asks for; atheris ends the process."""
    given = _arguments()
    with tempfile.TemporaryDirectory() as name:
        folder, corpus = Path(name), given.corpus / given.target
        write_seeds(given.target, folder, corpus)
        run = load_model(folder) if given.target == "model" else read_file(folder, f".{given.target}")
        if given.file is not None:
            run(given.file.read_bytes())
            print("no failure")
            return
        options = [
            f"-max_total_time={given.seconds}", f"-max_len={LARGEST_INPUT}", f"-rss_limit_mb={MEMORY_MB}",
            f"-timeout={HANG_SECONDS}", f"-artifact_prefix={corpus.parent}/{given.target}-", "-print_final_stats=1",
        ]  # fmt: skip
        mutator = {"custom_mutator": mutated_inside} if given.target == "model" else {}
        atheris.Setup([sys.argv[0], *options, str(corpus)], run, **mutator)
        atheris.Fuzz()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=("model", "csv", "npy"))
    parser.add_argument("file", type=Path, nargs="?", help="repeat this input")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--corpus", type=Path, default=Path("build/corpus"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
