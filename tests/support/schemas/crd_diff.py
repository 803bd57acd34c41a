"""Compares two CustomResourceDefinitions fact by fact, and holds the differences against a list of intended ones.

Words for people (descriptions, messages of rules) are no facts. Everything else is: fields, types, formats, bounds,
enums, defaults, required lists, list and map types, CEL rules, names, scope, subresources, columns. A path reads like
``v1.spec.levels[].nodeLabel``; items of lists are ``[]``, values of maps ``{}``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ABSENT = "(absent)"

_PROSE = ("description", "title", "example")
_UNORDERED = ("required", "enum", "x-kubernetes-list-map-keys")
_RULE_FACTS = ("reason", "fieldPath", "optionalOldSelf")


@dataclass(frozen=True)
class Difference:
    """One fact on which two definitions disagree."""

    path: str
    fact: str
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        return f"{self.path}: {self.fact} is {self.ours!r} here and {self.theirs!r} upstream"


@dataclass(frozen=True)
class Intended:
    """A difference made on purpose, and why. ``*`` in a path matches within one field, ``**`` any number of fields."""

    path: str
    fact: str
    reason: str

    def covers(self, difference: Difference) -> bool:
        parts = (re.escape(part) for part in re.split(r"(\*\*|\*)", self.path))
        pattern = "".join({r"\*\*": r".*", r"\*": r"[^.]*"}.get(part, part) for part in parts)
        return self.fact in ("*", difference.fact) and re.fullmatch(pattern, difference.path) is not None


def differences(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[Difference]:
    """Every fact on which two definitions of one kind disagree, in a fixed order."""
    return sorted(_definition(ours["spec"], theirs["spec"]), key=lambda found: (found.path, found.fact))


def unexplained(found: Sequence[Difference], intended: Sequence[Intended]) -> list[str]:
    """What has to be mended: differences nobody listed, and listed ones that do not exist (any more)."""
    unlisted = [str(difference) for difference in found if not any(entry.covers(difference) for entry in intended)]
    stale = [
        f"{entry.path}: {entry.fact} is listed as intended ({entry.reason}) and does not differ"
        for entry in intended
        if not any(entry.covers(difference) for difference in found)
    ]
    return unlisted + stale


def _definition(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[Difference]:
    yield from _values("definition", ours, theirs, ("group", "scope"))
    parts = ("kind", "listKind", "plural", "singular", "shortNames", "categories")
    yield from _values("definition.names", ours["names"], theirs["names"], parts)
    strategy = [side.get("conversion", {}).get("strategy", "None") for side in (ours, theirs)]
    if strategy[0] != strategy[1]:
        yield Difference("definition", "conversion", *strategy)
    for name, mine, other in _pairs(_by_name(ours["versions"]), _by_name(theirs["versions"])):
        if mine is None or other is None:
            yield _missing(name, "version", mine)
        else:
            yield from _version(name, mine, other)


def _version(name: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[Difference]:
    yield from _values(name, ours, theirs, ("served", "storage", "deprecated", "subresources", "selectableFields"))
    columns = [_by_name(side.get("additionalPrinterColumns", ())) for side in (ours, theirs)]
    if list(columns[0]) != list(columns[1]):
        yield Difference(name, "columns", list(columns[0]), list(columns[1]))
    for column in columns[0].keys() & columns[1].keys():
        parts = ("type", "format", "jsonPath", "priority")
        yield from _values(f"{name} column {column}", columns[0][column], columns[1][column], parts)
    yield from _schema(name, ours["schema"]["openAPIV3Schema"], theirs["schema"]["openAPIV3Schema"])


def _schema(path: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[Difference]:
    inner = ("properties", "items", "additionalProperties", "x-kubernetes-validations")
    facts = sorted((ours.keys() | theirs.keys()) - {*inner, *_PROSE})
    yield from _values(path, ours, theirs, facts)
    yield from _rules(path, ours.get("x-kubernetes-validations", ()), theirs.get("x-kubernetes-validations", ()))
    for field, mine, other in _pairs(ours.get("properties", {}), theirs.get("properties", {})):
        yield from _part(f"{path}.{field}", "field", mine, other)
    yield from _part(f"{path}[]", "items", ours.get("items"), theirs.get("items"))
    yield from _part(f"{path}{{}}", "values", ours.get("additionalProperties"), theirs.get("additionalProperties"))


def _part(path: str, fact: str, ours: Any, theirs: Any) -> Iterator[Difference]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        yield from _schema(path, ours, theirs)
    elif ours != theirs:
        yield _missing(path, fact, ours) if None in (ours, theirs) else Difference(path, fact, ours, theirs)


def _rules(path: str, ours: Iterable[Any], theirs: Iterable[Any]) -> Iterator[Difference]:
    """A rule is its expression; one that only one side has is a fact of its own, named by the expression."""
    mine, others = ({" ".join(rule["rule"].split()): rule for rule in side} for side in (ours, theirs))
    for text, one, other in _pairs(mine, others):
        if one is None or other is None:
            yield _missing(path, f"rule {text}", one)
            continue
        yield from _values(f"{path} rule {text}", one, other, _RULE_FACTS)
        for words in ("message", "messageExpression"):
            if (words in one) != (words in other):
                yield _missing(f"{path} rule {text}", words, one.get(words))


def _values(
    path: str, ours: Mapping[str, Any], theirs: Mapping[str, Any], facts: Iterable[str]
) -> Iterator[Difference]:
    for fact in facts:
        mine, other = ours.get(fact, ABSENT), theirs.get(fact, ABSENT)
        if fact in _UNORDERED and isinstance(mine, list) and isinstance(other, list):
            mine, other = sorted(mine, key=str), sorted(other, key=str)
        # Python holds 1 == True and 1 == 1.0; of these only the second pair is one value in JSON.
        if mine != other or isinstance(mine, bool) != isinstance(other, bool):
            yield Difference(path, fact, mine, other)


def _missing(path: str, fact: str, ours: Any) -> Difference:
    return Difference(path, fact, ABSENT if ours is None else "here", "there" if ours is None else ABSENT)


def _by_name(entries: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return {entry["name"]: entry for entry in entries}


def _pairs(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    for key in sorted(ours.keys() | theirs.keys()):
        yield key, ours.get(key), theirs.get(key)
