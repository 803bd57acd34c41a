"""``shoal webhooks``: defaults and checks of Shoal's kinds, served to the API server of a cluster that is there."""

from __future__ import annotations

import enum
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.connecting import (
    ConfigOption,
    ContextOption,
    HealthOption,
    KubeconfigOption,
    LogLevelOption,
    address_of,
    gang_settings,
    operator_configuration,
    set_up_logs,
)
from shoal.cli.gates import FeatureGatesOption, job_set_settings, open_gates

if TYPE_CHECKING:
    from shoal.cli.processes.offers import SchedulerAdmission
    from shoal.gangs.configuration import WebhookServer
    from shoal.kube import Manager
    from shoal.kube.admission import AdmissionServer, CertificateSource

EXAMPLES = {
    "shoal webhooks --service shoal-webhooks --namespace shoal": "Serve behind a Service of the cluster",
    "shoal webhooks --url https://10.0.0.7:9443": "Serve at an address that the API server reaches by itself",
    "shoal webhooks --cert-dir /certs --service shoal-webhooks": "With certificates that cert-manager lays there",
    "shoal webhooks --only scheduler --gpu-sharing-enabled": "The scheduler's alone, where pods may share GPUs",
}

_PORT = 9443
_LARGEST_PORT = 65535
_SERVICE, _SECRET = "shoal-webhooks", "shoal-webhook-cert"


class Side(enum.StrEnum):
    """Whose webhooks: each side's may be left to others, who register theirs under the same names."""

    GANGS = "gangs"
    TRAINING = "training"
    SCHEDULER = "scheduler"


def webhooks(
    config: ConfigOption = None,
    service: Annotated[
        str, typer.Option("--service", metavar="NAME", help="The Service in front of this server.")
    ] = _SERVICE,
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace", "-n", metavar="NAME", help="Of the Service and the certificates; the pod's own by default."
        ),
    ] = "",
    url: Annotated[
        str | None,
        typer.Option("--url", metavar="URL", help="Where the API server finds this server, instead of a Service."),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", metavar="PORT", help="Where it listens.", show_default=str(_PORT)),
    ] = None,
    cert_dir: Annotated[
        Path | None,
        typer.Option(
            "--cert-dir", metavar="DIR", help="Serve the tls.crt and tls.key of this folder, and follow them."
        ),
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(
            "--only", metavar="SIDE,…", help=f"Serve these alone, and leave the others to others: {', '.join(Side)}."
        ),
    ] = None,
    scheduler_name: Annotated[
        list[str] | None,
        typer.Option(
            "--scheduler-name",
            metavar="NAME",
            help="Whose pods may share GPUs; may be repeated.",
            show_default="kai-scheduler",
        ),
    ] = None,
    gpu_sharing_enabled: Annotated[
        bool,
        typer.Option("--gpu-sharing-enabled", help="Let pods share GPUs; otherwise those that want to are refused."),
    ] = False,
    gpu_runtime_class: Annotated[
        str,
        typer.Option(
            "--gpu-runtime-class",
            metavar="NAME",
            help="The RuntimeClass of pods that share GPUs and name none; empty for none.",
        ),
    ] = "nvidia",
    block_visible_devices: Annotated[
        bool,
        typer.Option("--block-visible-devices", help="Refuse pods that choose their devices by themselves."),
    ] = False,
    enable_quota_validation: Annotated[
        bool,
        typer.Option("--enable-quota-validation", help="Warn of quotas that a queue's parent does not cover."),
    ] = False,
    feature_gates: FeatureGatesOption = "",
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    health_probe_bind_address: HealthOption = None,
    log_level: LogLevelOption = None,
) -> None:
    """Serve the admission webhooks of Shoal's kinds, until SIGTERM or Ctrl-C.

    Registers them with the API server, with a certificate that it makes and renews, unless --cert-dir names one.
    """
    if port is not None and not 0 <= port <= _LARGEST_PORT:
        raise typer.BadParameter(f"{port} is no port, try {_PORT}", param_hint="--port")
    configuration = operator_configuration(config)
    said = configuration.server if configuration else None
    health = address_of(
        health_probe_bind_address,
        said.health_probes if said else None,
        default=":8081",
        option="--health-probe-bind-address",
    )
    host = _host_of(url) if url is not None else ""
    sides = _chosen(only)
    job_sets = job_set_settings(open_gates(feature_gates))
    from shoal.cli.processes.admission import Admission  # noqa: PLC0415 - other commands do without
    from shoal.cli.processes.loops import run_loop  # noqa: PLC0415
    from shoal.cli.processes.offers import offered  # noqa: PLC0415
    from shoal.kube import HttpTransport, Manager, Settings, load_connection, run_until_signalled  # noqa: PLC0415
    from shoal.kube.admission import AdmissionServer, ServiceEndpoint, UrlEndpoint  # noqa: PLC0415
    from shoal.training.settings import TrainingSettings  # noqa: PLC0415

    set_up_logs(configuration, log_level)
    connection = load_connection(kubeconfig, context)
    place = namespace or connection.namespace
    gangs = gang_settings(configuration, namespace=place) if Side.GANGS in sides else None
    scheduler = (
        _scheduler_admission(
            is_enabled=gpu_sharing_enabled,
            runtime_class=gpu_runtime_class,
            guards_devices=block_visible_devices,
            schedulers=tuple(scheduler_name or ()),
            warns_of_quotas=enable_quota_validation,
        )
        if Side.SCHEDULER in sides
        else None
    )
    endpoint = UrlEndpoint(url) if url is not None else ServiceEndpoint(name=service, namespace=place)
    names = (host,) if url is not None else (f"{service}.{place}.svc", f"{service}.{place}")
    chosen = port if port is not None else (said.webhooks.port if said else _PORT)

    async def run() -> None:
        transport = HttpTransport(connection)
        manager = Manager(transport, name="shoal-webhooks", settings=Settings(health_address=health))
        training = TrainingSettings(job_sets=job_sets) if Side.TRAINING in sides else None
        offer = offered(manager, endpoint, gangs=gangs, scheduler=scheduler, training=training)
        server = AdmissionServer(offer.webhooks, port=chosen)
        source = _certificates(
            manager,
            server,
            namespace=place,
            names=names,
            secret=_SECRET if service == _SERVICE else f"{service}-cert",
            cert_dir=cert_dir,
            said=said.webhooks if said else None,
        )
        Admission(manager, server, source, offer.configurations, retired=offer.retired)
        await run_until_signalled(manager)

    run_loop(run())


def _chosen(only: str | None) -> frozenset[Side]:
    """The sides of ``--only``, or all."""
    if only is None:
        return frozenset(Side)
    named = [name.strip() for name in only.split(",") if name.strip()]
    unknown = [name for name in named if name not in list(Side)]
    if unknown or not named:
        what = f"there are no webhooks of {unknown[0]}" if unknown else "it names nothing"
        raise typer.BadParameter(f"{what}: there are {', '.join(Side)}", param_hint="--only")
    return frozenset(map(Side, named))


def _scheduler_admission(
    *, is_enabled: bool, runtime_class: str, guards_devices: bool, schedulers: tuple[str, ...], warns_of_quotas: bool
) -> SchedulerAdmission:
    from shoal.cli.processes.offers import SchedulerAdmission  # noqa: PLC0415 - other commands do without
    from shoal.scheduler.admission import AdmissionSettings  # noqa: PLC0415
    from shoal.scheduler.admission.gpu_sharing import GpuSharingSettings  # noqa: PLC0415

    pods = GpuSharingSettings(is_enabled=is_enabled, runtime_class=runtime_class, guards_devices=guards_devices)
    if schedulers:
        pods = replace(pods, schedulers=schedulers)
    return SchedulerAdmission(kinds=AdmissionSettings(warns_of_quotas=warns_of_quotas), pods=pods)


def _certificates(
    manager: Manager,
    server: AdmissionServer,
    *,
    namespace: str,
    names: tuple[str, ...],
    secret: str,
    cert_dir: Path | None,
    said: WebhookServer | None,
) -> CertificateSource:
    """Somebody else's in a folder, where one is named; otherwise our own, in a Secret that all replicas share."""
    from shoal.kube.admission import FromFiles, Policy, SecretStore, SelfMade  # noqa: PLC0415

    if cert_dir is None and said is not None and said.cert_provision_mode == "manual":
        cert_dir = Path(said.server_cert_dir)
    if cert_dir is not None:
        return FromFiles(cert_dir)
    store = SecretStore(manager.client, namespace=namespace, name=said.secret_name if said else secret)
    store.follow(manager.cache, server.look_again)
    return SelfMade(store, Policy(names=names))


def _host_of(url: str) -> str:
    """The host that a certificate must be for; refuses what no API server would call."""
    from urllib.parse import urlsplit  # noqa: PLC0415 - most starts do without

    try:
        parts = urlsplit(url)
        if parts.scheme == "https" and parts.hostname and parts.port != 0:
            return parts.hostname
    except ValueError:
        pass
    raise typer.BadParameter(f"{url} is no HTTPS address, try https://10.0.0.7:9443", param_hint="--url")
