"""``shoal operator``: the controllers of Shoal's kinds, alone, on a cluster that is there."""

from __future__ import annotations

import enum
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
from shoal.cli.gates import FeatureGatesOption, Gate, job_set_settings, open_gates

if TYPE_CHECKING:
    from shoal.gangs.configuration import OperatorConfiguration
    from shoal.kube import Connection, Election, Manager
    from shoal.training.plugins import StatusServer

EXAMPLES = {
    "shoal operator": "Run all controllers on the cluster of the current kubeconfig",
    "shoal operator --enable gangs --leader-elect": "Run those of gangs, in several processes of which one works",
    "shoal operator --config grove.yaml": "Take over the configuration of Grove's operator",
    "shoal crds | kubectl apply --server-side -f -": "Install the kinds first",
}

_IN_GANGS = "grove.io/podgang"
"""The pods that the controllers of gangs look at: all that name a gang."""


class Part(enum.StrEnum):
    """What can be left out by naming the others with ``--enable``."""

    GANGS = "gangs"
    TRAINING = "training"


def operator(
    config: ConfigOption = None,
    enable: Annotated[
        list[Part] | None,
        typer.Option(
            "--enable", metavar="PART", help=f"Run these controllers alone: {', '.join(Part)}; may be repeated."
        ),
    ] = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    metrics_bind_address: Annotated[
        str | None,
        typer.Option(
            "--metrics-bind-address", metavar="ADDRESS", help="Where /metrics is; 0: nowhere.", show_default=":8080"
        ),
    ] = None,
    health_probe_bind_address: HealthOption = None,
    leader_elect: Annotated[
        bool, typer.Option("--leader-elect", help="Work only while holding a lease, so that several may run.")
    ] = False,
    leader_elect_namespace: Annotated[
        str,
        typer.Option("--leader-elect-namespace", metavar="NAME", help="Where the lease is; the pod's own by default."),
    ] = "",
    feature_gates: FeatureGatesOption = "",
    log_level: LogLevelOption = None,
) -> None:
    """Run Shoal's controllers on a cluster, until SIGTERM or Ctrl-C.

    Needs the kinds of shoal crds there, and the rights of deploy/operator.yaml.
    """
    configuration = operator_configuration(config)
    said = configuration.server if configuration else None
    metrics = address_of(
        metrics_bind_address, said.metrics if said else None, default=":8080", option="--metrics-bind-address"
    )
    health = address_of(
        health_probe_bind_address,
        said.health_probes if said else None,
        default=":8081",
        option="--health-probe-bind-address",
    )
    from shoal.cli.processes.loops import run_loop  # noqa: PLC0415 - other commands do without
    from shoal.kube import HttpTransport, Manager, Settings, load_connection, run_until_signalled  # noqa: PLC0415

    set_up_logs(configuration, log_level)
    connection = load_connection(kubeconfig, context)
    settings = Settings(metrics_address=metrics, health_address=health, rate_limit=_rate_limit(configuration))
    wanted = enable or list(Part)
    gates = open_gates(feature_gates)

    async def run() -> None:
        manager = Manager(
            HttpTransport(connection),
            name="shoal-operator",
            election=_election(
                configuration, asked=leader_elect, chosen=leader_elect_namespace, own=connection.namespace
            ),
            settings=settings,
        )
        try:
            if Part.GANGS in wanted:
                await _add_gangs(manager, configuration, connection.namespace)
            if Part.TRAINING in wanted:
                _add_training(manager, connection, gates)
            await run_until_signalled(manager)
        finally:
            await manager.client.close()

    run_loop(run())


async def _add_gangs(manager: Manager, configuration: OperatorConfiguration | None, namespace: str) -> None:
    """Adds the controllers of gangs, once it is clear that the cluster has what they are told to use."""
    from shoal.gangs.compute_domains import check_compute_domains  # noqa: PLC0415
    from shoal.gangs.everything import add_gangs  # noqa: PLC0415

    settings = gang_settings(configuration, namespace=namespace, pod_selector=_IN_GANGS)
    await check_compute_domains(manager.client, settings)
    add_gangs(manager, settings)


def _add_training(manager: Manager, connection: Connection, gates: frozenset[Gate]) -> None:
    from shoal.training.everything import add_training  # noqa: PLC0415 - as above
    from shoal.training.settings import TrainingSettings  # noqa: PLC0415

    server = _add_progress(manager, connection) if Gate.TRAIN_JOB_STATUS in gates else None
    add_training(manager, TrainingSettings(status_server=server, job_sets=job_set_settings(gates)))


def _add_progress(manager: Manager, connection: Connection) -> StatusServer:
    """The server that training programs report to, behind the Service of deploy/training.yaml."""
    from shoal.kube import Client, HttpTransport  # noqa: PLC0415 - as above
    from shoal.kube.admission import Policy, SecretStore, SelfMade  # noqa: PLC0415
    from shoal.training.progress import add_progress  # noqa: PLC0415
    from shoal.training.rbac import ACCOUNT, STATUS_CERTIFICATE  # noqa: PLC0415

    client = Client(HttpTransport(connection))
    namespace = connection.namespace or "default"
    store = SecretStore(client, namespace=namespace, name=STATUS_CERTIFICATE)
    policy = Policy(names=(f"{ACCOUNT}.{namespace}.svc",))
    return add_progress(manager, client, SelfMade(store, policy), service=ACCOUNT, namespace=namespace)


def _election(configuration: OperatorConfiguration | None, *, asked: bool, chosen: str, own: str) -> Election | None:
    from shoal.gangs.configuration import seconds_of  # noqa: PLC0415
    from shoal.kube import Election  # noqa: PLC0415

    if configuration is None:
        return Election(name="shoal-operator", namespace=chosen or own) if asked else None
    said = configuration.leader_election
    if not (asked or said.enabled):
        return None
    return Election(
        name=said.resource_name,
        namespace=chosen or said.resource_namespace or own,
        duration=seconds_of(said.lease_duration),
        renew_within=seconds_of(said.renew_deadline),
        retry_every=seconds_of(said.retry_period),
    )


def _rate_limit(configuration: OperatorConfiguration | None) -> tuple[float, int] | None:
    if configuration is None:
        return None
    said = configuration.runtime_client_connection
    return (said.qps, max(1, said.burst)) if said.qps > 0 else None
