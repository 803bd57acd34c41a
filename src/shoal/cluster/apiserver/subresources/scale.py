"""Scale: the replicas of any scalable kind, in one shape for all of them."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from shoal.api.meta import LabelSelector, Selector
from shoal.cluster.apiserver.apply import apply, entries_for_scale, entries_from_scale, record_update
from shoal.cluster.apiserver.kinds.decode import WrongType, decode
from shoal.cluster.apiserver.kinds.kind import Kind, Object, ScalePaths
from shoal.cluster.apiserver.kinds.tables import type_schema
from shoal.cluster.apiserver.patches import json_patch, merge_patch, strategic_merge
from shoal.cluster.apiserver.refusals import bad_request, conflict, internal_error, invalid, not_found
from shoal.cluster.apiserver.storage import Changed, Record
from shoal.cluster.apiserver.verbs.asked import Asked, Outcome, write_options
from shoal.cluster.apiserver.verbs.bodies import completed, media_type, read_other
from shoal.cluster.apiserver.verbs.patching import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    check_patched,
    patch_language,
    read_apply,
    read_patch,
    wrong_patch,
)
from shoal.cluster.apiserver.verbs.updating import match_name, replace
from shoal.cluster.apiserver.verbs.writing import Workshop, live_object
from shoal.kube.admission.fields import invalid as invalid_field

SCALE = "autoscaling.v1.Scale"

_ATTEMPTS = 5
# What a custom object's scale that is to be written holds where the object has no replicas yet.
_NO_REPLICAS = -(1 << 31)


class ScaleSubresource:
    """Reads and writes the replicas of objects through their Scale."""

    def __init__(self, workshop: Workshop) -> None:
        self._workshop = workshop

    async def get(self, asked: Asked) -> Outcome:
        """The scale of an object."""
        record = self._workshop.state.store.get(asked.kind.storage, asked.namespace, asked.name)
        return self._outcome(asked, self._found(asked, record))

    async def update(self, asked: Asked) -> Outcome:
        """Sets the replicas."""
        asked.options = write_options(asked.call, "UpdateOptions")
        wanted = await read_other(asked, type_schema(SCALE), "autoscaling/v1", "Scale")
        match_name(asked, wanted)
        previous = self._found(asked, self._latest(asked))
        live = live_object(asked.kind, self._workshop.state, previous)
        try:
            return await self._replaced(asked, previous, live, self._recorded(asked, self._scale(asked, live), wanted))
        except Changed:
            raise conflict(asked.kind.resource, asked.kind.group, asked.name) from None

    async def patch(self, asked: Asked) -> Outcome:
        """Changes the replicas by a patch of the scale."""
        is_apply = media_type(asked.call.headers.get("content-type", "")) == APPLY_PATCH
        asked.options = write_options(asked.call, "PatchOptions", is_apply=is_apply)
        language = patch_language(asked.kind, asked.call.headers.get("content-type", ""))
        for _ in range(_ATTEMPTS):
            previous = self._found(asked, self._latest(asked))
            live = live_object(asked.kind, self._workshop.state, previous)
            wanted = await asked.computed(partial(self._patched, asked, language, self._scale(asked, live)))
            try:
                return await self._replaced(asked, previous, live, wanted)
            except Changed:
                continue
        raise conflict(asked.kind.resource, asked.kind.group, asked.name)

    def _patched(self, asked: Asked, language: str, scale: Object) -> Object:
        if language == APPLY_PATCH:
            return self._applied(asked, scale)
        return self._recorded(asked, scale, _patched(asked, language, scale))

    def _latest(self, asked: Asked) -> Record | None:
        return self._workshop.state.store.latest(asked.kind.storage, asked.namespace, asked.name)

    def _found(self, asked: Asked, record: Record | None) -> Record:
        if record is None:
            raise not_found(asked.kind.resource, asked.kind.group, asked.name)
        return record

    def _outcome(self, asked: Asked, record: Record) -> Outcome:
        live = live_object(asked.kind, self._workshop.state, record)
        return Outcome(kind=asked.kind, object=scale_of(asked.kind, live))

    def _scale(self, asked: Asked, live: Object) -> Object:
        """The scale of an object, with the owners of its replicas."""
        scale = scale_of(asked.kind, live, missing=_NO_REPLICAS)
        if owners := entries_for_scale(live["metadata"].get("managedFields") or (), self._replicas(asked)):
            scale["metadata"]["managedFields"] = owners
        return scale

    def _replicas(self, asked: Asked) -> dict[str, tuple[str, ...] | None]:
        """Where each version of the kind has its replicas."""
        versions = [one for one in self._workshop.state.registry if one.storage == asked.kind.storage]
        return {one.api_version: one.scale.spec_replicas if one.scale else None for one in versions}

    def _recorded(self, asked: Asked, scale: Object, wanted: Object) -> Object:
        """What is wanted of the scale, with its owners after it."""
        if owners := scale["metadata"].get("managedFields"):
            wanted["metadata"].setdefault("managedFields", owners)
        record_update(
            type_schema(SCALE),
            scale,
            wanted,
            manager=asked.options.manager,
            subresource=asked.subresource,
            now=self._workshop.now(),
        )
        return wanted

    def _applied(self, asked: Asked, scale: Object) -> Object:
        applied = apply(
            type_schema(SCALE),
            scale,
            read_apply(asked, "autoscaling/v1", "Scale"),
            manager=asked.options.manager,
            force=bool(asked.options.force),
            subresource=asked.subresource,
            now=self._workshop.now(),
        )
        match_name(asked, applied)
        return applied

    async def _replaced(self, asked: Asked, previous: Record, live: Object, wanted: Object) -> Outcome:
        kind, metadata = asked.kind, wanted.get("metadata") or {}
        replicas = (wanted.get("spec") or {}).get("replicas", 0)
        if replicas == _NO_REPLICAS:
            raise bad_request(f'the spec replicas field ".{".".join(_paths(kind).spec_replicas)}" cannot be empty')
        _check(kind, asked.name, replicas)
        new = live_object(kind, self._workshop.state, previous)
        new["metadata"]["resourceVersion"] = metadata.get("resourceVersion") or str(previous.revision)
        new["metadata"]["uid"] = metadata.get("uid") or previous.uid
        _put(new, _paths(kind).spec_replicas, replicas)
        new["metadata"]["managedFields"] = entries_from_scale(
            live["metadata"].get("managedFields") or (),
            metadata.get("managedFields") or (),
            version=kind.api_version,
            paths=self._replicas(asked),
        )
        # The replicas may be the first of its fields: what stands beside them by default comes with them.
        new = completed(kind, new, [])
        outcome = await replace(self._workshop, asked, previous, new, has_managers=True)
        if outcome.record is not None:
            return self._outcome(asked, outcome.record)
        assert outcome.object is not None
        return Outcome(kind=kind, object=scale_of(kind, outcome.object))


def _patched(asked: Asked, language: str, scale: Object) -> Object:
    schema = type_schema(SCALE)
    read, odd = read_patch(asked, language)
    if language == JSON_PATCH:
        value = json_patch(scale, read)
    elif language == MERGE_PATCH:
        value = merge_patch(scale, read)
    else:
        value = strategic_merge(scale, read, schema)
    try:
        wanted: Object = decode(schema, value, odd)
    except WrongType as error:
        raise wrong_patch(language, read, str(error)) from None
    check_patched(asked, language, read, odd)
    wanted["apiVersion"], wanted["kind"] = scale["apiVersion"], scale["kind"]
    return wanted


def _check(kind: Kind, name: str, replicas: int) -> None:
    if replicas >= 0:
        return
    if kind.is_custom:
        path = "." + ".".join(_paths(kind).spec_replicas)
        problem = invalid_field(path, replicas, "should be a non-negative integer")
        raise invalid(kind.kind, kind.group, name, [problem])
    problem = invalid_field("spec.replicas", replicas, "must be greater than or equal to 0")
    raise invalid("Scale", "autoscaling", name, [problem])


def scale_of(kind: Kind, value: Object, *, missing: int | None = None) -> Object:
    """An object's scale; ``missing`` are the replicas of a custom object that has none, which otherwise is an error."""
    paths = _paths(kind)
    metadata = value["metadata"]
    names = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: Object = {"replicas": _found(value, paths.status_replicas) or 0}
    if selector := _selector(_found(value, paths.selector) if paths.selector else None):
        status["selector"] = selector
    replicas = _found(value, paths.spec_replicas)
    if replicas is None and kind.is_custom:
        replicas = missing
    if replicas is None and kind.is_custom:
        raise internal_error(f'the spec replicas field ".{".".join(paths.spec_replicas)}" does not exist')
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in names if name in metadata},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def _paths(kind: Kind) -> ScalePaths:
    assert kind.scale is not None, f"{kind.resource} has a scale without paths"
    return kind.scale


def _selector(found: Any) -> str:
    """A selector as text: of a custom kind it is text already, a controller's is a struct, an old one's a map."""
    if not found or isinstance(found, str):
        return found or ""
    if "matchLabels" in found or "matchExpressions" in found:
        return str(Selector.of(msgspec.convert(found, LabelSelector)))
    return str(Selector.of_labels(found))


def _found(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def _put(value: Object, path: tuple[str, ...], item: Any) -> None:
    for name in path[:-1]:
        value = value.setdefault(name, {})
    value[path[-1]] = item
