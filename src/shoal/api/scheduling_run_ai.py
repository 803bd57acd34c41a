"""scheduling.run.ai: queues, the gangs that wait in them, and the binder's orders.

The scheduler shares a cluster out along the tree of Queues, starts a PodGroup as a whole or not at all, and leaves one
BindRequest for each pod it placed.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec

from shoal.api.crd import DNS_LABEL_PATTERN, Column, CustomResource, Int32, Version, field_schema
from shoal.api.meta.objects import Object, Wire
from shoal.api.meta.quantity import ResourceList
from shoal.api.meta.resource import Resource
from shoal.api.resource_k8s_io import AllocationResult, DeviceRequest

GROUP = "scheduling.run.ai"


class QueueResource(Wire, frozen=True, kw_only=True):
    """A queue's part of one resource; -1 is unlimited."""

    quota: Annotated[float | None, field_schema("What the queue is guaranteed; 0 when unset.")] = None
    over_quota_weight: Annotated[
        float | None, field_schema("The queue's weight when the surplus is divided; 0 when unset.")
    ] = None
    limit: Annotated[
        float | None, field_schema("What the queue may never exceed; 0, which is nothing, when unset.")
    ] = None


class QueueResources(Wire, frozen=True, kw_only=True):
    """A queue's part of each resource."""

    gpu: Annotated[QueueResource, field_schema("GPUs, in devices and fractions of them.")] = QueueResource()
    cpu: Annotated[QueueResource, field_schema("CPU, in thousandths of a core.")] = QueueResource()
    memory: Annotated[QueueResource, field_schema("Memory, in megabytes of 1,000,000 bytes.")] = QueueResource()


class QueueSpec(Wire, frozen=True, kw_only=True):
    """A queue's place in the tree and its part of the cluster."""

    display_name: Annotated[str, field_schema("The name that people see.")] = ""
    parent_queue: Annotated[str, field_schema("The queue above; empty at the root.")] = ""
    resources: Annotated[QueueResources | None, field_schema("The queue's part of each resource.")] = None
    priority: Annotated[
        int | None, field_schema("The surplus goes to the higher first, evictions begin at the lower; 100 when unset.")
    ] = None
    preempt_min_runtime: Annotated[
        str, field_schema("How long a job runs before its own queue may evict it, as in 30s or 1h.")
    ] = ""
    reclaim_min_runtime: Annotated[
        str, field_schema("How long a job runs before other queues may evict it, as in 30s or 1h.")
    ] = ""


class QueueCondition(Wire, frozen=True, kw_only=True):
    """One aspect of a queue's state."""

    type: Annotated[str, field_schema("The aspect: Orphan or OverQuota.")]
    status: Annotated[str, field_schema("True, False or Unknown.")]
    reason: Annotated[str, field_schema("Why, in one word.")] = ""
    message: Annotated[str, field_schema("Why, for people.")] = ""
    last_probe_time: Annotated[datetime | None, field_schema("When it was last looked at.")] = None
    last_transition_time: Annotated[datetime | None, field_schema("When the status last changed.")] = None


class QueueStatus(Wire, frozen=True, kw_only=True):
    """What a queue and the queues below it use now."""

    conditions: Annotated[list[QueueCondition], field_schema("The state of the queue.")] = []
    child_queues: Annotated[list[str], field_schema("The queues directly below.")] = []
    allocated: Annotated[ResourceList, field_schema("Held by running jobs.")] = {}
    allocated_non_preemptible: Annotated[ResourceList, field_schema("Held by jobs that cannot be evicted.")] = {}
    requested: Annotated[ResourceList, field_schema("Held or waited for.")] = {}


class Queue(Object, frozen=True, kw_only=True):
    """A share of the cluster that jobs wait for; queues form trees, and jobs run in the leaves."""

    spec: Annotated[QueueSpec, field_schema("The share.")] = QueueSpec()
    status: Annotated[QueueStatus, field_schema("The use.")] = QueueStatus()


class TopologyConstraint(Wire, frozen=True, kw_only=True):
    """How close together pods must or should run."""

    topology: Annotated[str, field_schema("The Topology whose levels are meant.")] = ""
    required_topology_level: Annotated[str, field_schema("All pods in one domain of this level, or none starts.")] = ""
    preferred_topology_level: Annotated[str, field_schema("One domain of this level where that can be had.")] = ""


class SubGroup(Wire, frozen=True, kw_only=True):
    """A part of a gang with a minimum of its own; parts nest by naming their parent."""

    name: Annotated[str, field_schema("Unique in the gang; a DNS label.", min_length=1, pattern=DNS_LABEL_PATTERN)]
    parent: Annotated[str, field_schema("The part that this one belongs to.", pattern=DNS_LABEL_PATTERN)] = ""
    min_member: Annotated[
        Int32 | None, field_schema("Pods that must start together; for a part without parts.", minimum=0)
    ] = None
    min_sub_group: Annotated[
        Int32 | None, field_schema("Parts that must start together; unset is all; not with minMember.", minimum=0)
    ] = None
    topology_constraint: Annotated[
        TopologyConstraint | None, field_schema("How close together this part's pods run.")
    ] = None


class PodGroupSpec(Wire, frozen=True, kw_only=True):
    """What starts together, where it queues, and whom it yields to."""

    min_member: Annotated[
        Int32 | None, field_schema("Pods that must start together; 0 is no gang; not with minSubGroup.", minimum=0)
    ] = None
    min_sub_group: Annotated[
        Int32 | None, field_schema("Parts that must start together; unset is all; not with minMember.", minimum=0)
    ] = None
    queue: Annotated[str, field_schema("The leaf queue that pays; without it nothing starts.")] = ""
    priority_class_name: Annotated[str, field_schema("The PriorityClass; the cluster's default when unset.")] = ""
    preemptibility: Annotated[
        str,
        field_schema(
            "Whether the gang may be evicted for others; unset, it may below priority 100.",
            enum=("preemptible", "non-preemptible"),
        ),
    ] = ""
    sub_groups: Annotated[list[SubGroup], field_schema("The parts of the gang.")] = []
    topology_constraint: Annotated[
        TopologyConstraint | None, field_schema("How close together the gang's pods run.")
    ] = None
    mark_unschedulable: Annotated[bool | None, field_schema("Say on the pods why they wait; true when unset.")] = None
    scheduling_backoff: Annotated[
        Int32 | None, field_schema("-1, also when unset, keeps trying; 1 gives up until something changes.")
    ] = None
    preemption_delay: Annotated[
        str, field_schema("How long the gang waits before it may evict others, as in 30s or 1h.")
    ] = ""
    staleness_grace_period: Annotated[
        str, field_schema("How long the gang may run below its minimum, as in 60s; below 0 for ever.")
    ] = ""


class PodGroupCondition(Wire, frozen=True, kw_only=True):
    """One aspect of a gang's state."""

    type: Annotated[str, field_schema("The aspect.")] = ""
    status: Annotated[str, field_schema("True, False or Unknown.")] = ""
    reason: Annotated[str, field_schema("Why, in one word.")] = ""
    message: Annotated[str, field_schema("Why, for people.")] = ""
    transition_id: Annotated[str, field_schema("Counts the changes.")] = msgspec.field(name="transitionID", default="")
    last_transition_time: Annotated[datetime | None, field_schema("When the status last changed.")] = None


class QueueDetails(Wire, frozen=True, kw_only=True):
    """What the queue held and the gang asked for when it was turned down."""

    name: Annotated[str, field_schema("The queue.")] = ""
    queue_requested_resources: Annotated[ResourceList, field_schema("Held or waited for in the queue.")] = {}
    queue_deserved_resources: Annotated[ResourceList, field_schema("The queue's quota.")] = {}
    queue_allocated_resources: Annotated[ResourceList, field_schema("Held in the queue.")] = {}
    queue_allocated_non_preemptible_resources: Annotated[
        ResourceList, field_schema("Held in the queue by jobs that cannot be evicted.")
    ] = {}
    queue_resource_limits: Annotated[ResourceList, field_schema("The queue's limits.")] = {}
    pod_group_requested_resources: Annotated[ResourceList, field_schema("What the gang needs to start.")] = {}
    pod_group_requested_non_preemptible_resources: Annotated[
        ResourceList, field_schema("What of it cannot be evicted later.")
    ] = {}


class UnschedulableDetails(Wire, frozen=True, kw_only=True):
    """Figures behind a reason; which ones depends on the reason."""

    queue_details: Annotated[
        QueueDetails | None, field_schema("For NonPreemptibleOverQuota and OverLimit: the queue's figures.")
    ] = None


class UnschedulableReason(Wire, frozen=True, kw_only=True):
    """One reason why a gang does not start."""

    reason: Annotated[str, field_schema("The reason, in one word.")] = ""
    message: Annotated[str, field_schema("The reason, for people.")] = ""
    details: Annotated[UnschedulableDetails | None, field_schema("The figures behind it.")] = None


class SchedulingCondition(Wire, frozen=True, kw_only=True):
    """Why a gang does not start in one node pool."""

    type: Annotated[str, field_schema("UnschedulableOnNodePool.")] = ""
    node_pool: Annotated[str, field_schema("The node pool.")] = ""
    status: Annotated[str, field_schema("True, False or Unknown.")] = ""
    reason: Annotated[str, field_schema("Superseded by reasons.")] = ""
    message: Annotated[str, field_schema("Superseded by reasons.")] = ""
    reasons: Annotated[list[UnschedulableReason], field_schema("Everything that stood in the way.")] = []
    transition_id: Annotated[str, field_schema("Counts the changes; the highest is the latest.")] = msgspec.field(
        name="transitionID", default=""
    )
    last_transition_time: Annotated[datetime | None, field_schema("When the status last changed.")] = None


class PodGroupResourcesStatus(Wire, frozen=True, kw_only=True):
    """What a gang's pods hold and ask for."""

    allocated: Annotated[ResourceList, field_schema("Held by its pods.")] = {}
    allocated_non_preemptible: Annotated[ResourceList, field_schema("Held by its pods and safe from eviction.")] = {}
    requested: Annotated[ResourceList, field_schema("Held or waited for.")] = {}


class PodGroupStatus(Wire, frozen=True, kw_only=True):
    """Where a gang stands."""

    conditions: Annotated[list[PodGroupCondition], field_schema("The state of the gang.")] = []
    scheduling_conditions: Annotated[
        list[SchedulingCondition], field_schema("Why it does not start, by node pool, latest last.")
    ] = []
    resources_status: Annotated[PodGroupResourcesStatus, field_schema("What it holds and asks for.")] = (
        PodGroupResourcesStatus()
    )


class PodGroup(Object, frozen=True, kw_only=True):
    """A gang: pods that start together or not at all."""

    spec: Annotated[PodGroupSpec, field_schema("What the gang asks for.")] = PodGroupSpec()
    status: Annotated[PodGroupStatus, field_schema("What it got.")] = PodGroupStatus()


class ReceivedGpu(Wire, frozen=True, kw_only=True):
    """GPUs that a pod was given."""

    count: Annotated[int | None, field_schema("How many devices.")] = None
    portion: Annotated[str, field_schema("How much of each, as a decimal such as 0.50.")] = ""


class ResourceClaimAllocation(Wire, frozen=True, kw_only=True):
    """What one of a pod's claims was given."""

    name: Annotated[str, field_schema("The claim's name in the pod.")] = ""
    allocation: Annotated[AllocationResult | None, field_schema("The devices.")] = None


class ContainerMapping(Wire, frozen=True, kw_only=True):
    """Which container asked for which device request."""

    container_name: Annotated[str, field_schema("The container.")]
    resource_name: Annotated[str, field_schema("The extended resource that it asked for.")]
    request_name: Annotated[str, field_schema("The device request that serves it.")]


class ExtendedResourceClaimAllocation(Wire, frozen=True, kw_only=True):
    """Devices given to containers that asked for an extended resource by name."""

    allocation: Annotated[AllocationResult | None, field_schema("The devices.")] = None
    device_requests: Annotated[list[DeviceRequest], field_schema("The requests of the claim to be made.")] = []
    container_mappings: Annotated[list[ContainerMapping], field_schema("Who asked for which.")] = []


class NumaZoneAmount(Wire, frozen=True, kw_only=True):
    """What a pod is expected to take of one NUMA zone."""

    zone: Annotated[str, field_schema("The zone.")]
    amount: Annotated[ResourceList, field_schema("The resources.")]


class BindRequestSpec(Wire, frozen=True, kw_only=True):
    """Which pod goes to which node, and with what."""

    pod_name: Annotated[str, field_schema("The pod, in the same namespace.")] = ""
    selected_node: Annotated[str, field_schema("The node.")] = ""
    received_resource_type: Annotated[str, field_schema("Regular, Fraction or MigInstance.")] = ""
    received_gpu: Annotated[ReceivedGpu | None, field_schema("The GPUs.")] = msgspec.field(
        name="receivedGPU", default=None
    )
    selected_gpu_groups: Annotated[list[str], field_schema("The shared devices, by group.")] = msgspec.field(
        name="selectedGPUGroups", default_factory=list
    )
    resource_claim_allocations: Annotated[
        list[ResourceClaimAllocation], field_schema("What the pod's claims were given.")
    ] = []
    extended_resource_claim_allocation: Annotated[
        ExtendedResourceClaimAllocation | None, field_schema("What serves its extended resources.")
    ] = None
    predicted_numa_zones: Annotated[list[NumaZoneAmount], field_schema("Where its memory is expected.")] = (
        msgspec.field(name="predictedNUMAZones", default_factory=list)
    )
    backoff_limit: Annotated[Int32 | None, field_schema("Attempts before the binding is given up.")] = None


class BindRequestStatus(Wire, frozen=True, kw_only=True):
    """How far the binding is."""

    phase: Annotated[str, field_schema("Pending, Succeeded or Failed.")] = ""
    reason: Annotated[str, field_schema("Why it failed.")] = ""
    failed_attempts: Annotated[Int32 | None, field_schema("How often it failed.")] = None


class BindRequest(Object, frozen=True, kw_only=True):
    """The scheduler's order to bind one pod; it bears the pod's name."""

    spec: Annotated[BindRequestSpec, field_schema("The order.")] = BindRequestSpec()
    status: Annotated[BindRequestStatus, field_schema("What became of it.")] = BindRequestStatus()


QUEUES = Resource(type=Queue, group=GROUP, version="v2", kind="Queue", plural="queues", namespaced=False)
POD_GROUPS = Resource(type=PodGroup, group=GROUP, version="v2alpha2", kind="PodGroup", plural="podgroups")
BIND_REQUESTS = Resource(type=BindRequest, group=GROUP, version="v1alpha2", kind="BindRequest", plural="bindrequests")

DEFINITIONS = (
    CustomResource(versions=(Version(resource=BIND_REQUESTS, status=True),)),
    CustomResource(versions=(Version(resource=POD_GROUPS, status=True),), short_names=("pg",)),
    CustomResource(
        versions=(
            Version(
                resource=QUEUES,
                status=True,
                columns=(
                    Column(name="Priority", path=".spec.priority"),
                    Column(name="Parent", path=".spec.parentQueue"),
                    Column(name="Children", path=".status.childQueues"),
                    Column(name="DisplayName", path=".spec.displayName"),
                ),
            ),
        ),
    ),
)
