"""What the parts of KAI are set up with alike: a program's image and means, its autoscaling, ports and webhooks."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from shoal.api.crd import Int32, KubernetesType, field_schema
from shoal.api.meta.objects import Wire
from shoal.api.meta.quantity import ResourceList

Affinity: TypeAlias = Annotated[dict[str, Any], field_schema(shape=KubernetesType("core.v1.Affinity"))]
ContainerSecurity: TypeAlias = Annotated[dict[str, Any], field_schema(shape=KubernetesType("core.v1.SecurityContext"))]
PodSecurity: TypeAlias = Annotated[dict[str, Any], field_schema(shape=KubernetesType("core.v1.PodSecurityContext"))]
Resources: TypeAlias = Annotated[dict[str, Any], field_schema(shape=KubernetesType("core.v1.ResourceRequirements"))]
Toleration: TypeAlias = Annotated[dict[str, Any], field_schema(shape=KubernetesType("core.v1.Toleration"))]


class Image(Wire, frozen=True, kw_only=True):
    """A container image, in parts."""

    name: Annotated[str, field_schema("Its name.")] = ""
    repository: Annotated[str, field_schema("Where it is kept.")] = ""
    tag: Annotated[str, field_schema("Which one of that name.")] = ""
    pull_policy: Annotated[str, field_schema("When it is fetched, as in a container.")] = ""


class ClientLimits(Wire, frozen=True, kw_only=True):
    """How fast a program may ask the API server."""

    qps: Annotated[int | None, field_schema("Requests in a second.")] = None
    burst: Annotated[int | None, field_schema("Requests at once.")] = None


class DisruptionBudget(Wire, frozen=True, kw_only=True):
    """How many of a program's pods may be evicted at a time."""

    enabled: Annotated[bool | None, field_schema("Whether there is a PodDisruptionBudget.")] = None
    max_unavailable: Annotated[Int32 | None, field_schema("How many may be missing.")] = None


class Program(Wire, frozen=True, kw_only=True):
    """One of KAI's programs: whether it runs, from which image, and with what."""

    enabled: Annotated[bool | None, field_schema("Whether it runs.")] = None
    image: Annotated[Image | None, field_schema("Its image.")] = None
    resources: Annotated[Resources | None, field_schema("What its container asks for.")] = None
    affinity: Annotated[Affinity | None, field_schema("Where its pods run.")] = None
    k8s_client_config: Annotated[ClientLimits | None, field_schema("How fast it may ask the API server.")] = None
    pod_disruption_budget: Annotated[DisruptionBudget | None, field_schema("How many pods may be missing.")] = None


class ContainerPolicy(Wire, frozen=True, kw_only=True):
    """How the vertical autoscaler treats one container."""

    container_name: Annotated[str, field_schema("The container, or * for all others.")] = ""
    mode: Annotated[Literal["Auto", "Off"] | None, field_schema("Whether it is scaled.")] = None
    min_allowed: Annotated[ResourceList, field_schema("The least it is given.")] = {}
    max_allowed: Annotated[ResourceList, field_schema("The most it is given.")] = {}
    controlled_resources: Annotated[list[str], field_schema("The resources that are scaled.")] = []
    controlled_values: Annotated[
        Literal["RequestsAndLimits", "RequestsOnly"] | None, field_schema("Which of its values are scaled.")
    ] = None


class ResourcePolicy(Wire, frozen=True, kw_only=True):
    """How the vertical autoscaler treats containers."""

    container_policies: Annotated[list[ContainerPolicy], field_schema("Container by container.")] = []


class EvictionRequirement(Wire, frozen=True, kw_only=True):
    """What must hold before a pod is evicted to be scaled."""

    resources: Annotated[list[str], field_schema("The resources that it is about.")]
    change_requirement: Annotated[
        Literal["TargetHigherThanRequests", "TargetLowerThanRequests"], field_schema("What must hold.")
    ]


class UpdatePolicy(Wire, frozen=True, kw_only=True):
    """When the vertical autoscaler acts."""

    update_mode: Annotated[
        Literal["Off", "Initial", "Recreate", "InPlaceOrRecreate", "Auto"] | None, field_schema("When it acts.")
    ] = None
    min_replicas: Annotated[Int32 | None, field_schema("The pods that must be there for it to evict one.")] = None
    eviction_requirements: Annotated[list[EvictionRequirement], field_schema("What must hold before it does.")] = []


class VerticalAutoscaling(Wire, frozen=True, kw_only=True):
    """Whether and how a program's containers are scaled by the vertical autoscaler."""

    enabled: Annotated[bool | None, field_schema("Whether they are.")] = None
    update_policy: Annotated[UpdatePolicy | None, field_schema("When.")] = None
    resource_policy: Annotated[ResourcePolicy | None, field_schema("By how much.")] = None


class NamedPort(Wire, frozen=True, kw_only=True):
    """A port of a Service."""

    name: Annotated[str, field_schema("Its name.")] = ""
    port: Annotated[int | None, field_schema("The Service's port.")] = None
    target_port: Annotated[int | None, field_schema("The container's port.")] = None


class WebhookPorts(Wire, frozen=True, kw_only=True):
    """The ports of a program that serves webhooks."""

    port: Annotated[int | None, field_schema("The Service's port.")] = None
    target_port: Annotated[int | None, field_schema("The container's port.")] = None
    probe_port: Annotated[int | None, field_schema("The port of its health checks.")] = None
    metrics_port: Annotated[int | None, field_schema("The port of its metrics.")] = None


class ValidationWebhooks(Wire, frozen=True, kw_only=True):
    """Whether a kind's objects are checked when they are written."""

    enable_validation: Annotated[bool | None, field_schema("Whether they are.")] = None
    webhook_configuration_name_prefix: Annotated[str, field_schema("What the registration's name begins with.")] = ""
