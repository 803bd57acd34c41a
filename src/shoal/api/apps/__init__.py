"""The apps group: the built-in workloads, each in a module of its own."""

from shoal.api.apps.daemon_sets import DAEMON_SETS, DaemonSet, DaemonSetSpec, DaemonSetStatus
from shoal.api.apps.deployments import (
    DEPLOYMENTS,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    POD_TEMPLATE_HASH,
    RECREATE,
    REVISION,
    REVISION_HISTORY,
    ROLLING_UPDATE,
    Deployment,
    DeploymentCondition,
    DeploymentSpec,
    DeploymentStatus,
    DeploymentStrategy,
    RollingUpdate,
)
from shoal.api.apps.replica_sets import REPLICA_SETS, ReplicaSet, ReplicaSetSpec, ReplicaSetStatus
from shoal.api.apps.revisions import CONTROLLER_REVISIONS, REVISION_HASH, ControllerRevision
from shoal.api.apps.stateful_sets import STATEFUL_SETS, StatefulSet, StatefulSetSpec, StatefulSetStatus

__all__ = [
    "CONTROLLER_REVISIONS",
    "DAEMON_SETS",
    "DEPLOYMENTS",
    "DESIRED_REPLICAS",
    "MAX_REPLICAS",
    "POD_TEMPLATE_HASH",
    "RECREATE",
    "REPLICA_SETS",
    "REVISION",
    "REVISION_HASH",
    "REVISION_HISTORY",
    "ROLLING_UPDATE",
    "STATEFUL_SETS",
    "ControllerRevision",
    "DaemonSet",
    "DaemonSetSpec",
    "DaemonSetStatus",
    "Deployment",
    "DeploymentCondition",
    "DeploymentSpec",
    "DeploymentStatus",
    "DeploymentStrategy",
    "ReplicaSet",
    "ReplicaSetSpec",
    "ReplicaSetStatus",
    "RollingUpdate",
    "StatefulSet",
    "StatefulSetSpec",
    "StatefulSetStatus",
]
