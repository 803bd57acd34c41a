"""Which objects a list, a watch or a deletion of many is about."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from shoal.api.meta import InvalidSelector, Selector
from shoal.cluster.apiserver.kinds.kind import Kind
from shoal.cluster.apiserver.refusals import bad_request
from shoal.cluster.apiserver.storage import Record
from shoal.cluster.apiserver.verbs.selector_problems import selector_problem

_NAME = "metadata.name"
_NAMESPACE = "metadata.namespace"


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """One comparison of a field selector."""

    label: str
    value: str
    is_equal: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """A label selector and a field selector, ready to be asked."""

    selects: Callable[[Record], bool] | None
    """None where everything is selected."""
    name: str | None = None
    """The one name that can match, where the selector says so."""


def selection(kind: Kind, label_text: str, field_text: str, *, name: str = "") -> Selection:
    """The selection of a request; ``name`` where the URL names the one object."""
    try:
        labels = Selector.parse(label_text)
    except InvalidSelector as error:
        raise bad_request(selector_problem(label_text) or str(error)) from None
    requirements = parse_fields(field_text)
    for requirement in requirements:
        _check_label(kind, requirement.label)
    wanted = required_name(requirements)
    if name:
        if wanted is not None and wanted != name:
            raise bad_request("fieldSelector metadata.name doesn't match requested name")
        wanted = name
    stored = kind.rules.stored_fields
    requirements = [dataclasses.replace(one, label=stored.get(one.label, one.label)) for one in requirements]
    rest = [one for one in requirements if not (one.label == _NAME and one.is_equal and one.value == wanted)]
    if labels.is_everything and not rest and wanted is None:
        return Selection(selects=None)

    matches = None if labels.is_everything else labels.matches

    def selects(record: Record) -> bool:
        if wanted is not None and record.name != wanted:
            return False
        if matches is not None and not matches(record.labels):
            return False
        return all((_value(record, one.label) == one.value) is one.is_equal for one in rest)

    return Selection(selects=selects, name=wanted)


def required_name(requirements: Iterable[FieldRequirement]) -> str | None:
    """The one name that can match, where a field selector says so."""
    return next((one.value for one in requirements if one.label == _NAME and one.is_equal), None)


def parse_fields(text: str) -> list[FieldRequirement]:
    """A field selector: ``a=b,c!=d``, with commas and equal signs in values escaped by a backslash."""
    requirements = []
    for term in _split(text, ","):
        if not term:
            continue
        for operator, is_equal in (("!=", False), ("==", True), ("=", True)):
            label, found, value = _partition(term, operator)
            if found:
                requirements.append(FieldRequirement(label, _unescaped(value), is_equal))
                break
        else:
            raise bad_request(f"invalid selector: '{term}'; can't understand '{term}'")
    return requirements


def _check_label(kind: Kind, label: str) -> None:
    if label == _NAME or label in kind.rules.fields:
        return
    if label == _NAMESPACE and (kind.namespaced or not kind.rules.fields):
        return
    if kind.is_custom or kind.rules.fields:
        raise bad_request(f"field label not supported: {label}")
    raise bad_request(f'"{label}" is not a known field selector: only "{_NAME}", "{_NAMESPACE}"')


def _value(record: Record, label: str) -> str:
    if label == _NAME:
        return record.name
    if label == _NAMESPACE:
        return record.namespace
    return record.fields.get(label, "")


def _split(text: str, separator: str) -> list[str]:
    parts, current, is_escaped = [], "", False
    for character in text:
        if character == separator and not is_escaped:
            parts.append(current)
            current = ""
            continue
        is_escaped = character == "\\" and not is_escaped
        current += character
    return [*parts, current]


def _partition(term: str, operator: str) -> tuple[str, str, str]:
    position = term.find(operator)
    while position > 0 and term[position - 1] == "\\":
        position = term.find(operator, position + 1)
    if position < 0:
        return term, "", ""
    return term[:position], operator, term[position + len(operator) :]


def _unescaped(value: str) -> str:
    plain, is_escaped = "", False
    for character in value:
        if character == "\\" and not is_escaped:
            is_escaped = True
            continue
        if is_escaped and character not in "\\,=":
            raise bad_request(f"invalid field selector: invalid escape sequence: \\{character}")
        if not is_escaped and character == "=":
            raise bad_request(f"invalid field selector: unescaped '=' in value: {value}")
        plain += character
        is_escaped = False
    if is_escaped:
        raise bad_request("invalid field selector: invalid escape sequence: \\")
    return plain
