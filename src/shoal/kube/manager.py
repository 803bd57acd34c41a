"""Runs controllers as one process, and stops them in the right order.

Start: probes answer first (so that a slow start is seen as alive), then every informer reads its kind, also in a
process that only stands by, so that taking over is quick; then the lease is taken; then controllers work. Stop: no new
work is begun, what runs may finish, events are flushed, the lease is given up, and the informers go last, since a
reconcile that is finishing still reads from them. A lost lease is no stop but a fall: nothing more is written, not even
what had begun.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import structlog

from shoal.api.meta.resource import DecodeError, Resource
from shoal.kube.backoff import TokenBucket
from shoal.kube.cache import Cache
from shoal.kube.calm import BUSY, Calm
from shoal.kube.client import Client, Retry
from shoal.kube.controller import Controller
from shoal.kube.events import About, Recorder
from shoal.kube.leases import Election, Elector, Fence, FencedTransport
from shoal.kube.metrics import Metrics
from shoal.kube.probes import Probes, metrics_route, serving
from shoal.kube.reflector import Pace
from shoal.kube.transport import Transport
from shoal.kube.writer import Writer

log = structlog.get_logger("shoal.kube.manager")

FALL = 2.0
"""Seconds that the work has to end after the lease is lost."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a manager runs; every field has the value that suits a cluster."""

    metrics_address: str | None = None
    """``host:port`` of /metrics; None serves none."""
    health_address: str | None = None
    """``host:port`` of /healthz and /readyz; may be the same as that of the metrics."""
    namespace: str = ""
    """Watch this namespace alone; empty means all."""
    sync_within: float = 300.0
    """Seconds until every kind must have been read once."""
    grace: float = 30.0
    """Seconds that running reconciles have to finish when the process stops."""
    rate_limit: tuple[float, int] | None = None
    """Requests per second and burst; None leaves fairness to the server's own."""
    pace: Pace = Pace()
    debounce: float = 1.0
    """The share of its usual delay for which a controller puts off status writes that nothing waits for."""


class Manager:
    """Holds what controllers share (client, cache, events, metrics) and runs them."""

    def __init__(
        self,
        transport: Transport,
        *,
        name: str,
        election: Election | None = None,
        settings: Settings = Settings(),
        metrics: Metrics | None = None,
    ) -> None:
        self.name = name
        self.metrics = metrics or Metrics()
        self.probes = Probes()
        self._settings = settings
        self.debounce = settings.debounce
        self._transport = transport
        self._fence = Fence()
        limit = settings.rate_limit
        self.client = Client(
            FencedTransport(transport, self._fence),
            metrics=self.metrics,
            rate_limit=TokenBucket(rate=limit[0], burst=limit[1]) if limit else None,
            host=transport.host,
        )
        self.cache = Cache(self.client, namespace=settings.namespace, pace=settings.pace)
        self.calm = Calm(self._load)
        self.events = Recorder(self.client, name, calm=self.calm)
        self._elector: Elector | None = None
        if election is not None:
            # A renewal that hangs must leave time for another one.
            unfenced = Client(
                transport,
                metrics=self.metrics,
                retry=Retry(within=election.retry_every),
                timeout=election.renew_within / 2,
                host=transport.host,
            )
            self._elector = Elector(unfenced, election, self._fence)
        self._controllers: list[Controller] = []
        self._services: list[Callable[[], Awaitable[None]]] = []
        self._leader_tasks: list[Callable[[], Awaitable[None]]] = []
        self._stop = asyncio.Event()
        self._ready = asyncio.Event()
        self._working = asyncio.Event()
        self.metrics_port = 0
        self.health_port = 0
        self.probes.add_ready("informers", self._informers_check)

    def add(self, controller: Controller) -> None:
        """Adds a controller; it works while this process leads."""
        if controller.name in [known.name for known in self._controllers]:
            raise ValueError(f"there is a controller {controller.name!r} already: choose another name")
        controller.connect(self.cache, self.metrics, self._on_undecodable, self._on_problem, self.calm)
        self._controllers.append(controller)

    def add_service(self, service: Callable[[], Awaitable[None]]) -> None:
        """Adds something that runs in every process, leading or not, such as a webhook server."""
        self._services.append(service)

    def add_leader_task(self, task: Callable[[], Awaitable[None]]) -> None:
        """Adds something that runs only while this process leads."""
        self._leader_tasks.append(task)

    def writer(self, field_manager: str) -> Writer:
        """How a controller writes, under a field manager of its own."""
        return Writer(self.client, field_manager)

    @property
    def is_idle(self) -> bool:
        """Whether no controller has anything to do, now or later, unless something changes."""
        return all(controller.queue.is_idle for controller in self._controllers)

    def stop(self) -> None:
        """Asks ``run`` to end in good order."""
        self._stop.set()

    async def wait_until_ready(self) -> None:
        """Waits until every kind has been read."""
        await self._ready.wait()

    async def wait_until_working(self) -> None:
        """Waits until the controllers of this process work: with an election, until it leads."""
        await self._working.wait()

    async def run(self) -> None:
        """Runs until ``stop`` is called; raises NotLeading where the lease is lost, and whatever a part raises."""
        async with AsyncExitStack() as stack:
            await self._serve_probes(stack)
            background = [
                asyncio.create_task(self.cache.run(), name="informers"),
                asyncio.create_task(self._measure_lag(), name="loop lag"),
                *(asyncio.ensure_future(service()) for service in self._services),
            ]
            stack.push_async_callback(_end, background)
            stopping = asyncio.create_task(self._stop.wait(), name="stop")
            stack.push_async_callback(_end, [stopping])
            lead = asyncio.create_task(self._sync_and_lead(), name="lead")
            stack.push_async_callback(_end, [lead])
            watched = {stopping, lead, *background}
            while watched and not self._stop.is_set() and not lead.done():
                done, watched = await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()  # a part that failed ends the whole; a service may also just have done its work
            # Where stopping was asked for, the leading part winds down by itself once it sees that.
            await lead

    async def _sync_and_lead(self) -> None:
        started = time.monotonic()
        if not await self._unless_stopped(self.cache.wait_for_sync(self._settings.sync_within)):
            return
        self._ready.set()
        log.info("informers have synced", manager=self.name, seconds=round(time.monotonic() - started, 3))
        if self._elector is None:
            await self._work()
            return
        try:
            if await self._unless_stopped(self._elector.acquire()):
                await self._work_while_leading(self._elector)
        finally:
            await self._elector.release()

    async def _work_while_leading(self, elector: Elector) -> None:
        """Works and renews; if the lease is lost the work is cut off, not wound down."""
        holding = asyncio.create_task(elector.hold(), name="lease")
        working = asyncio.create_task(self._work(), name="work")
        try:
            await asyncio.wait([holding, working], return_when=asyncio.FIRST_COMPLETED)
            if holding.done() and not working.done():
                # A reconcile that does not let itself be cancelled cannot write either, and must not keep us here.
                await _end([working], within=FALL)
                self._working.clear()
                await holding
            await working
        finally:
            await _end([holding, working], within=FALL)

    async def _work(self) -> None:
        """Runs the controllers until stop is asked for, then lets what runs finish."""
        events = asyncio.create_task(self.events.run(), name="events")
        workers = [asyncio.create_task(controller.run(), name=controller.name) for controller in self._controllers]
        tasks = [asyncio.ensure_future(task()) for task in self._leader_tasks]
        stopping = asyncio.create_task(self._stop.wait())
        self._working.set()
        try:
            watched = {stopping, events, *workers, *tasks}
            while not self._stop.is_set():
                done, watched = await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            for controller in self._controllers:
                controller.queue.close()
            await _end(tasks)
            if workers:
                _, late = await asyncio.wait(workers, timeout=self._settings.grace)
                if late:
                    log.warning("reconciles did not finish in time", controllers=[task.get_name() for task in late])
            await self.events.flush(within=2.0)
        finally:
            self._working.clear()
            await _end([stopping, events, *workers, *tasks], within=FALL)

    async def _unless_stopped(self, awaitable: Awaitable[None]) -> bool:
        """Waits for something, but not past a stop; says whether it came about."""
        waiting = asyncio.ensure_future(awaitable)
        stopping = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait([waiting, stopping], return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                return False
            await waiting
            return not self._stop.is_set()
        finally:
            await _end([waiting, stopping])

    async def _serve_probes(self, stack: AsyncExitStack) -> None:
        health, metrics = self._settings.health_address, self._settings.metrics_address
        if health is not None:
            routes = self.probes.routes()
            if metrics == health:
                routes.append(metrics_route(self.metrics.registry))
            self.health_port = await stack.enter_async_context(serving(routes, health))
        if metrics is not None and metrics != health:
            routes = [metrics_route(self.metrics.registry)]
            self.metrics_port = await stack.enter_async_context(serving(routes, metrics))
        elif metrics is not None:
            self.metrics_port = self.health_port

    def _load(self) -> int:
        """What is to be done before what can wait: requests under way, and keys of controllers that do not yield."""
        load = self.client.under_way
        for controller in self._controllers:
            if load >= BUSY:
                break  # it is asked for often, and how much more it is does not matter
            load += 0 if controller.yields else len(controller.queue)
        return load

    def _informers_check(self) -> str:
        if self._stop.is_set():
            return "shutting down"
        vital = [informer for informer in self.cache.informers if informer.is_vital]
        late = [str(informer.resource) for informer in vital if not informer.has_synced]
        return f"not read yet: {', '.join(late)}" if late else ""

    def _on_undecodable(self, error: DecodeError) -> None:
        self.events.warning(About.undecodable(error), "DecodeFailed", error.problem)

    def _on_problem(self, resource: Resource[Any], found: Any, problem: str) -> None:
        self.events.warning(About.of(resource, found), "ReconcileFailed", problem)

    async def _measure_lag(self) -> None:
        """How late the loop comes back to us tells how late it comes to everyone."""
        while True:
            before = time.perf_counter()
            await asyncio.sleep(1.0)
            self.metrics.loop_lag.set(max(0.0, time.perf_counter() - before - 1.0))


@asynccontextmanager
async def running(manager: Manager) -> AsyncIterator[Manager]:
    """Runs a manager around a block, and stops it in good order; what made it fail is raised at the end."""
    task = asyncio.create_task(manager.run(), name=f"manager {manager.name}")
    ready = asyncio.create_task(manager.wait_until_ready())
    try:
        await asyncio.wait([task, ready], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            await task
        yield manager
    finally:
        await _end([ready])
        manager.stop()
        await task


async def run_until_signalled(manager: Manager) -> None:
    """Runs a manager until SIGTERM or SIGINT, also where those were inherited as ignored, and closes its transport."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, manager.stop)
    try:
        await manager.run()
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
        await manager.client.close()


async def _end(tasks: Sequence[asyncio.Future[Any]], *, within: float | None = None) -> None:
    """Cancels tasks and waits until they have ended; what they raise is not asked for."""
    for task in tasks:
        task.cancel()
    if tasks:
        done, _ = await asyncio.wait(tasks, timeout=within)
        for task in done:
            if not task.cancelled():
                task.exception()
