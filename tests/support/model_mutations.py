"""Model files made wrong on purpose: flipped bits, missing ends, crafted headers, numbers and directories."""

import io
import json
import random
import struct
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

__all__ = ["mutated"]

NUMBERS = [
    0,
    1,
    -1,
    2,
    2**31 - 1,
    -(2**31),
    2**63 - 1,
    2**64,
    10**30,
    0.5,
    1e308,
    -1e308,
    float("nan"),
    float("inf"),
]
FORMS = [
    {"tuple": []},
    {"dict": []},
    {"names": ["a"]},
    {"array": "model.json"},
    {"record": "Router", "fields": {}},
    {"model": "RPF", "parameters": {}, "fitted": None},
    {"range": [0, 10**18, 1]},
    {"range": [0, 1, 0]},
]
VALUES = [*NUMBERS, None, True, "", "x", "auto", "\x1b[2J", [], {}, [[]], *FORMS]
DTYPES = [
    "<f8",
    "<f4",
    "<f2",
    ">f8",
    "<i8",
    "<i4",
    "<u1",
    "|b1",
    "<c16",
    "|O",
    "<U9",
    "<M8[s]",
    "<f16",
    "|V8",
]

Members = dict[str, bytes]


def mutated(content: bytes, chance: random.Random) -> bytes:
    """Return the content of a model file after one to three changes of one kind."""
    how = chance.choice([_flip, _cut, _splice, _lie_in_directory, _repacked, _repacked, _repacked, _repacked])
    for _ in range(chance.randint(1, 3)):
        content = how(content, chance) if content else content
    return content


def _flip(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(chance.randint(1, 8)):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _cut(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content))] + chance.randbytes(chance.choice([0, 0, 22, 300]))


def _splice(content: bytes, chance: random.Random) -> bytes:
    start, stop, place = sorted(chance.randrange(len(content)) for _ in range(3))
    return content[:place] + content[start:stop] + content[place:]


def _lie_in_directory(content: bytes, chance: random.Random) -> bytes:
    """Change sizes, offsets, methods or names in the zip's directory."""
    places = [place for place in range(len(content) - 46) if content[place : place + 4] == b"PK\x01\x02"]
    if not places:
        return content
    changed = bytearray(content)
    offset = chance.choice([8, 10, 16, 20, 24, 28, 42])
    number = chance.choice([0, 1, 8, 14, 2**16 - 1, 2**31, 2**32 - 1, chance.randrange(2**32)])
    struct.pack_into("<I", changed, chance.choice(places) + offset, number)
    return bytes(changed)


def _repacked(content: bytes, chance: random.Random) -> bytes:
    """Change a member and pack everything again, with right checksums."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except Exception:  # an earlier change broke it
        return content
    name = chance.choice(["model.json", *members]) if members else ""
    if not name:
        return content
    if chance.random() < 0.05:
        members.pop(name, None)
    elif name == "model.json":
        members[name] = _other_json(members.get(name, b"{}"), chance)
    else:
        members[name] = chance.choice([_other_numbers, _other_array, _other_header])(members[name], chance)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in members.items():
            archive.writestr(member, data)
    return packed.getvalue()


def _other_json(text: bytes, chance: random.Random) -> bytes:
    try:
        header = json.loads(text)
    except ValueError:
        return text
    places = list(_places(header))
    if not places:
        return b"[" * chance.choice([1, 10**5])
    holder, key = chance.choice(places)
    value = chance.choice([*VALUES, holder[key], chance.choice(places)[0]])
    what = chance.randrange(5)
    if what == 0:
        del holder[key]
    elif what == 1 and isinstance(holder, dict):
        holder[chance.choice(["x", "_record", "fields", "predict", "__class__", "\x1b"])] = value
    elif what == 2 and isinstance(holder, list):
        holder *= chance.choice([2, 1000])
    else:
        holder[key] = value
    try:
        return json.dumps(header).encode()
    except (ValueError, RecursionError):
        return text


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every place in JSON, as what holds it and its key."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(pairs):
        yield value, key
        yield from _places(inner)


def _with_array(change: Callable[[Any, random.Random], Any]) -> Callable[[bytes, random.Random], bytes]:
    def changed(content: bytes, chance: random.Random) -> bytes:
        try:
            array = np.load(io.BytesIO(content), allow_pickle=False)
        except Exception:
            return content
        buffer = io.BytesIO()
        with np.errstate(all="ignore"):
            np.save(buffer, change(np.atleast_1d(array).copy(), chance))
        return buffer.getvalue()

    return changed


def _put(array: Any, chance: random.Random) -> Any:
    if array.size and array.dtype.kind in "biuf":
        number = chance.choice(NUMBERS)
        for _ in range(chance.choice([1, 1, 5, array.size])):
            place = chance.randrange(array.size)
            array.flat[place] = np.array([number], np.float64).astype(array.dtype)[0]
    return array


def _shape(array: Any, chance: random.Random) -> Any:
    return chance.choice(
        [
            lambda: array[:-1],
            lambda: array[:0],
            lambda: np.concatenate([array, array]),
            lambda: array.reshape(-1),
            lambda: array[..., None],
            lambda: array.T,
            lambda: np.asfortranarray(array),
            lambda: array[::-1],
            lambda: -array if array.dtype.kind != "b" else ~array,
            lambda: array.astype(chance.choice(["f4", "f8", ">f8", "f2", "i4", "i8", "u1", "?", "c16", "U3"])),
        ]
    )()


_other_numbers = _with_array(_put)
_other_array = _with_array(_shape)


def _other_header(content: bytes, chance: random.Random) -> bytes:
    """Change what an array says of itself, and leave its numbers as they are."""
    end = content.find(b"\n")
    if end < 0 or not content.startswith(b"\x93NUMPY"):
        return content
    sizes = [0, 1, 3, 2**31, 2**40, 2**62, -1]
    shape = tuple(chance.choice(sizes) for _ in range(chance.randint(0, 4)))
    header = f"{{'descr': {chance.choice(DTYPES)!r}, 'fortran_order': {chance.random() < 0.3}, 'shape': {shape}, }}"
    if chance.random() < 0.1:
        header = chance.choice(["{", "(" * 5000, "{'shape': [" + "9" * 5000 + "]}", "__import__('os')"])
    text = header.encode().ljust(118) + b"\n"
    length = chance.choice([len(text), len(text), len(text), 0, 65535])
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", length) + text + content[end + 1 :]
