"""What is wrong with the text of a label selector, in Kubernetes' words.

The text is known to be wrong; it is read once more as Kubernetes reads it, up to the first thing that does not fit.
"""

from __future__ import annotations

import re

from shoal.cluster.apiserver.access.wording import aggregate
from shoal.cluster.apiserver.builtin.names import label_value_problems, qualified_name_problems
from shoal.kube.admission.fields import invalid

_TOKEN = re.compile(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+)")
_SYMBOLS = frozenset(["", "==", "!=", "=", "!", "(", ")", ",", "<", ">"])
_OPERATORS = ("in", "notin", "=", "==", "!=", "<", ">")
_INTEGER = re.compile(r"[+-]?[0-9]+")


class _Problem(Exception):
    """The first problem."""


def selector_problem(text: str) -> str:
    """What Kubernetes says of a selector; nothing where it finds it right."""
    try:
        _Reading(text).read()
    except _Problem as problem:
        return str(problem)
    return ""


class _Reading:
    def __init__(self, text: str) -> None:
        self._tokens: list[str] = [*_TOKEN.findall(text), ""]
        self._position = 0

    def read(self) -> None:
        while first := self._next:
            if not _is_word(first) and first != "!":
                raise _Problem(f"found '{first}', expected: !, identifier, or 'end of string'")
            try:
                self._requirement()
            except _Problem as problem:
                raise _Problem(f"unable to parse requirement: {problem}") from None
            found = self._take()
            if not found:
                return
            if found != ",":
                raise _Problem(f"found '{found}', expected: ',' or 'end of string'")
            if not _is_word(self._next) and self._next != "!":
                raise _Problem(f"found '{self._next}', expected: identifier after ','")

    @property
    def _next(self) -> str:
        return self._tokens[self._position]

    def _take(self) -> str:
        token = self._next
        self._position = min(self._position + 1, len(self._tokens) - 1)
        return token

    def _requirement(self) -> None:
        is_absence = self._next == "!"
        if is_absence:
            self._take()
        key = self._word()
        if problems := qualified_name_problems(key):
            raise _Problem(aggregate(str(invalid("<nil>", key, problem)) for problem in problems))
        if is_absence or self._next in ("", ","):
            return
        operator = self._take()
        if operator not in _OPERATORS:
            raise _Problem(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")
        _check_values(key, operator, self._set() if operator in ("in", "notin") else [self._value()])

    def _word(self) -> str:
        token = self._take()
        if not _is_word(token):
            raise _Problem(f"found '{token}', expected: identifier")
        return token

    def _value(self) -> str:
        return "" if self._next in ("", ",") else self._word()

    def _set(self) -> list[str]:
        if (found := self._take()) != "(":
            raise _Problem(f"found '{found}' expected: '('")
        if self._next == ")":
            self._take()
            return [""]
        if self._next != "," and not _is_word(self._next):
            raise _Problem(f"found '{self._next}', expected: ',', ')' or identifier")
        values = set()
        while True:
            if _is_word(self._next):
                values.add(self._take())
                if self._next not in (",", ")"):
                    raise _Problem(f"found '{self._next}', expected: ',' or ')'")
            else:
                values.add("")
            if self._take() == ")":
                return sorted(values)
            if self._next not in (",", ")") and not _is_word(self._next):
                raise _Problem(f"found '{self._next}', expected: ',', or identifier")


def _check_values(key: str, operator: str, values: list[str]) -> None:
    problems = []
    if operator in ("<", ">") and not _INTEGER.fullmatch(values[0]):
        problems.append(invalid("values[0]", values[0], "for 'Gt', 'Lt' operators, the value must be an integer"))
    for place, value in enumerate(values):
        problems += [invalid(f"values[{place}][{key}]", value, problem) for problem in label_value_problems(value)]
    if problems:
        raise _Problem(aggregate(map(str, problems)))


def _is_word(token: str) -> bool:
    return token not in _SYMBOLS
