"""Pods, pod templates, and the workloads that make pods: their defaults, preparation and validation.

``RULES`` has them by group and kind; ``binding``, ``resize`` and ``eviction`` are what the subresources of pods do.
"""

from __future__ import annotations

from collections.abc import Mapping

from shoal.cluster.apiserver.builtin.workloads.binding import bind, validate_binding
from shoal.cluster.apiserver.builtin.workloads.controllers import (
    CONTROLLER_REVISION,
    POD_TEMPLATE,
    REPLICATION_CONTROLLER,
)
from shoal.cluster.apiserver.builtin.workloads.cron_jobs import CRON_JOB
from shoal.cluster.apiserver.builtin.workloads.deployments import DEPLOYMENT, REPLICA_SET
from shoal.cluster.apiserver.builtin.workloads.eviction import (
    Eviction,
    evicted,
    eviction_blocked,
    still_processed,
)
from shoal.cluster.apiserver.builtin.workloads.jobs import JOB
from shoal.cluster.apiserver.builtin.workloads.pod_updates import (
    prepare_ephemeral_containers,
    validate_ephemeral_containers_update,
)
from shoal.cluster.apiserver.builtin.workloads.pods import POD, grace_seconds
from shoal.cluster.apiserver.builtin.workloads.resize import prepare_resize, validate_resize
from shoal.cluster.apiserver.builtin.workloads.stateful_sets import DAEMON_SET, STATEFUL_SET
from shoal.cluster.apiserver.kinds.kind import Rules

__all__ = [
    "RULES",
    "Eviction",
    "bind",
    "evicted",
    "eviction_blocked",
    "grace_seconds",
    "prepare_ephemeral_containers",
    "prepare_resize",
    "still_processed",
    "validate_binding",
    "validate_ephemeral_containers_update",
    "validate_resize",
]

RULES: Mapping[tuple[str, str], Rules] = {
    ("", "Pod"): POD,
    ("", "PodTemplate"): POD_TEMPLATE,
    ("", "ReplicationController"): REPLICATION_CONTROLLER,
    ("apps", "ControllerRevision"): CONTROLLER_REVISION,
    ("apps", "DaemonSet"): DAEMON_SET,
    ("apps", "Deployment"): DEPLOYMENT,
    ("apps", "ReplicaSet"): REPLICA_SET,
    ("apps", "StatefulSet"): STATEFUL_SET,
    ("batch", "CronJob"): CRON_JOB,
    ("batch", "Job"): JOB,
}
