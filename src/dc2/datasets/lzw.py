"""The format of Unix ``compress`` (``.Z``), in which one of UCI's files still comes."""

from dc2.errors import SourceError

__all__ = ["unlzw"]

_CLEAR = 256
_FIRST_WIDTH = 9


def unlzw(compressed: bytes) -> bytes:
    """Return the content of a ``.Z`` file.

    Codes stand least significant bit first and grow from 9 bits. The writer works in groups of eight codes: where
    the width changes, the rest of the group is padding and must be skipped.
    """
    if compressed[:2] != b"\x1f\x9d":
        raise SourceError("not a .Z file: it does not begin with the bytes 1f 9d of Unix compress.")
    max_width = compressed[2] & 0x1F
    has_clear = bool(compressed[2] & 0x80)
    if not _FIRST_WIDTH < max_width <= 16:
        raise SourceError(f"damaged .Z file: it claims codes of {max_width} bits; 10 to 16 can be read.")
    fresh = [bytes([value]) for value in range(256)] + ([b""] if has_clear else [])

    pieces: list[bytes] = []
    table = fresh.copy()
    previous = b""
    width = _FIRST_WIDTH
    group_start = position = 24  # in bits, past the header

    while position + width <= 8 * len(compressed):
        byte, shift = divmod(position, 8)
        code = (int.from_bytes(compressed[byte : byte + 4], "little") >> shift) & ((1 << width) - 1)
        position += width
        new_width = width
        cleared = has_clear and code == _CLEAR
        if cleared:
            table, previous, new_width = fresh.copy(), b"", _FIRST_WIDTH
        else:
            if code < len(table):
                piece = table[code]
            elif code == len(table) and previous:
                piece = previous + previous[:1]
            else:
                raise SourceError(f"damaged .Z file: code {code} comes before it is defined.")
            pieces.append(piece)
            if previous and len(table) < 1 << max_width:
                table.append(previous + piece[:1])
            previous = piece
            if len(table) >= 1 << width and width < max_width:
                new_width = width + 1
        if cleared or new_width != width:
            group = 8 * width
            position = group_start + -(-(position - group_start) // group) * group
            group_start, width = position, new_width
    return b"".join(pieces)
