"""Leads clients of Services to what is behind them: by rules of the kernel where it can, else by listening itself.

All follows the catalogue by differences: a Service that changes has its own fronts compared with what they should be,
and nothing else is touched. A Service behind which nothing is has none, so the kernel refuses at once. What the kernel
cannot lead is relayed: what the cluster itself runs on this machine, and clients on the machine's loopback.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping

import structlog

from shoal.cluster.node.process.client import RuntimeFault
from shoal.cluster.node.process.network.balance import (
    Balance,
    Front,
    Machine,
    is_translated,
    unreachable_address,
    wanted_fronts,
)
from shoal.cluster.node.process.network.catalogue import Catalogue
from shoal.cluster.node.process.network.datagrams import DatagramFront
from shoal.cluster.node.process.network.dialing import Dialer
from shoal.cluster.node.process.network.opening import OpensSockets
from shoal.cluster.node.process.network.streams import Relays, StreamFront
from shoal.cluster.node.process.network.translation import Translation
from shoal.cluster.node.process.network.turns import Turns
from shoal.cluster.node.process.runtime.protocol import SocketSpec
from shoal.kube import Key

log = structlog.get_logger("shoal.cluster.node.process.network")

DISCONNECTED = "Disconnected"
"""Why the runtime refuses everything once it is gone."""
_AGAIN_AFTER = 5.0
"""Seconds until what could not be listened on, or was refused, is tried again."""
_QUEUE = 1024


class Proxy:
    """The fronts of all services. Made once; ``run`` is for one network, and is called again for the next."""

    def __init__(
        self, catalogue: Catalogue, *, node: str, machine: Machine, on_problem: Callable[[Key], None] = lambda key: None
    ) -> None:
        """``machine``: where services of the cluster's own answer.

        ``on_problem`` is called with a Service whose ``problems`` have changed.
        """
        self._catalogue = catalogue
        self._node = node
        self._machine = machine
        self._on_problem = on_problem
        self._fronts: dict[Key, dict[Front, StreamFront | DatagramFront]] = {}
        self._problems: dict[Key, dict[Front, str]] = {}
        self._translation: Translation | None = None
        self._changed: set[Key] = set()
        self._wake = asyncio.Event()
        self._said: set[Key] = set()
        catalogue.on_change(self._mark)

    @property
    def listening(self) -> dict[Key, dict[Front, Balance]]:
        """What is listened on, and what stands behind it."""
        return {
            key: {front: one.balance for front, one in fronts.items()} for key, fronts in self._fronts.items() if fronts
        }

    @property
    def translated(self) -> dict[Key, dict[Front, Balance]]:
        """What the kernel leads, and where to."""
        if self._translation is None:
            return {}
        return {key: dict(fronts) for key, fronts in self._translation.fronts.items()}

    def problems(self, key: Key) -> Mapping[Front, str]:
        """Where a Service cannot be listened on, and why."""
        return self._problems.get(key, {})

    async def run(self, sockets: OpensSockets, *, translates: bool) -> None:
        """Serves until cancelled; ``translates``: the kernel of this network can lead clients."""
        dialer = Dialer(sockets)
        turns = Turns.of_process()
        relays = Relays(dialer, turns)
        self._mark_all()
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                if translates and self._translation is None:
                    self._translation = await Translation.of_network(sockets)
                await self._follow(sockets, relays)
        finally:
            self._stop_translation()
            for fronts in self._fronts.values():
                for one in fronts.values():
                    one.close()
            self._fronts.clear()
            relays.close()
            dialer.close()

    async def _follow(self, sockets: OpensSockets, relays: Relays) -> None:
        """Makes the fronts of what has changed what they should be; first what goes, since it may go to another."""
        changed, self._changed = self._changed, set()
        wanted = {key: self._wanted(key) for key in changed}
        if self._translation is not None:
            await self._translate(self._translation, wanted)
            wanted = {
                key: {front: balance for front, balance in fronts.items() if not is_translated(front, balance)}
                for key, fronts in wanted.items()
            }
        for key, fronts in wanted.items():
            known = self._fronts.setdefault(key, {})
            for front in known.keys() - fronts.keys():
                known.pop(front).close()
            for front in self.problems(key).keys() - fronts.keys():
                self._set_problem(key, front, None)
        for key, fronts in wanted.items():
            known = self._fronts[key]
            for front, balance in fronts.items():
                if front not in known:
                    await self._open(key, front, balance, sockets, relays)
                elif known[front].balance != balance:
                    known[front].update(balance)
            if not known:
                del self._fronts[key]

    async def _translate(self, translation: Translation, wanted: Mapping[Key, Mapping[Front, Balance]]) -> None:
        """Gives the kernel what it can lead; where it refuses, all of it is given anew a little later."""
        translated = {
            key: {front: balance for front, balance in fronts.items() if is_translated(front, balance)}
            for key, fronts in wanted.items()
        }
        try:
            waiting = await translation.update(translated)
        except OSError as error:
            log.error("rules for services were refused", services=len(wanted), problem=str(error))
            self._stop_translation()
            asyncio.get_running_loop().call_later(_AGAIN_AFTER, self._mark_all)
            return
        for key in waiting:
            log.error("another service has the same address and port", service=str(key))
            asyncio.get_running_loop().call_later(_AGAIN_AFTER, self._mark, key)

    def _stop_translation(self) -> None:
        if self._translation is not None:
            self._translation.close()
            self._translation = None

    def _wanted(self, key: Key) -> dict[Front, Balance]:
        found = self._catalogue.service(*key)
        if found is None:
            self._said.discard(key)
            return {}
        if key not in self._said and (unreachable := unreachable_address(*found, machine=self._machine)):
            self._said.add(key)
            log.info("endpoints outside of the network of the pods are not used", service=str(key), address=unreachable)
        return wanted_fronts(*found, node=self._node, machine=self._machine)

    async def _open(self, key: Key, front: Front, balance: Balance, sockets: OpensSockets, relays: Relays) -> None:
        spec = SocketSpec(is_datagram=front.is_datagram, address=front.address, port=front.port)
        try:
            listener = _listener_on_machine(front) if front.is_on_machine else await sockets.socket(spec)
        except RuntimeFault as error:
            if error.reason == DISCONNECTED:
                raise
            self._set_problem(key, front, str(error))
            return
        except OSError as error:
            self._set_problem(key, front, error.strerror or str(error))
            return
        self._set_problem(key, front, None)
        self._fronts[key][front] = (
            DatagramFront(listener, balance, relays.dialer, relays.turns)
            if front.is_datagram
            else StreamFront(listener, balance, relays)
        )

    def _set_problem(self, key: Key, front: Front, problem: str | None) -> None:
        """Tells of a problem once, however often it is met, and lets what has one be tried again."""
        if problem is not None:
            asyncio.get_running_loop().call_later(_AGAIN_AFTER, self._mark, key)
        if self.problems(key).get(front) == problem:
            return
        known = self._problems.setdefault(key, {})
        if problem is None:
            del known[front]
        else:
            known[front] = problem
            where = f"{front.address}:{front.port}"
            log.error("a service cannot be listened on", service=str(key), address=where, problem=problem)
        if not known:
            del self._problems[key]
        self._on_problem(key)

    def _mark(self, key: Key) -> None:
        self._changed.add(key)
        self._wake.set()

    def _mark_all(self) -> None:
        self._changed.update(self._catalogue.service_keys())
        self._wake.set()


def _listener_on_machine(front: Front) -> socket.socket:
    """A socket in the machine's own network; its address is one of loopback."""
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM if front.is_datagram else socket.SOCK_STREAM)
    try:
        made.setblocking(False)
        if not front.is_datagram:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((front.address, front.port))
        if not front.is_datagram:
            made.listen(_QUEUE)
    except OSError:
        made.close()
        raise
    return made
