"""A job that is not there yet, as it would be once it was: its pods, and the PodGroup that the grouper would make."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID, uuid5

import msgspec

from shoal.api import kai_names as names
from shoal.api.meta.time import format_time
from shoal.scheduler.grouper.case import Case, Facts
from shoal.scheduler.grouper.fields import Ungroupable
from shoal.scheduler.grouper.kinds import wanted_group
from shoal.scheduler.grouper.pods import GroupedPod
from shoal.scheduler.grouper.settings import GrouperSettings
from shoal.scheduler.replaying.changes import InvalidChange, with_section
from shoal.scheduler.snapshots.parameters import options_of_parameters
from shoal.scheduler.snapshots.snapshot import Json, Snapshot

_UIDS: Final = UUID("0f2a9a36-2b0e-4c5f-9d53-5f9f8d5f7c11")
"""What is submitted twice has the same uid twice: a replay is not to depend on chance."""
_MOST_PODS: Final = 100_000


def with_submitted(snapshot: Snapshot, documents: Sequence[Json]) -> Snapshot:
    """The same with these objects: PodGroups, Pods, Jobs, or lists of them. Raises InvalidChange."""
    submission = _Submission(snapshot)
    for document in _each(documents):
        submission.take(document)
    if not submission.pods and not submission.groups:
        raise InvalidChange("there is nothing in it that could be scheduled: give a PodGroup, Pods or a Job")
    made = with_section(snapshot, "podGroups", [*snapshot.of("podGroups"), *submission.groups.values()])
    return with_section(made, "pods", [*snapshot.of("pods"), *submission.pods])


def _each(documents: Sequence[Any]) -> Iterator[Json]:
    for document in documents:
        if document is None:
            continue
        if not isinstance(document, dict) or "kind" not in document:
            raise InvalidChange("a document in it has no kind: give Kubernetes manifests")
        if document["kind"] == "List" or str(document["kind"]).endswith("List"):
            yield from _each(document.get("items") or [])
        else:
            yield document


class _Submission:
    """What one submission adds."""

    def __init__(self, snapshot: Snapshot) -> None:
        options = options_of_parameters(snapshot.parameters)
        self._scheduler = options.scheduler_names[0] if options.scheduler_names else names.SCHEDULER
        self._now = format_time(datetime.fromtimestamp(snapshot.taken_at, UTC))
        self._facts = Facts(
            settings=GrouperSettings(
                scheduler_names=frozenset(options.scheduler_names),
                queue_label=options.queue_label_key,
                node_pool_label=options.node_pool_label_key,
            ),
            priority_classes=frozenset(str(one["metadata"]["name"]) for one in snapshot.of("priorityClasses")),
        )
        self.groups: dict[tuple[str, str], Json] = {}
        self.pods: list[Json] = []

    def take(self, document: Json) -> None:
        """Takes one object in."""
        kind = document["kind"]
        if kind == "PodGroup":
            self._group(self._born(document))
        elif kind == "Pod":
            self._pod(self._born(document), owner=None)
        elif kind == "Job":
            self._job(self._born(document))
        else:
            raise InvalidChange(f"a {kind} cannot be submitted here: give its PodGroup and its Pods, or a Job")

    def _born(self, document: Json, name: str = "") -> Json:
        """As the API server would have it: with a namespace, a uid and an age."""
        made = deepcopy(document)
        metadata = made["metadata"] = made.get("metadata") or {}
        generated = metadata.pop("generateName", "")
        metadata["name"] = metadata.get("name") or name or (f"{generated}submitted" if generated else "")
        if not metadata["name"]:
            raise InvalidChange(f"a {made['kind']} in it has no name: set metadata.name")
        metadata["namespace"] = metadata.get("namespace") or "default"
        where = f"{made['kind']}/{metadata['namespace']}/{metadata['name']}"
        metadata["uid"] = str(uuid5(_UIDS, where))
        metadata["creationTimestamp"] = self._now
        made.pop("status", None)
        return made

    def _group(self, group: Json) -> None:
        metadata = group["metadata"]
        self.groups[metadata["namespace"], metadata["name"]] = group

    def _job(self, job: Json) -> None:
        metadata, spec = job["metadata"], job.get("spec") or {}
        parallelism = spec.get("parallelism")
        count = 1 if parallelism is None else int(parallelism)
        if spec.get("completions") is not None:
            count = min(count, int(spec["completions"]))
        if spec.get("suspend"):
            raise InvalidChange(f"Job {metadata['name']} is suspended: it has no pods until spec.suspend is false")
        if count > _MOST_PODS:
            raise InvalidChange(f"Job {metadata['name']} has {count} pods, which is too many")
        job.setdefault("apiVersion", "batch/v1")
        template = spec.get("template") or {}
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": metadata["name"], "uid": metadata["uid"]}
        for index in range(count):
            pod = self._born(
                {"apiVersion": "v1", "kind": "Pod", **deepcopy(template)} | {"metadata": {}},
                name=f"{metadata['name']}-{index}",
            )
            told = template.get("metadata") or {}
            pod["metadata"] |= {
                "namespace": metadata["namespace"],
                "labels": {**(told.get("labels") or {}), "batch.kubernetes.io/job-name": metadata["name"]},
                "annotations": dict(told.get("annotations") or {}),
                "ownerReferences": [{**owner, "controller": True}],
                "uid": str(uuid5(_UIDS, f"Pod/{metadata['namespace']}/{metadata['name']}-{index}")),
            }
            self._pod(pod, owner=job)

    def _pod(self, pod: Json, owner: Json | None) -> None:
        spec = pod["spec"] = pod.get("spec") or {}
        spec["schedulerName"] = spec.get("schedulerName") or self._scheduler
        pod["status"] = {"phase": "Pending"}
        for container in [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]:
            # As the API server fills it in: who is limited and asks for nothing asks for as much as the limit.
            resources = container["resources"] = container.get("resources") or {}
            resources["requests"] = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        metadata = pod["metadata"]
        annotations = metadata["annotations"] = metadata.get("annotations") or {}
        if names.POD_GROUP not in annotations:
            try:
                case = Case(pod=msgspec.convert(pod, GroupedPod), owners=(owner,) if owner else (), facts=self._facts)
                wanted = wanted_group(case)
            except (Ungroupable, msgspec.ValidationError) as error:
                raise InvalidChange(f"pod {metadata['name']} can be in no PodGroup: {error}") from error
            body = wanted.body(frozenset())
            body["spec"]["queue"] = wanted.queue
            body["metadata"] |= {"uid": metadata["uid"], "creationTimestamp": self._now}
            self._group({"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", **body})
            annotations[names.POD_GROUP] = wanted.name
        self.pods.append(pod)
