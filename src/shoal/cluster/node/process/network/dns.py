"""The server of names, on sockets in the network of the pods.

It answers from memory, within the callback that brought the question. What cannot be read as a question is answered
with that, or not at all; no client can make it wait for another.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

import structlog

from shoal.cluster.node.process.layout import NODE_ADDRESS
from shoal.cluster.node.process.network.messages import TCP_LIMIT, Code, Query, Reply, Type, encoded, parsed
from shoal.cluster.node.process.network.names import Names
from shoal.cluster.node.process.network.opening import OpensSockets
from shoal.cluster.node.process.runtime.protocol import SocketSpec

log = structlog.get_logger("shoal.cluster.node.process.network")

PORT = 53
IDLE_SECONDS = 10.0
"""How long a connection may say nothing."""
CONNECTIONS = 256
"""How many there may be at once; one beyond that is closed."""


class DnsServer:
    """Answers on one address, for datagrams and connections."""

    def __init__(self, names: Names, *, address: str = NODE_ADDRESS, port: int = PORT) -> None:
        self._names = names
        self._address = address
        self._port = port
        self._connections = 0

    async def run(self, sockets: OpensSockets) -> None:
        """Answers until cancelled."""
        loop = asyncio.get_running_loop()
        datagrams = await sockets.socket(SocketSpec(is_datagram=True, address=self._address, port=self._port))
        transport, _ = await loop.create_datagram_endpoint(lambda: _Datagrams(self), sock=datagrams)
        try:
            listener = await sockets.socket(SocketSpec(address=self._address, port=self._port))
            async with await asyncio.start_server(self._converse, sock=listener, backlog=CONNECTIONS):
                await asyncio.Event().wait()
        finally:
            transport.close()

    def answer(self, message: bytes, *, is_datagram: bool) -> bytes | None:
        """What is sent back; None where nothing is."""
        query = parsed(message)
        if query is None:
            return None
        return encoded(query, self._reply(query), query.udp_limit if is_datagram else TCP_LIMIT)

    def _reply(self, query: Query) -> Reply:
        if query.problem:
            return Reply(query.problem)
        try:
            return _spread(self._names.reply(query.name, query.type))
        except Exception:
            # One name that we cannot make sense of must not take the others with it.
            log.exception("a name could not be looked up", name=query.name)
            return Reply(Code.SERVER_FAILURE)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers the questions of one connection in their order."""
        self._connections += 1
        try:
            while self._connections <= CONNECTIONS:
                async with asyncio.timeout(IDLE_SECONDS):
                    length = int.from_bytes(await reader.readexactly(2), "big")
                    answer = self.answer(await reader.readexactly(length), is_datagram=False)
                    if answer is None:
                        break
                    writer.write(len(answer).to_bytes(2, "big") + answer)
                    await writer.drain()
        except (asyncio.IncompleteReadError, OSError, TimeoutError):
            pass
        finally:
            self._connections -= 1
            writer.close()


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, server: DnsServer) -> None:
        self._server = server
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
        answer = self._server.answer(data, is_datagram=True)
        if answer is not None and self._transport is not None:
            self._transport.sendto(answer, addr)


def _spread(reply: Reply) -> Reply:
    """Begins with another of several addresses each time: many clients take the first."""
    first = next((at for at, record in enumerate(reply.answers) if record.type is not Type.CNAME), 0)
    count = len(reply.answers) - first
    if count < 2:
        return reply
    turn = first + random.randrange(count)  # noqa: S311 - nothing to guess here
    return reply._replace(answers=(*reply.answers[:first], *reply.answers[turn:], *reply.answers[first:turn]))
