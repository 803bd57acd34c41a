"""Controllers and nodes as one process, which keeps one picture of the cluster for all of them.

Beside them it answers, on a Unix socket for the owner of the data dir: ``/readyz``, ``/metrics``, and ``/summary``, a
count of nodes and pods that the portal and ``shoal status`` show.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.api.core import NODES, Node, Pod, is_node_ready
from shoal.cli.children import Main, Reporter
from shoal.cli.components import GANG_SCHEDULERS, PLAIN_SCHEDULER, PROGRESS_SERVICE, Component
from shoal.cli.listeners import Listener
from shoal.cli.processes.admission import Admission
from shoal.cli.processes.agents import EgressPlace, agent_port
from shoal.cli.processes.loops import run_loop
from shoal.cli.processes.managing import new_manager, run_manager
from shoal.cli.processes.offers import SchedulerAdmission, offered
from shoal.cli.registrations import MARKS
from shoal.cluster.controllers.binding import add_binding
from shoal.cluster.controllers.everything import add_controllers, add_own_controllers
from shoal.cluster.indexes import all_pods
from shoal.cluster.node.process.egress import Egress
from shoal.cluster.node.simulated import Pool, add_simulated_nodes
from shoal.cluster.node.simulated.pools import POOL
from shoal.gangs.everything import add_gangs
from shoal.gangs.settings import GangSettings
from shoal.kube import Change, Client, Connection, HttpTransport, Informer, Manager, configure_logs
from shoal.kube.admission import AdmissionServer, DirectoryStore, Policy, SelfMade, UrlEndpoint
from shoal.scheduler.admission.gpu_sharing import GpuSharingSettings
from shoal.training.defaults import add_training_defaults
from shoal.training.everything import add_training
from shoal.training.jobset.settings import JobSetSettings
from shoal.training.progress import add_progress
from shoal.training.settings import TrainingSettings

if TYPE_CHECKING:
    from aiohttp import web


_SHARING = GpuSharingSettings(
    is_enabled=True,
    runtime_class="",  # no node of this cluster has one
    schedulers=GANG_SCHEDULERS,
)
"""All whose pods the scheduler places as gangs or alone; plain pods of others share no GPUs."""


@dataclass(frozen=True, kw_only=True)
class ControlOptions:
    """What runs in the process, and on which server."""

    data_dir: Path
    components: frozenset[Component]
    has_all_controllers: bool
    """False where a kube-controller-manager does the work of most of them."""
    pools: tuple[Pool, ...]
    agent: Listener | None
    """Where the agent of simulated nodes answers an API server that knows no sockets."""
    egress: EgressPlace | None
    """Where it connects to the cluster, if this process is to answer there: there is no node on this machine."""
    webhooks: Listener | None
    """Where the API server finds what checks our kinds; None where nothing does."""
    progress: Listener | None = None
    """Where training programs report how far they are; None where none can run."""

    @property
    def socket(self) -> Path:
        """Where the process answers."""
        return control_socket(self.data_dir)


def control_socket(data_dir: Path) -> Path:
    """Where the controllers' process of a data dir answers."""
    return data_dir / "controllers.sock"


def control_process(options: ControlOptions, connection: Callable[[], Connection]) -> Main:
    """The process that runs controllers and nodes."""

    def main(reporter: Reporter) -> None:
        configure_logs()
        run_loop(_control(options, connection(), reporter))

    return main


async def _control(options: ControlOptions, connection: Connection, reporter: Reporter) -> None:
    manager = new_manager(connection, "shoal")
    counts = Counts(manager)
    if Component.CONTROLLERS in options.components:
        add = add_controllers if options.has_all_controllers else add_own_controllers
        add(manager, options.data_dir)
    if Component.SCHEDULER in options.components:
        add_binding(manager, schedulers=(PLAIN_SCHEDULER,), takes_gangs=False)
    if Component.NODES in options.components:
        port = agent_port(options.data_dir, options.agent)
        add_simulated_nodes(manager, sockets=options.data_dir / "agents", pools=options.pools, port=port)
    if options.egress is not None:
        egress = Egress(None, agents=options.egress.agents)
        manager.add_service(partial(egress.run, options.egress.socket))
    gangs = GangSettings(has_topologies=True) if Component.GANGS in options.components else None
    if gangs is not None:
        add_gangs(manager, gangs)
    awaited: list[asyncio.Event] = []
    training: TrainingSettings | None = None
    if Component.TRAINING in options.components:
        training = _training(manager, options, connection)
        add_training(manager, training)
        awaited.append(add_training_defaults(manager, service=PROGRESS_SERVICE[1] if options.progress else ""))
    if options.webhooks is not None:
        awaited.append(_admission(manager, options, options.webhooks, gangs, training).ready)
    nodes = sum(pool.nodes for pool in options.pools)

    async def until_ready() -> None:
        for event in awaited:
            await event.wait()
        await counts.wait_for_simulated_nodes(nodes)

    await run_manager(manager, reporter, socket=options.socket, until_ready=until_ready, routes=[counts.route()])


def _training(manager: Manager, options: ControlOptions, connection: Connection) -> TrainingSettings:
    """How training is run; where programs can run for real, with a server that they report to."""
    # All Jobs and pods are kept for other controllers in any case.
    job_sets = JobSetSettings(selector="", restarts_single_jobs=True, restarts_in_place=True)
    if options.progress is None:
        return TrainingSettings(job_sets=job_sets)
    namespace, service = PROGRESS_SERVICE
    source = SelfMade(
        DirectoryStore(options.data_dir / "pki" / "progress"), Policy(names=(f"{service}.{namespace}.svc",))
    )
    client = Client(HttpTransport(connection))
    server = add_progress(
        manager, client, source, service=service, namespace=namespace, listener=options.progress.socket
    )
    return TrainingSettings(job_sets=job_sets, status_server=server)


def _admission(
    manager: Manager,
    options: ControlOptions,
    listener: Listener,
    gangs: GangSettings | None,
    training: TrainingSettings | None,
) -> Admission:
    """Adds what checks and completes the kinds of gangs, of training and of the scheduler."""
    scheduler = SchedulerAdmission(pods=_SHARING) if Component.SCHEDULER in options.components else None
    offer = offered(manager, UrlEndpoint(listener.url("https")), gangs=gangs, scheduler=scheduler, training=training)
    server = AdmissionServer(offer.webhooks, listener=listener.socket)
    source = SelfMade(DirectoryStore(options.data_dir / "pki" / "webhooks"), Policy(names=(listener.host,)))
    return Admission(manager, server, source, offer.configurations, marks=MARKS)


class Counts:
    """How many nodes and pods there are, kept by every change of one."""

    def __init__(self, manager: Manager) -> None:
        self._nodes = manager.cache.informer(NODES)
        self._pods: Informer[Pod] = all_pods(manager)
        self._ready_nodes = 0
        self._ready_simulated = 0
        self._phases: Counter[str] = Counter()
        self._changed = asyncio.Event()
        self._nodes.subscribe(self._node_changed)
        self._pods.subscribe(self._pod_changed)

    def summary(self) -> dict[str, Any]:
        """What there is."""
        phases = {phase: count for phase, count in sorted(self._phases.items()) if count}
        return {"nodes": {"total": len(self._nodes.store), "ready": self._ready_nodes}, "pods": phases}

    def route(self) -> web.RouteDef:
        """Serves the summary."""
        from aiohttp import web  # noqa: PLC0415 - as in probes

        async def summary(_request: web.Request) -> web.Response:
            return web.json_response(self.summary())

        return web.get("/summary", summary)

    async def wait_for_simulated_nodes(self, count: int) -> None:
        """Waits until so many nodes of pools are ready; this machine's is told of by its own process."""
        while self._ready_simulated < count:
            self._changed.clear()
            await self._changed.wait()

    def _node_changed(self, change: Change[Node]) -> None:
        more = _is_ready(change.after) - _is_ready(change.before)
        self._ready_nodes += more
        self._ready_simulated += more * (POOL in change.latest.metadata.labels)
        self._changed.set()

    def _pod_changed(self, change: Change[Pod]) -> None:
        if change.before is not None:
            self._phases[change.before.status.phase] -= 1
        if change.after is not None:
            self._phases[change.after.status.phase] += 1


def _is_ready(node: Node | None) -> bool:
    return node is not None and is_node_ready(node)
