"""What must hold of a cluster once it has come to rest, whatever befell it before; each answer names what does not."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from shoal.kube import Client
from tests.e2e.load import FAILS, Load

Objects = dict[str, list[dict[str, Any]]]
"""The objects of a cluster by kind."""
_LEASES = "leases"


async def everything(client: Client) -> Objects:
    """All objects of all kinds, but leases, which are renewed for ever."""
    found: Objects = {}
    for group in ("/api/v1", *[f"/apis/{path}" for path in await _groups(client)]):
        for served in (await _read(client, group))["resources"]:
            kind = served["kind"]
            if "list" not in served["verbs"] or served["name"] == _LEASES or kind in found:
                continue
            if kind == "Event" and group != "/api/v1":
                continue
            found[kind] = (await _read(client, f"{group}/{served['name']}"))["items"]
    return found


def versions(objects: Objects) -> dict[str, str]:
    """The resource version of each object: equal ones mean that nothing was written."""
    return {
        f"{kind} {one['metadata'].get('namespace', '')}/{one['metadata']['name']}": one["metadata"]["resourceVersion"]
        for kind, items in objects.items()
        for one in items
        if "resourceVersion" in one["metadata"]
    }


def wrong(objects: Objects, *loads: Load) -> list[str]:
    """What is not as the loads' acknowledged writes want it, and what is left over."""
    return [*(problem for load in loads for problem in _unlike_wanted(objects, load)), *_left_over(objects)]


def _unlike_wanted(objects: Objects, load: Load) -> Iterator[str]:
    inside = {
        kind: [one for one in items if load.namespace in (one["metadata"].get("namespace"), one["metadata"]["name"])]
        for kind, items in objects.items()
    }
    found = {(kind, one["metadata"]["name"]): one for kind, items in inside.items() for one in items}
    owned: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for child in [*inside["Pod"], *inside["ReplicaSet"]]:
        for owner in child["metadata"].get("ownerReferences", ()):
            owned[owner["uid"]].append(child)
    for (kind, name), wanted in load.wanted.items():
        one = found.get((kind, name))
        if wanted is None:
            if one is not None:
                yield f"{kind} {name} was deleted and is there"
            continue
        if one is None:
            yield f"{kind} {name} was acknowledged and is not there"
            continue
        own = owned[one["metadata"]["uid"]]
        match kind:
            case "ConfigMap":
                if one["data"]["value"] != wanted:
                    yield f"{name} says {one['data']['value']} and {wanted} was acknowledged"
            case "Deployment":
                yield from _replicas(one, wanted, [pod for each in own for pod in owned[each["metadata"]["uid"]]])
            case "StatefulSet":
                yield from _replicas(one, wanted, own)
                if sorted(pod["metadata"]["name"] for pod in own) != [f"{name}-{number}" for number in range(wanted)]:
                    yield f"{name} has the ordinals {sorted(pod['metadata']['name'] for pod in own)}"
            case "Job":
                yield from _ended(one, wanted, own)


def _replicas(one: dict[str, Any], wanted: int, pods: list[dict[str, Any]]) -> Iterator[str]:
    name, status = one["metadata"]["name"], one["status"]
    if len(pods) != wanted:
        yield f"{name} has {len(pods)} pods and shall have {wanted}"
    if (status.get("replicas", 0), status.get("readyReplicas", 0)) != (wanted, wanted):
        yield f"{name} shall have {wanted} and says {status}"
    if status.get("observedGeneration") != one["metadata"]["generation"]:
        yield f"{name} has not seen its last change"


def _ended(job: dict[str, Any], wanted: Any, pods: list[dict[str, Any]]) -> Iterator[str]:
    name, status = job["metadata"]["name"], job["status"]
    conditions = {condition["type"] for condition in status.get("conditions", ()) if condition["status"] == "True"}
    phases = Counter(pod["status"]["phase"] for pod in pods)
    counts = {"Succeeded": status.get("succeeded", 0), "Failed": status.get("failed", 0)}
    if ("Failed" if wanted == FAILS else "Complete") not in conditions:
        yield f"{name} has not ended: {status}"
        return
    if status.get("active") or any(status.get("uncountedTerminatedPods", {}).values()):
        yield f"{name} has ended and says {status}"
    # A Job that fails deletes the pods that still run, and counts them as failed.
    deleted = counts["Failed"] - phases["Failed"]
    may_be_deleted = job["spec"]["parallelism"] - 1 if wanted == FAILS else 0
    if counts["Succeeded"] != phases["Succeeded"] or not 0 <= deleted <= may_be_deleted or set(phases) - set(counts):
        yield f"{name} counts {counts} and has {dict(phases)}"
    if wanted == FAILS:
        return
    succeeded = [pod for pod in pods if pod["status"]["phase"] == "Succeeded"]
    if len(succeeded) != wanted:
        yield f"{name} has {len(succeeded)} pods that succeeded and shall have {wanted}"
    if job["spec"].get("completionMode") == "Indexed":
        indexes = sorted(
            pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] for pod in succeeded
        )
        if indexes != [str(number) for number in range(wanted)] or status["completedIndexes"] != f"0-{wanted - 1}":
            yield f"{name} has succeeded for {indexes} and says {status['completedIndexes']}"


def _left_over(objects: Objects) -> Iterator[str]:
    everyone = {one["metadata"].get("uid") for items in objects.values() for one in items}
    for kind, items in objects.items():
        for one in items:
            metadata = one["metadata"]
            where = f"{kind} {metadata.get('namespace', '')}/{metadata['name']}"
            if "deletionTimestamp" in metadata:
                yield f"{where} is being deleted, held by {metadata.get('finalizers')}"
            if kind == "Pod" and metadata.get("finalizers"):
                yield f"{where} keeps {metadata['finalizers']}"
            for owner in metadata.get("ownerReferences", ()):
                if owner["uid"] not in everyone:
                    yield f"{where} has lost its owner {owner['kind']} {owner['name']}"


async def _groups(client: Client) -> list[str]:
    groups = (await _read(client, "/apis"))["groups"]
    return [group["preferredVersion"]["groupVersion"] for group in groups]


async def _read(client: Client, path: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(await client.read_path(path))
    return answer
