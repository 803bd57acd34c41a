"""scheduling.volcano.sh: Volcano's PodGroups, and the queues that they wait in.

Volcano serves them; Shoal writes PodGroups and reads Queues. The shapes are those of 1.14, which knows groups within a
group.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from shoal.api.crd import Column, CustomResource, Int32, Version, field_schema
from shoal.api.meta import LabelSelector, Object, Resource, ResourceList, Wire

GROUP = "scheduling.volcano.sh"
OPEN = "Open"
"""The state of a queue that takes PodGroups."""

_NAME_LENGTH = 253
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME_PATTERN = rf"^{_LABEL}(\.{_LABEL})*$"


class NetworkTopology(Wire, frozen=True, kw_only=True):
    """How far apart pods may be."""

    mode: Annotated[
        Literal["hard", "soft"] | None, field_schema("Whether they wait for such a place.", default="hard")
    ] = None
    highest_tier_allowed: Annotated[int | None, field_schema("The widest tier, by number.", minimum=0)] = None
    highest_tier_name: Annotated[str, field_schema("The widest tier, by name.", max_length=_NAME_LENGTH)] = ""


class SubGroupPolicy(Wire, frozen=True, kw_only=True):
    """Pods of a group that are groups themselves."""

    name: Annotated[str, field_schema("Unique in the PodGroup.", max_length=_NAME_LENGTH)] = ""
    label_selector: Annotated[LabelSelector | None, field_schema("Which of its pods.")] = None
    match_label_keys: Annotated[
        list[str], field_schema("Pods with one value of these labels are one group.", list_type="atomic")
    ] = []
    sub_group_size: Annotated[
        Int32 | None, field_schema("Pods of one group that start together.", minimum=1, default=1)
    ] = None
    min_sub_groups: Annotated[Int32 | None, field_schema("Groups that start together.", minimum=0, default=0)] = None
    network_topology: Annotated[NetworkTopology | None, field_schema("How far apart the pods of one may be.")] = None


class PodGroupSpec(Wire, frozen=True, kw_only=True):
    """What starts together, and where it waits."""

    min_member: Annotated[Int32 | None, field_schema("Pods that start together.", minimum=0)] = None
    min_task_member: Annotated[dict[str, Int32], field_schema("Pods that start together, task by task.")] = {}
    min_resources: Annotated[ResourceList, field_schema("What they need, all together.")] = {}
    queue: Annotated[
        str,
        field_schema("Where it waits.", max_length=_NAME_LENGTH, pattern=_NAME_PATTERN, default="default"),
    ] = ""
    priority_class_name: Annotated[str, field_schema("Its PriorityClass.", max_length=_NAME_LENGTH)] = ""
    network_topology: Annotated[NetworkTopology | None, field_schema("How far apart all of its pods may be.")] = None
    sub_group_policy: Annotated[list[SubGroupPolicy], field_schema("The groups within it.")] = []


class PodGroupCondition(Wire, frozen=True, kw_only=True):
    """One aspect of a group's state."""

    type: Annotated[str, field_schema("The aspect.")] = ""
    status: Annotated[str, field_schema("Whether it holds.")] = ""
    transition_id: Annotated[str, field_schema("The scheduler's cycle in which it changed.")] = msgspec.field(
        name="transitionID", default=""
    )
    last_transition_time: Annotated[datetime | None, field_schema("When it last changed.")] = None
    reason: Annotated[str, field_schema("Why, in one word.")] = ""
    message: Annotated[str, field_schema("Why, for people.")] = ""


class PodGroupStatus(Wire, frozen=True, kw_only=True):
    """How far a group is."""

    phase: Annotated[
        str, field_schema("How far it is.", enum=("Pending", "Running", "Unknown", "Inqueue", "Completed"))
    ] = ""
    conditions: Annotated[list[PodGroupCondition], field_schema("Its state.")] = []
    running: Annotated[Int32, field_schema("Pods that run.", minimum=0)] = 0
    succeeded: Annotated[Int32, field_schema("Pods that have succeeded.", minimum=0)] = 0
    failed: Annotated[Int32, field_schema("Pods that have failed.", minimum=0)] = 0


class PodGroup(Object, frozen=True, kw_only=True):
    """Pods that start together or not at all."""

    spec: Annotated[PodGroupSpec, field_schema("What is asked for.")] = PodGroupSpec()
    status: Annotated[PodGroupStatus, field_schema("What there is.")] = PodGroupStatus()


class NodeGroupAffinity(Wire, frozen=True, kw_only=True):
    """Groups of nodes by how much they are wanted."""

    required_during_scheduling_ignored_during_execution: Annotated[
        list[str], field_schema("These, and no others.")
    ] = []
    preferred_during_scheduling_ignored_during_execution: Annotated[
        list[str], field_schema("These, where that can be had.")
    ] = []


class QueueAffinity(Wire, frozen=True, kw_only=True):
    """On which groups of nodes a queue's pods run."""

    node_group_affinity: Annotated[NodeGroupAffinity | None, field_schema("Groups of nodes to run on.")] = None
    node_group_anti_affinity: Annotated[NodeGroupAffinity | None, field_schema("Groups of nodes to keep off.")] = None


class ExtendCluster(Wire, frozen=True, kw_only=True):
    """Another cluster that a queue's work may go to."""

    name: Annotated[str, field_schema("The cluster.")] = ""
    weight: Annotated[Int32 | None, field_schema("Its weight among the others.")] = None
    capacity: Annotated[ResourceList, field_schema("What it has.")] = {}


class Guarantee(Wire, frozen=True, kw_only=True):
    """What is kept for a queue."""

    resource: Annotated[ResourceList, field_schema("How much of each resource.")] = {}


class QueueSpec(Wire, frozen=True, kw_only=True):
    """A queue's part of the cluster."""

    weight: Annotated[
        Int32 | None, field_schema("Its weight among the others.", minimum=1, maximum=65535, default=1)
    ] = None
    priority: Annotated[Int32 | None, field_schema("Higher ones come first.", minimum=0)] = None
    parent: Annotated[str, field_schema("The queue above.", max_length=_NAME_LENGTH, pattern=_NAME_PATTERN)] = ""
    type: Annotated[str, field_schema("What it is for.", max_length=_NAME_LENGTH)] = ""
    capability: Annotated[ResourceList, field_schema("What it may never exceed.")] = {}
    deserved: Annotated[ResourceList, field_schema("What it may take back from others.")] = {}
    guarantee: Annotated[Guarantee | None, field_schema("What is kept for it.")] = None
    reclaimable: Annotated[bool | None, field_schema("Whether others may take back what they deserve.")] = None
    dequeue_strategy: Annotated[
        str,
        field_schema("Whether what fits may pass what does not.", enum=("fifo", "traverse"), default="traverse"),
    ] = ""
    affinity: Annotated[QueueAffinity | None, field_schema("On which groups of nodes its pods run.")] = None
    extend_clusters: Annotated[list[ExtendCluster], field_schema("Other clusters that its work may go to.")] = []


class Reservation(Wire, frozen=True, kw_only=True):
    """Nodes that are locked for a queue."""

    nodes: Annotated[list[str], field_schema("The nodes.")] = []
    resource: Annotated[ResourceList, field_schema("What they have.")] = {}


class QueueStatus(Wire, frozen=True, kw_only=True):
    """What is in a queue."""

    state: Annotated[str, field_schema("Whether it takes work.", enum=(OPEN, "Closed", "Closing", "Unknown"))] = ""
    pending: Annotated[Int32, field_schema("PodGroups that wait to be let in.", minimum=0)] = 0
    inqueue: Annotated[Int32, field_schema("PodGroups that wait for room.", minimum=0)] = 0
    running: Annotated[Int32, field_schema("PodGroups that run.", minimum=0)] = 0
    completed: Annotated[Int32, field_schema("PodGroups that are done.", minimum=0)] = 0
    unknown: Annotated[Int32, field_schema("PodGroups that run in part.", minimum=0)] = 0
    allocated: Annotated[ResourceList, field_schema("What they have.")] = {}
    reservation: Annotated[Reservation | None, field_schema("Nodes that are locked for it.")] = None


class Queue(Object, frozen=True, kw_only=True):
    """Where PodGroups wait."""

    spec: Annotated[QueueSpec, field_schema("Its part of the cluster.")] = QueueSpec()
    status: Annotated[QueueStatus, field_schema("What is in it.")] = QueueStatus()


POD_GROUPS = Resource(type=PodGroup, group=GROUP, version="v1beta1", kind="PodGroup", plural="podgroups")
QUEUES = Resource(type=Queue, group=GROUP, version="v1beta1", kind="Queue", plural="queues", namespaced=False)

DEFINITIONS = (
    CustomResource(
        versions=(
            Version(
                resource=POD_GROUPS,
                columns=(
                    Column(name="STATUS", path=".status.phase"),
                    Column(name="minMember", path=".spec.minMember", type="integer"),
                    Column(name="RUNNINGS", path=".status.running", type="integer"),
                    Column(name="AGE", path=".metadata.creationTimestamp", type="date"),
                    Column(name="QUEUE", path=".spec.queue", priority=1),
                ),
            ),
        ),
        short_names=("pg", "podgroup-v1beta1"),
    ),
    CustomResource(
        versions=(Version(resource=QUEUES, status=True, columns=(Column(name="PARENT", path=".spec.parent"),)),),
        short_names=("q", "queue-v1beta1"),
    ),
)
