"""Regular expressions as Go reads them (RE2), on Python's engine.

The two agree on nearly all that schemas use. Where they differ: ``$`` ends the text and not the last line, ``\\z`` is
``\\Z``, classes such as ``\\d`` and ``[[:alpha:]]`` are ASCII, flags may be set anywhere; and what RE2 refuses (look-
around, back-references, possessive or atomic groups, counts above 1000) is refused here as well.
"""

from __future__ import annotations

import functools
import re
import warnings

_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\\x00-\\x7f",
    "blank": "\\t ",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\t\\n\\v\\f\\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_UNICODE = {
    "L": "^\\W\\d_",
    "N": "\\d",
    "Lu": "A-ZÀ-ÖØ-Þ",
    "Ll": "a-zß-öø-ÿ",
    "Nd": "\\d",
}
_REPEAT = re.compile(r"\{(\d+)(?:,(\d*))?\}")
_FLAGS = re.compile(r"\(\?([imsU]*)(?:-([imsU]+))?([:)])")
_LIMIT = 1000


class InvalidPattern(ValueError):
    """A pattern that Go would not compile; the message is Go's where we know it."""


@functools.lru_cache(maxsize=4096)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """A pattern of Go's, ready to search with."""
    translated = _translated(pattern)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile(translated, re.ASCII if "^\\W\\d_" not in translated else re.UNICODE)
    except (re.error, RecursionError, OverflowError) as error:
        raise InvalidPattern(f"error parsing regexp: {_worded(pattern, error)}") from None


def _worded(pattern: str, error: Exception) -> str:
    text = str(error)
    if "nothing to repeat" in text:
        at = int(text.rsplit(" ", 1)[1]) if text.rsplit(" ", 1)[1].isdigit() else 0
        return f"missing argument to repetition operator: `{pattern[at : at + 1]}`"
    if "missing ), unterminated" in text:
        return f"missing closing ): `{pattern}`"
    if "unbalanced parenthesis" in text:
        return f"unexpected ): `{pattern}`"
    if found := re.match(r"bad character range (.*) at position", text):
        return f"invalid character class range: `{found[1]}`"
    if "unterminated character set" in text:
        at = int(text.rsplit(" ", 1)[1]) if text.rsplit(" ", 1)[1].isdigit() else 0
        return f"missing closing ]: `{pattern[at:]}`"
    return f"{text}: `{pattern}`"


def _translated(pattern: str) -> str:
    parts: list[str] = []
    at, end = 0, len(pattern)
    # Python takes global flags at the very start alone: a flag group elsewhere is opened to the end of its group.
    open_flags = [0]
    multiline = [False]
    while at < end:
        letter = pattern[at]
        if letter == "\\":
            piece, at = _escape(pattern, at)
            parts.append(piece)
        elif letter == "[":
            piece, at = _bracket(pattern, at)
            parts.append(piece)
        elif letter == "(":
            flags = _FLAGS.match(pattern, at)
            if flags:
                multiline_here = ("m" in flags[1]) or (multiline[-1] and "m" not in (flags[2] or ""))
                kept, dropped = flags[1].replace("U", ""), (flags[2] or "").replace("U", "")
                shown = f"(?{kept}{'-' + dropped if dropped else ''}:"
                parts.append(shown)
                if flags[3] == ")":
                    open_flags[-1] += 1
                    multiline[-1] = multiline_here
                else:
                    open_flags.append(0)
                    multiline.append(multiline_here)
                at = flags.end()
                continue
            if pattern.startswith("(?", at) and not re.match(r"\(\?(P?<[A-Za-z_0-9]+>|:)", pattern[at:]):
                raise InvalidPattern(
                    f"error parsing regexp: invalid or unsupported Perl syntax: `{pattern[at : at + 3]}`"
                )
            named = re.match(r"\(\?<([A-Za-z_0-9]+)>", pattern[at:])
            open_flags.append(0)
            multiline.append(multiline[-1])
            parts.append(f"(?P<{named[1]}>" if named else "(")
            at += named.end() if named else 1
        elif letter == ")":
            if len(open_flags) > 1:
                parts.append(")" * open_flags.pop())
                multiline.pop()
            parts.append(")")
            at += 1
        elif letter == "$":
            parts.append("$" if multiline[-1] else "\\Z")
            at += 1
        elif letter in "*+?}" or letter == "{":
            piece, at = _repetition(pattern, at)
            parts.append(piece)
        else:
            parts.append(letter)
            at += 1
    parts.append(")" * sum(open_flags))
    return "".join(parts)


def _repetition(pattern: str, at: int) -> tuple[str, int]:
    repeat = _REPEAT.match(pattern, at)
    if repeat:
        counts = [int(each) for each in repeat.groups() if each]
        if max(counts) > _LIMIT or (len(counts) == 2 and counts[1] < counts[0]):
            raise InvalidPattern(f"error parsing regexp: invalid repeat count: `{repeat[0]}`")
        piece = repeat[0]
    elif pattern[at] in "{}":
        return "\\" + pattern[at], at + 1
    else:
        piece = pattern[at]
    at += len(piece)
    if pattern[at : at + 1] == "?":
        piece, at = piece + "?", at + 1
    following = _REPEAT.match(pattern, at)
    if pattern[at : at + 1] in ("*", "+", "?") or following:
        rest = following[0] if following else pattern[at]
        raise InvalidPattern(f"error parsing regexp: invalid nested repetition operator: `{piece}{rest}`")
    return piece, at


def _escape(pattern: str, at: int) -> tuple[str, int]:
    letter = pattern[at + 1 : at + 2]
    if letter == "":
        raise InvalidPattern("error parsing regexp: trailing backslash at end of expression: ``")
    if letter == "z":
        return "\\Z", at + 2
    if letter in "pP":
        inside, after = _category(pattern, at)
        return f"[{inside}]", after
    if letter == "Q":
        close = pattern.find("\\E", at)
        close = len(pattern) if close < 0 else close
        return re.escape(pattern[at + 2 : close]), close + 2
    if letter == "x" and pattern[at + 2 : at + 3] == "{":
        close = pattern.find("}", at)
        return re.escape(chr(int(pattern[at + 3 : close], 16))), close + 1
    if (letter.isdigit() and letter != "0") or letter in "GhHkKRXZeEc":
        raise InvalidPattern(f"error parsing regexp: invalid escape sequence: `\\{letter}`")
    return pattern[at : at + 2], at + 2


def _category(pattern: str, at: int) -> tuple[str, int]:
    if pattern[at + 2 : at + 3] == "{":
        close = pattern.find("}", at)
        name, after = pattern[at + 3 : close], close + 1
    else:
        name, after = pattern[at + 2 : at + 3], at + 3
    known = _UNICODE.get(name)
    if known is None or (pattern[at + 1] == "P" and known.startswith("^")):
        raise InvalidPattern(f"error parsing regexp: invalid character class range: `{pattern[at:after]}`")
    return ("^" + known if pattern[at + 1] == "P" else known), after


def _bracket(pattern: str, at: int) -> tuple[str, int]:
    parts = ["["]
    start, at = at, at + 1
    if pattern[at : at + 1] == "^":
        parts.append("^")
        at += 1
    is_first = True
    while at < len(pattern):
        letter = pattern[at]
        if letter == "]" and not is_first:
            return "".join([*parts, "]"]), at + 1
        named = re.match(r"\[:(\^?)(\w+):\]", pattern[at:])
        if named:
            inside = _CLASSES.get(named[2])
            if inside is None or named[1]:
                raise InvalidPattern(f"error parsing regexp: invalid character class range: `{named[0]}`")
            parts.append(inside)
            at += named.end()
        elif letter == "\\":
            if pattern[at + 1 : at + 2] in ("p", "P"):
                inside, at = _category(pattern, at)
                if inside.startswith("^"):
                    raise InvalidPattern(f"error parsing regexp: invalid character class range: `{pattern}`")
                parts.append(inside)
            else:
                piece, at = _escape(pattern, at)
                parts.append(piece)
        else:
            # Python reads these as set operations some day, and says so today.
            parts.append("\\" + letter if letter in "[&~|" or (letter == "]" and is_first) else letter)
            at += 1
        is_first = False
    raise InvalidPattern(f"error parsing regexp: missing closing ]: `{pattern[start:]}`")
