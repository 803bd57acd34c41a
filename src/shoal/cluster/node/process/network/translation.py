"""Services that the kernel leads by itself: keeps the rules in the node's network equal to what Services need.

Servers then see their clients' own addresses. All that changed at once is one transaction, written by a thread, since
the kernel takes its time to put rules in force; where nothing changed nothing is written. The rules outlive this
process; the next one begins with a table of its own in the place of this one's, in one transaction, too.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from typing import TypeAlias

from shoal.cluster.node.process.network.balance import Balance, Front
from shoal.cluster.node.process.network.opening import OpensSockets
from shoal.cluster.node.process.network.rules import Rules, outdated_datagrams, service_rules, transactions
from shoal.cluster.node.process.runtime.netfilter import Netfilter
from shoal.cluster.node.process.runtime.nftables import Request
from shoal.cluster.node.process.runtime.protocol import SocketSpec
from shoal.cluster.node.process.runtime.service_table import new_table
from shoal.kube import Key

Fronts: TypeAlias = Mapping[Front, Balance]


class Translation:
    """The rules of one network."""

    def __init__(self, netfilter: Netfilter) -> None:
        self._netfilter = netfilter
        self._rules = Rules()
        self._is_new = True
        self._fronts: dict[Key, Fronts] = {}

    @classmethod
    async def of_network(cls, sockets: OpensSockets) -> Translation:
        """Begins in the node's network."""
        return cls(Netfilter(await sockets.socket(SocketSpec(is_netfilter=True))))

    @property
    def fronts(self) -> Mapping[Key, Fronts]:
        """What is translated."""
        return self._fronts

    async def update(self, changed: Mapping[Key, Fronts]) -> list[Key]:
        """Translates what these Services have now; gives those whose address and port another one has still.

        Raises OSError where the kernel refuses. The table may lack some of its rules then: all must be given anew.
        """
        if not self._is_new:
            changed = {key: fronts for key, fronts in changed.items() if fronts != self._fronts.get(key, {})}
            if not changed:
                return []
        requests, waiting = self._rules.update({key: service_rules(fronts) for key, fronts in changed.items()})
        before = {front: one for key in changed for front, one in self._fronts.get(key, {}).items()}
        after = {front: one for key, fronts in changed.items() if key not in waiting for front, one in fronts.items()}
        start = new_table() if self._is_new else []
        await asyncio.to_thread(self._write, [*start, *requests], outdated_datagrams(before, after))
        self._is_new = False
        for key, fronts in changed.items():
            self._fronts.pop(key, None)
            if fronts and key not in waiting:
                self._fronts[key] = fronts
        return waiting

    def close(self) -> None:
        """Leaves the rules as they are."""
        self._netfilter.close()

    def _write(self, requests: list[Request], outdated: Mapping[tuple[str, int], frozenset[tuple[str, int]]]) -> None:
        for several in transactions(requests, limit=self._netfilter.limit):
            self._netfilter.apply(several)
        if not outdated:
            return
        for connection in list(self._netfilter.connections()):
            current = outdated.get(connection.destination)
            is_datagram = connection.protocol == socket.IPPROTO_UDP
            if is_datagram and current is not None and connection.answering not in current:
                self._netfilter.forget(connection)
