"""Header fields of HTTP/2, as far as one who keeps no table of them needs: spelled out, or by their numbers."""

from __future__ import annotations

from collections.abc import Iterator


def literal(name: str, value: str) -> bytes:
    """A field that is spelled out and remembered by nobody."""
    return b"\0" + b"".join(_integer(len(text), 7) + text for text in (name.encode(), value.encode()))


def _integer(number: int, bits: int) -> bytes:
    most = (1 << bits) - 1
    return bytes([number]) if number < most else bytes([most]) + varint(number - most)


def varint(number: int) -> bytes:
    """A number, seven bits to the byte, the lowest first."""
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def decoded(block: bytes) -> Iterator[tuple[str, str]]:
    """The fields that are spelled out; of those by number, ``#`` and the number."""
    at = 0
    while at < len(block):
        first = block[at]
        if first & 0x80:
            _, at = _number(block, at, 7)
            continue
        if first & 0xE0 == 0x20:
            _, at = _number(block, at, 5)  # the size of a table that nobody uses
            continue
        index, at = _number(block, at, 6 if first & 0x40 else 4)
        if index:
            name = f"#{index}"
        else:
            name, at = _text(block, at)
        value, at = _text(block, at)
        yield name, value


def _number(block: bytes, at: int, bits: int) -> tuple[int, int]:
    most = (1 << bits) - 1
    number = block[at] & most
    at += 1
    shift = 0
    while number >= most:
        piece = block[at]
        at += 1
        number += (piece & 0x7F) << shift
        shift += 7
        if not piece & 0x80:
            break
    return number, at


def _text(block: bytes, at: int) -> tuple[str, int]:
    is_coded = bool(block[at] & 0x80)
    length, at = _number(block, at, 7)
    piece = block[at : at + length]
    return (_unpacked(piece) if is_coded else piece.decode("latin-1")), at + length


# How many bits each letter takes (RFC 7541, appendix B); codes of one length follow each other in the letters' order.
_LENGTHS = bytes.fromhex(
    "0d171c1c1c1c1c1c1c181e1c1c1e1c1c1c1c1c1c1c1c1e1c1c1c1c1c1c1c1c1c"
    "060a0a0c0d06080b0a0a080b080606060505050606060606060607080f060c0a"
    "0d06070707070707070707070707070707070707070707070807080d130d0e06"
    "0f05060506050606060507070606060506070605050607070707070f0b0e0d1c"
    "1416141416161617161717171717181718181617181717171715161716171718"
    "1615141616171715171616181516171715151615171617171416161617161617"
    "1a1a1413161716191a1a1a1b1b1a181913151a1b1b1a1b1815151a1a1c1b1b1b"
    "14181415161515171616191918181a171a1b1a1a1b1b1b1b1b1c1b1b1b1b1b1a"
)


def _codes() -> dict[tuple[int, int], int]:
    """The letter of each code, by its length and value."""
    found = {}
    code, length = 0, 0
    for letter in sorted(range(len(_LENGTHS)), key=lambda one: (_LENGTHS[one], one)):
        code <<= _LENGTHS[letter] - length
        length = _LENGTHS[letter]
        found[length, code] = letter
        code += 1
    return found


_LETTERS = _codes()


def _unpacked(piece: bytes) -> str:
    letters = bytearray()
    code = length = 0
    for byte in piece:
        for bit in range(7, -1, -1):
            code = code << 1 | (byte >> bit & 1)
            length += 1
            letter = _LETTERS.get((length, code))
            if letter is not None:
                letters.append(letter)
                code = length = 0
    return letters.decode("latin-1")
