"""Connections to a service: each is led to one backend, and carried until it ends."""

from __future__ import annotations

import asyncio
import random
import socket

import structlog

from shoal.cluster.node.process.network.balance import Balance, Chooser
from shoal.cluster.node.process.network.dialing import Dialer, NoBackend
from shoal.cluster.node.process.network.relay import BUFFER, Relay, close_with_reset
from shoal.cluster.node.process.network.turns import Turns

log = structlog.get_logger("shoal.cluster.node.process.network")

_AT_ONCE = 64
_PAUSE = 0.5
"""Seconds without new connections where there was no descriptor for one."""


class Relays:
    """All connections that are carried; they go on when their service does not."""

    def __init__(self, dialer: Dialer, turns: Turns) -> None:
        self.dialer = dialer
        self.turns = turns
        self._buffer = memoryview(bytearray(BUFFER))
        self._running: set[Relay] = set()
        self._dialling: set[asyncio.Task[bool]] = set()

    def __len__(self) -> int:
        return len(self._running)

    def lead(self, connection: socket.socket, client: str, chooser: Chooser) -> None:
        """Takes a connection over."""
        if not self.turns.take(client):
            close_with_reset(connection)
            return
        task = asyncio.create_task(self._lead(connection, client, chooser))
        self._dialling.add(task)

        def led(task: asyncio.Task[bool]) -> None:
            self._dialling.discard(task)
            if task.cancelled() or not task.result():
                self.turns.give_back(client)
                close_with_reset(connection)

        task.add_done_callback(led)

    def close(self) -> None:
        """Ends them all."""
        for task in self._dialling:
            task.cancel()
        for relay in list(self._running):
            relay.abort()

    async def _lead(self, connection: socket.socket, client: str, chooser: Chooser) -> bool:
        """Finds a backend and begins; says whether there was one."""
        now = asyncio.get_running_loop().time()
        try:
            found, backend = await self.dialer.connected(chooser.candidates(client, now))
        except NoBackend as error:
            log.info("a connection to a service could not be led on", client=client, problem=str(error))
            return False
        except Exception:
            log.exception("a connection to a service could not be led on", client=client)
            return False
        chooser.keep(client, backend, now)

        def ended(relay: Relay) -> None:
            self._running.discard(relay)
            self.turns.give_back(client)

        relay = Relay(connection, found, self._buffer, on_end=ended)
        self._running.add(relay)
        relay.start()
        return True


class StreamFront:
    """Takes connections on one socket."""

    def __init__(self, listener: socket.socket, balance: Balance, relays: Relays) -> None:
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        self._relays = relays
        self._chooser = Chooser(balance, turn=random.randrange(1024))  # noqa: S311 - so that not all begin with one
        self._is_closed = False
        self._listen()

    @property
    def balance(self) -> Balance:
        """What stands behind it now."""
        return self._chooser.balance

    def update(self, balance: Balance) -> None:
        """What stands behind it has changed; connections that there are stay where they are."""
        self._chooser.update(balance)

    def close(self) -> None:
        """Takes no more."""
        self._is_closed = True
        self._loop.remove_reader(self._listener)
        self._listener.close()

    def _listen(self) -> None:
        if not self._is_closed:
            self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                connection, (client, *_) = self._listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:
                log.warning("connections to a service wait", problem=error.strerror)
                self._loop.remove_reader(self._listener)
                self._loop.call_later(_PAUSE, self._listen)
                return
            connection.setblocking(False)
            self._relays.lead(connection, client, self._chooser)
