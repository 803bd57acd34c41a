"""What is wrong with a text that is no JSON, in the words of Go's scanner.

Only bodies that could not be read come here, so that it may be slow; it must not recurse, since nesting may be the
problem.
"""

from __future__ import annotations

import re

_DEEPEST = 10_000
_SPACE = re.compile(rb"[ \t\r\n]*")
_PLAIN_TEXT = re.compile(rb'[^"\\\x00-\x1f]*')
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)?")
_DIGITS = re.compile(rb"[0-9]*")
_END = "unexpected end of JSON input"
_HEX = frozenset(b"0123456789abcdefABCDEF")


class _Problem(Exception):
    """Found; the message is Go's."""


def json_problem(raw: bytes) -> str:
    """The first problem of a text, or an empty text where it is JSON that is not nested too deeply."""
    try:
        # Go's scanner ends with a blank, which is what a word or number that is cut off is told to have.
        _scan(raw + b" ")
    except _Problem as problem:
        return str(problem)
    return ""


def _scan(raw: bytes) -> None:
    open_: list[int] = []  # the brackets that are not closed yet
    position = _value(raw, _skip(raw, 0), open_)
    is_first = bool(open_)
    while open_:
        is_object = open_[-1] == ord("{")
        position = _skip(raw, position)
        byte = _byte(raw, position)
        if byte == (ord("}") if is_object else ord("]")):
            open_.pop()
            position += 1
            is_first = False
            continue
        if not is_first:
            if byte != ord(","):
                raise _wrong(raw, position, "after object key:value pair" if is_object else "after array element")
            position = _skip(raw, position + 1)
        if is_object:
            position = _skip(raw, _key(raw, position))
        depth = len(open_)
        position = _value(raw, position, open_)
        is_first = len(open_) > depth
    position = _skip(raw, position)
    if position < len(raw):
        raise _wrong(raw, position, "after top-level value")


def _key(raw: bytes, position: int) -> int:
    if _byte(raw, position) != ord('"'):
        raise _wrong(raw, position, "looking for beginning of object key string")
    position = _skip(raw, _text(raw, position))
    if _byte(raw, position) != ord(":"):
        raise _wrong(raw, position, "after object key")
    return position + 1


def _value(raw: bytes, position: int, open_: list[int]) -> int:
    """Passes a scalar, or the bracket that opens something."""
    byte = _byte(raw, position)
    if byte in b"{[":
        open_.append(byte)
        if len(open_) > _DEEPEST:
            raise _wrong(raw, position, "exceeded max depth")
        return position + 1
    if byte == ord('"'):
        return _text(raw, position)
    if byte in b"-0123456789":
        return _number(raw, position)
    for word in (b"true", b"false", b"null"):
        if byte == word[0]:
            return _word(raw, position, word)
    raise _wrong(raw, position, "looking for beginning of value")


def _text(raw: bytes, position: int) -> int:
    position += 1
    while True:
        found = _PLAIN_TEXT.match(raw, position)
        assert found is not None
        position = found.end()
        byte = _byte(raw, position)
        if byte == ord('"'):
            return position + 1
        if byte != ord("\\"):
            raise _wrong(raw, position, "in string literal")
        escaped = _byte(raw, position + 1)
        if escaped not in b'bfnrt\\/"u':
            raise _wrong(raw, position + 1, "in string escape code")
        position += 2
        if escaped == ord("u"):
            for _ in range(4):
                if _byte(raw, position) not in _HEX:
                    raise _wrong(raw, position, "in \\u hexadecimal character escape")
                position += 1


def _number(raw: bytes, position: int) -> int:
    found = _NUMBER.match(raw, position)
    assert found is not None
    position = found.end()
    if found[0] == b"-":
        _byte(raw, position)
        raise _wrong(raw, position, "in numeric literal")
    if raw[position : position + 1] == b".":
        position = _digits(raw, position + 1, "after decimal point in numeric literal")
    if raw[position : position + 1] in (b"e", b"E"):
        position += 2 if raw[position + 1 : position + 2] in (b"+", b"-") else 1
        position = _digits(raw, position, "in exponent of numeric literal")
    return position


def _digits(raw: bytes, position: int, place: str) -> int:
    found = _DIGITS.match(raw, position)
    assert found is not None
    if not found[0]:
        _byte(raw, position)
        raise _wrong(raw, position, place)
    return found.end()


def _word(raw: bytes, position: int, word: bytes) -> int:
    for letter in word:
        if _byte(raw, position) != letter:
            raise _wrong(raw, position, f"in literal {word.decode()} (expecting '{chr(letter)}')")
        position += 1
    return position


def _skip(raw: bytes, position: int) -> int:
    found = _SPACE.match(raw, position)
    assert found is not None
    return found.end()


def _byte(raw: bytes, position: int) -> int:
    if position >= len(raw):
        raise _Problem(_END)
    return raw[position]


def _wrong(raw: bytes, position: int, place: str) -> _Problem:
    character = chr(raw[position])
    shown = {"'": r"'\''", '"': "'\"'"}.get(character) or f"'{_go_escaped(character)}'"
    return _Problem(f"invalid character {shown} {place}")


def _go_escaped(character: str) -> str:
    named = {"\n": r"\n", "\t": r"\t", "\r": r"\r", "\\": "\\\\", "\a": r"\a", "\b": r"\b", "\f": r"\f", "\v": r"\v"}
    if character in named:
        return named[character]
    if character.isprintable():
        return character
    return f"\\x{ord(character):02x}" if character.isascii() else f"\\u{ord(character):04x}"
