"""Ray: the head and the workers of a cluster start together, a part for each group of nodes.

The pods of a RayJob or RayService are those of the RayCluster that is made for it, which is where their numbers are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from shoal.api import kai_names
from shoal.api.scheduling_run_ai import SubGroup, TopologyConstraint
from shoal.scheduler.grouper.base import flat_group
from shoal.scheduler.grouper.case import Case
from shoal.scheduler.grouper.fields import Json, Ungroupable, at, count, described, group_kind, mapping, number, text
from shoal.scheduler.grouper.kinds.reference import Reference
from shoal.scheduler.grouper.pods import GroupedPod
from shoal.scheduler.grouper.wanted import GroupWanted, annotated_constraint

NODE_GROUP: Final = "ray.io/group"
"""The label of Ray's pods that names their group of nodes."""
PRIORITY_CLASS: Final = "ray.io/priority-class-name"
HEAD: Final = "headgroup"

_CLUSTER: Final = ("ray.io", "RayCluster")
_CLUSTER_NAMES: Final = (
    ("status", "rayClusterName"),
    ("status", "activeServiceStatus", "rayClusterName"),
    ("status", "pendingServiceStatus", "rayClusterName"),
)
_CLUSTER_SPECS: Final = ("rayClusterSpec", "rayClusterConfig")
_WORKERS: Final = ("spec", "workerGroupSpecs")


def ray(case: Case) -> GroupWanted:
    """One head, and of each group of workers its minimum, or all of it where it has none."""
    parts = _parts(_cluster_of(case))
    named = frozenset(part.name for part in parts)

    def part_of(pod: GroupedPod) -> str:
        group = pod.metadata.labels.get(NODE_GROUP, "")
        return group if group in named else ""

    minimum = sum(part.min_member or 0 for part in parts)
    return replace(flat_group(case, labels=(PRIORITY_CLASS,)), min_member=minimum, sub_groups=parts, part_of=part_of)


def ray_cluster_beside(case: Case) -> Reference | None:
    """The cluster of pods that do not lie below it, such as the one that submits a RayJob."""
    if any(group_kind(owner) == _CLUSTER for owner in case.owners):
        return None
    name = next(iter(cluster_names(case.top)), "")
    return Reference(api_version=case.top["apiVersion"], kind=_CLUSTER[1], name=name) if name else None


def cluster_names(owner: Json) -> tuple[str, ...]:
    """The clusters that a RayJob or RayService says are its own, the one in use first."""
    found = (at(owner, *path) for path in _CLUSTER_NAMES)
    return tuple(name for name in found if name and isinstance(name, str))


def _cluster_of(case: Case) -> Json:
    """The RayCluster of a pod, or what it is going to be."""
    below = next((owner for owner in case.owners if group_kind(owner) == _CLUSTER), case.beside)
    if below is not None:
        return below
    for field in _CLUSTER_SPECS:
        if spec := at(case.top, "spec", field):
            return {**case.top, "spec": spec}
    raise Ungroupable(f"the RayCluster of {described(case.top)} is not known yet: is Ray's operator running?")


def _parts(cluster: Json) -> tuple[SubGroup, ...]:
    head = SubGroup(name=HEAD, min_member=1, topology_constraint=_placement(cluster, "spec", "headGroupSpec"))
    workers = (_worker_part(cluster, index) for index in range(count(cluster, *_WORKERS)))
    return (head, *(part for part in workers if part is not None))


def _worker_part(cluster: Json, index: int) -> SubGroup | None:
    """One group of workers; None where it has no pods."""
    path = (*_WORKERS, index)
    name = text(cluster, *path, "groupName") or f"worker-group-{index}"
    replicas, minimum = number(cluster, *path, "replicas") or 0, number(cluster, *path, "minReplicas") or 0
    if at(cluster, *path, "suspended") is True or not (replicas or minimum):
        return None
    if minimum > replicas:
        raise Ungroupable(
            f"the workers {name!r} of {described(cluster)} have {replicas} replicas and a minReplicas of {minimum}: "
            "raise replicas"
        )
    hosts = number(cluster, *path, "numOfHosts")
    pods = (minimum or replicas) * (1 if hosts is None else hosts)
    return SubGroup(name=name, min_member=pods, topology_constraint=_placement(cluster, *path))


def _placement(cluster: Json, *path: str | int) -> TopologyConstraint | None:
    """What the template of a group of nodes says of where it runs."""
    found = annotated_constraint(dict(mapping(cluster, *path, "template", "metadata", "annotations")))
    if found is None or not (found.required_topology_level or found.preferred_topology_level):
        return None
    if not found.topology:
        raise Ungroupable(
            f"a group of nodes of {described(cluster)} asks for a placement and does not say in which topology: set "
            f"annotation {kai_names.TOPOLOGY} beside it"
        )
    return found
