"""A small kind to review, and reviews of it as an API server would send them."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from shoal.api.meta.objects import Object, Wire
from shoal.api.meta.resource import Resource
from shoal.kube.admission.jsonpatch import PatchError, apply
from shoal.kube.admission.wire import AdmissionRequest, read_admission
from shoal.kube.transport import Request
from tests.support.network.scripted import Answer, ScriptedTransport, refusal


class Limit(Wire, frozen=True, kw_only=True):
    name: str = ""
    amount: int | None = None


class QueueSpec(Wire, frozen=True, kw_only=True):
    parent: str = ""
    priority: int | None = None
    weight: int = 1
    limits: list[Limit] = []


class Queue(Object, frozen=True, kw_only=True):
    spec: QueueSpec = QueueSpec()


QUEUES = Resource(type=Queue, group="shoal.test", version="v2", kind="Queue", plural="queues", namespaced=True)


def a_reviewed_queue(name: str = "team-a", **spec: Any) -> dict[str, Any]:
    """A queue as plain values, as a user wrote it."""
    return {
        "apiVersion": "shoal.test/v2",
        "kind": "Queue",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def a_review(
    queue: dict[str, Any] | None = None,
    *,
    old: dict[str, Any] | None = None,
    operation: str = "",
    uid: str = "705ab4f5",
    plural: str = "queues",
    user: str = "ann",
) -> dict[str, Any]:
    """An AdmissionReview about a queue; by what it carries a CREATE, UPDATE or DELETE."""
    guessed = "DELETE" if queue is None else "UPDATE" if old is not None else "CREATE"
    metadata = (queue or old or {}).get("metadata", {})
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": uid,
            "kind": {"group": "shoal.test", "version": "v2", "kind": "Queue"},
            "resource": {"group": "shoal.test", "version": "v2", "resource": plural},
            "requestKind": {"group": "shoal.test", "version": "v2", "kind": "Queue"},
            "requestResource": {"group": "shoal.test", "version": "v2", "resource": plural},
            "name": metadata.get("name", ""),
            "namespace": metadata.get("namespace", ""),
            "operation": operation or guessed,
            "userInfo": {"username": user, "groups": ["system:authenticated"]},
            "object": queue,
            "oldObject": old,
            "dryRun": False,
            "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
        },
    }


def a_request(queue: dict[str, Any] | None = None, **more: Any) -> AdmissionRequest:
    """The request of such a review, as it is read off the wire."""
    return read_admission(msgspec.json.encode(a_review(queue, **more)))


def object_server(*objects: tuple[str, dict[str, Any]]) -> ScriptedTransport:
    """Answers like an API server for plain objects: versions count up, and a write on an old version is refused.

    ``requests`` of the transport tell what was asked; writes are those that are no GET.
    """
    stored: dict[str, dict[str, Any]] = {}
    versions = iter(range(1, 1_000_000))

    def keep(path: str, content: dict[str, Any]) -> Answer:
        metadata = content.get("metadata", {}) | {"resourceVersion": str(next(versions))}
        stored[path] = content | {"metadata": metadata}
        return Answer(stored[path])

    for path, content in objects:
        keep(path, content)

    async def script(request: Request) -> Answer:
        # Whoever asks at the same time reads before anyone writes.
        await asyncio.sleep(0)
        body = msgspec.json.decode(request.body) if request.body else {}
        if request.method == "POST":
            path = f"{request.path}/{body['metadata']['name']}"
            return refusal(409, "AlreadyExists") if path in stored else keep(path, body)
        if request.path not in stored:
            return refusal(404, "NotFound")
        present = stored[request.path]
        match request.method:
            case "PUT":
                if body["metadata"]["resourceVersion"] != present["metadata"]["resourceVersion"]:
                    return refusal(409, "Conflict")
                return keep(request.path, body)
            case "PATCH":
                try:
                    return keep(request.path, apply(body, present))
                except PatchError as error:
                    return refusal(422, f"Invalid: {error}")
            case _:
                return Answer(present)

    return ScriptedTransport(script)
