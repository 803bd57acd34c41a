"""``$(NAME)`` in commands, arguments and variables: replaced where the name is known, kept where it is not."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

# "$$" is a dollar; "$(" up to the next ")" is a reference; any other dollar is one.
_REFERENCE = re.compile(r"\$(?:(\$)|\(([^)]*)\))")


def expand(text: str, known: Mapping[str, str]) -> str:
    """The text with its references replaced; what was replaced is not looked at again."""
    return expand_with(text, lambda name: known.get(name, f"$({name})"))


def expand_with(text: str, value: Callable[[str], str]) -> str:
    """The text with each reference replaced by what ``value`` gives for its name."""
    if "$" not in text:
        return text
    return _REFERENCE.sub(lambda match: "$" if match[1] else value(match[2]), text)
