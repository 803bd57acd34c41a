"""Pods for tests, as manifests and as values of the typed API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from shoal.api.core import Pod
from shoal.api.meta import format_time

Json = dict[str, Any]


def pod_manifest(
    name: str = "web",
    *,
    namespace: str = "",
    uid: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    owner: Mapping[str, Any] | None = None,
    created: datetime | None = None,
    deleted: datetime | None = None,
    metadata: Mapping[str, Any] | None = None,
    containers: Iterable[str | Mapping[str, Any]] = ("main",),
    init: Iterable[str | Mapping[str, Any]] = (),
    requests: Mapping[str, Any] | None = None,
    limits: Mapping[str, Any] | None = None,
    node: str = "",
    scheduler: str = "",
    phase: str = "",
    conditions: Mapping[str, str] | Iterable[Mapping[str, Any]] | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Json:
    """A pod as it is written in JSON: one container called ``main``, and what is given.

    A container is a name, or its fields. ``requests`` and ``limits`` are the first container's. ``conditions`` are
    statuses by type, or whole conditions. Other keywords are fields of the spec; fields without an argument of their
    own stand in ``metadata`` and ``status``. What is left empty is left out.
    """
    resources = _given(requests=_plain(requests), limits=_plain(limits))
    main, *others = [_container(one) for one in containers] or [{}]
    if resources:
        main = {**main, "resources": resources}
    identity = _given(
        namespace=namespace,
        uid=uid,
        labels=_plain(labels),
        annotations=_plain(annotations),
        ownerReferences=[dict(owner)] if owner else None,
        creationTimestamp=format_time(created) if created else None,
        deletionTimestamp=format_time(deleted) if deleted else None,
    )
    shape = _given(initContainers=[_container(one) for one in init], nodeName=node, schedulerName=scheduler)
    report = _given(phase=phase, conditions=_conditions(conditions)) | dict(status or {})
    body: Json = {
        "metadata": {"name": name, **identity, **(metadata or {})},
        "spec": {"containers": [main, *others] if main else [], **shape, **spec},
    }
    return body | ({"status": report} if report else {})


def a_pod(name: str = "web", **given: Any) -> Pod:
    """The same pod as the typed API reads it."""
    return msgspec.convert(pod_manifest(name, **given), Pod)


def controller_reference(kind: str, name: str, *, version: str = "v1", uid: str = "") -> Json:
    """The owner reference of an object that a controller has made."""
    return {"apiVersion": version, "kind": kind, "name": name, "uid": uid or f"uid-{name}", "controller": True}


def a_condition(kind: str, status: str | bool = True, *, since: datetime | None = None) -> Json:
    """A condition, with the time of its last transition where one is given."""
    moved = {} if since is None else {"lastTransitionTime": since.isoformat().replace("+00:00", "Z")}
    return {"type": kind, "status": str(status), **moved}


def _container(given: str | Mapping[str, Any]) -> Json:
    named = {"name": given} if isinstance(given, str) else dict(given)
    return {"image": "i", **named}


def _conditions(given: Mapping[str, str] | Iterable[Mapping[str, Any]] | None) -> list[Json]:
    if isinstance(given, Mapping):
        return [{"type": kind, "status": status} for kind, status in given.items()]
    return [dict(one) for one in given or ()]


def _plain(given: Mapping[str, Any] | None) -> Json:
    return {key: str(value) for key, value in (given or {}).items()}


def _given(**fields: Any) -> Json:
    return {key: value for key, value in fields.items() if value}
