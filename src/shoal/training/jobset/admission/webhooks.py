"""The webhooks of JobSets, at the paths that upstream's own have, and of their pods, at paths that no others have.

They are registered by objects of their own: upstream's configuration is how its controller is known to be there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from shoal.api.core import NODES, PERSISTENT_VOLUME_CLAIMS, PODS
from shoal.api.jobset import JOB_SETS, JobSet, names
from shoal.api.meta import Document
from shoal.kube import Client, NotFound
from shoal.kube.admission import (
    Change,
    Denied,
    Finding,
    Operation,
    ServiceEndpoint,
    UrlEndpoint,
    Webhook,
    Webhooks,
    mutating_configuration,
    validating_configuration,
)
from shoal.training.jobset.admission.defaults import defaulted
from shoal.training.jobset.admission.updates import update_problems
from shoal.training.jobset.admission.validation import job_set_findings, name_of
from shoal.training.jobset.admission.volumes import existing_claim_problems, templates
from shoal.training.jobset.claims import template_name
from shoal.training.jobset.placement import Place, is_exclusive, is_leader, leader_among, place_of, placed, refusal
from shoal.training.jobset.settings import JobSetSettings

CONFIGURATIONS: Final = {"mutating": "shoal-jobset-mutating", "validating": "shoal-jobset-validating"}
"""The objects that the webhooks are registered by."""

_PODS = PODS.documents()
_OF_JOB_SETS: Final = {"matchExpressions": [{"key": names.JOB_SET_NAME, "operator": "Exists"}]}
_ASKS_FOR_PLACEMENT: Final = {
    "name": "exclusive-placement",
    "expression": f"has(object.metadata.annotations) && '{names.EXCLUSIVE_TOPOLOGY}' in object.metadata.annotations",
}


@dataclass(frozen=True, kw_only=True)
class Lookups:
    """What admission has to know of other objects, read when it is asked for."""

    claim: Callable[[str, str], Awaitable[dict[str, Any] | None]]
    """The specification of a claim, by namespace and name."""
    leader: Callable[[Document], Awaitable[Place | None]]
    """Where the leader of a follower's Job is."""

    @classmethod
    def live(cls, client: Client) -> Lookups:
        """Asks the API server, so that what was made a moment ago is seen."""

        async def claim(namespace: str, name: str) -> dict[str, Any] | None:
            try:
                found = await client.get(PERSISTENT_VOLUME_CLAIMS.documents(), name, namespace)
            except NotFound:
                return None
            return found.content.get("spec") or {}

        async def leader(follower: Document) -> Place | None:
            metadata = follower.metadata
            key, owner = metadata.labels.get(names.JOB_KEY, ""), metadata.controller
            if owner is None:
                return None
            namespace = metadata.namespace or follower.content["metadata"].get("namespace", "")
            pods = await client.list(PODS, namespace, label_selector=f"{names.JOB_KEY}={key}")
            found = leader_among(pods.items, owner.uid)
            if found is None:
                return None
            try:
                node = await client.get(NODES, found.spec.node_name) if found.spec.node_name else None
            except NotFound:
                node = None
            return place_of(found, metadata.annotations[names.EXCLUSIVE_TOPOLOGY], node)

        return cls(claim=claim, leader=leader)


def job_set_webhooks(lookups: Lookups, settings: JobSetSettings) -> Webhooks:
    """All webhooks of JobSets."""
    webhooks = Webhooks()
    webhooks.defaulting(JOB_SETS, operations=("CREATE",))(defaulted)

    @webhooks.validating(JOB_SETS)
    async def sound_job_set(change: Change[JobSet]) -> Iterable[Finding]:
        if change.operation is not Operation.CREATE:
            return list(update_problems(change.object, change.old)) if change.old is not None else []
        found: list[Finding] = list(job_set_findings(change.object, settings))
        namespace = change.object.metadata.namespace or change.request.namespace
        name = name_of(change.object)
        existing = {}
        for claim in _claims(change.object, name):
            if (spec := await lookups.claim(namespace, claim)) is not None:
                existing[claim] = spec
        return [*found, *existing_claim_problems(change.object, name, existing)]

    @webhooks.mutating(_PODS, path="/jobset/mutate--v1-pod", operations=("CREATE",), object_selector=_OF_JOB_SETS)
    async def placed_pod(change: Change[Document]) -> Document:
        place = await lookups.leader(change.object) if _follows(change.object) else None
        return Document.of(placed(change.object.content, place))

    @webhooks.validating(
        _PODS,
        path="/jobset/validate--v1-pod",
        operations=("CREATE",),
        object_selector=_OF_JOB_SETS,
        match_conditions=(_ASKS_FOR_PLACEMENT,),
    )
    async def timely_pod(change: Change[Document]) -> Denied | None:
        if not _follows(change.object):
            return None
        why = refusal(change.object.content, await lookups.leader(change.object))
        return Denied(why) if why else None

    return webhooks


def webhook_configurations(
    webhooks: Iterable[Webhook], endpoint: ServiceEndpoint | UrlEndpoint, *, authorities: bytes = b""
) -> list[dict[str, Any]]:
    """The two objects by which an API server learns of these webhooks."""
    found = list(webhooks)
    built = {"mutating": mutating_configuration, "validating": validating_configuration}
    return [
        build(CONFIGURATIONS[kind], [each for each in found if each.kind == kind], endpoint, authorities=authorities)
        for kind, build in built.items()
    ]


def _claims(job_set: JobSet, name: str) -> Iterator[str]:
    for _, template in templates(job_set):
        yield names.claim_name(template_name(template), name)


def _follows(pod: Document) -> bool:
    annotations = pod.metadata.annotations
    return names.JOB_SET_NAME in annotations and is_exclusive(annotations) and not is_leader(annotations)
