"""The headless service under which a JobSet's pods are found by name."""

from __future__ import annotations

from typing import Any

from shoal.api.jobset import JobSet, names


def wanted_service(job_set: JobSet) -> dict[str, Any] | None:
    """The service; None where pods have no names."""
    network = job_set.spec.network
    if network is None or not job_set.has_dns:
        return None
    publishes = network.publish_not_ready_addresses
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": job_set.subdomain, "namespace": job_set.metadata.namespace},
        "spec": {
            "clusterIP": "None",
            "selector": {names.JOB_SET_NAME: job_set.metadata.name},
            "publishNotReadyAddresses": True if publishes is None else publishes,
        },
    }
