"""Whether the defaults that a schema states are values that it would accept, with no field that it does not know."""

from __future__ import annotations

import msgspec

from shoal.cluster.apiserver.custom.checks import compile_check
from shoal.cluster.apiserver.custom.metadata import compile_embedded, embedded_problems
from shoal.cluster.apiserver.custom.pruning import META, compile_prune
from shoal.cluster.apiserver.custom.rules import compile_rule_tree
from shoal.cluster.apiserver.custom.sharing import by_content
from shoal.cluster.apiserver.custom.wording import Problems, Raw
from shoal.kube.admission.fields import FieldProblem, invalid


def default_problems(raw: Raw, path: str, *, is_root: bool = False, is_meta: bool = False) -> Problems:
    """The problems of all defaults at a place and below it; maps have none of their own."""
    problems: Problems = []
    is_resource = is_root or bool(raw.get("x-kubernetes-embedded-resource"))
    if is_resource:
        is_meta = False
    if raw.get("default") is not None:
        problems += _value_problems(raw, f"{path}.default", is_meta=is_meta)
    if isinstance(raw.get("items"), dict) and (is_meta or not _are_right(raw["items"])):
        problems += default_problems(raw["items"], f"{path}.items", is_meta=is_meta)
    for name, child in (raw.get("properties") or {}).items():
        below = is_meta or (is_resource and name in META)
        if below or not _are_right(child):
            problems += default_problems(child, f"{path}.properties[{name}]", is_meta=below)
    return problems


@by_content
def _are_right(raw: Raw) -> bool:
    """Whether nothing is wrong with the defaults of a place outside of metadata, whichever it is."""
    return not default_problems(raw, "")


def _value_problems(raw: Raw, path: str, *, is_meta: bool) -> Problems:
    value = raw["default"]
    problems: Problems = []
    if not is_meta:
        is_embedded = bool(raw.get("x-kubernetes-embedded-resource"))
        prune = compile_prune(raw, is_root=is_embedded)
        if prune is not None:
            pruned = msgspec.json.decode(msgspec.json.encode(value))
            prune(pruned, None, None)
            if pruned != value:
                problems.append(invalid(path, value, "must not have unknown fields"))
        walk = compile_embedded(raw)
        if walk is not None:
            inner: Problems = []
            walk(value, None, lambda found, place: inner.extend(embedded_problems(found, place)))
            if inner:
                return problems + [_moved(each, path) for each in inner]
    check = compile_check(raw)
    found: Problems = []
    if check is not None:
        check(value, None, found, None)
    if not found:
        rules = compile_rule_tree(raw, is_resource=bool(raw.get("x-kubernetes-embedded-resource")))
        if rules is not None:
            rules(value, value, None, (None, None), found)
            if not found:
                rules(value, None, None, (None, None), found)
    return problems + [_moved(each, path) for each in found]


def _moved(problem: FieldProblem, path: str) -> FieldProblem:
    place = path if problem.path in ("<nil>", "") else f"{path}.{problem.path}"
    return FieldProblem(place, problem.message, problem.reason, problem.value)
