"""A campaign against the readers: damaged data files are refused in a sentence that names them, or read.

``python tests/fuzz_files.py 5000`` damages that many files of all formats (flipped bits, missing ends, bytes moved or
doubled), seeded and so repeatable, and reads them in a process whose memory is bounded; ``--first 1234 --seed 7`` goes
on there. A crash, a hang, more memory than the bound or an error that is not dc2's is a failure.
"""

import gzip
import json
import random
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet

from dc2 import Compressor, as_source
from dc2.errors import InputError, InputTypeError
from support.bounded_process import Case, main

MEMORY_BYTES = 600 * 2**20  # beyond what the process holds when all is imported
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
IDS = [f"row {number}" for number in range(len(X))]


def honest_files(folder: Path) -> dict[str, bytes]:
    """Write a sound file of each format, and return their bytes by suffix."""
    table = pa.table({"id": IDS} | {f"c{column}": X[:, column] for column in range(3)})
    dictionary = table.set_column(0, "id", pa.array(IDS).dictionary_encode())
    pa.csv.write_csv(table, folder / "a.csv")
    pa.parquet.write_table(table, folder / "a.parquet", row_group_size=20)
    pa.parquet.write_table(table, folder / "b.parquet", compression="zstd", write_page_checksum=False)
    pa.feather.write_feather(table, folder / "a.arrow", compression="uncompressed", chunksize=20)
    pa.feather.write_feather(dictionary, folder / "b.arrow", compression="lz4")
    np.save(folder / "a.npy", X)
    np.save(folder / "b.npy", np.asfortranarray(X.astype(np.float32)))
    (folder / "a.csv.gz").write_bytes(gzip.compress((folder / "a.csv").read_bytes()))
    lines = [json.dumps({"id": name, "a": row[0], "b": row[1]}) for name, row in zip(IDS, X, strict=True)]
    (folder / "a.jsonl").write_text("\n".join(lines))
    files = {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.name[1] == "."}
    (folder / "damaged").mkdir(exist_ok=True)
    return files


def damaged(content: bytes, chance: random.Random) -> bytes:
    """Damage a file once or a few times."""
    harmed = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 5))):
        at = chance.randrange(len(harmed)) if harmed else 0
        kind = chance.randrange(6)
        if not harmed:
            break
        if kind <= 1:
            harmed[at] ^= 1 << chance.randrange(8)
        elif kind == 2:
            harmed[at] = chance.choice((0, 0x7F, 0x80, 0xFF))
        elif kind == 3:
            del harmed[at:]
        elif kind == 4:
            del harmed[at : at + chance.randrange(1, 9)]
        else:
            harmed[at:at] = harmed[at : at + chance.randrange(1, 64)]
    return bytes(harmed)


def prepare(folder: Path) -> Case:
    """Read every sound file once, and return what damages and reads one."""
    files = honest_files(folder)
    assert all(_use(folder, name, content) for name, content in files.items())

    def run(_: int, chance: random.Random) -> bool:
        name = chance.choice(sorted(files))
        try:
            return _use(folder, name, damaged(files[name], chance))
        except Exception as error:
            error.add_note(name)
            raise

    return run


def _use(folder: Path, name: str, content: bytes) -> bool:
    """Read a file as a fit and an output do, ids included; return whether it could be read."""
    path = folder / "damaged" / name
    path.write_bytes(content)
    drop = None if name.endswith(".npy") else ["id"]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            Compressor(5, random_state=0, n_jobs=1, block_bytes=1024).fit(as_source(path, drop=drop))
            for _ in as_source(path, drop=drop, extra=drop or ()).blocks(1024):
                pass
        except (InputError, InputTypeError):
            return False
        finally:
            path.unlink()
    return True


if __name__ == "__main__":
    main("damaged data files", __doc__, MEMORY_BYTES, prepare)
