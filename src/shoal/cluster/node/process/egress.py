"""The way of a real kube-apiserver into the network of the pods: an HTTP CONNECT proxy on a Unix socket.

kube-apiserver is configured (``--egress-selector-config-file``) to connect to everything of the cluster through it:
webhooks behind Services, pods and Services of the proxy subresources, and kubelets. Addresses of pods and Services are
dialled in the node's own network. From the machine's network it dials agents on this machine, by their ports, and nodes
that are other machines; nothing else of this machine can be reached through it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Collection

import structlog

from shoal.cluster.networks import is_of_cluster, is_simulated, is_special
from shoal.cluster.node.kubelet import Refused
from shoal.cluster.node.kubelet.ports import PIECE
from shoal.cluster.node.process.answers.connections import dialled
from shoal.cluster.node.process.answers.forwarding import exchange
from shoal.cluster.node.process.answers.residents import Runtime
from shoal.cluster.node.process.pods.reach import words_of

log = structlog.get_logger("shoal.cluster.node.process.egress")

_ASKS_WITHIN = 10.0
_CONNECTS_WITHIN = 10.0
_LOOPBACK = "127.0.0.1"


class Egress:
    """Serves the proxy. ``agents`` are the ports of 127.0.0.1 on which agents of nodes answer."""

    def __init__(self, runtime: Runtime | None, *, agents: Collection[int]) -> None:
        """``runtime`` opens sockets in the network of the pods; None where there is no such network."""
        self._runtime = runtime
        self._agents = frozenset(agents)
        self._serving: set[asyncio.Task[None]] = set()

    async def run(self, listener: socket.socket) -> None:
        """Serves on a Unix socket that is listened on already, until cancelled; the socket stays its owner's."""
        server = await asyncio.start_unix_server(self._accepted, sock=listener.dup())
        try:
            await asyncio.Event().wait()
        finally:
            server.close()
            for task in self._serving:
                task.cancel()
            if self._serving:
                await asyncio.wait(self._serving)

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            try:
                host, port = await _destination(reader)
                connection = await self._dialled(host, port)
            except Refused as refusal:
                log.info("connection refused", problem=refusal.message)
                words = " ".join(refusal.message.split())
                writer.write(f"HTTP/1.1 {refusal.status} {words}\r\nContent-Length: 0\r\n\r\n".encode())
                await writer.drain()
                return
            with connection:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await writer.drain()
                await exchange(_Client(port, reader, writer), connection)
        except (ConnectionError, asyncio.IncompleteReadError, TimeoutError):
            pass
        except Exception:
            log.exception("connection failed")
        finally:
            writer.close()

    async def _dialled(self, host: str, port: int) -> socket.socket:
        address = await _resolved(host, port)
        if is_simulated(address):
            raise Refused(503, f"{address} is the address of a simulated pod: nothing listens on its ports")
        if is_of_cluster(address):
            if self._runtime is None:
                raise Refused(503, f"{address} cannot be reached: pods have no network of their own on this machine")
            return await dialled(self._runtime, address, port)
        is_agent = address == _LOOPBACK and port in self._agents
        if not is_agent and (is_special(address) or is_own_address(address)):
            raise Refused(403, f"{address}:{port} is on this machine, and is not connected to for the cluster")
        return await _connected(address, port)


class _Client:
    """kube-apiserver's end, as ``exchange`` takes it."""

    can_half_close = True

    def __init__(self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.port = port
        self._reader = reader
        self._writer = writer

    async def read(self) -> bytes:
        return await self._reader.read(PIECE)

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def close(self) -> None:
        if self._writer.can_write_eof() and not self._writer.is_closing():
            self._writer.write_eof()

    async def fail(self, message: str) -> None:
        self._writer.transport.abort()


def is_own_address(address: str) -> bool:
    """Whether an address belongs to this machine: only such a one can be bound to."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as trial:
        try:
            trial.bind((address, 0))
        except OSError:
            return False
    return True


async def _destination(reader: asyncio.StreamReader) -> tuple[str, int]:
    """The host and port that a CONNECT request names; raises Refused."""
    try:
        async with asyncio.timeout(_ASKS_WITHIN):
            head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise Refused(400, "the request is too long") from None
    method, _, rest = head.decode("latin-1").partition(" ")
    target = rest.partition(" ")[0]
    host, _, port = target.rpartition(":")
    if method != "CONNECT" or not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise Refused(400, "connect to a host and a port by CONNECT")
    return host.removeprefix("[").removesuffix("]"), int(port)


async def _resolved(host: str, port: int) -> str:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        raise Refused(503, f"dial tcp: lookup {host}: no such host") from None
    address = ipaddress.ip_address(str(found[0][4][0]).partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


async def _connected(address: str, port: int) -> socket.socket:
    opened = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    opened.setblocking(False)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        async with asyncio.timeout(_CONNECTS_WITHIN):
            await asyncio.get_running_loop().sock_connect(opened, (address, port))
    except TimeoutError:
        opened.close()
        raise Refused(503, f"dial tcp {address}:{port}: i/o timeout") from None
    except OSError as error:
        opened.close()
        raise Refused(503, f"dial tcp {address}:{port}: connect: {words_of(error)}") from None
    except BaseException:
        opened.close()
        raise
    return opened
