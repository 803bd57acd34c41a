"""The configuration of KAI as a whole: one object, ``kai-config``, that names every part and what it is told.

Shoal's parts are told by flags. What of this object means something here is read; the rest (images, replicas,
autoscaling) is for KAI's own operator, and is kept so that its manifests can be applied unchanged.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from shoal.api.crd import Int32, field_schema
from shoal.api.kai_scheduler.config_parts import (
    Affinity,
    ClientLimits,
    ContainerSecurity,
    Image,
    NamedPort,
    PodSecurity,
    Program,
    Resources,
    Toleration,
    ValidationWebhooks,
    VerticalAutoscaling,
    WebhookPorts,
)
from shoal.api.kai_scheduler.shards import PluginSetup, SetupStatus
from shoal.api.kai_scheduler.topologies import GROUP
from shoal.api.meta.objects import Object, Wire
from shoal.api.meta.resource import Resource

CONFIG_NAME: Final = "kai-config"
"""The name of the one Config of a cluster."""


class GlobalSetup(Wire, frozen=True, kw_only=True):
    """What all parts have in common."""

    scheduler_name: Annotated[str, field_schema("The scheduler that pods name; kai-scheduler when unset.")] = ""
    queue_label_key: Annotated[str, field_schema("The label that names a pod's queue.")] = ""
    node_pool_label_key: Annotated[str, field_schema("The label that names a node pool.")] = ""
    namespace_label_selector: Annotated[
        dict[str, str], field_schema("Labels of the namespaces whose pods are looked at.")
    ] = {}
    pod_label_selector: Annotated[dict[str, str], field_schema("Labels of the pods that are looked at.")] = {}
    affinity: Annotated[Affinity | None, field_schema("Where all parts run.")] = None
    require_default_pod_anti_affinity_term: Annotated[
        bool | None, field_schema("Whether replicas must, not should, be on different nodes.")
    ] = None
    node_selector: Annotated[dict[str, str], field_schema("Labels of the nodes that all parts run on.")] = {}
    tolerations: Annotated[list[Toleration], field_schema("Taints that all parts put up with.")] = []
    daemonsets_tolerations: Annotated[list[Toleration], field_schema("Taints that daemons put up with besides.")] = []
    security_context: Annotated[ContainerSecurity | None, field_schema("What all containers may do.")] = None
    priority_class_name: Annotated[str, field_schema("The PriorityClass of all parts.")] = ""
    replica_count: Annotated[Int32 | None, field_schema("Replicas of parts that do not say.")] = None
    images_pull_secret: Annotated[str, field_schema("Superseded by additionalImagePullSecrets.")] = ""
    additional_image_pull_secrets: Annotated[list[str], field_schema("Secrets that images are fetched with.")] = []
    json_log: Annotated[bool | None, field_schema("Whether log lines are JSON.")] = None
    openshift: Annotated[bool | None, field_schema("Whether this is OpenShift.")] = None
    vpa: Annotated[VerticalAutoscaling | None, field_schema("Autoscaling of parts that do not say.")] = None


class PodGrouperArguments(Wire, frozen=True, kw_only=True):
    """How pods are put into groups."""

    gang_schedule_knative: Annotated[bool | None, field_schema("Whether Knative revisions are gangs.")] = None
    generic_karta_fallback: Annotated[bool | None, field_schema("Whether other kinds go by Karta definitions.")] = None
    default_priorities_config_map_name: Annotated[str, field_schema("Where default priorities of kinds are.")] = ""
    default_priorities_config_map_namespace: Annotated[str, field_schema("The namespace of that ConfigMap.")] = ""


class PodGrouperSetup(Wire, frozen=True, kw_only=True):
    """The part that puts pods into groups."""

    service: Annotated[Program | None, field_schema("The program.")] = None
    vpa: Annotated[VerticalAutoscaling | None, field_schema("Its autoscaling.")] = None
    replicas: Annotated[Int32 | None, field_schema("Its replicas.")] = None
    args: Annotated[PodGrouperArguments | None, field_schema("How it works.")] = None
    k8s_client_config: Annotated[ClientLimits | None, field_schema("How fast it may ask the API server.")] = None
    max_concurrent_reconciles: Annotated[int | None, field_schema("Pods that it works on at once.")] = None


class ReservationSetup(Wire, frozen=True, kw_only=True):
    """The pods that hold shared GPUs."""

    namespace: Annotated[str, field_schema("Their namespace; kai-resource-reservation when unset.")] = ""
    image: Annotated[Image | None, field_schema("Their image.")] = None
    allocation_timeout: Annotated[int | None, field_schema("Seconds to wait for a device; 40 when unset.")] = None
    app_label: Annotated[str, field_schema("Their app label.")] = ""
    service_account_name: Annotated[str, field_schema("Their account.")] = ""
    runtime_class_name: Annotated[str, field_schema("Their runtime class.")] = ""
    pod_resources: Annotated[Resources | None, field_schema("What they ask for besides the GPU.")] = None
    reservation_pod_security_context: Annotated[PodSecurity | None, field_schema("What they may do.")] = None
    reservation_container_security_context: Annotated[
        ContainerSecurity | None, field_schema("What their containers may do.")
    ] = None


class BinderSetup(Wire, frozen=True, kw_only=True):
    """The part that binds pods to nodes."""

    service: Annotated[Program | None, field_schema("The program.")] = None
    vpa: Annotated[VerticalAutoscaling | None, field_schema("Its autoscaling.")] = None
    replicas: Annotated[Int32 | None, field_schema("Its replicas.")] = None
    resource_reservation: Annotated[ReservationSetup | None, field_schema("The pods that hold shared GPUs.")] = None
    plugins: Annotated[dict[str, PluginSetup], field_schema("Plugins by name, where they differ from defaults.")] = {}
    max_concurrent_reconciles: Annotated[int | None, field_schema("Bindings that it works on at once.")] = None
    volume_binding_timeout_seconds: Annotated[int | None, field_schema("Seconds to wait for volumes.")] = None
    probe_port: Annotated[int | None, field_schema("The port of its health checks.")] = None
    metrics_port: Annotated[int | None, field_schema("The port of its metrics.")] = None
    cdi_enabled: Annotated[bool | None, field_schema("Whether devices are given by CDI.")] = None


class AdmissionSetup(Wire, frozen=True, kw_only=True):
    """The part that checks pods when they are written."""

    service: Annotated[Program | None, field_schema("The program.")] = None
    vpa: Annotated[VerticalAutoscaling | None, field_schema("Its autoscaling.")] = None
    replicas: Annotated[Int32 | None, field_schema("Its replicas.")] = None
    webhook: Annotated[WebhookPorts | None, field_schema("Its ports.")] = None
    gpu_sharing: Annotated[bool | None, field_schema("Whether pods may share GPUs; false when unset.")] = None
    block_nvidia_visible_devices: Annotated[
        bool | None, field_schema("Whether pods that choose devices by NVIDIA_VISIBLE_DEVICES are refused.")
    ] = None
    queue_label_selector: Annotated[bool | None, field_schema("Whether only pods with a queue are looked at.")] = None
    gpu_pod_runtime_class_name: Annotated[str, field_schema("Superseded by gpuFractionRuntimeClassName.")] = ""
    # Empty is a wish: no runtime class at all.
    gpu_fraction_runtime_class_name: Annotated[
        str | None, field_schema("The runtime class of pods that share a GPU; nvidia when unset.")
    ] = None
    mutating_webhook_configuration_name: Annotated[str, field_schema("The name of one registration.")] = ""
    validating_webhook_configuration_name: Annotated[str, field_schema("The name of the other.")] = ""


class SchedulerService(Wire, frozen=True, kw_only=True):
    """The Service of a scheduler."""

    type: Annotated[str, field_schema("As in a Service.")] = ""
    port: Annotated[int | None, field_schema("The Service's port.")] = None
    target_port: Annotated[int | None, field_schema("The container's port.")] = None


class SchedulerSetup(Wire, frozen=True, kw_only=True):
    """The scheduler, in every shard."""

    service: Annotated[Program | None, field_schema("The program.")] = None
    vpa: Annotated[VerticalAutoscaling | None, field_schema("Its autoscaling.")] = None
    replicas: Annotated[Int32 | None, field_schema("Its replicas; from two on they elect a leader.")] = None
    scheduler_service: Annotated[SchedulerService | None, field_schema("Its Service.")] = None
    gogc: Annotated[int | None, field_schema("Accepted for KAI's sake; without effect here.")] = msgspec.field(
        name="GOGC", default=None
    )


class QueueControllerPorts(Wire, frozen=True, kw_only=True):
    """The ports of the queue controller."""

    metrics: Annotated[NamedPort | None, field_schema("Of its metrics.")] = None
    webhook: Annotated[NamedPort | None, field_schema("Of its webhook.")] = None


class QueueControllerSetup(Wire, frozen=True, kw_only=True):
    """The part that says what queues use."""

    service: Annotated[Program | None, field_schema("The program.")] = None
    vpa: Annotated[VerticalAutoscaling | None, field_schema("Its autoscaling.")] = None
    replicas: Annotated[Int32 | None, field_schema("Its replicas.")] = None
    controller_service: Annotated[QueueControllerPorts | None, field_schema("Its ports.")] = None
    webhooks: Annotated[ValidationWebhooks | None, field_schema("Whether queues are checked.")] = None
    metrics_namespace: Annotated[str, field_schema("What its metrics' names begin with; kai when unset.")] = ""
    queue_label_to_metric_label: Annotated[
        str, field_schema("Labels of queues that are labels of metrics, as in team=queue_team,cost=queue_cost.")
    ] = ""
    queue_label_to_default_metric_value: Annotated[
        str, field_schema("What such a label says of a queue without it, as in team=nobody.")
    ] = ""


class PodGroupControllerPorts(Wire, frozen=True, kw_only=True):
    """The ports of the podgroup controller."""

    webhook: Annotated[NamedPort | None, field_schema("Of its webhook.")] = None


class PodGroupControllerSetup(Wire, frozen=True, kw_only=True):
    """The part that says what gangs use."""

    service: Annotated[Program | None, field_schema("The program.")] = None
    vpa: Annotated[VerticalAutoscaling | None, field_schema("Its autoscaling.")] = None
    replicas: Annotated[Int32 | None, field_schema("Its replicas.")] = None
    controller_service: Annotated[PodGroupControllerPorts | None, field_schema("Its ports.")] = None
    webhooks: Annotated[ValidationWebhooks | None, field_schema("Whether gangs are checked.")] = None
    max_concurrent_reconciles: Annotated[int | None, field_schema("Gangs that it works on at once.")] = None


class ScaleAdjusterArguments(Wire, frozen=True, kw_only=True):
    """How an autoscaler of nodes learns of pods that share GPUs."""

    node_scale_namespace: Annotated[str, field_schema("Where scaling pods are; kai-scale-adjust when unset.")] = ""
    node_scale_service_account: Annotated[str, field_schema("Their account.")] = ""
    scaling_pod_image: Annotated[Image | None, field_schema("Their image.")] = None
    gpu_memory_to_fraction_ratio: Annotated[
        float | None, field_schema("The part of a GPU that a wish for GPU memory counts as.")
    ] = None


class ScaleAdjusterSetup(Wire, frozen=True, kw_only=True):
    """The part that has an autoscaler of nodes see pods that share GPUs."""

    service: Annotated[Program | None, field_schema("The program.")] = None
    vpa: Annotated[VerticalAutoscaling | None, field_schema("Its autoscaling.")] = None
    args: Annotated[ScaleAdjusterArguments | None, field_schema("How it works.")] = None


class NumaExporterSetup(Wire, frozen=True, kw_only=True):
    """The daemon that says which NUMA zones pods run in."""

    service: Annotated[Program | None, field_schema("The program.")] = None
    node_selector: Annotated[dict[str, str], field_schema("Labels of the nodes that it runs on.")] = {}
    tolerations: Annotated[list[Toleration], field_schema("Taints that it puts up with.")] = []
    poll_interval: Annotated[str, field_schema("How often it looks, as in 10s.")] = ""
    drift_resync_interval: Annotated[str, field_schema("How often it puts annotations right, as in 5m.")] = ""
    pod_resources_socket: Annotated[str, field_schema("The kubelet's socket.")] = ""
    pod_resources_host_path: Annotated[str, field_schema("The directory of that socket on the host.")] = ""
    sysfs_host_path: Annotated[str, field_schema("Where sysfs is on the host.")] = ""


class PrometheusProbe(Wire, frozen=True, kw_only=True):
    """How a Prometheus of somebody else's is looked at."""

    interval: Annotated[int | None, field_schema("Seconds between looks.")] = None
    timeout: Annotated[int | None, field_schema("Seconds that a look may take.")] = None
    max_retries: Annotated[int | None, field_schema("Looks before it counts as gone.")] = None


class ServiceMonitorSetup(Wire, frozen=True, kw_only=True):
    """How Prometheus reads the parts' metrics."""

    enabled: Annotated[bool | None, field_schema("Whether there are ServiceMonitors.")] = None
    interval: Annotated[str, field_schema("How often they are read.")] = ""
    scrape_timeout: Annotated[str, field_schema("How long a reading may take.")] = ""
    bearer_token_file: Annotated[str, field_schema("The file of the token that it reads with.")] = ""


class PrometheusSetup(Wire, frozen=True, kw_only=True):
    """The Prometheus that keeps what queues used."""

    enabled: Annotated[bool | None, field_schema("Whether there is one; false when unset.")] = None
    instance_name: Annotated[str, field_schema("Its name.")] = ""
    external_prometheus_url: Annotated[str, field_schema("The address of one of somebody else's, instead.")] = ""
    external_prometheus_health_probe: Annotated[PrometheusProbe | None, field_schema("How that is looked at.")] = None
    retention_period: Annotated[str, field_schema("How long figures are kept; 2w when unset.")] = ""
    sample_interval: Annotated[str, field_schema("How often figures are taken; 1m when unset.")] = ""
    enable_persistent_storage: Annotated[bool | None, field_schema("Whether it keeps them on a volume.")] = None
    storage_size: Annotated[str, field_schema("The size of that volume.")] = ""
    storage_class_name: Annotated[str, field_schema("The class of that volume; standard when unset.")] = ""
    service_monitor: Annotated[ServiceMonitorSetup | None, field_schema("How it reads metrics.")] = None
    accounting_label_key: Annotated[str, field_schema("The label that it finds ServiceMonitors by.")] = ""
    accounting_label_value: Annotated[str, field_schema("The value of that label.")] = ""


class ConfigSpec(Wire, frozen=True, kw_only=True):
    """Every part of KAI."""

    namespace: Annotated[str, field_schema("Where the parts run; kai-scheduler when unset.")] = ""
    global_setup: Annotated[GlobalSetup | None, field_schema("What all parts have in common.")] = msgspec.field(
        name="global", default=None
    )
    scheduler: Annotated[SchedulerSetup | None, field_schema("The scheduler.")] = None
    pod_grouper: Annotated[PodGrouperSetup | None, field_schema("Puts pods into groups.")] = None
    binder: Annotated[BinderSetup | None, field_schema("Binds pods to nodes.")] = None
    admission: Annotated[AdmissionSetup | None, field_schema("Checks pods when they are written.")] = None
    queue_controller: Annotated[QueueControllerSetup | None, field_schema("Says what queues use.")] = None
    pod_group_controller: Annotated[PodGroupControllerSetup | None, field_schema("Says what gangs use.")] = None
    node_scale_adjuster: Annotated[ScaleAdjusterSetup | None, field_schema("Speaks to autoscalers of nodes.")] = None
    numa_placement_exporter: Annotated[NumaExporterSetup | None, field_schema("Says where on a node pods run.")] = None
    prometheus: Annotated[PrometheusSetup | None, field_schema("Keeps what queues used.")] = None


class Config(Object, frozen=True, kw_only=True):
    """How all of KAI is set up; there is one, kai-config."""

    spec: Annotated[ConfigSpec, field_schema("The parts.")] = ConfigSpec()
    status: Annotated[SetupStatus, field_schema("Whether they are there.")] = SetupStatus()


CONFIGS = Resource(type=Config, group=GROUP, version="v1", kind="Config", plural="configs", namespaced=False)
