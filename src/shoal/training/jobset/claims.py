"""The volume claims that a JobSet's Jobs share, and the volumes by which pods have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from shoal.api.jobset import JobSet, names


@dataclass(frozen=True)
class WantedClaim:
    """A claim; one that is kept outlives its JobSet, and so is not owned by it."""

    name: str
    body: dict[str, Any]
    is_kept: bool


def wanted_claims(job_set: JobSet) -> Iterator[WantedClaim]:
    """The claims of all policies."""
    for policy in job_set.spec.volume_claim_policies:
        for template in policy.templates:
            own = template.get("metadata") or {}
            name = names.claim_name(template_name(template), job_set.metadata.name)
            metadata: dict[str, Any] = {
                "name": name,
                "namespace": job_set.metadata.namespace,
                "labels": {**(own.get("labels") or {}), names.JOB_SET_NAME: job_set.metadata.name},
            }
            if own.get("annotations"):
                metadata["annotations"] = own["annotations"]
            spec = template.get("spec") or {}
            body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
            yield WantedClaim(name, body, policy.is_retained)


def mounted_volumes(job_set: JobSet, pod_spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The volumes for those claims that a container of the pod mounts, by the names of their templates."""
    mounted = mounts_of(pod_spec)
    return [
        {"name": name, "persistentVolumeClaim": {"claimName": names.claim_name(name, job_set.metadata.name)}}
        for policy in job_set.spec.volume_claim_policies
        for template in policy.templates
        if (name := template_name(template)) in mounted
    ]


def mounts_of(pod_spec: Mapping[str, Any]) -> frozenset[str]:
    """The volumes that a pod's containers mount, by name."""
    containers = [*(pod_spec.get("containers") or []), *(pod_spec.get("initContainers") or [])]
    return frozenset(
        str(mount.get("name", "")) for container in containers for mount in container.get("volumeMounts") or []
    )


def template_name(template: Mapping[str, Any]) -> str:
    """What a template of claims is called: what mounts name, and the beginning of the claim's name."""
    return str((template.get("metadata") or {}).get("name", ""))
