"""What is wrong with a JobSet's volume claims: their names, who mounts them, and claims that are there already."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from shoal.api.jobset import JobSet, names
from shoal.api.meta import LABEL_LIMIT, dns1123_subdomain_problems
from shoal.kube.admission import FieldProblem, duplicate, invalid
from shoal.training.jobset.admission.sameness import canonical
from shoal.training.jobset.claims import mounts_of, template_name

POLICIES: Final = "spec.volumeClaimPolicies"


def claim_problems(job_set: JobSet, name: str) -> Iterator[FieldProblem]:
    """What is wrong with the templates of a JobSet of this name."""
    pods = [each.pod_template.get("spec") or {} for each in job_set.spec.replicated_jobs]
    mounted = frozenset[str]().union(*map(mounts_of, pods))
    seen: set[str] = set()
    for place, template in templates(job_set):
        claim = template_name(template)
        where = f"{place}.metadata.name"
        if claim in seen:
            yield duplicate(where, claim)
        seen.add(claim)
        for problem in dns1123_subdomain_problems(claim):
            yield invalid(where, claim, problem)
        if len(names.claim_name(claim, name)) > LABEL_LIMIT:
            said = f"the claim's name, {names.claim_name(claim, name)}, has more than {LABEL_LIMIT} characters"
            yield invalid(where, claim, f"{said}: shorten it or the JobSet's name")
        if claim not in mounted:
            said = "replicatedJob containers don't have a matching volumeMount: mount it, or take the template out"
            yield invalid(where, claim, said)
        yield from _clashes(pods, claim)


def existing_claim_problems(
    job_set: JobSet, name: str, existing: Mapping[str, dict[str, Any]]
) -> Iterator[FieldProblem]:
    """What keeps a JobSet from using claims that are there already, given by name with their specifications."""
    for index, policy in enumerate(job_set.spec.volume_claim_policies):
        for number, template in enumerate(policy.templates):
            claim = names.claim_name(template_name(template), name)
            if claim not in existing:
                continue
            place = f"{POLICIES}[{index}]"
            wanted, found = canonical(template.get("spec") or {}), canonical(existing[claim])
            # The server has filled in the rest: the class, the volume.
            if any(found.get(key) != value for key, value in wanted.items()):
                said = f"differs from PersistentVolumeClaim {claim}, which exists: delete that, or ask for the same"
                yield invalid(f"{place}.templates[{number}].spec", template.get("spec"), said)
            if not policy.is_retained:
                said = f"must be Retain where the claim exists, and PersistentVolumeClaim {claim} does"
                yield invalid(f"{place}.retentionPolicy.whenDeleted", "Delete", said)


def templates(job_set: JobSet) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every template with its place."""
    for index, policy in enumerate(job_set.spec.volume_claim_policies):
        for number, template in enumerate(policy.templates):
            yield f"{POLICIES}[{index}].templates[{number}]", template


def _clashes(pods: list[dict[str, Any]], claim: str) -> Iterator[FieldProblem]:
    for index, pod in enumerate(pods):
        for number, volume in enumerate(pod.get("volumes") or []):
            if volume.get("name") == claim:
                place = f"spec.replicatedJobs[{index}].template.spec.template.spec.volumes[{number}].name"
                yield invalid(place, claim, f"volume name conflicts with VolumeClaimPolicy template name: {claim}")
