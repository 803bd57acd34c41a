"""Default priorities by kind: a ConfigMap whose ``types`` is a JSON list of kinds with their priority."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

TYPES: Final = "types"
"""The key of the ConfigMap that holds the list."""


class KindDefaults(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What the pods of a kind get where nobody says otherwise; without a group it holds for the kind in all groups."""

    type_name: str
    group: str = ""
    priority_name: str = ""
    preemptibility: str = ""


class InvalidDefaults(Exception):
    """A ConfigMap of defaults that cannot be read; says why."""


def parse_defaults(data: Mapping[str, str]) -> dict[str, KindDefaults]:
    """The defaults of a ConfigMap by ``Kind.group`` or ``Kind``; of two for the same kind the last one holds."""
    if TYPES not in data:
        raise InvalidDefaults(f"the ConfigMap has no key {TYPES!r}: put the JSON list of kinds there")
    try:
        entries = msgspec.json.decode(data[TYPES], type=list[KindDefaults])
    except msgspec.MsgspecError as error:
        raise InvalidDefaults(f"the key {TYPES!r} is no JSON list of kinds: {error}") from error
    return {_key(entry.group, entry.type_name): entry for entry in entries}


def defaults_of(defaults: Mapping[str, KindDefaults], group: str, kind: str) -> KindDefaults | None:
    """The entry of a kind: the one that names its group first."""
    return defaults.get(_key(group, kind)) or defaults.get(kind)


def _key(group: str, kind: str) -> str:
    return f"{kind}.{group}" if group else kind
