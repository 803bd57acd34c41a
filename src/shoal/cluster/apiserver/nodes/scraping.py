"""Asks agents how much is used, when somebody wants to know, and remembers it for a few seconds.

All nodes are asked at once, each by one task that outlives whoever asked. A node that does not answer is left out, and
until it does nobody waits for it again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

import structlog

from shoal.cluster.apiserver.nodes.agents import NODES, Agents
from shoal.cluster.apiserver.nodes.exposition import Exposition, read_exposition
from shoal.cluster.apiserver.nodes.usage import Readings
from shoal.cluster.apiserver.refusals import Refused
from shoal.cluster.apiserver.state import State
from shoal.kube.errors import ConnectionFault
from shoal.kube.transport import Request

_PATH = "/metrics/resource"
_FRESH_SECONDS = 5.0
_KNOWN_SECONDS = 60.0
_PATIENCE = 2.5
_NODE_TIMEOUT = 10.0
_SECOND_LOOK = 1.0
"""A node that nobody asked about lately is asked twice, so far apart: a rate needs two measurements."""
_LARGEST = 8 << 20

_log = structlog.get_logger(__name__)


class Silent(Exception):
    """An agent tells nothing of use."""


class _Node:
    def __init__(self) -> None:
        self.readings = Readings()
        self.taken = float("-inf")
        self.is_silent = False
        self.task: asyncio.Task[None] | None = None


class Scraper:
    """What agents tell of usage, by node."""

    def __init__(self, state: State, agents: Agents) -> None:
        self._state = state
        self._agents = agents
        self._nodes: dict[str, _Node] = {}

    async def readings(self, names: Iterable[str]) -> dict[str, Readings]:
        """What is known of these nodes now; those that do not answer are left out."""
        nodes = {name: self._node(name) for name in names}
        asked = {name: node for name, node in nodes.items() if time.monotonic() - node.taken >= _FRESH_SECONDS}
        for name, node in asked.items():
            if node.task is None:
                node.task = asyncio.create_task(self._scrape(name, node))
        # Only where nothing could be said without them is it worth to wait for the silent again.
        all_silent = len(asked) == len(nodes) and all(node.is_silent for node in asked.values())
        awaited = {node.task for node in asked.values() if node.task and (all_silent or not node.is_silent)}
        if awaited:
            await asyncio.wait(awaited, timeout=_PATIENCE)
        for node in asked.values():
            node.is_silent = node.task is not None or node.is_silent
        now = time.monotonic()
        return {name: node.readings for name, node in nodes.items() if now - node.taken < _KNOWN_SECONDS}

    async def close(self) -> None:
        """Stops asking."""
        tasks = [node.task for node in self._nodes.values() if node.task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _node(self, name: str) -> _Node:
        node = self._nodes.get(name)
        if node is None:
            self._forget_gone()
            node = self._nodes[name] = _Node()
        return node

    def _forget_gone(self) -> None:
        store = self._state.store
        for name in [name for name, node in self._nodes.items() if node.task is None]:
            if store.get(NODES, "", name) is None:
                del self._nodes[name]

    async def _scrape(self, name: str, node: _Node) -> None:
        try:
            async with asyncio.timeout(_NODE_TIMEOUT):
                readings = node.readings.advanced(await self._ask(name))
                if readings.node.usage() is None:
                    await asyncio.sleep(_SECOND_LOOK)
                    readings = readings.advanced(await self._ask(name))
            node.readings, node.taken, node.is_silent = readings, time.monotonic(), False
        except (ConnectionFault, Refused, Silent, TimeoutError) as error:
            node.is_silent = True
            _log.debug("a node tells no usage", node=name, problem=str(error) or "no answer in time")
        finally:
            node.task = None

    async def _ask(self, name: str) -> Exposition:
        agent = self._agents.agent(name)
        # A socket may serve many nodes, so it is told which one is meant.
        query = {"node": name} if agent.is_local else {}
        request = Request(method="GET", path=_PATH, query=query, accept="text/plain", timeout=_NODE_TIMEOUT)
        async with agent.stream(request) as stream:
            if stream.status != 200:
                raise Silent(f"{agent.server}{_PATH} answered {stream.status}")
            pieces, size = [], 0
            async for piece in stream.chunks():
                pieces.append(piece)
                size += len(piece)
                if size > _LARGEST:
                    raise Silent(f"{agent.server}{_PATH} tells more than {_LARGEST} bytes")
        return read_exposition(b"".join(pieces), now=time.time())
