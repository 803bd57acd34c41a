"""Taking JSON apart without understanding it: for what is nested deeper than any decoder goes.

Decoders descend by recursion and give up at some depth; API servers accept ten thousand levels. One such object must
not hide all others, so the text around it is cut into its members by looking at quotes and brackets alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*"|[][{},:]')


def members(text: bytes) -> Iterator[tuple[str, bytes]]:
    """The members of one JSON object, or the elements of one array (under empty names), each as its own text."""
    depth = 0
    name = ""
    start = -1
    for token in _TOKENS.finditer(text):
        what = token.group()
        if what in (b"{", b"["):
            depth += 1
            if depth == 1:
                start = token.end()
        elif depth == 1 and what == b":":
            name = msgspec.json.decode(text[start : token.start()].strip())
            start = token.end()
        elif what in (b"}", b"]") or (depth == 1 and what == b","):
            if depth == 1 and (member := text[start : token.start()].strip()):
                yield name, member
            if what == b",":
                name, start = "", token.end()
            else:
                depth -= 1
