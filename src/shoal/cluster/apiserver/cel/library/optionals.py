"""Values that may not be there."""

from __future__ import annotations

from typing import Any

from shoal.cluster.apiserver.cel.functions import Library
from shoal.cluster.apiserver.cel.values import NOTHING, SECOND, CelError, Duration, Optional, Timestamp

OPTIONALS = Library()
# Go's zero time is the first moment of the year 1.
_ZEROS: dict[type, int] = {Duration: 0, Timestamp: -62135596800 * SECOND}
_add = OPTIONALS.add


def _in_place(*_values: Any) -> Any:
    raise AssertionError("compiled in place")


_add(_in_place, "optional<A>::or(optional<A>): optional<A>", "optional<A>::orValue(A): A")
_add(Optional, "optional.of(A): optional<A>")
_add(lambda: NOTHING, "optional.none(): optional<A>")
_add(lambda held: type(held) is Optional, "optional<A>::hasValue(): bool")


@OPTIONALS.function("optional.ofNonZeroValue(A): optional<A>")
def _of_non_zero(value: Any) -> Any:
    zero = _ZEROS.get(type(value))
    is_zero = value.nanos == zero if zero is not None else not value
    return NOTHING if is_zero else Optional(value)


@OPTIONALS.function("optional<A>::value(): A")
def _value(held: Any) -> Any:
    if type(held) is Optional:
        return held.value
    raise CelError("optional.none() dereference")


@OPTIONALS.function("optional.unwrap(list<optional<A>>): list<A>", "list<optional<A>>::unwrapOpt(): list<A>")
def _unwrap(items: list[Any]) -> list[Any]:
    return [each.value for each in items if type(each) is Optional]


_add(lambda items: Optional(items[0]) if items else NOTHING, "list<A>::first(): optional<A>")
_add(lambda items: Optional(items[-1]) if items else NOTHING, "list<A>::last(): optional<A>")
