"""scheduling.sigs.k8s.io: PodGroups as Koordinator and the scheduler plugins of Kubernetes read them.

Koordinator serves them; Shoal writes them. What makes several of them one gang is said by annotations.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from shoal.api.crd import CustomResource, Int32, Version, field_schema
from shoal.api.meta import Object, Resource, ResourceList, Wire

GROUP = "scheduling.sigs.k8s.io"


class PodGroupSpec(Wire, frozen=True, kw_only=True):
    """How many pods start together, and how long they wait for each other."""

    min_member: Annotated[Int32 | None, field_schema("Pods that start together.")] = None
    min_resources: Annotated[ResourceList, field_schema("What they need, all together.")] = {}
    schedule_timeout_seconds: Annotated[Int32 | None, field_schema("How long pods wait for the others.")] = None


class PodGroupStatus(Wire, frozen=True, kw_only=True):
    """How far a group is."""

    phase: Annotated[str, field_schema("How far it is, in one word.")] = ""
    occupied_by: Annotated[str, field_schema("The workload whose pods they are.")] = ""
    scheduled: Annotated[Int32, field_schema("Pods that have a node.")] = 0
    running: Annotated[Int32, field_schema("Pods that run.")] = 0
    succeeded: Annotated[Int32, field_schema("Pods that have succeeded.")] = 0
    failed: Annotated[Int32, field_schema("Pods that have failed.")] = 0
    schedule_start_time: Annotated[datetime | None, field_schema("When the first was looked at.")] = None


class PodGroup(Object, frozen=True, kw_only=True):
    """Pods that start together or not at all."""

    spec: Annotated[PodGroupSpec, field_schema("What is asked for.")] = PodGroupSpec()
    status: Annotated[PodGroupStatus, field_schema("What there is.")] = PodGroupStatus()


POD_GROUPS = Resource(type=PodGroup, group=GROUP, version="v1alpha1", kind="PodGroup", plural="podgroups")

# Groups under k8s.io need the community's word for it.
_APPROVED = {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/scheduler-plugins/pull/52"}

DEFINITIONS = (CustomResource(versions=(Version(resource=POD_GROUPS),), annotations=_APPROVED),)
