"""Datagrams to a service: what one client sends goes to one backend for as long as they talk, and back the same way."""

from __future__ import annotations

import asyncio
import random
import socket
from dataclasses import dataclass, field

from shoal.cluster.node.process.network.balance import Backend, Balance, Chooser
from shoal.cluster.node.process.network.dialing import Dialer
from shoal.cluster.node.process.network.turns import Turns

IDLE_SECONDS = 60.0
"""A client that neither sends nor gets anything for so long may be led elsewhere next time."""
FLOWS = 1024
"""Clients of one port at once; the oldest gives way to a new one."""
WAITING = 16
"""Datagrams of one client that wait for its way to be made; more are lost, as datagrams are."""
_AT_ONCE = 64

Client = tuple[str, int]


@dataclass(slots=True)
class _Flow:
    """One client's way."""

    backend: Backend
    used: float
    way: socket.socket | None = None
    waiting: list[bytes] = field(default_factory=list)
    opening: asyncio.Task[None] | None = None


class DatagramFront:
    """Takes datagrams on one socket."""

    def __init__(
        self, listener: socket.socket, balance: Balance, dialer: Dialer, turns: Turns, *, idle: float = IDLE_SECONDS
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        self._dialer = dialer
        self._turns = turns
        self._idle = idle
        self._chooser = Chooser(balance, turn=random.randrange(1024))  # noqa: S311 - so that not all begin with one
        self._flows: dict[Client, _Flow] = {}
        self._sweeping: asyncio.TimerHandle | None = None
        self._loop.add_reader(listener, self._heard)

    @property
    def balance(self) -> Balance:
        """What stands behind it now."""
        return self._chooser.balance

    def update(self, balance: Balance) -> None:
        """What stands behind it has changed; whoever talked with what is gone is led elsewhere."""
        self._chooser.update(balance)
        for client, flow in list(self._flows.items()):
            if flow.backend not in balance.backends:
                self._end(client)

    def close(self) -> None:
        """Takes no more, and gives nothing back any more."""
        self._loop.remove_reader(self._listener)
        self._listener.close()
        for client in list(self._flows):
            self._end(client)
        if self._sweeping is not None:
            self._sweeping.cancel()

    def _heard(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                sent, client = self._listener.recvfrom(65535)
            except BlockingIOError:
                return
            except OSError:
                continue  # a client that is gone already
            flow = self._flows.get(client) or self._begin(client)
            if flow is None:
                continue
            flow.used = self._loop.time()
            if flow.way is None:
                if len(flow.waiting) < WAITING:
                    flow.waiting.append(sent)
                continue
            self._pass(client, flow.way, sent)

    def _begin(self, client: Client) -> _Flow | None:
        if len(self._flows) >= FLOWS:
            self._end(next(iter(self._flows)))
        if not self._turns.take(client[0]):
            return None
        now = self._loop.time()
        backend = self._chooser.candidates(client[0], now)[0]
        self._chooser.keep(client[0], backend, now)
        flow = self._flows[client] = _Flow(backend, now)
        flow.opening = asyncio.create_task(self._open(client, flow))
        if self._sweeping is None:
            self._sweeping = self._loop.call_later(self._idle / 2, self._sweep)
        return flow

    async def _open(self, client: Client, flow: _Flow) -> None:
        try:
            way = await self._dialer.datagrams(flow.backend)
        except Exception:
            # The datagrams are lost, as they are where nothing is; the next one begins anew.
            if self._flows.get(client) is flow:
                self._end(client)
            return
        if self._flows.get(client) is not flow:
            way.close()
            return
        flow.way = way
        self._loop.add_reader(way, self._answered, client, flow, way)
        for sent in flow.waiting:
            self._pass(client, way, sent)
        flow.waiting = []

    def _pass(self, client: Client, way: socket.socket, sent: bytes) -> None:
        try:
            way.send(sent)
        except BlockingIOError:
            pass  # full: it is lost, as datagrams are
        except OSError:
            self._end(client)  # nobody is there any more; the next one is led elsewhere

    def _answered(self, client: Client, flow: _Flow, way: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            try:
                answer = way.recv(65535)
            except BlockingIOError:
                return
            except OSError:
                self._end(client)
                return
            flow.used = self._loop.time()
            try:
                self._listener.sendto(answer, client)
            except OSError:
                continue

    def _sweep(self) -> None:
        """Ends what has been quiet for long; runs only while there is anything."""
        limit = self._loop.time() - self._idle
        for client, flow in list(self._flows.items()):
            if flow.used < limit:
                self._end(client)
        self._sweeping = self._loop.call_later(self._idle / 2, self._sweep) if self._flows else None

    def _end(self, client: Client) -> None:
        flow = self._flows.pop(client, None)
        if flow is None:
            return
        self._turns.give_back(client[0])
        if flow.way is not None:
            self._loop.remove_reader(flow.way)
            flow.way.close()
        elif flow.opening is not None and flow.opening is not asyncio.current_task():
            flow.opening.cancel()
