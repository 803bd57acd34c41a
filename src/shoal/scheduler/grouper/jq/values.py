"""What is done with values: jq's own types, operators and functions."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from shoal.scheduler.grouper.jq.nodes import COMPARISONS, QueryFailed

MOST_STEPS: Final = 100_000
"""An expression that takes more is stopped: others wait meanwhile. No list or text grows longer either."""


def shown(found: Any) -> str:
    """A value in a message: what is more than a text or a number by its type alone."""
    return f"a value of type {_kind(found)}" if _kind(found) in ("array", "object") else repr(found)[:60]


def is_true(found: Any) -> bool:
    """Whether a value counts as true: all do but two."""
    return found is not None and found is not False


def _kind(found: Any) -> str:
    match found:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case Mapping():
            return "object"
    return "array"


_ORDER: Final = ("null", "boolean", "number", "string", "array", "object")


def at(found: Any, key: Any) -> Any:
    """What a value has under a key or a number; null where it has nothing there."""
    match _kind(found), _kind(key):
        case ("null", "string" | "number"):
            return None
        case ("object", "string"):
            return found.get(key)
        case ("array", "number"):
            index = int(key)
            return found[index] if -len(found) <= index < len(found) else None
    raise QueryFailed(f"a value of type {_kind(found)} has no {shown(key)}")


def each(found: Any) -> list[Any]:
    """The values in a value."""
    match _kind(found):
        case "object":
            return [found[key] for key in sorted(found)]
        case "array":
            return list(found)
    raise QueryFailed(f"a value of type {_kind(found)} has no values in it")


def combined(sign: str, left: Any, right: Any) -> Any:
    """What an operator makes of two values."""
    kinds = _kind(left), _kind(right)
    if sign in COMPARISONS:
        return _compared(sign, left, right)
    match sign, kinds:
        case ("+", (_, "null")):
            return left
        case ("+", ("null", _)):
            return right
        case ("+", ("string", "string") | ("array", "array")):
            if len(left) + len(right) > MOST_STEPS:
                raise QueryFailed(f"a value would be longer than {MOST_STEPS}")
            return left + right
        case ("+", ("number", "number")):
            return _bounded(left + right)
        case ("-", ("number", "number")):
            return _bounded(left - right)
        case ("*", ("number", "number")):
            return _bounded(left * right)
        case ("/" | "%", ("number", "number")):
            if not right or (sign == "%" and not int(right)):
                raise QueryFailed("a number is divided by 0")
            return _bounded(left / right) if sign == "/" else _remainder(int(left), int(right))
    raise QueryFailed(f"{sign!r} does not suit values of types {kinds[0]} and {kinds[1]}")


def _bounded(number: float) -> float:
    """As in jq whole numbers beyond 53 bits are not exact; they do not grow without end either."""
    number = number if abs(number) <= 2**53 else float(number)
    if not math.isfinite(number):
        raise QueryFailed("a number is too large")
    return number


def _remainder(left: int, right: int) -> int:
    """As in jq it has the sign of what is divided."""
    rest = abs(left) % abs(right)
    return rest if left >= 0 else -rest


def _compared(sign: str, left: Any, right: Any) -> bool:
    kinds = _kind(left), _kind(right)
    if kinds[0] == kinds[1] and kinds[0] in ("array", "object"):
        raise QueryFailed(f"{sign!r} does not suit two values of type {kinds[0]}")
    if sign in ("==", "!="):
        return (kinds[0] == kinds[1] and left == right) is (sign == "==")
    ranks = [
        (_ORDER.index(kind), one if one is not None else 0) for kind, one in zip(kinds, (left, right), strict=True)
    ]
    first, second = ranks if kinds[0] == kinds[1] else [rank[:1] for rank in ranks]
    return {"<": first < second, "<=": first <= second, ">": first > second, ">=": first >= second}[sign]


def _length(found: Any) -> Any:
    match _kind(found):
        case "null":
            return 0
        case "number":
            return abs(found)
        case "boolean":
            raise QueryFailed("a value of type boolean has no length")
    return len(found)


def _keys(found: Any) -> list[Any]:
    return sorted(found) if _kind(found) == "object" else list(range(len(each(found))))


def _has(found: Any, key: Any) -> bool:
    if (_kind(found), _kind(key)) not in (("object", "string"), ("array", "number")):
        raise QueryFailed(f"a value of type {_kind(found)} has no keys such as {shown(key)}")
    return key in _keys(found)


def _entries(found: Any) -> list[Any]:
    if _kind(found) != "object":
        raise QueryFailed(f"a value of type {_kind(found)} has no entries")
    return [{"key": key, "value": found[key]} for key in sorted(found)]


def _sum(found: Any) -> Any:
    total: Any = None
    for one in each(found):
        total = combined("+", total, one)
    return total


def _number(found: Any) -> Any:
    if _kind(found) == "number":
        return found
    if isinstance(found, str) and re.fullmatch(r"-?\d{1,18}(\.\d{1,18})?", found):
        return json.loads(found)
    return _fail("a number", found)


def _text(found: Any) -> str:
    if _kind(found) in ("array", "object"):
        return str(_fail("a single value", found))
    return found if isinstance(found, str) else json.dumps(found)


def _string(found: Any) -> str:
    return found if isinstance(found, str) else _fail("a text", found)


def _fail(wanted: str, found: Any) -> Any:
    raise QueryFailed(f"{shown(found)} is not {wanted}")


PLAIN: Final[Mapping[str, Callable[[Any], Any]]] = {
    "add": _sum,
    "all": lambda found: all(map(is_true, each(found))),
    "any": lambda found: any(map(is_true, each(found))),
    "ascii_downcase": lambda found: _string(found).lower(),
    "ascii_upcase": lambda found: _string(found).upper(),
    "empty": lambda found: found,
    "first": lambda found: at(found, 0),
    "keys": _keys,
    "last": lambda found: at(found, -1),
    "length": _length,
    "not": lambda found: not is_true(found),
    "to_entries": _entries,
    "tonumber": _number,
    "tostring": _text,
    "type": _kind,
}
WITH_ARGUMENTS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    **dict.fromkeys(("all", "any", "first", "map", "select"), lambda found, one: one),
    "endswith": lambda found, one: _string(found).endswith(_string(one)),
    "has": _has,
    "ltrimstr": lambda found, one: found.removeprefix(one) if _are_texts(found, one) else found,
    "rtrimstr": lambda found, one: found.removesuffix(one) if _are_texts(found, one) else found,
    "split": lambda found, one: _string(found).split(_string(one)) if one else list(_string(found)),
    "startswith": lambda found, one: _string(found).startswith(_string(one)),
}
FUNCTIONS: Final = frozenset({*PLAIN, *WITH_ARGUMENTS})
"""What may be called."""


def _are_texts(found: Any, one: Any) -> bool:
    return isinstance(found, str) and isinstance(one, str)
