"""Volcano: a PodGroup of scheduling.volcano.sh, in the queue that the runtime's template names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from shoal.api.scheduling_volcano_sh import POD_GROUPS
from shoal.api.trainer import TrainJob, names
from shoal.training.framework import Info, Plugin, Wanted, gang_of
from shoal.training.framework.resources import written
from shoal.training.plugins.pod_groups import group, with_marks

_UNSERVED: Final = "install Volcano, or take podGroupPolicy.volcano out of the runtime"


class Volcano(Plugin):
    """For runtimes with podGroupPolicy.volcano. Who schedules pods is for their template to say."""

    name = "Volcano"
    kinds = (POD_GROUPS.documents(),)

    def enforce_pod_group_policy(self, info: Info, train_job: TrainJob) -> Info:
        """The annotation by which pods are known."""
        if info.pod_group_policy is None or info.pod_group_policy.volcano is None:
            return info
        return with_marks(info, gang_of(info), annotations={names.VOLCANO_GROUP_ANNOTATION: train_job.metadata.name})

    def build(self, info: Info, train_job: TrainJob) -> Iterable[Wanted]:
        """The PodGroup."""
        policy = info.pod_group_policy.volcano if info.pod_group_policy else None
        if policy is None:
            return
        gang = gang_of(info)
        spec: dict[str, Any] = {"minMember": gang.minimum, "minResources": written(gang.resources)}
        if queue := info.annotations.get(names.VOLCANO_QUEUE_ANNOTATION):
            spec["queue"] = queue
        if priorities := [pods.priority_class for pods in info.pod_sets if pods.priority_class]:
            spec["priorityClassName"] = priorities[-1]
        if (topology := policy.network_topology) is not None:
            spec["networkTopology"] = {
                "mode": topology.mode,
                "highestTierAllowed": topology.highest_tier_allowed,
            }
        yield group(POD_GROUPS, train_job.metadata.name, {"spec": spec}, train_job, unserved=_UNSERVED)
