"""Scale: the replicas of any scalable kind, in one shape for all of them."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.api.meta import LabelSelector, Selector
from shoal.cluster.apiserver.apply import apply
from shoal.cluster.apiserver.kinds.bodies import BadBody, read_json, read_yaml
from shoal.cluster.apiserver.kinds.decode import WrongType, decode
from shoal.cluster.apiserver.kinds.kind import Kind, Object, ScalePaths
from shoal.cluster.apiserver.kinds.tables import type_schema
from shoal.cluster.apiserver.patches import json_patch, merge_patch, strategic_merge
from shoal.cluster.apiserver.refusals import bad_request, conflict, invalid, not_found
from shoal.cluster.apiserver.storage import Changed, Record
from shoal.cluster.apiserver.verbs.asked import Asked, Outcome, field_checks, write_options
from shoal.cluster.apiserver.verbs.bodies import completed, media_type, read_other
from shoal.cluster.apiserver.verbs.patching import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, patch_language
from shoal.cluster.apiserver.verbs.updating import match_name, replace
from shoal.cluster.apiserver.verbs.writing import Workshop, live_object
from shoal.kube.admission.fields import invalid as invalid_field

SCALE = "autoscaling.v1.Scale"

_ATTEMPTS = 5


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
        wanted = read_other(asked, type_schema(SCALE), "autoscaling/v1", "Scale")
        match_name(asked, wanted)
        previous = self._found(asked, self._latest(asked))
        try:
            return await self._replaced(asked, previous, wanted)
        except Changed:
            raise conflict(asked.kind.resource, asked.kind.group, asked.name) from None

    async def patch(self, asked: Asked) -> Outcome:
        """Changes the replicas by a patch of the scale."""
        is_apply = media_type(asked.call.headers.get("content-type", "")) == APPLY_PATCH
        asked.options = write_options(asked.call, "PatchOptions", is_apply=is_apply)
        language = patch_language(asked.kind, asked.call.headers.get("content-type", ""))
        for _ in range(_ATTEMPTS):
            previous = self._found(asked, self._latest(asked))
            try:
                if language == APPLY_PATCH:
                    return await self._applied(asked, previous)
                return await self._replaced(asked, previous, self._patched(asked, language, previous))
            except Changed:
                continue
        raise conflict(asked.kind.resource, asked.kind.group, asked.name)

    def _latest(self, asked: Asked) -> Record | None:
        return self._workshop.state.store.latest(asked.kind.storage, asked.namespace, asked.name)

    def _found(self, asked: Asked, record: Record | None) -> Record:
        if record is None:
            raise not_found(asked.kind.resource, asked.kind.group, asked.name)
        return record

    def _outcome(self, asked: Asked, record: Record) -> Outcome:
        live = live_object(asked.kind, self._workshop.state, record)
        return Outcome(kind=asked.kind, object=scale_of(asked.kind, live))

    def _patched(self, asked: Asked, language: str, previous: Record) -> Object:
        schema = type_schema(SCALE)
        current = scale_of(asked.kind, live_object(asked.kind, self._workshop.state, previous))
        try:
            read, duplicates = read_json(asked.call.body)
        except BadBody as error:
            raise bad_request(f"error decoding patch: {error}") from None
        if language == JSON_PATCH:
            value = json_patch(current, read)
        elif language == MERGE_PATCH:
            value = merge_patch(current, read)
        else:
            value = strategic_merge(current, read, schema)
        unknown = list(duplicates)
        try:
            wanted: Object = decode(schema, value, unknown)
        except WrongType as error:
            raise bad_request(str(error)) from None
        field_checks(asked, unknown)
        return wanted

    async def _replaced(self, asked: Asked, previous: Record, wanted: Object) -> Outcome:
        kind = asked.kind
        replicas = (wanted.get("spec") or {}).get("replicas", 0)
        if replicas < 0:
            problem = invalid_field("spec.replicas", replicas, "must be greater than or equal to 0")
            raise invalid("Scale", "autoscaling", asked.name, [problem])
        new = live_object(kind, self._workshop.state, previous)
        version = (wanted.get("metadata") or {}).get("resourceVersion", "")
        new["metadata"]["resourceVersion"] = version
        uid = (wanted.get("metadata") or {}).get("uid", "")
        new["metadata"]["uid"] = uid or new["metadata"]["uid"]
        if not version:
            new["metadata"]["resourceVersion"] = str(previous.revision)
        _put(new, _paths(kind).spec_replicas, replicas)
        return self._scaled(asked, await replace(self._workshop, asked, previous, new))

    async def _applied(self, asked: Asked, previous: Record) -> Outcome:
        """An apply of a scale is an apply of the one field that it stands for."""
        kind = asked.kind
        try:
            read, _ = read_yaml(asked.call.body)
        except BadBody as error:
            raise bad_request(f"error decoding YAML: {error}") from None
        replicas = (read.get("spec") or {}).get("replicas") if isinstance(read, dict) else None
        wanted: Object = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": asked.name}}
        if replicas is not None:
            _put(wanted, _paths(kind).spec_replicas, replicas)
        applied = apply(
            kind.schema,
            live_object(kind, self._workshop.state, previous),
            wanted,
            manager=asked.options.manager,
            force=bool(asked.options.force),
            subresource=asked.subresource,
            now=self._workshop.now(),
            resets=kind.rules.resets.get("", ()),
        )
        new = completed(kind, applied, [])
        return self._scaled(asked, await replace(self._workshop, asked, previous, new, has_managers=True))

    def _scaled(self, asked: Asked, outcome: Outcome) -> Outcome:
        if outcome.record is not None:
            return self._outcome(asked, outcome.record)
        assert outcome.object is not None
        return Outcome(kind=asked.kind, object=scale_of(asked.kind, outcome.object))


def scale_of(kind: Kind, value: Object) -> Object:
    """An object's scale."""
    paths = _paths(kind)
    metadata = value["metadata"]
    names = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: Object = {"replicas": _found(value, paths.status_replicas) or 0}
    if selector := _selector(_found(value, paths.selector) if paths.selector else None):
        status["selector"] = selector
    replicas = _found(value, paths.spec_replicas)
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
