"""x-kubernetes-validations: rules in CEL, at any place of a schema, compiled once and run on every write.

A rule that speaks of oldSelf runs where there is an old value to speak of. Any other that finds fault with a value
that has not changed is not held against it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shoal.cluster.apiserver.cel import CelError, CompileError, Program, compile_expression
from shoal.cluster.apiserver.cel.types import BOOL, STRING, Type, optional_of
from shoal.cluster.apiserver.cel.values import NOTHING, Optional
from shoal.cluster.apiserver.custom.correlation import Correlation
from shoal.cluster.apiserver.custom.field_paths import valid_field_path
from shoal.cluster.apiserver.custom.places import Key, Place, field_path
from shoal.cluster.apiserver.custom.rule_types import rule_type
from shoal.cluster.apiserver.custom.sharing import by_content
from shoal.cluster.apiserver.custom.text import shown
from shoal.cluster.apiserver.custom.wording import Problems, Raw
from shoal.kube.admission.fields import FieldProblem, Reason

Relation = tuple[Correlation | None, Correlation | None]
"""How a value relates to the old object: its own part, or else that of the nearest place around that has one."""
Run = Callable[[Any, Any, Place, Relation, Problems], None]

_MESSAGE_LIMIT = 5 * 1024
_REASONS = {
    "FieldValueForbidden": Reason.FORBIDDEN,
    "FieldValueRequired": Reason.REQUIRED,
    "FieldValueDuplicate": Reason.DUPLICATE,
    "FieldValueInvalid": Reason.INVALID,
}
_UNRELATED: Relation = (None, None)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One rule, ready to run; or why it is not."""

    raw: Raw
    program: Program | None = None
    message: Program | None = None
    error: str = ""
    message_error: str = ""
    path: str = ""

    @property
    def is_transition(self) -> bool:
        """Whether it speaks of the old value."""
        return self.program is not None and "oldSelf" in self.program.used

    @property
    def has_optional_old(self) -> bool:
        """Whether it runs without an old value as well."""
        return bool(self.raw.get("optionalOldSelf"))

    @property
    def told(self) -> str:
        """How messages name it."""
        message: str = self.raw.get("message") or ""
        return (message or self.raw.get("rule") or "").strip()


def compile_rules(raw: Raw, given: Type) -> list[Rule]:
    """The rules of one place."""
    return [_compile_rule(rule, raw, given) for rule in raw.get("x-kubernetes-validations") or ()]


def _compile_rule(rule: Raw, raw: Raw, given: Type) -> Rule:
    text = rule.get("rule") or ""
    if not text.strip():
        return Rule(raw=rule)
    variables = {"self": given, "oldSelf": optional_of(given) if rule.get("optionalOldSelf") else given}
    try:
        program = compile_expression(text, variables)
    except CompileError as error:
        return Rule(raw=rule, error=f"compilation failed: {error}")
    if program.result_type != BOOL:
        return Rule(raw=rule, error="cel expression must evaluate to a bool")
    message, message_error = None, ""
    if rule.get("messageExpression"):
        try:
            message = compile_expression(rule["messageExpression"], variables)
            if message.result_type != STRING:
                message, message_error = None, "messageExpression must evaluate to a string"
        except CompileError as error:
            message_error = f"messageExpression compilation failed: {error}"
    path = ""
    if rule.get("fieldPath"):
        path = valid_field_path(rule["fieldPath"], raw).path
    return Rule(raw=rule, program=program, message=message, message_error=message_error, path=path)


def compile_rule_tree(raw: Raw, *, is_resource: bool = False, given: Type | None = None) -> Run | None:
    """All rules of a schema and of what is below it; None where there are none."""
    if not has_rules(raw):
        return None
    if given is None:
        given = rule_type(raw, is_resource=is_resource)
    own = [each for each in compile_rules(raw, given) if each.program is not None or each.error] if given else []
    declared = raw.get("properties") or {}
    children = {name: found for name, child in declared.items() if (found := _subtree(child)) is not None}
    additional = raw.get("additionalProperties")
    rest = _subtree(additional) if isinstance(additional, dict) else None
    items = raw.get("items")
    each = _subtree(items) if isinstance(items, dict) else None
    is_keyed = raw.get("x-kubernetes-list-type") == "map"
    is_whole = raw.get("type") in ("object", "array")
    if not (own or children or rest or each):
        return None

    def run(value: Any, old: Any, place: Place, relation: Relation, problems: Problems) -> None:
        if value is None:
            return
        for rule in own:
            _run_rule(rule, value, old, place, relation, problems, is_whole=is_whole, named=raw.get("type") or "")
        if type(value) is dict and (children or rest is not None):
            old_fields = old if type(old) is dict else {}
            for name, item in value.items():
                child = children.get(name)
                if child is not None:
                    child(item, old_fields.get(name), (place, name), _of_field(relation, place, name), problems)
                elif rest is not None and name not in declared:
                    related = _of_field(relation, place, name)
                    rest(item, old_fields.get(name), (place, Key(name)), related, problems)
        elif type(value) is list and each is not None:
            by_key = Correlation(value, old, raw) if is_keyed and type(old) is list else None
            for at, item in enumerate(value):
                before = by_key.old_item(item) if by_key is not None else None
                each(item, before, (place, at), _of_item(relation, at), problems)

    return run


def _subtree(raw: Raw) -> Run | None:
    return compile_rule_tree(raw, is_resource=bool(raw.get("x-kubernetes-embedded-resource")))


@by_content
def has_rules(raw: Raw) -> bool:
    """Whether a schema has rules, here or below."""
    if raw.get("x-kubernetes-validations"):
        return True
    additional, items = raw.get("additionalProperties"), raw.get("items")
    return (
        any(map(has_rules, (raw.get("properties") or {}).values()))
        or (isinstance(additional, dict) and has_rules(additional))
        or (isinstance(items, dict) and has_rules(items))
    )


def _of_field(relation: Relation, place: Place, name: str) -> Relation:
    here = relation[0]
    if here is None:
        return relation
    if place is None and name in ("apiVersion", "kind"):
        return _UNRELATED
    return here.field(name), here


def _of_item(relation: Relation, at: int) -> Relation:
    here = relation[0]
    return relation if here is None else (here.item(at), here)


def _is_tolerated(relation: Relation) -> bool:
    here = relation[0] if relation[0] is not None else relation[1]
    return here is not None and here.is_equal


def _run_rule(
    rule: Rule,
    value: Any,
    old: Any,
    place: Place,
    relation: Relation,
    problems: Problems,
    *,
    is_whole: bool,
    named: str,
) -> None:
    if rule.program is None:
        problems.append(FieldProblem(field_path(place), f"rule compile error: {rule.error}", value=named))
        return
    if rule.is_transition and old is None and not rule.has_optional_old:
        return
    before = (Optional(old) if old is not None else NOTHING) if rule.has_optional_old else old
    try:
        if rule.program.run([value, before]) is True:
            return
    except CelError as error:
        problems.append(FieldProblem(field_path(place), _fault(str(error), rule), value=named))
        return
    if not rule.is_transition and _is_tolerated(relation):
        return
    path = field_path(place)
    if rule.path:
        path = f"{path}.{rule.path}" if place is not None else rule.path
    problems.append(_problem(rule, path, None if is_whole else value, is_whole, _message(rule, value, before)))


def _fault(error: str, rule: Rule) -> str:
    if error.startswith("no such overload"):
        told = "call arguments did not match a supported operator, function or macro signature for rule"
        return f"'{error}': {told}: {rule.told}"
    if error.startswith("operation cancelled: actual cost limit exceeded"):
        return (
            f"'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {rule.told}"
        )
    return f"{error} evaluating rule: {rule.told}"


def _message(rule: Rule, value: Any, before: Any) -> str:
    if rule.message is not None:
        try:
            text = rule.message.run([value, before])
        except CelError:
            text = ""
        text = text.strip() if isinstance(text, str) else ""
        if text and len(text) <= _MESSAGE_LIMIT and not re.search(r"\n", text):
            return text
    message: str = rule.raw.get("message") or ""
    return message.strip() if message else f"failed rule: {rule.told}"


def _problem(rule: Rule, path: str, value: Any, is_whole: bool, message: str) -> FieldProblem:
    reason = _REASONS.get(rule.raw.get("reason") or "", Reason.INVALID)
    if reason is Reason.DUPLICATE:
        message = ""
    if is_whole:
        return FieldProblem(path, message, reason)
    return FieldProblem(path, message, reason, shown(value))
