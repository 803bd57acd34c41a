"""A controller: it watches kinds, and reconciles the keys that their changes ask for.

    books = Controller("books", BOOKS, Books(manager).reconcile, owns=[CONFIG_MAPS.documents()])
    manager.add(books)

``reconcile`` gets a key and looks at the world as it is; which event led to it is not its business. It returns None
when all is done, or ``Requeue(after=…)`` to be called again without an event. What it raises is retried, later each
time; ``TerminalError`` is not, since trying again cannot help. A reconcile that runs past its deadline is cancelled and
retried. Before a key is reconciled again the cache has caught up with what the last reconcile of it wrote; until then
the key rests, and no worker waits for it.

A key need not name an object: a controller that works on parts of one gives ``keys``, from an object to the keys of its
parts, and ``subject``, back from a part to the object that its problems are told of.
"""

from __future__ import annotations

import asyncio
import functools
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog
from prometheus_client import Counter, Gauge, Histogram
from structlog.contextvars import bind_contextvars

from shoal.api.meta.resource import DecodeError, Resource
from shoal.kube import changes, freshness
from shoal.kube.cache import Cache
from shoal.kube.calm import Calm
from shoal.kube.errors import ApiError, Conflict, ConnectionFault, NotLeading, ReconcileError
from shoal.kube.freshness import WriteLog
from shoal.kube.informer import Change, Informer
from shoal.kube.metrics import Metrics
from shoal.kube.queue import FRESH, RESYNC, RetryLimits, ShutDown, WorkQueue
from shoal.kube.store import IndexFunction, Key

log = structlog.get_logger("shoal.kube.controller")

CATCH_UP = 5.0
"""Seconds after which a cache that does not show our own writes is worth a warning."""
YIELDS_FOR = 0.5
"""Seconds for which a worker of a controller that yields leaves the others to their work."""


@dataclass(frozen=True, kw_only=True)
class Requeue:
    """Call again after this many seconds, though nothing may have changed."""

    after: float
    priority: int | None = None
    """``RESYNC`` for what can wait while there are changes to look at; None is as urgent as this call was."""


class TerminalError(ReconcileError):
    """This object cannot be reconciled as it is: trying again is of no use until it changes."""


Reconcile = Callable[[Key], Awaitable[Requeue | None]]
_RESULTS = ("success", "error", "requeue", "requeue_after")


@dataclass(frozen=True, kw_only=True)
class Watch:
    """Changes of a kind that ask for reconciles of another: which ones matter, and whose keys they mean."""

    resource: Resource[Any]
    keys: changes.Mapping
    when: changes.Filter = changes.any_change
    label_selector: str = ""
    field_selector: str = ""
    indexes: Mapping[str, IndexFunction] = field(default_factory=dict)


class Controller:
    """Turns changes into reconciles; ``Manager.add`` connects it to a cache and runs it."""

    def __init__(
        self,
        name: str,
        resource: Resource[Any],
        reconcile: Reconcile,
        *,
        owns: Sequence[Resource[Any]] = (),
        watches: Sequence[Watch] = (),
        when: changes.Filter = changes.any_change,
        keys: changes.Mapping = changes.itself,
        subject: Callable[[Key], Key] = lambda key: key,
        workers: int = 10,
        timeout: float = 120.0,
        resync_every: float | None = None,
        retries: RetryLimits = RetryLimits(),
        yields: bool = False,
        namespace: str = "",
    ) -> None:
        if not name or workers < 1:
            raise ValueError(f"a controller needs a name and at least one worker, not {name!r} and {workers}")
        self.name = name
        self.resource = resource
        self.namespace = namespace
        self.yields = yields
        """Whether its work is put off a little while others of the manager have much to do: nobody waits for it."""
        self._reconcile = reconcile
        self._subject = subject
        self._watches = [
            Watch(resource=resource, keys=keys, when=when),
            *(Watch(resource=child, keys=changes.controlling_owner(resource)) for child in owns),
            *watches,
        ]
        self._workers = workers
        self._timeout = timeout
        self._resync_every = resync_every
        self._retries = retries
        self._resting: set[asyncio.Task[None]] = set()
        self._wired: _Wired | None = None

    def connect(
        self,
        cache: Cache,
        metrics: Metrics,
        on_undecodable: Callable[[DecodeError], None],
        on_problem: Callable[[Resource[Any], Any, str], None] = lambda resource, found, problem: None,
        calm: Calm | None = None,
    ) -> None:
        """Asks the cache for what this controller watches; what it sees waits in the queue until ``run``.

        ``on_problem`` is told of the objects that a reconcile could not do anything for, and why. ``calm`` is what a
        controller that yields waits for.
        """
        queue = WorkQueue(self.name, metrics, retries=self._retries)
        primary: Informer[Any] | None = None
        for watch in self._watches:
            informer = cache.informer(
                watch.resource,
                namespace=self.namespace,
                label_selector=watch.label_selector,
                field_selector=watch.field_selector,
                indexes=watch.indexes,
            )
            if primary is None:
                primary = informer
                informer.on_undecodable(on_undecodable)
            informer.subscribe(functools.partial(self._enqueue, queue, watch))
        assert primary is not None
        metrics.max_workers.labels(self.name).set(self._workers)
        self._wired = _Wired(
            cache,
            metrics,
            queue,
            primary,
            on_problem,
            calm if self.yields else None,
            active=metrics.active_workers.labels(self.name),
            reconcile_time=metrics.reconcile_time.labels(self.name),
            results={result: metrics.reconciles.labels(self.name, result) for result in _RESULTS},
        )
        self._wired.active.set(0)

    @property
    def queue(self) -> WorkQueue:
        """The keys that wait."""
        return self._connected().queue

    def enqueue(self, key: Key) -> None:
        """Asks for a reconcile from outside: a timer, a webhook, another source than the API server."""
        self.queue.add(key)

    async def run(self) -> None:
        """Reconciles until cancelled or the queue is closed. A reconcile that has begun ends with the workers."""
        async with asyncio.TaskGroup() as around:
            resync = around.create_task(self._resync(), name=f"{self.name} resync")
            async with asyncio.TaskGroup() as workers:
                for number in range(self._workers):
                    workers.create_task(self._work(around), name=f"{self.name} worker {number}")
            for task in [resync, *self._resting]:
                task.cancel()

    def _enqueue(self, queue: WorkQueue, watch: Watch, change: Change[Any]) -> None:
        if not watch.when(change):
            return
        priority = RESYNC if change.is_resync else FRESH
        for key in watch.keys(change.latest):
            queue.add(key, priority=priority)
        # A child that was handed from one owner to another concerns both.
        if change.before is not None and change.after is not None:
            for key in watch.keys(change.before):
                queue.add(key, priority=priority)

    async def _work(self, around: asyncio.TaskGroup) -> None:
        wired = self._connected()
        while True:
            if wired.calm is not None:
                await wired.calm.wait(YIELDS_FOR)
            try:
                key, priority = await wired.queue.get()
            except ShutDown:
                return
            writes = WriteLog(wired.cache.selecting)
            try:
                # A worker is a task, and so has a context of its own that need not be tidied up.
                bind_contextvars(controller=self.name, object=str(key), reconcile_id=_reconcile_id())
                with freshness.recording(writes):
                    await self._attempt(wired, key, priority)
            finally:
                if wired.cache.shows(writes):
                    wired.queue.done(key)
                else:
                    wired.queue.rest(key)
                    resting = around.create_task(self._rest(wired, key, writes), name=f"{self.name} {key} rests")
                    self._resting.add(resting)
                    resting.add_done_callback(self._resting.discard)

    async def _attempt(self, wired: _Wired, key: Key, priority: int) -> None:
        """One reconcile of one key, whatever comes of it."""
        metrics, queue = wired.metrics, wired.queue
        wired.active.inc()
        started = time.perf_counter()
        result = "error"
        try:
            async with asyncio.timeout(self._timeout) as deadline:
                requeue = await self._reconcile(key)
            if requeue is None:
                result = "success"
            else:
                result = "requeue_after"
                urgency = priority if requeue.priority is None else requeue.priority
                queue.add_after(key, requeue.after, priority=urgency)
            queue.forget(key)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # Not we but something that the reconcile waited for was cancelled: a failure like any other.
            self._failed(wired, key, priority, [RuntimeError("something that the reconcile waited for was cancelled")])
        except TimeoutError as error:
            if deadline.expired():
                metrics.timeouts.labels(self.name).inc()
                self._failed(wired, key, priority, [TimeoutError(f"it ran past its {self._timeout:g} s")])
            else:
                self._failed(wired, key, priority, [error])
        except Exception as error:
            self._failed(wired, key, priority, list(_single(error)))
        finally:
            wired.active.dec()
            wired.results[result].inc()
            wired.reconcile_time.observe(time.perf_counter() - started)

    async def _rest(self, wired: _Wired, key: Key, writes: WriteLog) -> None:
        """Keeps a key from its next reconcile until the cache shows what the last one wrote."""
        started = time.perf_counter()
        try:
            while not await wired.cache.wait_for_writes(writes, within=CATCH_UP):
                log.warning("the cache does not show our own writes: the key waits", problem=wired.primary.problem)
        finally:
            wired.metrics.freshness_wait.labels(self.name).observe(time.perf_counter() - started)
            wired.queue.done(key)

    def _failed(self, wired: _Wired, key: Key, priority: int, errors: list[Exception]) -> None:
        """What follows from the errors of one reconcile; there are several where it did things at once."""
        wired.metrics.reconcile_errors.labels(self.name).inc()
        said = "; ".join(map(str, errors))
        found = wired.primary.store.get(self._subject(key))
        if found is not None and any(isinstance(error, ReconcileError) for error in errors):
            wired.on_problem(self.resource, found, said)
        if all(isinstance(error, TerminalError) for error in errors):
            wired.metrics.terminal_errors.labels(self.name).inc()
            wired.queue.forget(key)
            log.error("reconcile gave up", error=said)
            return
        delay = wired.queue.retry(key, priority=priority)
        facts = {"retry_in": round(delay, 3), "failures": wired.queue.failures(key)}
        faults = [error for error in errors if not isinstance(error, _FORESEEN)]
        if faults:
            wired.metrics.panics.labels(self.name).inc()
            log.error("reconcile failed by a fault of the program", exc_info=faults[0], **facts)
        elif any(isinstance(error, NotLeading) for error in errors):
            log.info("reconcile stopped: the lease is lost")
        elif all(isinstance(error, Conflict) for error in errors):
            log.debug("reconcile lost a race: trying again", error=said, **facts)
        else:
            log.warning("reconcile failed", error=said, **facts)

    async def _resync(self) -> None:
        wired = self._connected()
        while self._resync_every is not None:
            await asyncio.sleep(self._resync_every)
            for key in list(wired.primary.store.keys()):
                wired.queue.add(key, priority=RESYNC)

    def _connected(self) -> _Wired:
        if self._wired is None:
            raise RuntimeError(f"the controller {self.name!r} is not part of a manager: call manager.add first")
        return self._wired


@dataclass(frozen=True)
class _Wired:
    cache: Cache
    metrics: Metrics
    queue: WorkQueue
    primary: Informer[Any]
    on_problem: Callable[[Resource[Any], Any, str], None]
    calm: Calm | None
    active: Gauge
    reconcile_time: Histogram
    results: Mapping[str, Counter]


_FORESEEN = (ApiError, ConnectionFault, TimeoutError, NotLeading, ReconcileError)


def _single(error: Exception) -> Iterator[Exception]:
    """The errors that a reconcile raised, taken out of the groups that a TaskGroup puts them in."""
    if isinstance(error, ExceptionGroup):
        for inner in error.exceptions:
            yield from _single(inner)
    else:
        yield error


def _reconcile_id() -> str:
    return f"{random.getrandbits(64):016x}"
