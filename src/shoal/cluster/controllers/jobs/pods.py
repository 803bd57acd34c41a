"""The pods of a Job, as they are sent to the server."""

from __future__ import annotations

from typing import Any

from shoal.api.batch import (
    COMPLETION_INDEX,
    INDEX_FAILURE_COUNT,
    INDEX_IGNORED_FAILURE_COUNT,
    TRACKING_FINALIZER,
    Job,
    PodFailurePolicy,
)
from shoal.api.core import Pod
from shoal.cluster.controllers.jobs.failure_policy import verdict_on
from shoal.cluster.controllers.jobs.observed import failure_counts
from shoal.cluster.controllers.templates import pod_from_template

INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
LONGEST_PREFIX = 58
"""What a generated name leaves for its prefix."""


def wanted_pod(job: Job, index: int | None, *, replaces: Pod | None = None) -> dict[str, Any]:
    """The body of a pod; ``replaces`` is the failed pod of the same index whose count it carries on."""
    name = job.metadata.name
    prefix = f"{name}-" if index is None else indexed_prefix(name, index)
    pod = pod_from_template(job.spec.template, namespace=job.metadata.namespace, generate_name=prefix)
    metadata, spec = pod["metadata"], pod["spec"]
    finalizers = metadata.setdefault("finalizers", [])
    if TRACKING_FINALIZER not in finalizers:
        finalizers.append(TRACKING_FINALIZER)
    if index is None:
        return pod
    for kind in ("labels", "annotations"):
        metadata.setdefault(kind, {})[COMPLETION_INDEX] = str(index)
    spec["hostname"] = f"{name}-{index}"
    for container in [*spec.get("initContainers", ()), *spec.get("containers", ())]:
        _tell_index(container)
    if job.spec.backoff_limit_per_index is not None:
        against, ignored = carried_counts(replaces, job.spec.pod_failure_policy)
        metadata["annotations"][INDEX_FAILURE_COUNT] = str(against)
        if ignored:
            metadata["annotations"][INDEX_IGNORED_FAILURE_COUNT] = str(ignored)
    return pod


def indexed_prefix(name: str, index: int) -> str:
    """What the name of an index's pod begins with; a long name is cut, never the index."""
    ending = f"-{index}-"
    return name[: LONGEST_PREFIX - len(ending)] + ending


def carried_counts(replaces: Pod | None, policy: PodFailurePolicy | None) -> tuple[int, int]:
    """How many failures of the index count before a new pod of it, and how many were ignored."""
    if replaces is None:
        return 0, 0
    against, ignored = failure_counts(replaces)
    counts = verdict_on(replaces, policy).counts
    return against + counts, ignored + (not counts)


def _tell_index(container: dict[str, Any]) -> None:
    variables = container.setdefault("env", [])
    if all(variable.get("name") != INDEX_VARIABLE for variable in variables):
        source = {"fieldRef": {"fieldPath": f"metadata.labels['{COMPLETION_INDEX}']"}}
        variables.append({"name": INDEX_VARIABLE, "valueFrom": source})
