"""Objects of every kind in the states that tables tell apart."""

from __future__ import annotations

from tests.cluster.apiserver.tables.access_objects import access_cases
from tests.cluster.apiserver.tables.cases import Case
from tests.cluster.apiserver.tables.cluster_objects import cluster_cases, event_cases
from tests.cluster.apiserver.tables.network_objects import network_cases
from tests.cluster.apiserver.tables.pod_objects import pod_cases
from tests.cluster.apiserver.tables.storage_objects import device_cases, storage_cases
from tests.cluster.apiserver.tables.workload_objects import autoscaler_cases, job_cases, workload_cases


def all_cases(namespace: str) -> list[Case]:
    """Every case; names of objects outside the namespace begin with its name."""
    return [
        *pod_cases(),
        *workload_cases(),
        *job_cases(),
        *autoscaler_cases(),
        *network_cases(namespace),
        *storage_cases(namespace),
        *cluster_cases(namespace),
        *event_cases(namespace),
        *access_cases(namespace),
        *device_cases(namespace),
    ]
