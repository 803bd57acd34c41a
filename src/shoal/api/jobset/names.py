"""Every name, label and annotation of a JobSet's objects.

Names are made here and never taken apart: what belongs together is found by label and owner.
"""

from __future__ import annotations

import hashlib
from typing import Final

GROUP: Final = "jobset.x-k8s.io"
PREFIX: Final = "jobset.sigs.k8s.io"

CONTROLLER: Final = f"{PREFIX}/jobset-controller"
"""Who looks after a JobSet that names nobody in ``managedBy``."""

# Labels, and annotations, of child Jobs and of their pods.
JOB_SET_NAME: Final = f"{PREFIX}/jobset-name"
JOB_SET_UID: Final = f"{PREFIX}/jobset-uid"
REPLICATED_JOB_NAME: Final = f"{PREFIX}/replicatedjob-name"
REPLICATED_JOB_REPLICAS: Final = f"{PREFIX}/replicatedjob-replicas"
GLOBAL_REPLICAS: Final = f"{PREFIX}/global-replicas"
RESTART_ATTEMPT: Final = f"{PREFIX}/restart-attempt"
JOB_RESTART_ATTEMPT: Final = f"{PREFIX}/job-restart-attempt"
JOB_INDEX: Final = f"{PREFIX}/job-index"
JOB_KEY: Final = f"{PREFIX}/job-key"
JOB_GLOBAL_INDEX: Final = f"{PREFIX}/job-global-index"
GROUP_NAME: Final = f"{PREFIX}/group-name"
GROUP_REPLICAS: Final = f"{PREFIX}/group-replicas"
JOB_GROUP_INDEX: Final = f"{PREFIX}/job-group-index"
COORDINATOR: Final = f"{PREFIX}/coordinator"

EXCLUSIVE_TOPOLOGY: Final = f"alpha.{PREFIX}/exclusive-topology"
"""Annotation of a JobSet or a Job template: one child Job for each domain of this topology key."""
PRIORITY: Final = f"{PREFIX}/priority"
"""Label of pods: their priority, within which placement is exclusive."""
IN_PLACE_ATTEMPT: Final = f"{PREFIX}/in-place-restart-attempt"
"""Annotation of pods: which attempt their agent has them in, where JobSets are restarted in place."""
NODE_SELECTOR_STRATEGY: Final = f"alpha.{PREFIX}/node-selector"
"""Annotation: the exclusive nodes are labelled and tainted beforehand, so pods select them by their Job."""
NAMESPACED_JOB: Final = f"alpha.{PREFIX}/namespaced-job"
"""The label that such nodes have, with ``<namespace>_<job>`` for its value."""
NO_SCHEDULE_TAINT: Final = f"alpha.{PREFIX}/no-schedule"
"""The taint that such nodes have."""


def job_name(job_set: str, replicated_job: str, index: int) -> str:
    """A child Job's name."""
    return f"{job_set}-{replicated_job}-{index}"


def pod_host_name(job: str, pod_index: int) -> str:
    """The host name of a pod of an Indexed Job, which is the first part of its address."""
    return f"{job}-{pod_index}"


def claim_name(template: str, job_set: str) -> str:
    """The name of the claim that a template of a JobSet's volume claim policies means."""
    return f"{template}-{job_set}"


def coordinator_address(job_set: str, replicated_job: str, job_index: int, pod_index: int, subdomain: str) -> str:
    """Where the coordinator's pod is found."""
    return f"{pod_host_name(job_name(job_set, replicated_job, job_index), pod_index)}.{subdomain}"


def job_key(namespace: str, job: str) -> str:
    """A fixed-size value that tells a child Job from all others in the cluster, fit for a label."""
    return hashlib.sha1(f"{namespace}/{job}".encode(), usedforsecurity=False).hexdigest()


def namespaced_job(namespace: str, job: str) -> str:
    """A Job's value of the ``NAMESPACED_JOB`` label."""
    return f"{namespace}_{job}"
