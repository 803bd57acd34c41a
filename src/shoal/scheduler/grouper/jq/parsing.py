"""From the text of an expression to its pieces."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Final

from shoal.scheduler.grouper.jq.nodes import COMPARISONS, InvalidQuery, Node
from shoal.scheduler.grouper.jq.values import PLAIN, WITH_ARGUMENTS

LONGEST: Final = 2000
MOST_WORDS: Final = 150
DEEPEST: Final = 20
"""So many characters and words may an expression have, and its brackets lie so deep in each other: it is read, and run,
by functions that call themselves.
"""


def pieces(text: str) -> Node:
    """The pieces of an expression; raises InvalidQuery."""
    if len(text) > LONGEST:
        raise InvalidQuery(f"it is longer than {LONGEST} characters")
    words = _words(text)
    if len(words) > MOST_WORDS:
        raise InvalidQuery(f"it has more than {MOST_WORDS} words")
    parser = _Parser(words)
    node = parser.pipe()
    if parser.next:
        raise InvalidQuery(f"{parser.next!r} is not expected there")
    return node


_WORD: Final = re.compile(
    r"""\s*(?:(?P<string>"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*")
    |(?P<number>\d+(?:\.\d+)?)
    |(?P<field>\.[A-Za-z_]\w*)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<sign>\.\.|//|==|!=|<=|>=|[.\[\]()|,+\-*/%<>?:;]))""",
    re.VERBOSE | re.ASCII,
)
_LITERALS: Final = {"null": None, "true": True, "false": False}


def _words(text: str) -> list[str]:
    words: list[str] = []
    at, text = 0, text.rstrip()
    while at < len(text):
        word = _WORD.match(text, at)
        if word is None:
            raise InvalidQuery(f"{text[at:].strip()[:20]!r} is not understood")
        words.append(word[0].strip())
        at = word.end()
    return words


class _Parser:
    """From the weakest operator to the strongest, each a method."""

    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._at = 0
        self._depth = 0

    @property
    def next(self) -> str:
        return self._words[self._at] if self._at < len(self._words) else ""

    def pipe(self) -> Node:
        left = self._chain(self._alternative, ",")
        return Node("|", (left, self.pipe())) if self._takes("|") else left

    def _alternative(self) -> Node:
        left = self._chain(lambda: self._chain(self._comparison, "and"), "or")
        return Node("//", (left, self._alternative())) if self._takes("//") else left

    def _comparison(self) -> Node:
        left = self._sum()
        if self.next in COMPARISONS:
            return Node(self._take(), (left, self._sum()))
        return left

    def _sum(self) -> Node:
        return self._chain(lambda: self._chain(self._term, "*", "/", "%"), "+", "-")

    def _chain(self, operand: Callable[[], Node], *signs: str) -> Node:
        left = operand()
        while self.next in signs:
            left = Node(self._take(), (left, operand()))
        return left

    def _term(self) -> Node:
        node = self._begin()
        while True:
            word = self.next
            if word == "?":
                self._take()
                # Of a path its last step alone may fail.
                node = Node(f"{node.does}?", node.of) if node.does in ("at", "each") else Node("?", (node,))
            elif word == "[":
                node = self._bracket(node)
            elif _is_field(word):
                node = self._key(node, self._take()[1:])
            elif word == "." and self._peek()[:1] in ('"', "["):
                self._take()
                if self.next != "[":
                    node = self._key(node, json.loads(self._take()))
            else:
                return node

    def _begin(self) -> Node:
        word = self._take()
        if word == ".":
            return self._key(Node("."), json.loads(self._take())) if self.next.startswith('"') else Node(".")
        if _is_field(word):
            return self._key(Node("."), word[1:])
        if word.startswith('"'):
            return Node("value", value=json.loads(word))
        if word[:1].isdigit():
            return Node("value", value=float(word) if "." in word else int(word))
        if word == "-":
            return Node("-", (Node("value", value=0), self._inside(self._term)))
        if word in ("(", "["):
            return self._enclosed(word)
        if word == "if":
            return self._choice()
        if word in _LITERALS:
            return Node("value", value=_LITERALS[word])
        return self._call(word)

    def _enclosed(self, word: str) -> Node:
        if word == "[" and self._takes("]"):
            return Node("[]")
        node = self._inside()
        self._expect(")" if word == "(" else "]")
        return Node("()" if word == "(" else "[]", (node,))

    def _bracket(self, node: Node) -> Node:
        self._expect("[")
        if self._takes("]"):
            return Node("each", (node,))
        key = self._inside()
        self._expect("]")
        return Node("at", (node, key))

    def _choice(self) -> Node:
        condition = self._inside()
        self._expect("then")
        then = self._inside()
        if self._takes("elif"):
            return Node("if", (condition, then, self._choice()))
        otherwise = self._inside() if self._takes("else") else Node(".")
        self._expect("end")
        return Node("if", (condition, then, otherwise))

    def _call(self, name: str) -> Node:
        arguments: list[Node] = []
        if self._takes("("):
            arguments.append(self._inside())
            self._expect(")")
        if name not in (WITH_ARGUMENTS if arguments else PLAIN):
            raise InvalidQuery(f"{name or 'its end'!r} is not understood")
        return Node("call", tuple(arguments), name)

    def _inside(self, inner: Callable[[], Node] | None = None) -> Node:
        self._depth += 1
        if self._depth > DEEPEST:
            raise InvalidQuery(f"more than {DEEPEST} brackets lie in each other")
        node = (inner or self.pipe)()
        self._depth -= 1
        return node

    def _key(self, node: Node, key: str) -> Node:
        return Node("at", (node, Node("value", value=key)))

    def _peek(self) -> str:
        return self._words[self._at + 1] if self._at + 1 < len(self._words) else ""

    def _take(self) -> str:
        word = self.next
        self._at += 1
        return word

    def _takes(self, word: str) -> bool:
        if self.next != word:
            return False
        self._at += 1
        return True

    def _expect(self, word: str) -> None:
        if not self._takes(word):
            raise InvalidQuery(f"{word!r} is missing before {self.next or 'its end'!r}")


def _is_field(word: str) -> bool:
    return len(word) > 1 and word[0] == "." and word[1] != "."
