"""Patch: a stored object is changed by what a client says of it, in one of four languages; apply is one of them."""

from __future__ import annotations

from functools import partial
from typing import Any

from shoal.cluster.apiserver.apply import apply
from shoal.cluster.apiserver.kinds.bodies import BadBody, read_json, read_yaml, version_and_kind
from shoal.cluster.apiserver.kinds.kind import Kind, Object
from shoal.cluster.apiserver.patches import json_patch, merge_patch, strategic_merge
from shoal.cluster.apiserver.patches.go_text import shown
from shoal.cluster.apiserver.patches.json_patch import unknown_fields
from shoal.cluster.apiserver.refusals import (
    Refused,
    Unhandled,
    bad_request,
    conflict,
    invalid,
    not_consumable,
    not_found,
    unsupported_media_type,
)
from shoal.cluster.apiserver.storage import Changed, Record
from shoal.cluster.apiserver.verbs.asked import Asked, Outcome, field_checks, strict_refusal
from shoal.cluster.apiserver.verbs.bodies import check_type, completed, media_type
from shoal.cluster.apiserver.verbs.creating import create, match_namespace
from shoal.cluster.apiserver.verbs.updating import match_name, replace
from shoal.cluster.apiserver.verbs.writing import Workshop, live_object
from shoal.kube.admission.fields import invalid as invalid_field
from shoal.kube.errors import Status

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

_ATTEMPTS = 5
_GO_NAMES = {str: "string", bool: "bool", int: "number", float: "number"}


async def patch(workshop: Workshop, asked: Asked) -> Outcome:
    """Changes an object by the request's patch; an apply also creates it."""
    language = patch_language(asked.kind, asked.call.headers.get("content-type", ""))
    kind, store = asked.kind, workshop.state.store
    is_apply = language == APPLY_PATCH
    for _ in range(_ATTEMPTS):
        previous = store.latest(kind.storage, asked.namespace, asked.name)
        if previous is None and (not is_apply or asked.subresource):
            raise not_found(kind.resource, kind.group, asked.name)
        asked.stored_size = 0 if previous is None else len(previous.data)
        # Read anew for each attempt: what an earlier one made shares parts with its patch, and has been completed.
        live, new = await asked.computed(partial(_patched_live, workshop, asked, language, previous))
        try:
            if previous is None:
                return await create(workshop, asked, new, has_managers=True)
            return await replace(workshop, asked, previous, new, live=live, has_managers=is_apply)
        except Changed:
            continue
    raise conflict(kind.resource, kind.group, asked.name)


def _patched_live(
    workshop: Workshop, asked: Asked, language: str, previous: Record | None
) -> tuple[Object | None, Object]:
    """The object as it is, and as the patch makes it."""
    kind = asked.kind
    read: Any = (
        read_apply(asked, kind.api_version, kind.kind) if language == APPLY_PATCH else read_patch(asked, language)
    )
    live = None if previous is None else live_object(kind, workshop.state, previous)
    if language == APPLY_PATCH:
        return live, _applied(workshop, asked, live, read)
    assert live is not None
    return live, _patched(asked, language, live, read)


def patch_language(kind: Kind, content_type: str) -> str:
    """The language of a patch; strategic merge needs the merge keys that only built-in kinds have."""
    known = [JSON_PATCH, MERGE_PATCH]
    known += [] if kind.is_custom else [STRATEGIC_MERGE_PATCH]
    known.append(APPLY_PATCH)
    language = media_type(content_type)
    if language not in known:
        raise unsupported_media_type(known) if kind.is_custom else not_consumable()
    return language


def apply_to_value(language: str, value: Object, read: Any, kind: Kind) -> Object:
    """The object after a patch in any language but apply."""
    if language == JSON_PATCH:
        patched = json_patch(value, read)
    elif language == MERGE_PATCH:
        patched = merge_patch(value, read)
    else:
        patched = strategic_merge(value, read, kind.schema)
    if not isinstance(patched, dict):
        raise bad_request("the patched object is no object")
    return patched


def read_patch(asked: Asked, language: str) -> tuple[Any, list[str]]:
    """A patch in any language but apply, and what strict validation finds in the patch itself."""
    try:
        value, odd = read_json(asked.call.body)
    except BadBody as error:
        prefix = "" if language == STRATEGIC_MERGE_PATCH else "error decoding patch: "
        raise bad_request(prefix + error.plain) from None
    if language == JSON_PATCH and asked.options.validation != "Ignore":
        odd += unknown_fields(value)
    return value, odd


def wrong_patch(language: str, read: Any, problem: str) -> Refused:
    """422: what a patch makes of the object is none of its kind, or says what strict validation does not let pass."""
    # The whole object after the patch, which Kubernetes tells here, would help nobody.
    value = shown(read) if language == STRATEGIC_MERGE_PATCH else "{...}"
    return invalid("", "", "", [invalid_field("patch", value, problem)])


def check_patched(asked: Asked, language: str, read: Any, odd: list[str]) -> None:
    """Refuses, tells or passes over what is odd about a patch and what it makes, as the request asks."""
    if odd and asked.options.validation == "Strict":
        raise wrong_patch(language, read, "strict decoding error: " + ", ".join(odd))
    field_checks(asked, odd)


def read_apply(asked: Asked, api_version: str, kind: str) -> Object:
    """The object that is applied; refused where it is none of this kind. It may lack a name that is known already."""
    try:
        value, duplicates = read_yaml(asked.call.body)
    except BadBody as error:
        raise bad_request(f"error decoding YAML: error converting YAML to JSON: {error}") from None
    if duplicates and asked.options.validation == "Strict":
        raise strict_refusal(duplicates, "error strict decoding YAML: ")
    field_checks(asked, duplicates)
    if value is not None and not isinstance(value, dict):
        found = "array" if isinstance(value, list) else _GO_NAMES[type(value)]
        problem = f"json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
        raise bad_request(f"error decoding YAML: error unmarshaling JSON: while decoding JSON: {problem}")
    _check_applied(value or {}, api_version, kind)
    return value or {}


def _check_applied(value: Object, api_version: str, kind: str) -> None:
    """Refuses an apply of another kind than the URL's."""
    version, name = (found if isinstance(found, str) else "" for found in (value.get("apiVersion"), value.get("kind")))
    if version != api_version or name != kind:
        group, _, number = version.rpartition("/")
        raise bad_request(f"invalid object type: {group}/{number}, Kind={name}")


def _patched(asked: Asked, language: str, live: Object, patch: tuple[Any, list[str]]) -> Object:
    kind, (read, odd) = asked.kind, patch
    value = apply_to_value(language, live, read, kind)
    if value.get("metadata") is None:
        value["metadata"] = {}
    odd = list(odd)
    try:
        check_type(kind, *version_and_kind(value, asked.call.body))
        new = completed(kind, value, odd)
    except (BadBody, Unhandled) as error:
        raise wrong_patch(language, read, error.problem) from None
    check_patched(asked, language, read, odd)
    match_name(asked, new)
    match_namespace(asked, new)
    return new


def _applied(workshop: Workshop, asked: Asked, live: Object | None, read: Object) -> Object:
    kind = asked.kind
    metadata = read.get("metadata")
    if live is None and isinstance(metadata, dict) and (uid := metadata.get("uid")):
        raise conflict(
            kind.resource,
            kind.group,
            asked.name,
            f"uid mismatch: the provided object specified uid {uid}, and no existing object was found",
        )
    applied = apply(
        kind.schema,
        live,
        read,
        manager=asked.options.manager,
        force=bool(asked.options.force),
        subresource=asked.subresource,
        now=workshop.now(),
        resets=kind.rules.resets.get(asked.subresource, ()),
    )
    try:
        new = completed(kind, applied, [])
    except Unhandled as error:
        raise _inconvertible(kind, read, error.problem) from None
    match_name(asked, new)
    match_namespace(asked, new)
    return new


def _inconvertible(kind: Kind, read: Object, problem: str) -> Refused:
    """500: what was applied fits the schema, but is no value of its type."""
    metadata, what = read.get("metadata") or {}, f"{kind.group}/{kind.version}, Kind={kind.kind}"
    place = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    prefix = "error decoding from json: " if "base64" in problem else ""
    message = (
        f"failed to convert new object ({place}; {what}) to proper version: unable to convert unstructured object to "
        f"{what}: {prefix}{problem}"
    )
    return Refused(Status(code=500, reason="", message=message))
