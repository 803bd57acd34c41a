"""anyOf, oneOf, allOf and not.

Where no alternative holds, the API server also tells what is wrong with the one that came furthest: the one whose
validators had the most to say, which is a matter of its shape and of how much of it the value has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shoal.cluster.apiserver.cel.formats import FORMATS
from shoal.cluster.apiserver.custom.correlation import Correlation
from shoal.cluster.apiserver.custom.places import Place, dotted
from shoal.cluster.apiserver.custom.text import quoted
from shoal.cluster.apiserver.custom.wording import Check, Problems, Raw, known_format, odd, type_name

_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
Compile = Callable[[Raw], Check | None]


def composite_check(raw: Raw, compile_check: Compile) -> Check | None:
    """The four together, in the API server's order."""
    # That a value is either is checked already; stating it a second time is a habit of generators.
    is_stated = bool(raw.get("x-kubernetes-int-or-string")) and raw.get("anyOf") == _INT_OR_STRING
    steps = [
        step
        for step in (
            _any_of(raw.get("anyOf") or [], compile_check),
            _one_of(raw.get("oneOf") or [], compile_check),
            _all_of(raw.get("allOf") or [], compile_check),
            _not(raw.get("not"), compile_check),
        )
        if step is not None
    ]
    if not steps:
        return None

    def check(value: Any, place: Place, problems: Problems, _old: Correlation | None) -> None:
        if value is None or (is_stated and len(steps) == 1 and type(value) in (int, str)):
            return
        for step in steps:
            step(value, place, problems, None)

    return check


def _found(check: Check | None, value: Any, place: Place) -> Problems:
    """What a condition finds; it is not told what the value was before, so that it tolerates nothing."""
    found: Problems = []
    if check is not None:
        check(value, place, found, None)
    return found


def _any_of(schemas: list[Raw], compile_check: Compile) -> Check | None:
    if not schemas:
        return None
    branches = [(each, compile_check(each)) for each in schemas]

    def check(value: Any, place: Place, problems: Problems, _old: Correlation | None) -> None:
        best: Problems = []
        best_count = -1
        for raw, branch in branches:
            found = _found(branch, value, place)
            if not found:
                return
            count = matched(raw, value)
            if count > best_count:
                best, best_count = found, count
        problems.append(odd(f"{quoted(dotted(place))} must validate at least one schema (anyOf)"))
        problems.extend(best)

    return check


def _one_of(schemas: list[Raw], compile_check: Compile) -> Check | None:
    if not schemas:
        return None
    branches = [(each, compile_check(each)) for each in schemas]

    def check(value: Any, place: Place, problems: Problems, _old: Correlation | None) -> None:
        best: Problems = []
        best_count = -1
        valid = 0
        for raw, branch in branches:
            found = _found(branch, value, place)
            if not found:
                valid += 1
                continue
            count = matched(raw, value)
            if count > best_count:
                best, best_count = found, count
        if valid == 1:
            return
        told = f"Found {valid} valid alternatives" if valid else "Found none valid"
        problems.append(odd(f"{quoted(dotted(place))} must validate one and only one schema (oneOf). {told}"))
        if not valid:
            problems.extend(best)

    return check


def _all_of(schemas: list[Raw], compile_check: Compile) -> Check | None:
    if not schemas:
        return None
    branches = [compile_check(each) for each in schemas]

    def check(value: Any, place: Place, problems: Problems, _old: Correlation | None) -> None:
        valid = 0
        for branch in branches:
            found = _found(branch, value, place)
            valid += not found
            problems.extend(found)
        if valid != len(branches):
            told = "" if valid else ". None validated"
            problems.append(odd(f"{quoted(dotted(place))} must validate all the schemas (allOf){told}"))

    return check


def _not(schema: Raw | None, compile_check: Compile) -> Check | None:
    if schema is None:
        return None
    branch = compile_check(schema)

    def check(value: Any, place: Place, problems: Problems, _old: Correlation | None) -> None:
        if not _found(branch, value, place):
            problems.append(odd(f"{quoted(dotted(place))} must not validate the schema (not)"))

    return check


def matched(raw: Raw, value: Any) -> int:
    """How much of a schema the API server's validator counts as looked at."""
    named = raw.get("type") or ""
    has_type = bool(named or raw.get("x-kubernetes-int-or-string"))
    types = ("integer", "string") if raw.get("x-kubernetes-int-or-string") else (named,)
    fits = not has_type or type_name(value) in types or (type_name(value) == "integer" and "number" in types)
    if value is None:
        return int(fits or bool(raw.get("nullable")))
    count = 1 + 2  # the whole, and the composites below it
    if has_type or known_format(raw):
        count += 1 + fits
    kind = type(value)
    if kind is str:
        count += 1 + (known_format(raw).replace("-", "") in FORMATS)
    elif kind in (int, float):
        count += 2
    elif kind is list:
        items = raw.get("items")
        count += 2 + (sum(matched(items, each) for each in value) if isinstance(items, dict) else 0)
    count += 1  # the values that are allowed
    if kind is dict:
        declared = raw.get("properties") or {}
        additional = raw.get("additionalProperties")
        count += 1 + sum(matched(declared[name], item) for name, item in value.items() if name in declared)
        if isinstance(additional, dict):
            count += sum(matched(additional, item) for name, item in value.items() if name not in declared)
    return count
