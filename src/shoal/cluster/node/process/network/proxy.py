"""Listens on the addresses of services, in the node's network, and leads whoever comes to what stands behind them.

Fronts follow the catalogue by differences: a service that changes has its own fronts compared with what they should
be, and nothing else is touched. A service behind which nothing is has none, so the kernel refuses at once.
"""

from __future__ import annotations

import asyncio

import structlog

from shoal.cluster.node.process.client import RuntimeFault
from shoal.cluster.node.process.network.balance import Balance, Front, Machine, unreachable_address, wanted_fronts
from shoal.cluster.node.process.network.catalogue import Catalogue
from shoal.cluster.node.process.network.datagrams import DatagramFront
from shoal.cluster.node.process.network.dialing import Dialer
from shoal.cluster.node.process.network.opening import OpensSockets
from shoal.cluster.node.process.network.streams import Relays, StreamFront
from shoal.cluster.node.process.network.turns import Turns
from shoal.cluster.node.process.runtime.protocol import SocketSpec
from shoal.kube import Key

log = structlog.get_logger("shoal.cluster.node.process.network")

DISCONNECTED = "Disconnected"
"""Why the runtime refuses everything once it is gone."""
_AGAIN_AFTER = 5.0
"""Seconds until what could not be listened on is tried again."""


class Proxy:
    """The fronts of all services. Made once; ``run`` is for one network, and is called again for the next."""

    def __init__(self, catalogue: Catalogue, *, node: str, machine: Machine) -> None:
        """``machine``: where services of the cluster's own answer."""
        self._catalogue = catalogue
        self._node = node
        self._machine = machine
        self._fronts: dict[Key, dict[Front, StreamFront | DatagramFront]] = {}
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

    async def run(self, sockets: OpensSockets) -> None:
        """Listens until cancelled."""
        dialer = Dialer(sockets)
        turns = Turns.of_process()
        relays = Relays(dialer, turns)
        self._changed.update(self._catalogue.service_keys())
        self._wake.set()
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                await self._follow(sockets, relays)
        finally:
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
        for key, fronts in wanted.items():
            known = self._fronts.setdefault(key, {})
            for front in known.keys() - fronts.keys():
                known.pop(front).close()
        for key, fronts in wanted.items():
            known = self._fronts[key]
            for front, balance in fronts.items():
                if front not in known:
                    await self._open(key, front, balance, sockets, relays)
                elif known[front].balance != balance:
                    known[front].update(balance)
            if not known:
                del self._fronts[key]

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
            listener = await sockets.socket(spec)
        except RuntimeFault as error:
            if error.reason == DISCONNECTED:
                raise
            where = f"{front.address}:{front.port}"
            log.error("a service cannot be listened on", service=str(key), address=where, problem=str(error))
            asyncio.get_running_loop().call_later(_AGAIN_AFTER, self._mark, key)
            return
        self._fronts[key][front] = (
            DatagramFront(listener, balance, relays.dialer, relays.turns)
            if front.is_datagram
            else StreamFront(listener, balance, relays)
        )

    def _mark(self, key: Key) -> None:
        self._changed.add(key)
        self._wake.set()
