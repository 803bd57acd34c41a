"""The apps group: built-in workloads that controllers of ours write."""

from __future__ import annotations

from shoal.api.meta.objects import Document
from shoal.api.meta.resource import Resource

DEPLOYMENTS = Resource(type=Document, group="apps", version="v1", kind="Deployment", plural="deployments")
REPLICA_SETS = Resource(type=Document, group="apps", version="v1", kind="ReplicaSet", plural="replicasets")
STATEFUL_SETS = Resource(type=Document, group="apps", version="v1", kind="StatefulSet", plural="statefulsets")
