"""Strategic merge: maps are merged field by field, lists of named things item by item, and all other lists replaced.

Which lists those are, and by what their items are told apart, Kubernetes' types say; ``MERGE_KEYS`` has those of a
JobSet's specification. ``$patch: replace`` or ``delete`` in a map of the patch does what it says. The other directives
cannot reach us: a TrainJob's schema has no place for them.

The API server of ``shoal up`` has a strategic merge of its own, for any kind and every directive, that fails in the
words of Kubernetes. This one knows one kind, and has nothing to refuse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

Json: TypeAlias = Mapping[str, Any]

MERGE_KEYS: Final[Mapping[str, str]] = {
    "replicatedJobs": "name",
    "dependsOn": "name",
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "env": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "ports": "containerPort",
    "volumes": "name",
    "imagePullSecrets": "name",
    "schedulingGates": "name",
    "resourceClaims": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
}
"""By what the items of a list are told apart, by the list's name: it means the same wherever it stands in a JobSet."""

SETS: Final = frozenset({"finalizers"})
"""Lists of plain values, of which each is there once."""

_DIRECTIVE: Final = "$patch"
_REPLACE, _DELETE = "replace", "delete"


def strategic_merge(original: Json, patch: Json) -> dict[str, Any]:
    """The original with the patch merged into it; shares parts with both, and changes neither."""
    if _has_directive(patch):
        rest = {key: value for key, value in patch.items() if key != _DIRECTIVE}
        return rest if patch[_DIRECTIVE] == _REPLACE else {}
    merged = dict(original)
    for field, value in patch.items():
        current = original.get(field)
        if _has_directive(value) and not isinstance(current, Mapping):
            merged.pop(field, None)  # there is no map to replace or to delete
        else:
            merged[field] = _merged_value(field, current, value)
    return merged


def _has_directive(value: Any) -> bool:
    return isinstance(value, Mapping) and value.get(_DIRECTIVE) in (_REPLACE, _DELETE)


def _merged_value(field: str, current: Any, value: Any) -> Any:
    if isinstance(current, Mapping) and isinstance(value, Mapping):
        return strategic_merge(current, value)
    if isinstance(current, list) and isinstance(value, list):
        if field in MERGE_KEYS:
            return _merged_items(current, value, MERGE_KEYS[field])
        if field in SETS:
            # As Kubernetes orders them: what the patch names comes first where the live list does not say otherwise.
            places = {item: place for place, item in enumerate(current)}
            others = [item for item in current if item not in value]
            return _interleaved(others, list(dict.fromkeys(value)), places, lambda item: item)
    return value


def _merged_items(current: Sequence[Json], changes: Sequence[Json], key: str) -> list[Json]:
    """Items of both lists, those of the same key as one, in the order of ``_interleaved``."""
    live = {item.get(key): item for item in reversed(current)}
    wanted: dict[Any, Json] = {}
    for change in changes:
        name = change.get(key)
        base = wanted.get(name, live.get(name))
        wanted[name] = change if base is None else strategic_merge(base, change)
    places = {item.get(key): place for place, item in reversed(list(enumerate(current)))}
    others = [item for item in current if item.get(key) not in wanted]
    return _interleaved(others, list(wanted.values()), places, lambda item: item.get(key))


def _interleaved(others: list[Any], wanted: list[Any], places: Mapping[Any, int], name: Any) -> list[Any]:
    """What is wanted keeps its order, and so do the others.

    One of the others goes before a wanted one where both were in the list, and it stood before it.
    """
    result: list[Any] = []
    rest = iter(others)
    waiting = next(rest, msgspec.UNSET)
    for item in wanted:
        place = places.get(name(item))
        while waiting is not msgspec.UNSET and place is not None and places[name(waiting)] < place:
            result.append(waiting)
            waiting = next(rest, msgspec.UNSET)
        result.append(item)
    return result if waiting is msgspec.UNSET else [*result, waiting, *rest]
