"""What a definition's schema may say at each place, beyond being structural: types, list keys, defaults, rules."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from shoal.cluster.apiserver.cel.types import Type
from shoal.cluster.apiserver.custom.field_paths import valid_field_path
from shoal.cluster.apiserver.custom.pruning import META
from shoal.cluster.apiserver.custom.rule_types import rule_type
from shoal.cluster.apiserver.custom.rules import compile_rules, has_rules
from shoal.cluster.apiserver.custom.sharing import by_content
from shoal.cluster.apiserver.custom.text import go_json
from shoal.cluster.apiserver.custom.wording import Problems, Raw
from shoal.kube.admission.fields import FieldProblem, Reason, forbidden, invalid, not_supported, required

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_NEWLINES = re.compile(r"[\n\r]+")


@dataclass(frozen=True, kw_only=True)
class Context:
    """What the places around one mean for it."""

    no_defaults: str | None = None
    """Why there may be no defaults; None where there may."""
    is_meta: bool = False
    """Whether it lies in apiVersion, kind or metadata of an object."""
    uncorrelated: str = ""
    """The place around it whose items cannot be found again in an old object."""
    compiles: bool = True
    """Whether rules are compiled: not inside conditions, nor where the schema is not structural."""

    @property
    def is_special(self) -> bool:
        """Whether what is right elsewhere, and has no rules, may be wrong here."""
        return self.is_meta or self.no_defaults is not None


@dataclass
class Found:
    """Problems of the schema, and of its rules, which are told after the others."""

    schema: Problems
    rules: Problems

    def add(self, other: Found) -> None:
        """Takes over what was found below."""
        self.schema += other.schema
        self.rules += other.rules


def schema_problems(
    raw: Raw, path: str, context: Context = Context(), *, is_root: bool = False, given: Type | None = None
) -> Found:
    """Everything that is wrong at a place and below it; ``given`` is its type in rules."""
    found = Found(_standard_problems(raw, path, context), [])
    if raw.get("uniqueItems"):
        message = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        found.schema.append(forbidden(f"{path}.uniqueItems", message))
    _visit_children(raw, path, context, found, is_root=is_root)
    found.schema += _map_problems(raw, path)
    found.schema += _list_problems(raw, path)
    _rule_problems(raw, path, context, found, given)
    return found


def _visit_children(raw: Raw, path: str, context: Context, found: Found, *, is_root: bool) -> None:
    declared = raw.get("properties") or {}
    additional, items = raw.get("additionalProperties"), raw.get("items")
    if additional is not None:
        if declared and additional is not True:
            message = "additionalProperties and properties are mutual exclusive"
            found.schema.append(forbidden(f"{path}.additionalProperties", message))
        if isinstance(additional, dict) and (context.is_special or not _is_plain(additional)):
            inner = context
            if context.is_meta:
                inner = replace(context, no_defaults="inside additionalProperties applying to object metadata")
            found.add(
                schema_problems(additional, f"{path}.additionalProperties", inner, given=_below(additional, "@elem"))
            )
    for name, child in declared.items():
        inner = context
        if raw.get("x-kubernetes-map-type") not in (None, "granular", "atomic") and not context.uncorrelated:
            inner = replace(inner, uncorrelated=path)
        if (is_root or raw.get("x-kubernetes-embedded-resource")) and name in META:
            inner = replace(inner, is_meta=True)
            if is_root:
                inner = replace(inner, no_defaults=f"in top-level {name}")
        elif not context.is_special and _is_plain(child):
            continue
        found.add(schema_problems(child, f"{path}.properties[{name}]", inner, given=_below(child, name)))
    if isinstance(raw.get("not"), dict):
        found.add(schema_problems(raw["not"], f"{path}.not", replace(context, compiles=False)))
    for keyword in ("allOf", "oneOf", "anyOf"):
        for at, child in enumerate(raw.get(keyword) or ()):
            found.add(schema_problems(child, f"{path}.{keyword}[{at}]", replace(context, compiles=False)))
    if isinstance(items, dict) and (context.is_special or not _is_plain(items)):
        inner = context
        if raw.get("x-kubernetes-list-type") != "map" and not context.uncorrelated:
            inner = replace(context, uncorrelated=path)
        found.add(schema_problems(items, f"{path}.items", inner, given=_below(items, "@idx")))


@by_content
def _is_plain(raw: Raw) -> bool:
    """Whether a place has no rules and nothing is wrong with it, wherever it is but in metadata."""
    return not has_rules(raw) and not schema_problems(raw, "").schema


def _below(child: Raw, name: str) -> Type | None:
    if not child.get("x-kubernetes-validations"):
        return None
    return rule_type(child, is_resource=bool(child.get("x-kubernetes-embedded-resource")), name=f"selfType.{name}")


def _standard_problems(raw: Raw, path: str, context: Context) -> Problems:
    problems: Problems = []
    named = raw.get("type") or ""
    if named and named not in _TYPES:
        problems.append(not_supported(f"{path}.type", named, _TYPES))
    if raw.get("default") is not None and context.no_defaults is not None:
        told = f"must not be set {context.no_defaults}".strip()
        problems.append(forbidden(f"{path}.default", told))
    for keyword in _UNSUPPORTED:
        if raw.get(keyword) not in (None, "", {}) or (keyword in ("dependencies", "$ref") and keyword in raw):
            problems.append(forbidden(f"{path}.{keyword}", f"{keyword} is not supported"))
    if named == "null":
        message = "type cannot be set to null, use nullable as an alternative"
        problems.append(forbidden(f"{path}.type", message))
    if isinstance(raw.get("items"), list):
        problems.append(forbidden(f"{path}.items", "items must be a schema object and not an array"))
    if context.is_meta and raw.get("x-kubernetes-embedded-resource"):
        problems.append(forbidden(f"{path}.x-kubernetes-embedded-resource", "must not be used inside of resource meta"))
    return problems


def _map_problems(raw: Raw, path: str) -> Problems:
    problems: Problems = []
    if raw.get("x-kubernetes-preserve-unknown-fields") is False:
        problems.append(invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined"))
    kind, named = raw.get("x-kubernetes-map-type"), raw.get("type") or ""
    if kind is not None:
        if named != "object":
            message = "must be object if x-kubernetes-map-type is specified"
            problems.append(invalid(f"{path}.type", named, message) if named else required(f"{path}.type", message))
        if kind not in ("atomic", "granular"):
            problems.append(not_supported(f"{path}.x-kubernetes-map-type", kind, ("atomic", "granular")))
    return problems


def _list_problems(raw: Raw, path: str) -> Problems:
    problems: Problems = []
    kind, named = raw.get("x-kubernetes-list-type"), raw.get("type") or ""
    keys, items = raw.get("x-kubernetes-list-map-keys") or [], raw.get("items")
    if kind is not None and named != "array":
        message = "must be array if x-kubernetes-list-type is specified"
        problems.append(invalid(f"{path}.type", named, message) if named else required(f"{path}.type", message))
    elif kind == "set" and isinstance(items, dict):
        problems += _set_item_problems(items, path)
    if kind not in (None, "atomic", "set", "map"):
        problems.append(not_supported(f"{path}.x-kubernetes-list-type", kind, ("atomic", "set", "map")))
    if keys and kind != "map":
        message = "must be map if x-kubernetes-list-map-keys is non-empty"
        place = f"{path}.x-kubernetes-list-type"
        problems.append(required(place, message) if kind is None else invalid(place, kind, message))
    if kind == "map":
        problems += _keyed_problems(keys, items, path)
    if kind in ("set", "map") and isinstance(items, dict):
        if items.get("nullable"):
            message = f"cannot be nullable when x-kubernetes-list-type is {kind}"
            problems.append(forbidden(f"{path}.items.nullable", message))
        if kind == "map":
            problems += _key_problems(keys, items, path)
    return problems


def _set_item_problems(items: Raw, path: str) -> Problems:
    message = "must be atomic as item of a list with x-kubernetes-list-type=set"
    kind = items.get("x-kubernetes-list-type")
    if items.get("type") == "array" and kind not in (None, "atomic"):
        return [invalid(f"{path}.items.x-kubernetes-list-type", kind, message)]
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        return [invalid(f"{path}.items.x-kubernetes-map-type", kind, message)]
    return []


def _keyed_problems(keys: list[str], items: Any, path: str) -> Problems:
    problems: Problems = []
    place = f"{path}.x-kubernetes-list-map-keys"
    if not keys:
        problems.append(required(place, "must not be empty if x-kubernetes-list-type is map"))
    if items is None:
        problems.append(required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map"))
    if not isinstance(items, dict):
        return problems
    if items.get("type") != "object":
        message = "must be object if parent array's x-kubernetes-list-type is map"
        return [*problems, invalid(f"{path}.items.type", items.get("type") or "", message)]
    declared = items.get("properties") or {}
    for at, key in enumerate(keys):
        if key not in declared:
            problems.append(invalid(place, keys, "entries must all be names of item properties"))
        elif declared[key].get("type") in ("array", "object"):
            message = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            problems.append(invalid(f"{path}.items.properties[{key}].type", "object", message))
        if key in keys[:at]:
            problems.append(invalid(place, keys, "must not contain duplicate entries"))
    return problems


def _key_problems(keys: list[str], items: Raw, path: str) -> Problems:
    problems: Problems = []
    declared = items.get("properties") or {}
    for key in keys:
        if key not in declared:
            continue
        place = f"{path}.items.properties[{key}]"
        if key not in (items.get("required") or ()) and declared[key].get("default") is None:
            message = (
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            )
            problems.append(required(f"{place}.default", message))
        if declared[key].get("nullable"):
            message = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
            problems.append(forbidden(f"{place}.nullable", message))
    return problems


def _rule_problems(raw: Raw, path: str, context: Context, found: Found, given: Type | None) -> None:
    rules = raw.get("x-kubernetes-validations") or []
    for at, rule in enumerate(rules):
        found.schema += _rule_text_problems(rule, raw, f"{path}.x-kubernetes-validations[{at}]")
    if not rules or found.schema or not context.compiles:
        return
    if given is None:
        message = "failed to convert to declType for CEL validation rules"
        found.rules.append(FieldProblem(f"{path}.x-kubernetes-validations", message, Reason.INVALID, ""))
        return
    for at, compiled in enumerate(compile_rules(raw, given)):
        place = f"{path}.x-kubernetes-validations[{at}]"
        shown = _shown_rule(compiled.raw)
        if compiled.error:
            found.rules.append(invalid(f"{place}.rule", shown, compiled.error))
        if compiled.message_error:
            found.rules.append(invalid(f"{place}.messageExpression", shown, compiled.message_error))
        if compiled.is_transition:
            if context.uncorrelated:
                message = (
                    f"oldSelf cannot be used on the uncorrelatable portion of the schema within {context.uncorrelated}"
                )
                found.rules.append(invalid(f"{place}.rule", compiled.raw["rule"], message))
        elif compiled.raw.get("optionalOldSelf") is not None:
            message = "may not be set if oldSelf is not used in rule"
            found.rules.append(invalid(f"{place}.optionalOldSelf", compiled.raw["optionalOldSelf"], message))


def _rule_text_problems(rule: Raw, raw: Raw, place: str) -> Problems:
    problems: Problems = []
    text, message = (rule.get("rule") or "").strip(), rule.get("message") or ""
    expression, path = rule.get("messageExpression") or "", rule.get("fieldPath") or ""
    if not text:
        problems.append(required(f"{place}.rule", "rule is not specified"))
    elif message and not message.strip():
        problems.append(invalid(f"{place}.message", message, "must be non-empty if specified"))
    elif _NEWLINES.search(message.strip()):
        problems.append(invalid(f"{place}.message", message, "must not contain line breaks"))
    elif _NEWLINES.search(text) and not message.strip():
        told = "message must be specified if rule contains line breaks"
        problems.append(required(f"{place}.message", told))
    if expression and not expression.strip():
        problems.append(required(f"{place}.messageExpression", "messageExpression must be non-empty if specified"))
    if rule.get("reason") is not None and rule["reason"] not in _REASONS:
        problems.append(not_supported(f"{place}.reason", rule["reason"], _REASONS))
    if path and not path.strip():
        problems.append(invalid(f"{place}.fieldPath", path, "must be non-empty if specified"))
    if _NEWLINES.search(path):
        problems.append(invalid(f"{place}.fieldPath", path, "must not contain line breaks"))
    if path and valid_field_path(path, raw).error:
        problems.append(invalid(f"{place}.fieldPath", path, "must be a valid path"))
    return problems


def _shown_rule(rule: Raw) -> msgspec.Raw:
    """A rule as messages show it: with the names that Go's own type has."""
    return go_json(
        {
            "Rule": rule.get("rule") or "",
            "Message": rule.get("message") or "",
            "MessageExpression": rule.get("messageExpression") or "",
            "Reason": rule.get("reason"),
            "FieldPath": rule.get("fieldPath") or "",
            "OptionalOldSelf": rule.get("optionalOldSelf"),
        }
    )
