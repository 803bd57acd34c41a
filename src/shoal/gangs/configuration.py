"""The operator's configuration file: Grove's ``OperatorConfiguration``, read as it is.

What of it has no meaning here (client content types, profiling, certificate directories of another program) is accepted
and does nothing; a field that nobody knows is refused by its name, since such a mistake would otherwise be silent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from shoal.api.meta import InvalidDuration, parse_duration
from shoal.gangs.backends.koordinator import SCHEDULER as KOORDINATOR
from shoal.gangs.backends.koordinator import Koordinator
from shoal.gangs.settings import Authorizing, GangSettings, Workers

API_VERSION = "operator.config.grove.io/v1alpha1"
KIND = "OperatorConfiguration"
DEFAULT_SCHEDULER = "default-scheduler"


class ConfigurationError(Exception):
    """The file is not as it must be: says which field, what is wrong, and what to write instead."""


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A section of the file."""


class ClientConnection(_Part, frozen=True, kw_only=True):
    """How many requests the operator may send."""

    qps: float = 100.0
    burst: int = 120
    content_type: str = ""
    accept_content_types: str = ""


class LeaderElection(_Part, frozen=True, kw_only=True):
    """Whether one of several operators works, and by which lease."""

    enabled: bool = False
    lease_duration: str = "15s"
    renew_deadline: str = "10s"
    retry_period: str = "2s"
    resource_lock: str = "leases"
    resource_name: str = "grove-operator-leader-election"
    resource_namespace: str = ""


class Server(_Part, frozen=True, kw_only=True):
    """Where something is served."""

    bind_address: str = ""
    port: int


class WebhookServer(_Part, frozen=True, kw_only=True):
    """Where webhooks are served, and with which certificate."""

    bind_address: str = ""
    port: int = 2750
    server_cert_dir: str = "/etc/grove-operator/webhook-certs"
    secret_name: str = "grove-webhook-server-cert"  # noqa: S105 - the name of a Secret
    cert_provision_mode: Literal["auto", "manual"] = "auto"


class Servers(_Part, frozen=True, kw_only=True):
    """What is served where."""

    webhooks: WebhookServer = WebhookServer()
    health_probes: Server = Server(port=2751)
    metrics: Server = Server(port=2752)


class Debugging(_Part, frozen=True, kw_only=True):
    """Go's profiler, which is not here."""

    enable_profiling: bool = False
    pprof_bind_host: str = "127.0.0.1"
    pprof_bind_port: int = 2753


class Concurrency(_Part, frozen=True, kw_only=True):
    """How many objects of one kind are worked on at once."""

    concurrent_syncs: int | None = None


class Controllers(_Part, frozen=True, kw_only=True):
    """How many objects of each kind are worked on at once."""

    pod_clique_set: Concurrency = Concurrency()
    pod_clique: Concurrency = Concurrency()
    pod_clique_scaling_group: Concurrency = Concurrency()
    pod_gang: Concurrency = Concurrency()


class AuthorizerSection(_Part, frozen=True, kw_only=True):
    """Whether what is made for a set is protected from others."""

    enabled: bool = False
    exempt_service_account_user_names: list[str] = []


class Switch(_Part, frozen=True, kw_only=True):
    """A feature that is on or off."""

    enabled: bool = False


class Network(_Part, frozen=True, kw_only=True):
    """What is done for fast networks between GPUs."""

    auto_mnnvl_enabled: bool = msgspec.field(name="autoMNNVLEnabled", default=False)


class Profile(_Part, frozen=True, kw_only=True):
    """A scheduler that is there."""

    name: str
    config: dict[str, Any] | None = None


class Schedulers(_Part, frozen=True, kw_only=True):
    """The schedulers that are there, and the one of pods that name none."""

    profiles: list[Profile] = []
    default_profile_name: str = ""


class OperatorConfiguration(_Part, frozen=True, kw_only=True):
    """The whole file."""

    api_version: str
    kind: str
    runtime_client_connection: ClientConnection = ClientConnection()
    leader_election: LeaderElection = LeaderElection()
    server: Servers = Servers()
    debugging: Debugging | None = None
    controllers: Controllers = Controllers()
    log_level: Literal["debug", "info", "error"] = "info"
    log_format: Literal["json", "text"] = "json"
    authorizer: AuthorizerSection = AuthorizerSection()
    topology_aware_scheduling: Switch = Switch()
    cluster_topology: Switch = Switch()
    """What ``topologyAwareScheduling`` was called before."""
    network: Network = Network()
    scheduler: Schedulers = Schedulers()

    @property
    def default_scheduler(self) -> str:
        """The scheduler of pods that name none."""
        return self.scheduler.default_profile_name or DEFAULT_SCHEDULER

    def settings(self, *, operator_user: str = "", start_image: str = "", pod_selector: str = "") -> GangSettings:
        """What the file means for controllers and admission."""
        usual = GangSettings()
        controllers = self.controllers
        exempt = frozenset(self.authorizer.exempt_service_account_user_names)
        return GangSettings(
            default_scheduler=self.default_scheduler,
            has_topologies=self.topology_aware_scheduling.enabled or self.cluster_topology.enabled,
            has_mnnvl=self.network.auto_mnnvl_enabled,
            start_image=start_image or usual.start_image,
            pod_selector=pod_selector,
            workers=Workers(
                sets=controllers.pod_clique_set.concurrent_syncs or usual.workers.sets,
                cliques=controllers.pod_clique.concurrent_syncs or usual.workers.cliques,
                groups=controllers.pod_clique_scaling_group.concurrent_syncs or usual.workers.groups,
                gangs=controllers.pod_gang.concurrent_syncs or usual.workers.gangs,
            ),
            profiles={profile.name: profile.config for profile in self.scheduler.profiles if profile.config},
            authorizing=Authorizing(
                is_enabled=self.authorizer.enabled, exempt_users=exempt, operator_user=operator_user
            ),
        )


def read_configuration(text: str | bytes) -> OperatorConfiguration:
    """The configuration of a YAML or JSON text; raises ConfigurationError."""
    try:
        configuration = msgspec.yaml.decode(text, type=OperatorConfiguration)
    except msgspec.DecodeError as error:
        raise ConfigurationError(_readable(str(error))) from error
    if problem := next(_problems(configuration), None):
        raise ConfigurationError(problem)
    return configuration


def _problems(configuration: OperatorConfiguration) -> Iterator[str]:
    if (configuration.api_version, configuration.kind) != (API_VERSION, KIND):
        yield f"it is {configuration.api_version} {configuration.kind}: write {API_VERSION} {KIND}"
    if configuration.runtime_client_connection.burst < 0:
        yield f"runtimeClientConnection.burst is {configuration.runtime_client_connection.burst}: write 0 or more"
    election = configuration.leader_election
    times = {
        "leaseDuration": election.lease_duration,
        "renewDeadline": election.renew_deadline,
        "retryPeriod": election.retry_period,
    }
    wrong = [name for name, value in times.items() if seconds_of(value) <= 0]
    for name in wrong:
        yield f"leaderElection.{name} is {times[name]}: write a time such as 15s"
    if not wrong and seconds_of(election.lease_duration) <= seconds_of(election.renew_deadline):
        yield (
            f"leaderElection.leaseDuration ({election.lease_duration}) must be longer than renewDeadline "
            f"({election.renew_deadline})"
        )
    if not wrong and seconds_of(election.renew_deadline) <= seconds_of(election.retry_period):
        yield (
            f"leaderElection.renewDeadline ({election.renew_deadline}) must be longer than retryPeriod "
            f"({election.retry_period})"
        )
    for field in msgspec.structs.fields(Controllers):
        syncs = getattr(configuration.controllers, field.name).concurrent_syncs
        if syncs is not None and syncs <= 0:
            yield f"controllers.{field.encode_name}.concurrentSyncs is {syncs}: write 1 or more"
    names = [profile.name for profile in configuration.scheduler.profiles]
    for name in names:
        if names.count(name) > 1:
            yield f"scheduler.profiles names {name} twice: leave one out"
    for place, profile in enumerate(configuration.scheduler.profiles):
        if profile.name == KOORDINATOR:
            try:
                Koordinator.configured(profile.config or {})
            except msgspec.ValidationError as error:
                yield _readable(str(error), f"scheduler.profiles[{place}].config")
    wanted = configuration.scheduler.default_profile_name
    if wanted and wanted != DEFAULT_SCHEDULER and wanted not in names:
        listed = ", ".join([*names, DEFAULT_SCHEDULER])
        yield f"scheduler.defaultProfileName is {wanted}, which is no profile: add it, or write one of {listed}"


def seconds_of(text: str) -> float:
    """A time of the file in seconds; 0 where it is none."""
    try:
        return parse_duration(text).seconds
    except InvalidDuration:
        return 0.0


def _readable(problem: str, within: str = "") -> str:
    """msgspec's sentence with the field as the file spells it: ``$.server.port`` is ``server.port``."""
    sentence, _, place = problem.partition(" - at `$")
    place = (within + place.rstrip("`")).lstrip(".")
    return f"{place}: {sentence}" if place else sentence
