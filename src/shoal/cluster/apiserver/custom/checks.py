"""What a schema demands of values, compiled into functions; messages are those of the API server's validator.

Every check is given the value, its place, the list that problems go to, and how it relates to the old object (None
where there is none, or where it is not looked at). Objects are nearly always right: the first run does not relate
anything, and only where it finds problems a second one sees which of them are old.
"""

from __future__ import annotations

import contextlib
import math
from typing import Any

import msgspec

from shoal.cluster.apiserver.cel.formats import FORMATS
from shoal.cluster.apiserver.cel.matching import matcher
from shoal.cluster.apiserver.cel.patterns import InvalidPattern
from shoal.cluster.apiserver.custom.composites import composite_check
from shoal.cluster.apiserver.custom.correlation import Correlation
from shoal.cluster.apiserver.custom.places import Place, dotted
from shoal.cluster.apiserver.custom.sharing import by_content
from shoal.cluster.apiserver.custom.text import go_number, shown
from shoal.cluster.apiserver.custom.wording import (
    INT64_HIGH,
    INT64_LOW,
    Check,
    Problems,
    Raw,
    known_format,
    odd,
    type_name,
    wrong,
    wrong_type,
)
from shoal.kube.admission.fields import FieldProblem, Reason, not_supported, required

_QUICK: dict[str, type] = {"string": str, "boolean": bool, "object": dict, "array": list, "integer": int}


@by_content
def compile_check(raw: Raw) -> Check | None:
    """Everything that a schema demands of a value; None where it takes anything."""
    return _in_turn([_type_check(raw), *_value_checks(raw)])


Entry = tuple[type | None, Check | None, Check | None]
"""A type whose values need not be asked for their type, what is left to look at in those, and the whole check."""


@by_content
def compile_entry(raw: Raw) -> Entry:
    """A check in a form that lets the one around it save a call."""
    rest = _in_turn(_value_checks(raw))
    whole = _in_turn([_type_check(raw), rest])
    quick = None if raw.get("x-kubernetes-int-or-string") else _QUICK.get(raw.get("type") or "")
    if quick is int:
        rest = _small_integer(rest, whole)
    return quick, rest, whole


def _small_integer(rest: Check | None, whole: Check | None) -> Check:
    def check(value: Any, place: Place, problems: Problems, old: Correlation | None) -> None:
        chosen = rest if INT64_LOW <= value <= INT64_HIGH else whole
        if chosen is not None:
            chosen(value, place, problems, old)

    return check


def _value_checks(raw: Raw) -> list[Check | None]:
    return [
        composite_check(raw, compile_check),
        _string_check(raw),
        _format_check(raw),
        _number_check(raw),
        _items_check(raw),
        _enum_check(raw),
        _fields_check(raw),
    ]


def _in_turn(checks: list[Check | None]) -> Check | None:
    steps = tuple(each for each in checks if each is not None)
    if len(steps) < 2:
        return steps[0] if steps else None

    def every(value: Any, place: Place, problems: Problems, old: Correlation | None) -> None:
        for step in steps:
            step(value, place, problems, old)

    return every


def run_ratcheting(check: Check, value: Any, place: Place, problems: Problems, old: Correlation | None) -> None:
    """Runs a check and forgets what it finds in a value that has not changed."""
    start = len(problems)
    check(value, place, problems, old)
    if old is not None and len(problems) > start and old.is_equal:
        del problems[start:]


def _type_check(raw: Raw) -> Check | None:
    named = raw.get("type") or ""
    types = ("integer", "string") if raw.get("x-kubernetes-int-or-string") else (named,) if named else ()
    form = known_format(raw)
    nullable = bool(raw.get("nullable"))
    if not types and not form:
        return None
    expected = ",".join(types)
    is_numeric = "integer" in types or "number" in types
    plain = {
        "string": (str,),
        "boolean": (bool,),
        "object": (dict,),
        "array": (list,),
        "integer": (),
        "number": (float,),
    }
    quick = frozenset(kind for each in types for kind in plain.get(each, ()))

    def check(value: Any, place: Place, problems: Problems, _old: Correlation | None) -> None:
        if type(value) in quick:
            return
        if value is None:
            if types and not nullable:
                problems.append(wrong_type(place, expected, "null"))
            return
        found = type_name(value)
        if found in types or (found == "integer" and "number" in types):
            return
        if found == "number" and "integer" in types and _is_whole(value):
            return
        if form and type(value) not in (str, list):
            own = {"integer": "int64", "number": "float64"}.get(found, "")
            if own != form:
                problems.append(wrong_type(place, form, own))
                return
        elif form and not is_numeric:
            return
        problems.append(wrong_type(place, expected, found))

    return check


def _is_whole(value: float) -> bool:
    return math.isfinite(value) and abs(value) <= 2**53 and float(value).is_integer()


def _string_check(raw: Raw) -> Check | None:
    longest, shortest, pattern = raw.get("maxLength"), raw.get("minLength"), raw.get("pattern")
    if longest is None and shortest is None and not pattern:
        return None
    matches = None
    if pattern:
        with contextlib.suppress(InvalidPattern):
            matches = matcher(pattern)

    def check(value: Any, place: Place, problems: Problems, _old: Correlation | None) -> None:
        if type(value) is not str:
            return
        if longest is not None and len(value) > longest:
            problems.append(FieldProblem(dotted(place), _most_bytes(longest), Reason.TOO_LONG))
        elif shortest is not None and len(value) < shortest:
            problems.append(wrong(place, value, f"should be at least {shortest} chars long"))
        elif matches is not None and not matches(value):
            problems.append(wrong(place, value, f"should match '{pattern}'"))

    return check


def _most_bytes(limit: int) -> str:
    return f"may not be more than {limit} bytes" if limit != 1 else "may not be more than 1 byte"


def _format_check(raw: Raw) -> Check | None:
    form = known_format(raw)
    test = FORMATS.get(form.replace("-", "")) if form else None
    if test is None:
        return None
    has_format = test

    def check(value: Any, place: Place, problems: Problems, _old: Correlation | None) -> None:
        if type(value) is str and not has_format(value):
            problems.append(wrong_type(place, form, value))

    return check


def _number_check(raw: Raw) -> Check | None:
    named = raw.get("type") if not raw.get("x-kubernetes-int-or-string") else None
    form = known_format(raw) if named in ("integer", "number") else ""
    step, least, most = raw.get("multipleOf"), raw.get("minimum"), raw.get("maximum")
    over, under = bool(raw.get("exclusiveMinimum")), bool(raw.get("exclusiveMaximum"))
    if named not in ("integer", "number") and step is None and least is None and most is None:
        return None
    if named == "number" and form != "float" and step is None and least is None and most is None:
        return None
    low, high = (-(2**31), 2**31 - 1) if form == "int32" else (INT64_LOW, INT64_HIGH)

    def check(value: Any, place: Place, problems: Problems, _old: Correlation | None) -> None:
        kind = type(value)
        if kind is not int and kind is not float:
            return
        if named == "integer" and not (low <= value <= high and (kind is int or _is_whole(value))):
            told = f"with format {form}" if form else "(default format)"
            problems.append(odd(f"Checked value must be of type integer {told} in {dotted(place)}"))
        elif form == "float" and abs(value) > 3.4028234663852886e38:
            problems.append(odd(f"Checked value must be of type number with format float in {dotted(place)}"))
        if step is not None:
            _multiple(value, _bound(step, value, named), place, problems)
        if least is not None:
            bound = _bound(least, value, named)
            if value < bound or (over and value == bound):
                words = "greater than" if over else "greater than or equal to"
                problems.append(wrong(place, shown(value), f"should be {words} {go_number(bound)}"))
        if most is not None:
            bound = _bound(most, value, named)
            if value > bound or (under and value == bound):
                words = "less than" if under else "less than or equal to"
                problems.append(wrong(place, shown(value), f"should be {words} {go_number(bound)}"))

    return check


def _bound(bound: float, value: float, named: str | None) -> float:
    """A bound as it is compared with a value: Go cuts it down to an integer where the value is one."""
    if type(value) is int and (named != "integer" or float(bound).is_integer()):
        return int(bound)
    return bound


def _multiple(value: float, step: float, place: Place, problems: Problems) -> None:
    if step <= 0:
        path = dotted(place)
        message = f"factor MultipleOf declared for {path} must be positive: {go_number(step)}"
        problems.append(FieldProblem(path, message, value=shown(step)))
        return
    if type(value) is int and type(step) is int:
        fits = value % step == 0
    else:
        fits = _is_whole(1 / step * value if step < 1 else value / step)
    if not fits:
        problems.append(wrong(place, shown(value), f"should be a multiple of {go_number(step)}"))


def _items_check(raw: Raw) -> Check | None:
    items = raw.get("items")
    quick, inner, each = compile_entry(items) if isinstance(items, dict) else (None, None, None)
    most, least, unique = raw.get("maxItems"), raw.get("minItems"), raw.get("uniqueItems")
    if each is None and most is None and least is None and not unique:
        return None

    def check(value: Any, place: Place, problems: Problems, old: Correlation | None) -> None:
        if type(value) is not list:
            return
        if each is not None:
            for at, item in enumerate(value):
                check_item = inner if type(item) is quick else each
                if check_item is None:
                    continue
                if old is None:
                    check_item(item, (place, at), problems, None)
                else:
                    run_ratcheting(check_item, item, (place, at), problems, old.item(at))
        if least is not None and len(value) < least:
            problems.append(wrong(place, len(value), f"should have at least {least} items"))
        if most is not None and len(value) > most:
            problems.append(_too_many(place, len(value), most))
        if unique and any(item in value[:at] for at, item in enumerate(value)):
            problems.append(wrong(place, "", "shouldn't contain duplicates"))

    return check


def _too_many(place: Place, count: int, most: int) -> FieldProblem:
    return FieldProblem(
        dotted(place), f"must have at most {most} {'item' if most == 1 else 'items'}", Reason.TOO_MANY, count
    )


def _enum_check(raw: Raw) -> Check | None:
    values = raw.get("enum")
    if not values:
        return None
    texts = frozenset(each for each in values if type(each) is str)
    rest = [each for each in values if type(each) is not str and each is not None]
    allowed = [each if isinstance(each, str) else _json(each) for each in values]

    def check(value: Any, place: Place, problems: Problems, _old: Correlation | None) -> None:
        if (value in texts) if type(value) is str else any(_is_same(value, each) for each in rest):
            return
        problems.append(not_supported(dotted(place), shown(value), allowed))

    return check


def _is_same(value: Any, allowed: Any) -> bool:
    if type(value) in (int, float) and type(allowed) in (int, float):
        # Go converts the value to the type of the allowed one, which cuts its fraction off.
        return bool(value == allowed) or (type(allowed) is int and abs(value) < 2**53 and int(value) == allowed)
    return bool(value == allowed) and type(value) is type(allowed)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _fields_check(raw: Raw) -> Check | None:
    declared: dict[str, Raw] = raw.get("properties") or {}
    additional = raw.get("additionalProperties")
    wanted = tuple(raw.get("required") or ())
    most, least = raw.get("maxProperties"), raw.get("minProperties")
    entries = {name: compile_entry(child) for name, child in declared.items()}
    nothing: Entry = (None, None, None)
    rest = compile_entry(additional) if isinstance(additional, dict) else nothing
    is_closed = additional is False
    if (
        not (any(each[2] for each in entries.values()) or wanted or rest[2] or is_closed)
        and most is None
        and least is None
    ):
        return None

    def check(value: Any, place: Place, problems: Problems, old: Correlation | None) -> None:
        if type(value) is not dict:
            return
        if least is not None and len(value) < least:
            problems.append(wrong(place, len(value), f"should have at least {least} properties"))
        if most is not None and len(value) > most:
            problems.append(_too_many(place, len(value), most))
        for name, item in value.items():
            entry = entries.get(name)
            if entry is None:
                if is_closed:
                    path = dotted((place, name))
                    problems.append(FieldProblem(dotted(place), f"{path} in body is a forbidden property", value=name))
                entry = rest
            quick, inner, whole = entry
            child = inner if type(item) is quick else whole
            if child is None:
                continue
            if old is None:
                child(item, (place, name), problems, None)
            else:
                run_ratcheting(child, item, (place, name), problems, _related(old, place, name))
        for name in wanted:
            if name not in value:
                problems.append(required(dotted((place, name))))

    return check


def _related(old: Correlation, place: Place, name: str) -> Correlation | None:
    # apiVersion and kind of the object itself are no fields that change.
    return None if place is None and name in ("apiVersion", "kind") else old.field(name)
