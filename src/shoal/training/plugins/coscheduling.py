"""CoScheduling: a PodGroup of the scheduler-plugins project."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from shoal.api.meta import Document, Resource
from shoal.api.trainer import TrainJob, names
from shoal.training.framework import Info, Plugin, Wanted, gang_of
from shoal.training.framework.resources import written
from shoal.training.plugins.pod_groups import group, with_marks

POD_GROUPS: Final = Resource(
    type=Document, group="scheduling.x-k8s.io", version="v1alpha1", kind="PodGroup", plural="podgroups"
)
_UNSERVED: Final = "install the scheduler plugins of Kubernetes, or take podGroupPolicy.coscheduling out of the runtime"


class CoScheduling(Plugin):
    """For runtimes with podGroupPolicy.coscheduling."""

    name = "CoScheduling"
    kinds = (POD_GROUPS,)

    def enforce_pod_group_policy(self, info: Info, train_job: TrainJob) -> Info:
        """The label by which pods are known."""
        if info.pod_group_policy is None or info.pod_group_policy.coscheduling is None:
            return info
        return with_marks(info, gang_of(info), labels={names.COSCHEDULING_LABEL: train_job.metadata.name})

    def build(self, info: Info, train_job: TrainJob) -> Iterable[Wanted]:
        """The PodGroup."""
        policy = info.pod_group_policy.coscheduling if info.pod_group_policy else None
        if policy is None:
            return
        gang = gang_of(info)
        spec = {
            "minMember": gang.minimum,
            "minResources": written(gang.resources),
            "scheduleTimeoutSeconds": policy.schedule_timeout_seconds,
        }
        yield group(POD_GROUPS, train_job.metadata.name, {"spec": spec}, train_job, unserved=_UNSERVED)
