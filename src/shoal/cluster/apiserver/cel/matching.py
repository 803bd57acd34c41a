"""Whether a pattern matches a text, in a time that grows with the text and not beyond it.

Python's engine tries one way after the other: of ``^(a+)+$`` there are twice as many with each letter, and forty
letters would keep the server for hours. Go's patterns never do that, so definitions are full of such. The C++ library
that parses CEL has the same engine as Go, behind ``matches``. It takes 40 µs for what Python does in one, and is asked
only where Python might take long. Objects say the same few words again and again (types and reasons of conditions,
names of labels), so that what it said of a short text is remembered.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable

from cel_expr_python import cel  # type: ignore[import-untyped]

from shoal.cluster.apiserver.cel.patterns import InvalidPattern, compile_pattern

Matcher = Callable[[str], bool]

_environment = cel.NewEnv(variables={"text": cel.Type.STRING})
_ONE_LETTER = re.compile(r"\\.|\[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\]", re.DOTALL)
_REPEATED_GROUP = re.compile(r"\)(?:[*+]|\{)")
_COUNTED_GROUP = re.compile(r"\)\{")
_MOST_STEPS = 10_000
_MOST_CHOICES = 12
_SHORT = 10
_SHORT_SEARCH = 20
_MOST_SEARCH_STEPS = 1_000_000
_LARGE = re.compile(r"\{\d{3}|\\[pP]")
_LONG_PATTERN = 500
_REMEMBERED = 8192
"""Answers of the slower engine, of all patterns together."""
_REMEMBERED_LENGTH = 128


@functools.lru_cache(maxsize=4096)
def matcher(pattern: str) -> Matcher:
    """Says of texts whether a pattern of Go's matches somewhere in them; raises InvalidPattern."""
    search = compile_pattern(pattern).search
    bare = _ONE_LETTER.sub("x", pattern)
    longest = _longest(bare, _MOST_STEPS, _SHORT)
    linear: Matcher | None = None
    if _COUNTED_GROUP.search(bare):
        # Counts of counts may come to more than Go allows, which Python would try to carry out.
        linear = _linear(pattern)
        if linear is None:
            raise InvalidPattern(f"error parsing regexp: invalid repeat count: `{pattern}`")
    elif longest < sys.maxsize and (_LARGE.search(pattern) or len(pattern) > _LONG_PATTERN):
        linear = _linear(pattern)
        if linear is None:
            raise InvalidPattern(f"error parsing regexp: expression too large: `{pattern}`")

    def matches(text: str) -> bool:
        nonlocal linear
        if len(text) <= longest:
            return search(text) is not None
        if linear is None:
            # What the linear engine does not take, Go would not take either; it matches nothing.
            linear = _linear(pattern) or (lambda _text: False)
        return linear(text)

    return matches


@functools.lru_cache(maxsize=4096)
def longest_search(pattern: str) -> int:
    """How long a text may be for Python's engine to find where a pattern matches in it."""
    return _longest(_ONE_LETTER.sub("x", pattern), _MOST_SEARCH_STEPS, _SHORT_SEARCH)


def _longest(bare: str, most_steps: int, short: int) -> int:
    """How long a text may be for Python's engine to be done with it in good time."""
    if len(re.findall(r"(?<!\()\?", bare)) + bare.count("|") > _MOST_CHOICES:
        return 0
    if _REPEATED_GROUP.search(bare):
        return short
    loops = len(re.findall(r"[*+{]", bare))
    is_anchored = bare.startswith("^") and "|" not in bare
    power = loops if is_anchored else loops + 1
    return sys.maxsize if power <= 1 else int(most_steps ** (1 / power))


def _linear(pattern: str) -> Matcher | None:
    """The same by the engine that Go's is like; None for the odd pattern that it does not take."""
    literal = "".join(f"\\U{ord(letter):08x}" for letter in pattern)
    program = _environment.compile(f'text.matches("{literal}")')
    if not isinstance(program.eval(data={"text": ""}).value(), bool):
        return None

    def matches(text: str) -> bool:
        whole = text if text.isascii() else text.encode(errors="replace").decode()
        return program.eval(data={"text": whole}).value() is True

    return lambda text: _remembered(matches, text) if len(text) <= _REMEMBERED_LENGTH else matches(text)


@functools.lru_cache(maxsize=_REMEMBERED)
def _remembered(matches: Matcher, text: str) -> bool:
    return matches(text)
