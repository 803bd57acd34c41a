"""All controllers of the embedded cluster in one manager."""

from __future__ import annotations

from pathlib import Path

from shoal.api.meta import now
from shoal.cluster.controllers.accounts import add_accounts, signer_of
from shoal.cluster.controllers.autoscaling import add_autoscaling
from shoal.cluster.controllers.cron_jobs import add_cron_jobs
from shoal.cluster.controllers.daemon_sets import add_daemon_sets
from shoal.cluster.controllers.deployments import add_deployments
from shoal.cluster.controllers.disruption import add_disruption
from shoal.cluster.controllers.endpoint_slices import add_endpoint_slices
from shoal.cluster.controllers.endpoints import add_endpoints
from shoal.cluster.controllers.finished_jobs import add_finished_jobs
from shoal.cluster.controllers.garbage import add_garbage_collector
from shoal.cluster.controllers.jobs import add_jobs
from shoal.cluster.controllers.namespaces import add_namespaces
from shoal.cluster.controllers.node_lifecycle import add_node_lifecycle
from shoal.cluster.controllers.pod_gc import add_pod_gc
from shoal.cluster.controllers.quotas import add_quotas
from shoal.cluster.controllers.replica_sets import add_replica_sets
from shoal.cluster.controllers.stateful_sets import add_stateful_sets
from shoal.cluster.controllers.volumes import add_volumes
from shoal.cluster.keyring import Keyring
from shoal.kube import Manager


def add_controllers(manager: Manager, data_dir: Path) -> None:
    """Adds every controller; keys are read from the data dir, and volumes are folders in it."""
    keyring = Keyring(data_dir / "pki", now=now())
    add_accounts(manager, authority=keyring.authority, signer=signer_of(keyring))
    add_namespaces(manager)
    add_garbage_collector(manager)
    add_pod_gc(manager)
    add_quotas(manager)
    add_replica_sets(manager)
    add_deployments(manager)
    add_stateful_sets(manager)
    add_daemon_sets(manager)
    add_jobs(manager)
    add_finished_jobs(manager)
    add_cron_jobs(manager)
    add_disruption(manager)
    add_autoscaling(manager)
    add_endpoint_slices(manager)
    add_endpoints(manager)
    add_own_controllers(manager, data_dir)


def add_own_controllers(manager: Manager, data_dir: Path) -> None:
    """Adds those that a kube-controller-manager cannot stand in for.

    It knows neither the one lease that vouches for all simulated nodes, nor volumes that are folders.
    """
    add_node_lifecycle(manager)
    add_volumes(manager, folder=data_dir / "volumes")
