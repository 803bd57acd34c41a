"""Query parameters as Kubernetes reads them into options."""

from __future__ import annotations

import re

from shoal.cluster.apiserver.calls import Call
from shoal.cluster.apiserver.refusals import bad_request

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NATURAL = re.compile(r"[0-9]+")
_INT64 = 1 << 63
_UINT31 = 1 << 31


def flag(call: Call, name: str) -> bool:
    """Whether a parameter is set; any value but false and 0 sets it, and none at all does too."""
    values = call.query.get(name)
    return values is not None and len(values) > 0 and values[0].lower() not in ("false", "0")


def integer(call: Call, name: str) -> int | None:
    """A whole number; raises Refused where it is none."""
    values = call.query.get(name)
    if not values:
        return None
    text = values[0]
    if not _INTEGER.fullmatch(text):
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    number = int(text) if len(text) < 30 else _INT64
    if not -_INT64 <= number < _INT64:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return number


def ports(call: Call) -> list[int]:
    """The ports that a forwarding names, in as many parameters as it likes; raises Refused."""
    found = []
    for value in call.query.get("ports", ()):
        for text in value.split(","):
            if not _NATURAL.fullmatch(text):
                raise bad_request(f'cannot convert to []int32: strconv.ParseUint: parsing "{text}": invalid syntax')
            if len(text) > 10 or int(text) >= _UINT31:
                raise bad_request(f'cannot convert to []int32: strconv.ParseUint: parsing "{text}": value out of range')
            found.append(int(text))
    return found
