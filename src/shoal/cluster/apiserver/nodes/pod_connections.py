"""Connections to ports of pods, which the agents of their nodes make: nothing here dials a pod's address.

An agent on this machine upgrades a request on its Unix socket to a connection to the pod, and from then on passes bytes
both ways. TLS, where there is any, is between us and the pod.
"""

from __future__ import annotations

import asyncio
import errno
import re
import socket
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

import aiohttp
import msgspec
from aiohttp.client_proto import ResponseHandler

from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.nodes.agents import Agent, Agents
from shoal.cluster.apiserver.reader import Reader
from shoal.cluster.apiserver.refusals import Refused
from shoal.kube.errors import Status

if TYPE_CHECKING:
    from aiohttp.client_reqrep import ClientRequest
    from aiohttp.tracing import Trace

_ANSWERS_WITHIN = 15.0
"""Seconds for an agent, which itself gives up on a pod a little earlier."""
_LONGEST_HEAD = 16 * 1024
_LONGEST_BODY = 64 * 1024
_ANSWER = re.compile(rb"HTTP/1\.1 (?P<code>\d{3})")
_LENGTH = re.compile(rb"\r\ncontent-length: *(?P<bytes>\d{1,9})", re.IGNORECASE)
_BROKEN = "the agent of the node broke off its answer, or does not answer in HTTP"


class PodUnreachable(aiohttp.ClientConnectionError):
    """No connection to a pod came about; says why, in one sentence."""


@dataclass(frozen=True, slots=True)
class PodHost:
    """A pod as the host of a URL, for a connector that knows pods and no names."""

    namespace: str
    name: str
    uid: str

    @staticmethod
    def of(pod: Object) -> PodHost:
        """The host that a pod is."""
        metadata = pod["metadata"]
        return PodHost(metadata["namespace"], metadata["name"], metadata["uid"])

    @staticmethod
    def parse(host: str) -> PodHost:
        """Reads ``str`` of another one: of the three parts only the name may have dots."""
        uid, _, rest = host.partition(".")
        name, _, namespace = rest.rpartition(".")
        return PodHost(namespace, name, uid)

    def __str__(self) -> str:
        return f"{self.uid}.{self.name}.{self.namespace}"


class PodDialer:
    """Opens connections to pods."""

    def __init__(self, state: Reader, agents: Agents) -> None:
        self._state = state
        self._agents = agents

    async def dial(self, host: PodHost, port: int) -> socket.socket:
        """A connection to a port of a pod, by the agent of its node; raises PodUnreachable."""
        agent = self._agent(host)
        path = f"/podConnect/{quote(host.namespace)}/{quote(host.name)}/{quote(host.uid)}?port={port}"
        try:
            async with asyncio.timeout(_ANSWERS_WITHIN):
                return await _upgraded(agent.server.removeprefix("unix://"), path)
        except TimeoutError:
            why = f"it did not answer within {_ANSWERS_WITHIN:g} s"
        except OSError as error:
            why = error.strerror or str(error)
        raise PodUnreachable(f'the agent of node "{agent.node}" cannot be reached: {why}')

    def _agent(self, host: PodHost) -> Agent:
        pod = self._state.get("pods", host.namespace, host.name)
        called = f'pod "{host.namespace}/{host.name}"'
        if pod is None or pod["metadata"]["uid"] != host.uid:
            raise PodUnreachable(f"{called} does not exist any more")
        node = pod["spec"].get("nodeName")
        if not node:
            raise PodUnreachable(f"{called} is not running: it is assigned to no node")
        phase = (pod.get("status") or {}).get("phase", "Pending")
        if phase != "Running":
            raise PodUnreachable(f"{called} is not running: its phase is {phase}")
        try:
            agent = self._agents.agent(node)
        except Refused as refusal:
            raise PodUnreachable(f"{called} cannot be reached: {refusal.status.message}") from refusal
        if not agent.is_local:
            raise PodUnreachable(
                f'{called} cannot be reached: the agent of node "{node}" at {agent.server} carries no connections '
                "to pods"
            )
        return agent


class PodConnector(aiohttp.BaseConnector):
    """Opens aiohttp's connections, where the host of a URL is a ``PodHost``."""

    def __init__(self, dialer: PodDialer) -> None:
        super().__init__(limit=0)
        self._dialer = dialer

    async def _create_connection(
        self,
        req: ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's signature
    ) -> ResponseHandler:
        context = req.ssl if req.is_ssl() and isinstance(req.ssl, ssl.SSLContext) else None
        opened = await self._dialer.dial(PodHost.parse(req.url.raw_host or ""), req.url.port or 0)
        try:
            _, protocol = await self._loop.create_unix_connection(
                self._factory,
                sock=opened,
                ssl=context,
                server_hostname=req.server_hostname if context is not None else None,
            )
        except BaseException as error:
            opened.close()
            match error:
                case ssl.SSLCertVerificationError():
                    raise aiohttp.ClientConnectorCertificateError(req.connection_key, error) from error
                case ConnectionResetError():
                    # As of a server that ended in the middle: whoever called may try again.
                    raise aiohttp.ClientOSError(errno.ECONNRESET, "connection reset by peer") from error
                case ssl.SSLError():
                    raise PodUnreachable(f"tls: {error.reason or error}") from error
                case OSError():
                    raise PodUnreachable(error.strerror or str(error)) from error
            raise
        return protocol


async def _upgraded(path: str, target: str) -> socket.socket:
    """A connection to an agent that has become one to a pod; raises PodUnreachable with the agent's words, or OSError.

    HTTP and TLS have the client speak first, so nothing of the pod can come with the agent's answer.
    """
    loop = asyncio.get_running_loop()
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    opened.setblocking(False)
    try:
        await loop.sock_connect(opened, path)
        request = f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
        await loop.sock_sendall(opened, request.encode("ascii"))
        received = b""
        while b"\r\n\r\n" not in received:
            piece = await loop.sock_recv(opened, _LONGEST_HEAD)
            received += piece
            if not piece or len(received) > _LONGEST_HEAD:
                raise PodUnreachable(_BROKEN)
        head, _, body = received.partition(b"\r\n\r\n")
        answer = _ANSWER.match(head)
        if answer is None:
            raise PodUnreachable(_BROKEN)
        if answer["code"] != b"101":
            raise PodUnreachable(_words(answer["code"], await _whole(opened, head, body)))
        if body:
            raise PodUnreachable("the pod speaks before it is asked: that is not HTTP")
    except BaseException:
        opened.close()
        raise
    return opened


async def _whole(opened: socket.socket, head: bytes, body: bytes) -> bytes:
    """A body of which a part has come already."""
    length = _LENGTH.search(head)
    missing = min(int(length["bytes"]) if length is not None else 0, _LONGEST_BODY) - len(body)
    while missing > 0 and (piece := await asyncio.get_running_loop().sock_recv(opened, missing)):
        body += piece
        missing -= len(piece)
    return body


def _words(code: bytes, body: bytes) -> str:
    try:
        message = msgspec.json.decode(body, type=Status).message
    except msgspec.MsgspecError:
        message = ""
    return message or f"the agent of the node answered {code.decode(errors='replace')}"
