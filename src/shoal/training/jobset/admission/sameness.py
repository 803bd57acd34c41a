"""When two specifications mean the same, though they are not written alike, and where they first differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from shoal.api.meta import InvalidQuantity, parse_quantity

_QUANTITIES: Final = frozenset({"limits", "requests", "overhead"})
_QUANTITY: Final = frozenset({"sizeLimit", "divisor"})
_MAPS: Final = frozenset(
    {"metadata", "resources", "labels", "annotations", "nodeSelector", "matchLabels", *_QUANTITIES}
)
"""Fields of which none and an empty one are the same; an empty object elsewhere is a choice, as in ``emptyDir``.

Upstream's webhooks write some of them down empty, and who takes such a JobSet over must not see a change in that.
"""


def canonical(value: Any, key: str = "") -> Any:
    """A value in the one form that all ways to write it have."""
    if isinstance(value, Mapping):
        if key in _QUANTITIES:
            return {name: _amount(amount) for name, amount in value.items()}
        inner = {name: canonical(each, name) for name, each in value.items()}
        return {name: each for name, each in inner.items() if not _is_nothing(each, name)}
    if isinstance(value, list):
        return [canonical(each) for each in value]
    return _amount(value) if key in _QUANTITY else value


def first_difference(new: Any, old: Any, path: str) -> str:
    """Where two canonical values first differ; empty where they do not."""
    if isinstance(new, Mapping) and isinstance(old, Mapping):
        for key in sorted(new.keys() | old.keys()):
            if found := first_difference(new.get(key), old.get(key), f"{path}.{key}"):
                return found
        return ""
    if isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        for index, (one, other) in enumerate(zip(new, old, strict=True)):
            if found := first_difference(one, other, f"{path}[{index}]"):
                return found
        return ""
    return "" if new == old else path


def _is_nothing(value: Any, key: str) -> bool:
    return value is None or value == [] or (value == {} and key in _MAPS)


def _amount(value: Any) -> Any:
    try:
        return parse_quantity(str(value)).nano
    except InvalidQuantity:
        return value
