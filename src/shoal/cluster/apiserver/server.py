"""The server with its sockets: TLS on a TCP port for everyone, and a Unix socket in the data dir for its owner."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from shoal.api.meta import now
from shoal.cluster.apiserver.access.credentials import Credentials
from shoal.cluster.apiserver.core import Core, running, seconds_now
from shoal.cluster.apiserver.front.http import HttpFront
from shoal.cluster.apiserver.offload import SWITCH_SECONDS
from shoal.cluster.apiserver.storage import Store
from shoal.cluster.apiserver.upkeep.bootstrap import publish_address
from shoal.cluster.keyring import write_private
from shoal.kube.certificates import service_names
from shoal.kube.probes import bound_for_owner

FIRST_SERVICE_IP = "10.96.0.1"

_ANYWHERE = ("0.0.0.0", "::")  # noqa: S104 - compared with, not bound to
_BACKLOG = 1024
_HANDSHAKE_SECONDS = 10.0
_SHUTDOWN_SECONDS = 1.0
"""aiohttp waits twice so long: for requests that end by themselves, and for those that it cancels."""


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """How a server is run."""

    data_dir: Path
    bind: str = "127.0.0.1"
    port: int = 7443
    """0 takes any free one."""
    listener: socket.socket | None = None
    """A socket that is bound to ``bind`` already, instead of ``port``; whoever gives it closes it."""
    names: Sequence[str] = ()
    """Further names and addresses that its certificate is for."""
    durable: bool = True
    """Whether a write waits for the disk; without it data survive a killed process, but not a killed machine."""


class PortTaken(Exception):
    """Somebody else listens there."""

    def __init__(self, address: str, why: str) -> None:
        self.address = address
        super().__init__(f"{address} cannot be listened on: {why}: choose another port, or 0 for any free one")


@dataclass(frozen=True, kw_only=True)
class ApiServer:
    """A server that can be connected to."""

    url: str
    socket: Path
    kubeconfig: Path
    core: Core


@asynccontextmanager
async def serving(options: ServerOptions) -> AsyncIterator[ApiServer]:
    """Runs a server; it is ready inside the block, and after it everything that was answered is on disk."""
    data_dir = options.data_dir.absolute()
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    with nullcontext(options.listener) if options.listener else _listener(options.bind, options.port) as listener:
        port = listener.getsockname()[1]
        host = "127.0.0.1" if options.bind in _ANYWHERE else options.bind
        url = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
        credentials = Credentials.at(data_dir / "pki", names=_names(options, host), now=now())
        store = await Store.open(data_dir / "store", synchronous="FULL" if options.durable else "OFF")
        try:
            async with running(store, credentials, address=url, agent_sockets=data_dir / "agents") as core:
                await publish_address(core.state, host=host, port=port, cluster_ip=FIRST_SERVICE_IP, now=seconds_now)
                _settle_memory()
                _share_the_interpreter()
                kubeconfig = data_dir / "kubeconfig"
                async with _connected(core, listener, data_dir) as unix_socket:
                    write_private(kubeconfig, credentials.kubeconfig(url))
                    yield ApiServer(url=url, socket=unix_socket, kubeconfig=kubeconfig, core=core)
        finally:
            await store.close()


@asynccontextmanager
async def _connected(core: Core, listener: socket.socket, data_dir: Path) -> AsyncIterator[Path]:
    """Accepts connections for as long as the block runs."""
    unix_socket = data_dir / "api.sock"
    fronts = [HttpFront(core.service), HttpFront(core.service, is_trusted=True)]
    runners = [web.ServerRunner(front.server(), shutdown_timeout=_SHUTDOWN_SECONDS) for front in fronts]
    everyone, owner = runners
    await everyone.setup()
    await owner.setup()
    listening: asyncio.Server | None = None
    try:
        assert everyone.server is not None
        # Not by aiohttp's SockSite, which leaves a handshake that never ends a whole minute.
        listening = await asyncio.get_running_loop().create_server(
            everyone.server,
            sock=listener,
            ssl=core.credentials.server_context(),
            ssl_handshake_timeout=_HANDSHAKE_SECONDS,
            backlog=_BACKLOG,
        )
        await web.SockSite(owner, bound_for_owner(unix_socket), backlog=_BACKLOG).start()
        yield unix_socket
    finally:
        if listening is not None:
            listening.close()
        for front in fronts:
            front.end_lasting()
        await asyncio.gather(*(runner.cleanup() for runner in runners))
        unix_socket.unlink(missing_ok=True)


def _listener(bind: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ipaddress.ip_address(bind).version == 6 else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((bind, port))
    except OSError as error:
        listener.close()
        raise PortTaken(f"{bind}:{port}", error.strerror or str(error)) from error
    return listener


def _names(options: ServerOptions, host: str) -> list[str]:
    names = ["localhost", "127.0.0.1", "::1", host, FIRST_SERVICE_IP, socket.gethostname()]
    return list(dict.fromkeys([*names, *service_names("kubernetes", "default"), *options.names]))


def _share_the_interpreter() -> None:
    """Large objects are computed with in worker threads; the event loop gets its turn soon while one of them runs."""
    sys.setswitchinterval(SWITCH_SECONDS)


def _settle_memory() -> None:
    """What is loaded now stays; the collector need not look at it again."""
    gc.collect()
    gc.freeze()
