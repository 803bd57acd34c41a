"""Which objects a selecting informer is told of, told from an object as a write was answered with it.

The judge is the server. What it knows and we do not (a selector that we cannot read, a field that is no plain value) is
taken for not selected: nobody shall wait for an event that may never come.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import msgspec

from shoal.api.meta.selector import SELECT_NOTHING, InvalidSelector, Selector

_TERM: Final = re.compile(r"([^=!,\\]+)(!=|==|=)((?:[^=,\\]|\\[=,\\])*)(?:,|$)")
_ESCAPED: Final = re.compile(r"\\(.)")
_NOTHING_SAID: Final = ("", "false", "0")
"""How a field that is absent compares, by its type, which we do not know."""


@dataclass(frozen=True)
class Answered:
    """An object as the server answered with it; what its view does not name is read when it is asked for."""

    metadata: Any
    body: bytes

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels."""
        named: Mapping[str, str] | None = getattr(self.metadata, "labels", None)
        return named if named is not None else self._content.get("metadata", {}).get("labels") or {}

    def at(self, path: str) -> Any:
        """The value of a field, such as ``spec.nodeName``; None where it is absent."""
        if path == "metadata.name":
            return self.metadata.name
        if path == "metadata.namespace":
            return self.metadata.namespace
        value: Any = self._content
        for name in path.split("."):
            if not isinstance(value, dict):
                return None
            value = value.get(name)
        return value

    @cached_property
    def _content(self) -> dict[str, Any]:
        content: dict[str, Any] = msgspec.json.decode(self.body)
        return content


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """What one field must be, or must not be."""

    path: str
    value: str
    is_equal: bool

    def holds(self, found: Any) -> bool:
        """Whether a field with this value surely meets the requirement."""
        match found:
            case None:
                return self.value == "" if self.is_equal else self.value not in _NOTHING_SAID
            case bool():
                text = "true" if found else "false"
            case str() | int():
                text = str(found)
            case _:
                return False
        return (text == self.value) is self.is_equal


@dataclass(frozen=True, slots=True)
class Selection:
    """A label selector and a field selector."""

    labels: Selector
    fields: tuple[FieldRequirement, ...] = ()

    @staticmethod
    def of(label_selector: str, field_selector: str) -> Selection:
        """What two texts select; nothing where they cannot be read, which is the server's to complain about."""
        try:
            return Selection(Selector.parse(label_selector), _field_requirements(field_selector))
        except InvalidSelector:
            return Selection(SELECT_NOTHING)

    def shows(self, written: Answered) -> bool:
        """Whether those who watch this selection are surely told of an object."""
        try:
            return self.labels.matches(written.labels) and all(one.holds(written.at(one.path)) for one in self.fields)
        except (msgspec.DecodeError, RecursionError):
            return False


def _field_requirements(text: str) -> tuple[FieldRequirement, ...]:
    requirements, position = [], 0
    while position < len(text):
        term = _TERM.match(text, position)
        if term is None:
            raise InvalidSelector(f"field selector {text!r}", [f"{text[position:]!r} is no comparison"])
        path, operator, value = term.groups()
        requirements.append(FieldRequirement(path, _ESCAPED.sub(r"\1", value), operator != "!="))
        position = term.end()
    return tuple(requirements)
