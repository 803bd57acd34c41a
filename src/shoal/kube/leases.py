"""Leader election on a Lease: of several processes one works, and two never write at once.

The holder renews its lease every ``retry_every`` seconds. One that cannot for ``renew_within`` seconds gives up, well
before ``duration`` has passed and another may take over. Others judge a lease by their own clock: it has expired when
they have seen no change in it for its whole duration, so clocks need not agree.

Giving up has to be immediate. The ``Fence`` stands in front of every write and compares the clock with the last renewal
itself; even a process that slept, or an event loop that was stuck, finds it closed when it wakes. A write that is let
through must also end before the lease can be another's, so its time is limited to what is left.
"""

from __future__ import annotations

import asyncio
import math
import os
import secrets
import socket
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import structlog

from shoal.api.meta.objects import Object, Wire
from shoal.api.meta.resource import DecodeError, Resource
from shoal.api.meta.time import format_micro_time
from shoal.kube.client import Client
from shoal.kube.errors import AlreadyExists, ApiError, Conflict, ConnectionFault, NotFound, NotLeading
from shoal.kube.transport import Request, Response, Stream, Transport, WebSocket

log = structlog.get_logger("shoal.kube.leases")

_FAULTS = (ApiError, ConnectionFault, DecodeError, TimeoutError)
"""What may pass: a server that is away, and one behind a gateway that answers in its place."""


class LeaseSpec(Wire, frozen=True, kw_only=True):
    """Who holds a lease, since when, and for how long it counts."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: datetime | None = None
    renew_time: datetime | None = None
    lease_transitions: int | None = None


class Lease(Object, frozen=True, kw_only=True):
    """coordination.k8s.io/v1 Lease."""

    spec: LeaseSpec = LeaseSpec()


LEASES = Resource(type=Lease, group="coordination.k8s.io", version="v1", kind="Lease", plural="leases")


@dataclass(frozen=True, kw_only=True)
class Election:
    """Which lease to hold, as whom, and its times; the defaults are those of Kubernetes' own components."""

    name: str
    namespace: str
    identity: str = ""
    duration: float = 15.0
    renew_within: float = 10.0
    retry_every: float = 2.0
    release_on_exit: bool = True

    def __post_init__(self) -> None:
        if not self.duration > self.renew_within > self.retry_every > 0:
            raise ValueError(
                f"a lease needs duration > renew_within > retry_every > 0, "
                f"not {self.duration:g} > {self.renew_within:g} > {self.retry_every:g}"
            )


class Fence:
    """Says whether this process may write now. Without an election it always may."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until: float | None = None
        self._enforced = False

    def enforce(self) -> None:
        """From now on writing needs a lease."""
        self._enforced = True

    def open_until(self, moment: float) -> None:
        """Allows writes up to a moment of the monotonic clock."""
        self._until = moment

    def close(self) -> None:
        """Forbids writes at once."""
        self._until = None

    def remaining(self) -> float | None:
        """Seconds for which writing is allowed; None when there is no limit. Raises NotLeading when it is not."""
        if not self._enforced:
            return None
        left = 0.0 if self._until is None else self._until - self._clock()
        if left <= 0:
            raise NotLeading("this process does not hold the lease: it must not write")
        return left


class FencedTransport:
    """A transport that lets writes through only while the fence is open, and cuts them off when it closes."""

    def __init__(self, transport: Transport, fence: Fence) -> None:
        self._transport = transport
        self._fence = fence

    @property
    def host(self) -> str:
        """The server behind."""
        return self._transport.host

    async def send(self, request: Request) -> Response:
        """Reads pass; a write passes while the lease is held, and has no longer than that."""
        if request.method == "GET":
            return await self._transport.send(request)
        left = self._fence.remaining()
        if left is None:
            return await self._transport.send(request)
        limit = left if request.timeout is None else min(left, request.timeout)
        try:
            # Signing may take its time as well, so the limit holds for the whole and not for the answer alone.
            async with asyncio.timeout(limit):
                return await self._transport.send(replace(request, timeout=limit))
        except TimeoutError:
            raise ConnectionFault(f"cut off while the lease was still held ({request})") from None

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        """Streams only read."""
        return self._transport.stream(request)

    def websocket(self, request: Request, protocols: tuple[str, ...]) -> AbstractAsyncContextManager[WebSocket]:
        """Exec can change anything: it needs the lease to begin."""
        self._fence.remaining()
        return self._transport.websocket(request, protocols)

    async def close(self) -> None:
        """Closes the transport behind."""
        await self._transport.close()


class Elector:
    """Takes part in one election, with a client of its own that no fence stands before."""

    def __init__(
        self,
        client: Client,
        election: Election,
        fence: Fence,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._election = election
        self._fence = fence
        self._clock = clock
        self._now = now
        self.identity = election.identity or f"{socket.gethostname()}_{os.getpid()}_{secrets.token_hex(4)}"
        self._seen: Lease | None = None
        self._seen_at = 0.0
        self._renewed = 0.0
        self._leading = client.metrics.leading.labels(election.name)
        self._leading.set(0)
        fence.enforce()

    async def acquire(self) -> None:
        """Waits until this process holds the lease."""
        said = ""
        while True:
            began = self._clock()
            try:
                if await self._try():
                    self._won(began)
                    log.info("leading", lease=self._place, identity=self.identity)
                    return
            except _FAULTS as error:
                if not isinstance(error, Conflict):
                    log.warning("the lease cannot be read or taken", lease=self._place, error=str(error))
            holder = (self._seen.spec.holder_identity or "") if self._seen else ""
            if holder and holder != said:
                said = holder
                log.info("waiting: another holds the lease", lease=self._place, holder=holder)
            # Jitter, so that those who wait do not all ask in the same moment.
            await asyncio.sleep(self._election.retry_every * (1 + 0.2 * secrets.randbelow(100) / 100))

    async def hold(self) -> None:
        """Renews the lease; raises NotLeading once it could not be renewed in time."""
        try:
            while True:
                await asyncio.sleep(self._election.retry_every)
                left = self._renewed + self._election.renew_within - self._clock()
                if left <= 0:
                    raise NotLeading(f"the lease {self._place} could not be renewed in time")
                began = self._clock()
                try:
                    async with asyncio.timeout(left):
                        held = await self._try()
                except _FAULTS as error:
                    log.warning("the lease was not renewed", lease=self._place, error=str(error) or "timeout")
                    continue
                if not held:
                    raise NotLeading(f"the lease {self._place} was taken by another process")
                self._won(began)
        finally:
            self._fence.close()
            self._leading.set(0)

    async def release(self) -> None:
        """Gives the lease up, so that another need not wait for it to expire."""
        self._fence.close()
        self._leading.set(0)
        if not self._election.release_on_exit or self._seen is None:
            return
        spec = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": format_micro_time(self._now())}
        try:
            async with asyncio.timeout(self._election.retry_every):
                # What we saw last may be older than our last request, whose answer nobody waited for.
                lease = await self._look()
                if lease is not None and lease.spec.holder_identity == self.identity:
                    await self._write(spec)
        except _FAULTS as error:
            log.warning("the lease was not released: it will expire", lease=self._place, error=str(error))

    @property
    def _place(self) -> str:
        return f"{self._election.namespace}/{self._election.name}"

    def _won(self, began: float) -> None:
        """Counts from before the request was sent: that is the earliest moment the server can have seen."""
        self._renewed = began
        self._fence.open_until(began + self._election.renew_within)
        self._leading.set(1)

    async def _try(self) -> bool:
        """One try to take or renew the lease; False while it is another's."""
        now = format_micro_time(self._now())
        mine = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": math.ceil(self._election.duration),
            "renewTime": now,
        }
        seen = await self._look()
        if seen is None:
            spec = mine | {"acquireTime": now, "leaseTransitions": 0}
            body = {"metadata": {"name": self._election.name, "namespace": self._election.namespace}, "spec": spec}
            try:
                self._remember(await self._client.create(LEASES, body, self._election.namespace))
            except AlreadyExists:
                return False
            return True
        holder = seen.spec.holder_identity or ""
        if holder == self.identity:
            await self._write(mine)
            return True
        if holder and self._clock() < self._seen_at + (seen.spec.lease_duration_seconds or 1):
            return False
        await self._write(mine | {"acquireTime": now, "leaseTransitions": (seen.spec.lease_transitions or 0) + 1})
        return True

    async def _look(self) -> Lease | None:
        """The lease as it is now; a renewal by its holder starts the wait for its expiry anew."""
        try:
            lease = await self._client.get(LEASES, self._election.name, self._election.namespace)
        except NotFound:
            self._seen = None
            return None
        if self._seen is None or lease.spec != self._seen.spec:
            self._remember(lease)
        else:
            self._seen = lease
        return lease

    async def _write(self, spec: dict[str, Any]) -> None:
        assert self._seen is not None
        # The version read goes with the write: where another was quicker the server refuses.
        patch = {"metadata": {"resourceVersion": self._seen.metadata.resource_version}, "spec": spec}
        self._remember(await self._client.merge_patch(LEASES, self._election.name, patch, self._election.namespace))

    def _remember(self, lease: Lease) -> None:
        self._seen = lease
        self._seen_at = self._clock()
