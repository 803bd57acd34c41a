"""What metadata may hold: the rules that all kinds share, custom ones too.

The name's own rule comes from the kind. Every write passes through here, so that what is usually absent costs nothing
and keys and values that were seen before are not looked at again.
"""

from __future__ import annotations

import unicodedata
from typing import Any

import msgspec

from shoal.cluster.apiserver.builtin.names import (
    NameRule,
    label_problems,
    prefix_problems,
    qualified_name_problems,
    text_bytes,
)
from shoal.cluster.apiserver.builtin.selectors import labels_problems
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.kube.admission.fields import FieldProblem, forbidden, immutable, invalid, required, too_long

ANNOTATIONS_LIMIT = 256 * 1024
FIELD_MANAGER_LIMIT = 128
SUBRESOURCE_LIMIT = 256

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
STANDARD_FINALIZERS = frozenset({"kubernetes", ORPHAN, FOREGROUND})

_OWNER_FIELDS = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
_IMMUTABLE = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


def validate_metadata(
    new: Object, *, namespaced: bool, name_problems: NameRule, is_custom: bool = False
) -> list[FieldProblem]:
    """What is wrong with the metadata of an object that is to be created; its name has been generated already."""
    metadata = new.get("metadata") or {}
    return object_meta_problems(metadata, "metadata", namespaced=namespaced, rule=name_problems, is_custom=is_custom)


def object_meta_problems(
    metadata: dict[str, Any], path: str, *, namespaced: bool, rule: NameRule, is_custom: bool = False
) -> list[FieldProblem]:
    """The same for metadata at any place."""
    problems: list[FieldProblem] = []
    prefix = metadata.get("generateName")
    if prefix:
        problems += [invalid(f"{path}.generateName", prefix, each) for each in prefix_problems(rule, prefix)]
    name = metadata.get("name")
    if not name:
        problems.append(required(f"{path}.name", "name or generateName is required"))
    else:
        problems += [invalid(f"{path}.name", name, each) for each in rule(name)]
    namespace = metadata.get("namespace")
    if not namespaced:
        if namespace:
            problems.append(forbidden(f"{path}.namespace", "not allowed on this type"))
    elif not namespace:
        problems.append(required(f"{path}.namespace"))
    else:
        problems += [invalid(f"{path}.namespace", namespace, each) for each in label_problems(namespace)]
    if (metadata.get("generation") or 0) < 0:
        problems.append(invalid(f"{path}.generation", metadata["generation"], "must be greater than or equal to 0"))
    return problems + _parts_problems(metadata, path, is_custom)


def validate_metadata_update(new: Object, old: Object, *, is_custom: bool = False) -> list[FieldProblem]:
    """What is wrong with the metadata of an object that is to replace an old one."""
    metadata, before = new.get("metadata") or {}, old.get("metadata") or {}
    problems: list[FieldProblem] = []
    if before.get("deletionTimestamp"):
        added = set(metadata.get("finalizers") or ()) - set(before.get("finalizers") or ())
        if added:
            listed = ", ".join(f'"{each}"' for each in sorted(added))
            problems.append(
                forbidden(
                    "metadata.finalizers",
                    "no new finalizers can be added if the object is being deleted, found new finalizers "
                    f"[]string{{{listed}}}",
                )
            )
    if not metadata.get("resourceVersion"):
        problems.append(invalid("metadata.resourceVersion", "", "must be specified for an update"))
    if (metadata.get("generation") or 0) < (before.get("generation") or 0):
        problems.append(invalid("metadata.generation", metadata.get("generation") or 0, "must not be decremented"))
    for field in _IMMUTABLE:
        value = metadata.get(field)
        if value != before.get(field):
            empty = "" if field in ("name", "namespace", "uid") else None
            problems.append(immutable(f"metadata.{field}", empty if value is None else value))
    return problems + _parts_problems(metadata, "metadata", is_custom)


def drop_duplicate_owners(new: Object, *, is_admitted: bool) -> list[str]:
    """Removes owner references that are there twice; gives the warning about it.

    Patched objects are looked at only when they are admitted, others before that as well.
    """
    owners = (new.get("metadata") or {}).get("ownerReferences")
    if not owners or len(owners) < 2:
        return []
    kept: list[dict[str, Any]] = []
    known: set[bytes] = set()
    uids: list[str] = []
    for owner in owners:
        content = msgspec.json.encode(owner, order="sorted")
        if content in known:
            uids.append(owner.get("uid", ""))
        else:
            known.add(content)
            kept.append(owner)
    if not uids:
        return []
    new["metadata"]["ownerReferences"] = kept
    when = " after mutating admission happens" if is_admitted else ""
    return [
        f".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and "
        "may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
        + ", ".join(dict.fromkeys(uids))
    ]


def annotations_problems(annotations: dict[str, str] | None, path: str) -> list[FieldProblem]:
    """What is wrong with annotations: their keys, and the size of all together."""
    problems: list[FieldProblem] = []
    size = 0
    for key, value in (annotations or {}).items():
        if found := qualified_name_problems(key.lower()):
            problems += [invalid(path, key, each) for each in found]
        size += text_bytes(key) + (len(value) if value.isascii() else text_bytes(value))
    if size > ANNOTATIONS_LIMIT:
        problems.append(too_long(path, ANNOTATIONS_LIMIT))
    return problems


def field_manager_problems(manager: str, path: str) -> list[FieldProblem]:
    """What keeps a text from naming a field manager."""
    problems: list[FieldProblem] = []
    if text_bytes(manager) > FIELD_MANAGER_LIMIT:
        problems.append(too_long(path, FIELD_MANAGER_LIMIT))
    if manager.isascii() and manager.isprintable():
        return problems
    for index, letter in enumerate(manager):
        if letter != " " and unicodedata.category(letter)[0] in "CZ":
            shown = f"U+{ord(letter):04X}"
            position = len(manager[:index].encode())
            problems.append(invalid(path, manager, f"invalid character {shown} (at position {position})"))
    return problems


def _parts_problems(metadata: dict[str, Any], path: str, is_custom: bool) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    if labels := metadata.get("labels"):
        problems += labels_problems(labels, f"{path}.labels")
    if annotations := metadata.get("annotations"):
        problems += annotations_problems(annotations, f"{path}.annotations")
    if owners := metadata.get("ownerReferences"):
        problems += _owner_problems(owners, f"{path}.ownerReferences")
    if finalizers := metadata.get("finalizers"):
        problems += _finalizer_problems(finalizers, f"{path}.finalizers", is_custom)
    if managed := metadata.get("managedFields"):
        problems += _managed_fields_problems(managed, f"{path}.managedFields")
    return problems


def _owner_problems(owners: list[dict[str, Any]], path: str) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    first = ""
    shown: list[dict[str, Any]] = []
    """All owners, made once: there may be as many problems as owners."""
    for owner in owners:
        api_version = owner.get("apiVersion", "")
        if not api_version.rpartition("/")[2] or api_version.count("/") > 1:
            problems.append(invalid(f"{path}.apiVersion", api_version, "version must not be empty"))
        for field in ("kind", "name", "uid"):
            if not owner.get(field):
                problems.append(invalid(f"{path}.{field}", "", "must not be empty"))
        if api_version == "v1" and owner.get("kind") == "Event":
            problems.append(invalid(path, _shown_owner(owner), "/v1, Kind=Event is disallowed from being an owner"))
        if owner.get("controller"):
            name = f"{owner.get('kind', '')}/{owner.get('name', '')}"
            if first:
                shown = shown or [_shown_owner(each) for each in owners]
                problems.append(
                    invalid(
                        path,
                        shown,
                        'Only one reference can have Controller set to true. Found "true" in references for '
                        f"{first} and {name}",
                    )
                )
            else:
                first = name
    return problems


def _shown_owner(owner: dict[str, Any]) -> dict[str, Any]:
    """A reference as messages show it: its fields as they are declared."""
    return {name: owner[name] for name in _OWNER_FIELDS if name in owner}


def _finalizer_problems(finalizers: list[str], path: str, is_custom: bool) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    for finalizer in finalizers:
        if found := qualified_name_problems(finalizer):
            problems += [invalid(path, finalizer, each) for each in found]
    if ORPHAN in finalizers and FOREGROUND in finalizers:
        problems.append(invalid(path, finalizers, f"finalizer {ORPHAN} and {FOREGROUND} cannot be both set"))
    if not is_custom:
        for index, finalizer in enumerate(finalizers):
            problems += kube_finalizer_problems(finalizer, f"{path}[{index}]")
    return problems


def kube_finalizer_problems(finalizer: str, path: str) -> list[FieldProblem]:
    """What keeps a finalizer from a built-in kind: a name of one's own needs a prefix."""
    if "/" in finalizer or finalizer in STANDARD_FINALIZERS:
        return []
    return [invalid(path, finalizer, "name is neither a standard finalizer name nor is it fully qualified")]


def _managed_fields_problems(managed: list[dict[str, Any]], path: str) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    for index, entry in enumerate(managed):
        operation = entry.get("operation", "")
        if operation not in ("Apply", "Update"):
            problems.append(invalid(f"{path}[{index}].operation", operation, "must be `Apply` or `Update`"))
        form = entry.get("fieldsType", "")
        if form and form != "FieldsV1":
            problems.append(invalid(f"{path}[{index}].fieldsType", form, "must be `FieldsV1`"))
        if manager := entry.get("manager"):
            problems += field_manager_problems(manager, f"{path}[{index}].manager")
        if (subresource := entry.get("subresource")) and text_bytes(subresource) > SUBRESOURCE_LIMIT:
            problems.append(too_long(f"{path}[{index}].subresource", SUBRESOURCE_LIMIT))
    return problems
