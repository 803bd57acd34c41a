"""Whether a schema is structural: whether it says of every place, outside of its conditions, what type it has.

Pruning, defaulting and apply rely on that. Problems come sorted by their text, as the API server tells them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shoal.cluster.apiserver.cel.matching import matcher
from shoal.cluster.apiserver.cel.patterns import InvalidPattern
from shoal.cluster.apiserver.custom.sharing import by_content
from shoal.cluster.apiserver.custom.wording import Problems, Raw
from shoal.kube.admission.fields import FieldProblem, forbidden, invalid, required

_ROOT, _ITEM, _FIELD = "at the root", "for specified array items", "for specified object fields"
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_UNSUPPORTED = ("id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions")
_NESTED = (
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
)


@by_content
def unsupported_keyword(raw: Raw) -> str:
    """Why a schema cannot be read as a structural one at all; empty where it can."""
    for keyword in _UNSUPPORTED:
        if raw.get(keyword):
            return (
                f"OpenAPIV3Schema '{keyword.removeprefix('$') if keyword == '$schema' else keyword}' is not supported"
            )
    if isinstance(raw.get("items"), list):
        return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    for _, child in children(raw):
        if told := unsupported_keyword(child):
            return told
    return ""


def children(raw: Raw) -> Iterator[tuple[str, Raw]]:
    """The schemas right below one, each with its step: ``properties[spec]``, ``items``, ``anyOf[0]``."""
    for name, child in (raw.get("properties") or {}).items():
        yield f"properties[{name}]", child
    for keyword in ("items", "additionalProperties", "not"):
        if isinstance(raw.get(keyword), dict):
            yield keyword, raw[keyword]
    for keyword in ("allOf", "anyOf", "oneOf"):
        for at, child in enumerate(raw.get(keyword) or ()):
            yield f"{keyword}[{at}]", child


def structural_problems(raw: Raw, path: str) -> Problems:
    """What keeps a schema from being structural."""
    problems = [*_invariants(raw, _ROOT, path), *_completeness(raw, raw, path, path)]
    return sorted(problems, key=str)


def _invariants(raw: Raw, level: str, path: str) -> Iterator[FieldProblem]:
    named = raw.get("type") or ""
    items, additional = raw.get("items"), raw.get("additionalProperties")
    if named == "array" and items is None:
        yield required(f"{path}.items", "must be specified")
    if isinstance(items, dict) and not _is_structural(items):
        yield from _invariants(items, _ITEM, f"{path}.items")
    for name, child in (raw.get("properties") or {}).items():
        if not _is_structural(child):
            yield from _invariants(child, _FIELD, f"{path}.properties[{name}]")
    if additional is not None:
        if level is _ROOT:
            yield forbidden(f"{path}.additionalProperties", "must not be used at the root")
        if isinstance(additional, dict) and not _is_structural(additional):
            yield from _invariants(additional, _FIELD, f"{path}.additionalProperties")
    yield from _extension_problems(raw, path)
    yield from _conditions(raw, path, is_stated=True)
    yield from _type_problems(raw, level, path)
    yield from _resource_problems(raw, level, path)


@by_content
def _is_structural(raw: Raw) -> bool:
    """Whether nothing is wrong at a place that is not the root, whichever it is."""
    return not any(_invariants(raw, _FIELD, ""))


def _extension_problems(raw: Raw, path: str) -> Iterator[FieldProblem]:
    if not raw.get("x-kubernetes-int-or-string"):
        return
    for keyword in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
        if raw.get(keyword):
            yield invalid(f"{path}.{keyword}", True, "must be false if x-kubernetes-int-or-string is true")


def _type_problems(raw: Raw, level: str, path: str) -> Iterator[FieldProblem]:
    named = raw.get("type") or ""
    is_embedded = bool(raw.get("x-kubernetes-embedded-resource"))
    is_free = raw.get("x-kubernetes-int-or-string") or raw.get("x-kubernetes-preserve-unknown-fields")
    if is_embedded and named != "object":
        message = "must be object if x-kubernetes-embedded-resource is true"
        yield invalid(f"{path}.type", named, message) if named else required(f"{path}.type", message)
    elif not named and not is_free:
        yield required(f"{path}.type", f"must not be empty {level}")
    if is_embedded and raw.get("additionalProperties") is not None:
        message = "must not be used if x-kubernetes-embedded-resource is set"
        yield forbidden(f"{path}.additionalProperties", message)
    if level is _ROOT and named and named != "object":
        yield invalid(f"{path}.type", named, "must be object at the root")


def _resource_problems(raw: Raw, level: str, path: str) -> Iterator[FieldProblem]:
    declared = raw.get("properties") or {}
    is_embedded = bool(raw.get("x-kubernetes-embedded-resource"))
    is_resource = level is _ROOT or is_embedded
    for name in ("kind", "apiVersion"):
        if name in declared and is_resource and declared[name].get("type") != "string":
            yield invalid(f"{path}.properties[{name}].type", declared[name].get("type") or "", "must be string")
    if "metadata" in declared:
        metadata, place = declared["metadata"], f"{path}.properties[metadata]"
        if is_resource and metadata.get("type") != "object":
            yield invalid(f"{place}.type", metadata.get("type") or "", "must be object")
        if level is _ROOT and not _is_plain_metadata(metadata):
            message = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            yield forbidden(place, message)
    if is_embedded and not raw.get("x-kubernetes-preserve-unknown-fields") and not declared:
        message = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        yield required(f"{path}.properties", message)


def _is_plain_metadata(metadata: Raw) -> bool:
    if not (metadata.get("properties") or {}).keys() <= {"name", "generateName"}:
        return False
    return {key for key, value in metadata.items() if value} <= {"type", "properties", "default"}


def _conditions(raw: Raw, path: str, *, is_stated: bool = False) -> Iterator[FieldProblem]:
    """The conditions of a place; one that merely states int-or-string a second time is let through."""
    any_of, all_of = raw.get("anyOf") or [], raw.get("allOf") or []
    if not (is_stated and any_of == _INT_OR_STRING):
        for at, child in enumerate(any_of):
            yield from _nested(child, f"{path}.anyOf[{at}]")
    for at, child in enumerate(all_of):
        states = is_stated and at == 0 and (child.get("anyOf") or []) == _INT_OR_STRING
        yield from _nested(child, f"{path}.allOf[{at}]", skips_any_of=states)
    for at, child in enumerate(raw.get("oneOf") or []):
        yield from _nested(child, f"{path}.oneOf[{at}]")
    if isinstance(raw.get("not"), dict):
        yield from _nested(raw["not"], f"{path}.not")
    if raw.get("pattern"):
        try:
            matcher(raw["pattern"])
        except InvalidPattern as error:
            message = f"must be a valid regular expression, but isn't: {error}"
            yield invalid(f"{path}.pattern", raw["pattern"], message)


def _nested(raw: Raw, path: str, *, skips_any_of: bool = False) -> Iterator[FieldProblem]:
    yield from _conditions({**raw, "anyOf": []} if skips_any_of else raw, path)
    if isinstance(raw.get("items"), dict):
        yield from _nested(raw["items"], f"{path}.items")
    for name, child in (raw.get("properties") or {}).items():
        yield from _nested(child, f"{path}.properties[{name}]")
    for keyword, message in _NESTED:
        if _is_set(raw.get(keyword)):
            yield forbidden(f"{path}.{keyword}", message)
    if "metadata" in (raw.get("properties") or {}):
        yield forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _is_set(value: Any) -> bool:
    return value not in (None, "", []) and value is not False


def _completeness(nested: Raw, spine: Raw, at: str, path: str) -> Iterator[FieldProblem]:
    """Whatever a condition speaks of must be declared outside of it."""
    if isinstance(nested.get("not"), dict):
        yield from _nested_completeness(nested["not"], spine, at, f"{path}.not")
    for keyword in ("allOf", "anyOf", "oneOf"):
        for index, child in enumerate(nested.get(keyword) or ()):
            yield from _nested_completeness(child, spine, at, f"{path}.{keyword}[{index}]")


def _nested_completeness(nested: Raw, spine: Raw | None, at: str, path: str) -> Iterator[FieldProblem]:
    if spine is None:
        yield required(at, f"because it is defined in {path}")
        return
    yield from _completeness(nested, spine, at, path)
    if isinstance(nested.get("items"), dict):
        yield from _nested_completeness(nested["items"], spine.get("items"), f"{at}.items", f"{path}.items")
    declared = spine.get("properties") or {}
    for name, child in (nested.get("properties") or {}).items():
        step = f"properties[{name}]"
        if name in declared:
            yield from _nested_completeness(child, declared[name], f"{at}.{step}", f"{path}.{step}")
        else:
            yield required(f"{at}.{step}", f"because it is defined in {path}.{step}")
