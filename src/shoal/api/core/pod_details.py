"""Pods in full, as the agent of the node that runs them reads them.

It holds the pods of one node alone, so nothing is left out that says how a container is run. What others read of a pod
is in ``pods``; these types are those, and more.
"""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.api.core.pods import (
    ClaimSource,
    Container,
    ContainerStatus,
    NamedReference,
    Pod,
    PodSpec,
    PodStatus,
    PodVolume,
)
from shoal.api.meta import IntOrString, QuantityString, Resource, Wire

# Where values come from


class KeySelector(Wire, frozen=True, kw_only=True):
    """A key of a ConfigMap or Secret."""

    name: str = ""
    key: str = ""
    optional: bool = False


class FieldSelector(Wire, frozen=True, kw_only=True):
    """A field of the pod itself."""

    api_version: str = ""
    field_path: str = ""


class ResourceFieldSelector(Wire, frozen=True, kw_only=True):
    """A request or limit of a container."""

    container_name: str = ""
    resource: str = ""
    divisor: QuantityString | None = None


class FileKeySelector(Wire, frozen=True, kw_only=True):
    """A variable of a file in an emptyDir volume, written by a container that ran before."""

    volume_name: str = ""
    path: str = ""
    key: str = ""
    optional: bool = False


class EnvVarSource(Wire, frozen=True, kw_only=True):
    """Where the value of a variable comes from."""

    field_ref: FieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    config_map_key_ref: KeySelector | None = None
    secret_key_ref: KeySelector | None = None
    file_key_ref: FileKeySelector | None = None


class EnvVar(Wire, frozen=True, kw_only=True):
    """A variable of a container's environment."""

    name: str = ""
    value: str = ""
    value_from: EnvVarSource | None = None


class OptionalReference(Wire, frozen=True, kw_only=True):
    """A ConfigMap or Secret that may be missing where that is said."""

    name: str = ""
    optional: bool = False


class EnvFromSource(Wire, frozen=True, kw_only=True):
    """All keys of a ConfigMap or Secret as variables."""

    prefix: str = ""
    config_map_ref: OptionalReference | None = None
    secret_ref: OptionalReference | None = None


# Probes and hooks


class ExecAction(Wire, frozen=True, kw_only=True):
    """A command in the container."""

    command: list[str] = []


class HttpHeader(Wire, frozen=True, kw_only=True):
    """A header of a request."""

    name: str = ""
    value: str = ""


class HttpGetAction(Wire, frozen=True, kw_only=True):
    """A GET request; the port may be named."""

    port: IntOrString = 0
    path: str = "/"
    host: str = ""
    scheme: str = "HTTP"
    http_headers: list[HttpHeader] = []


class TcpSocketAction(Wire, frozen=True, kw_only=True):
    """A connection that is opened and closed."""

    port: IntOrString = 0
    host: str = ""


class GrpcAction(Wire, frozen=True, kw_only=True):
    """A call of the gRPC health service."""

    port: int = 0
    service: str | None = None


class SleepAction(Wire, frozen=True, kw_only=True):
    """A rest of so many seconds."""

    seconds: int = 0


class Probe(Wire, frozen=True, kw_only=True):
    """How to tell whether a container is well, and how often."""

    exec: ExecAction | None = None
    http_get: HttpGetAction | None = None
    tcp_socket: TcpSocketAction | None = None
    grpc: GrpcAction | None = None
    initial_delay_seconds: int = 0
    timeout_seconds: int = 1
    period_seconds: int = 10
    success_threshold: int = 1
    failure_threshold: int = 3
    termination_grace_period_seconds: int | None = None


class LifecycleHandler(Wire, frozen=True, kw_only=True):
    """What is done at a moment of a container's life."""

    exec: ExecAction | None = None
    http_get: HttpGetAction | None = None
    tcp_socket: TcpSocketAction | None = None
    sleep: SleepAction | None = None


class Lifecycle(Wire, frozen=True, kw_only=True):
    """What is done after a container's start and before its end."""

    post_start: LifecycleHandler | None = None
    pre_stop: LifecycleHandler | None = None
    stop_signal: str = ""


# Rights


class Capabilities(Wire, frozen=True, kw_only=True):
    """Capabilities beyond the usual ones, and those of them taken away."""

    add: list[str] = []
    drop: list[str] = []


class SeccompProfile(Wire, frozen=True, kw_only=True):
    """Which system calls a container may make."""

    type: str = ""
    localhost_profile: str = ""


class SecurityContext(Wire, frozen=True, kw_only=True):
    """Who a container runs as, and what it may do."""

    run_as_user: int | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    privileged: bool = False
    read_only_root_filesystem: bool = False
    allow_privilege_escalation: bool | None = None
    capabilities: Capabilities = Capabilities()
    seccomp_profile: SeccompProfile | None = None


class Sysctl(Wire, frozen=True, kw_only=True):
    """A setting of the kernel for the pod's namespaces."""

    name: str = ""
    value: str = ""


class PodSecurityContext(Wire, frozen=True, kw_only=True):
    """What holds for all containers that say nothing else."""

    run_as_user: int | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    fs_group: int | None = None
    supplemental_groups: list[int] = []
    sysctls: list[Sysctl] = []
    seccomp_profile: SeccompProfile | None = None


# Volumes


class KeyToPath(Wire, frozen=True, kw_only=True):
    """A key, and the file that it becomes."""

    key: str = ""
    path: str = ""
    mode: int | None = None


class ConfigMapSource(Wire, frozen=True, kw_only=True):
    """Keys of a ConfigMap as files."""

    name: str = ""
    items: list[KeyToPath] = []
    default_mode: int | None = None
    optional: bool = False


class SecretSource(Wire, frozen=True, kw_only=True):
    """Keys of a Secret as files; a volume names it otherwise than a part of a projected volume does."""

    secret_name: str = ""
    name: str = ""
    items: list[KeyToPath] = []
    default_mode: int | None = None
    optional: bool = False


class DownwardFile(Wire, frozen=True, kw_only=True):
    """A field of the pod as a file."""

    path: str = ""
    field_ref: FieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    mode: int | None = None


class DownwardSource(Wire, frozen=True, kw_only=True):
    """Fields of the pod as files."""

    items: list[DownwardFile] = []
    default_mode: int | None = None


class TokenSource(Wire, frozen=True, kw_only=True):
    """A token of the pod's account, renewed before it expires."""

    path: str = ""
    audience: str = ""
    expiration_seconds: int = 3600


class ProjectedPart(Wire, frozen=True, kw_only=True):
    """One source of a projected volume."""

    config_map: ConfigMapSource | None = None
    secret: SecretSource | None = None
    downward_api: DownwardSource | None = msgspec.field(default=None, name="downwardAPI")
    service_account_token: TokenSource | None = None


class ProjectedSource(Wire, frozen=True, kw_only=True):
    """Several sources in one folder."""

    sources: list[ProjectedPart] = []
    default_mode: int | None = None


class EmptyDirSource(Wire, frozen=True, kw_only=True):
    """A folder that lives as long as the pod; ``Memory`` keeps it in memory."""

    medium: str = ""
    size_limit: QuantityString | None = None


class HostPathSource(Wire, frozen=True, kw_only=True):
    """A file or folder of the node."""

    path: str = ""
    type: str = ""


class ClaimDetails(ClaimSource, frozen=True, kw_only=True):
    """A volume that is a persistent volume claim, and how it is mounted."""

    read_only: bool = False


class ImageSource(Wire, frozen=True, kw_only=True):
    """The files of an image."""

    reference: str = ""
    pull_policy: str = ""


class VolumeDetails(PodVolume, frozen=True, kw_only=True):
    """A volume of a pod. Exactly one source is set; one that is not named here cannot be run on our nodes."""

    empty_dir: EmptyDirSource | None = None
    config_map: ConfigMapSource | None = None  # type: ignore[assignment]  # more of the same on the wire
    secret: SecretSource | None = None
    downward_api: DownwardSource | None = msgspec.field(default=None, name="downwardAPI")
    projected: ProjectedSource | None = None  # type: ignore[assignment]
    host_path: HostPathSource | None = None
    image: ImageSource | None = None
    persistent_volume_claim: ClaimDetails | None = None


class VolumeMount(Wire, frozen=True, kw_only=True):
    """Where a container finds a volume."""

    name: str = ""
    mount_path: str = ""
    sub_path: str = ""
    sub_path_expr: str = ""
    read_only: bool = False


# Restarts


class ExitCodes(Wire, frozen=True, kw_only=True):
    """Exit codes, or all but those."""

    operator: str = ""
    values: list[int] = []


class RestartRule(Wire, frozen=True, kw_only=True):
    """What is done after an end with such a code, whatever the policy says."""

    action: str = ""
    exit_codes: ExitCodes | None = None


# Pods


class ContainerDetails(Container, frozen=True, kw_only=True):
    """One container of a pod, with all that says how it is run."""

    command: list[str] = []
    args: list[str] = []
    working_dir: str = ""
    env: list[EnvVar] = []  # type: ignore[assignment]  # more of the same on the wire
    env_from: list[EnvFromSource] = []  # type: ignore[assignment]
    restart_policy_rules: list[RestartRule] = []
    volume_mounts: list[VolumeMount] = []  # type: ignore[assignment]
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    lifecycle: Lifecycle = Lifecycle()
    termination_message_path: str = "/dev/termination-log"
    termination_message_policy: str = "File"
    image_pull_policy: str = ""
    security_context: SecurityContext = SecurityContext()
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False
    target_container_name: str = ""
    """Of an ephemeral container: whose processes it shares."""

    def __post_init__(self) -> None:
        """Forgets nothing: its variables are what it is run with."""


class HostAlias(Wire, frozen=True, kw_only=True):
    """Names for an address in /etc/hosts."""

    ip: str = ""
    hostnames: list[str] = []


class DnsOption(Wire, frozen=True, kw_only=True):
    """An option of the resolver."""

    name: str = ""
    value: str | None = None


class DnsConfig(Wire, frozen=True, kw_only=True):
    """What is added to /etc/resolv.conf."""

    nameservers: list[str] = []
    searches: list[str] = []
    options: list[DnsOption] = []


class PodDetailsSpec(PodSpec, frozen=True, kw_only=True):
    """What a pod is to be, with all that says how it is run."""

    containers: list[ContainerDetails] = []  # type: ignore[assignment]  # more of the same on the wire
    init_containers: list[ContainerDetails] = []  # type: ignore[assignment]
    ephemeral_containers: list[ContainerDetails] = []
    volumes: list[VolumeDetails] = []  # type: ignore[assignment]
    service_account_name: str = ""
    automount_service_account_token: bool | None = None
    enable_service_links: bool = True
    share_process_namespace: bool = False
    host_pid: bool = msgspec.field(default=False, name="hostPID")
    host_ipc: bool = msgspec.field(default=False, name="hostIPC")
    host_aliases: list[HostAlias] = []
    dns_policy: str = "ClusterFirst"
    dns_config: DnsConfig | None = None
    set_hostname_as_fqdn: bool | None = msgspec.field(default=None, name="setHostnameAsFQDN")
    hostname_override: str | None = None
    security_context: PodSecurityContext = PodSecurityContext()
    image_pull_secrets: list[NamedReference] = []
    resource_claims: list[dict[str, Any]] = []  # type: ignore[assignment]
    runtime_class_name: str = ""


class ContainerStatusDetails(ContainerStatus, frozen=True, kw_only=True):
    """How one container is, as its agent goes on from after a restart of its own."""

    started: bool | None = None
    """Whether it runs and has passed its startup probe."""
    image: str = ""
    image_id: str = msgspec.field(default="", name="imageID")


class PodDetailsStatus(PodStatus, frozen=True, kw_only=True):
    """How a pod is, its ephemeral containers among the rest."""

    container_statuses: list[ContainerStatusDetails] = []  # type: ignore[assignment]  # more of the same on the wire
    init_container_statuses: list[ContainerStatusDetails] = []  # type: ignore[assignment]
    ephemeral_container_statuses: list[ContainerStatusDetails] = []


class PodDetails(Pod, frozen=True, kw_only=True):
    """A pod in full."""

    spec: PodDetailsSpec = PodDetailsSpec()
    status: PodDetailsStatus = PodDetailsStatus()


POD_DETAILS = Resource(type=PodDetails, group="", version="v1", kind="Pod", plural="pods")
