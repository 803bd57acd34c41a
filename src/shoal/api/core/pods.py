"""Pods, as far as controllers, schedulers and node agents read them.

A cluster holds a hundred thousand of them and each process one picture: what is not named here costs nothing.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from shoal.api.meta import Object, Resource, ResourceList, Wire

PENDING, RUNNING, SUCCEEDED, FAILED = "Pending", "Running", "Succeeded", "Failed"
"""The phases of a pod's life that matter to others."""


class ResourceRequirements(Wire, frozen=True, kw_only=True):
    """What a container asks for, and may not exceed."""

    requests: ResourceList = {}
    limits: ResourceList = {}


class ContainerPort(Wire, frozen=True, kw_only=True):
    """A port that a container listens on."""

    container_port: int = 0
    name: str = ""
    protocol: str = "TCP"
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")


class ConfigMapReference(Wire, frozen=True, kw_only=True):
    """A ConfigMap of the pod's namespace, which may be missing where that is said."""

    name: str = ""
    optional: bool = False


class VariableSource(Wire, frozen=True, kw_only=True):
    """Where the value of a variable comes from, as far as it is a ConfigMap."""

    config_map_key_ref: ConfigMapReference | None = None


class Variable(Wire, frozen=True, kw_only=True):
    """A variable of a container's environment, as far as it comes from elsewhere."""

    value_from: VariableSource | None = None


def is_from_config_map(variable: Variable) -> bool:
    """Whether a variable's value stands in a ConfigMap."""
    return variable.value_from is not None and variable.value_from.config_map_key_ref is not None


class VariablesSource(Wire, frozen=True, kw_only=True):
    """Many variables of a container's environment, as far as they come from a ConfigMap."""

    config_map_ref: ConfigMapReference | None = None


class Mount(Wire, frozen=True, kw_only=True):
    """A volume that a container uses."""

    name: str = ""


class Container(Wire, frozen=True, kw_only=True):
    """One container of a pod."""

    name: str = ""
    image: str = ""
    ports: list[ContainerPort] = []
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str = ""
    """``Always`` makes an init container a sidecar."""
    env: list[Variable] = []
    """Those that come from a ConfigMap, and no others: a pod may have hundreds."""
    env_from: list[VariablesSource] = []
    volume_mounts: list[Mount] = []

    def __post_init__(self) -> None:
        """Forgets the variables that nobody asks for."""
        if self.env:
            msgspec.structs.force_setattr(self, "env", [one for one in self.env if is_from_config_map(one)])


class InitContainer(Container, frozen=True, kw_only=True):
    """A container that runs before the others; what it is told may be what the pod waits for."""

    args: list[str] = []


class Toleration(Wire, frozen=True, kw_only=True):
    """A taint that the pod puts up with."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class NamedReference(Wire, frozen=True, kw_only=True):
    """An object of a known kind in the same namespace, by its name."""

    name: str = ""


class ClaimSource(Wire, frozen=True, kw_only=True):
    """A volume that is a persistent volume claim."""

    claim_name: str = ""


class EphemeralSource(Wire, frozen=True, kw_only=True):
    """A volume whose claim is made for the pod, and goes with it."""

    volume_claim_template: dict[str, Any] = {}


class VolumePart(Wire, frozen=True, kw_only=True):
    """A part of a volume of several, as far as it names a ConfigMap."""

    config_map: ConfigMapReference | None = None


class PartsSource(Wire, frozen=True, kw_only=True):
    """A volume that is put together from several parts."""

    sources: list[VolumePart] = []


class PodVolume(Wire, frozen=True, kw_only=True):
    """A volume of a pod, as far as it names a claim or a ConfigMap."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: EphemeralSource | None = None
    config_map: ConfigMapReference | None = None
    projected: PartsSource | None = None


class PodDeviceClaim(Wire, frozen=True, kw_only=True):
    """Devices that a pod claims: by a claim that is there, or by one that is made for it from a template."""

    name: str = ""
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class PodDeviceClaimStatus(Wire, frozen=True, kw_only=True):
    """The claim that was made from a template; none where none is needed."""

    name: str = ""
    resource_claim_name: str = ""


class WorkloadReference(Wire, frozen=True, kw_only=True):
    """The group of a Workload that the pod belongs to (Kubernetes 1.35)."""

    name: str = ""
    pod_group: str = ""
    pod_group_replica_key: str = ""


class SchedulingGroup(Wire, frozen=True, kw_only=True):
    """The PodGroup that the pod belongs to (Kubernetes 1.36 and later)."""

    pod_group_name: str = ""


class PodSpec(Wire, frozen=True, kw_only=True):
    """What a pod is to be."""

    node_name: str = ""
    scheduler_name: str = ""
    containers: list[Container] = []
    init_containers: list[InitContainer] = []
    overhead: ResourceList = {}
    resources: ResourceRequirements | None = None
    restart_policy: str = ""
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    tolerations: list[Toleration] = []
    node_selector: dict[str, str] = {}
    affinity: dict[str, Any] | None = None
    topology_spread_constraints: list[dict[str, Any]] = []
    scheduling_gates: list[NamedReference] = []
    priority: int = 0
    priority_class_name: str = ""
    host_network: bool = False
    hostname: str = ""
    subdomain: str = ""
    volumes: list[PodVolume] = []
    readiness_gates: list[dict[str, str]] = []
    workload_ref: WorkloadReference | None = None
    scheduling_group: SchedulingGroup | None = None
    resource_claims: list[PodDeviceClaim] = []


class PodCondition(Wire, frozen=True, kw_only=True):
    """One thing that is known of a pod."""

    type: str = ""
    status: str
    """Without a default, since what equals it would not be written."""
    observed_generation: int = 0
    last_probe_time: datetime | None = None
    last_transition_time: datetime | None = None
    reason: str = ""
    message: str = ""


class TerminatedState(Wire, frozen=True, kw_only=True):
    """How a container ended."""

    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


class RunningState(Wire, frozen=True, kw_only=True):
    """Since when a container runs."""

    started_at: datetime | None = None


class WaitingState(Wire, frozen=True, kw_only=True):
    """Why a container does not run yet, or not again yet."""

    reason: str = ""
    message: str = ""


class ContainerState(Wire, frozen=True, kw_only=True):
    """What a container does now; waiting where nothing is set."""

    waiting: WaitingState | None = None
    running: RunningState | None = None
    terminated: TerminatedState | None = None


class ContainerStatus(Wire, frozen=True, kw_only=True):
    """How one container is."""

    name: str = ""
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    allocated_resources: ResourceList = {}
    resources: ResourceRequirements | None = None


class PodIP(Wire, frozen=True, kw_only=True):
    """One address of a pod."""

    ip: str = ""


class PodStatus(Wire, frozen=True, kw_only=True):
    """How a pod is."""

    phase: str = ""
    observed_generation: int = 0
    conditions: list[PodCondition] = []
    reason: str = ""
    message: str = ""
    nominated_node_name: str = ""
    host_ip: str = msgspec.field(default="", name="hostIP")
    pod_ip: str = msgspec.field(default="", name="podIP")
    pod_ips: list[PodIP] = msgspec.field(default_factory=list, name="podIPs")
    start_time: datetime | None = None
    qos_class: str = ""
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []
    resource_claim_statuses: list[PodDeviceClaimStatus] = []


class Pod(Object, frozen=True, kw_only=True):
    """Containers that run together on one node."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


PODS = Resource(type=Pod, group="", version="v1", kind="Pod", plural="pods")


def is_finished(pod: Pod) -> bool:
    """Whether the pod has run to its end, well or badly: it will not run again."""
    return pod.status.phase in (SUCCEEDED, FAILED)


def is_active(pod: Pod) -> bool:
    """Whether the pod runs or is still to run: neither finished nor on its way out."""
    return not is_finished(pod) and not pod.metadata.is_deleting


def pod_condition(pod: Pod, type: str) -> PodCondition | None:  # noqa: A002 - the wire's own word
    """What is known of a pod under this type."""
    return next((condition for condition in pod.status.conditions if condition.type == type), None)


def is_ready(pod: Pod) -> bool:
    """Whether the pod says that it can serve."""
    condition = pod_condition(pod, "Ready")
    return condition is not None and condition.status == "True"


def is_available(pod: Pod, *, min_ready_seconds: int, now: datetime) -> bool:
    """Whether the pod has been ready for long enough."""
    condition = pod_condition(pod, "Ready")
    if condition is None or condition.status != "True":
        return False
    if min_ready_seconds == 0:
        return True
    since = condition.last_transition_time
    return since is not None and (now - since).total_seconds() >= min_ready_seconds
