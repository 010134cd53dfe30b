"""The format of Unix ``compress`` (``.Z``), in which one of UCI's files still comes."""

from dc2.errors import SourceError

__all__ = ["unlzw"]

_CLEAR = 256
_FIRST_WIDTH = 9
_HEADER_BYTES = 3


def unlzw(compressed: bytes, max_bytes: int) -> bytes:
    """Return the content of a ``.Z`` file, which is refused if it has more than `max_bytes`.

    Codes are stored least significant bit first and grow from 9 bits. The writer works in groups of eight codes: when
    the width changes, the rest of the group is padding and must be skipped.
    """
    if compressed[:2] != b"\x1f\x9d":
        raise SourceError("not a .Z file: it does not begin with the bytes 1f 9d of Unix compress.")
    if len(compressed) < _HEADER_BYTES:
        raise SourceError(f"damaged .Z file: it ends after {len(compressed)} bytes, within its header.")
    max_width = compressed[2] & 0x1F
    has_clear = bool(compressed[2] & 0x80)
    if not _FIRST_WIDTH < max_width <= 16:
        raise SourceError(f"damaged .Z file: it claims codes of {max_width} bits; 10 to 16 can be read.")
    fresh = [bytes([value]) for value in range(256)] + ([b""] if has_clear else [])

    content = bytearray()
    table = fresh.copy()
    previous = b""
    width = _FIRST_WIDTH
    group_start = position = 8 * _HEADER_BYTES  # in bits

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
            content += piece
            if len(content) > max_bytes:
                raise SourceError(f"the .Z file unpacks to more than the {max_bytes:,} bytes expected.")
            if previous and len(table) < 1 << max_width:
                table.append(previous + piece[:1])
            previous = piece
            if len(table) >= 1 << width and width < max_width:
                new_width = width + 1
        if cleared or new_width != width:
            group = 8 * width
            position = group_start + -(-(position - group_start) // group) * group
            group_start, width = position, new_width
    return bytes(content)
