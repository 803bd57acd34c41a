"""A sandbox: the namespaces that the containers of a pod share."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from ipaddress import ip_address

from shoal.cluster.node.process.runtime.netfilter import netfilter_socket
from shoal.cluster.node.process.runtime.networks import PodNetwork, set_sysctl
from shoal.cluster.node.process.runtime.node import Node
from shoal.cluster.node.process.runtime.protocol import SandboxSpec, SocketSpec
from shoal.cluster.node.process.runtime.refusals import Refused
from shoal.cluster.node.process.runtime.shared_processes import SharedProcesses
from shoal.cluster.node.process.runtime.syscalls import CLONE_NEWIPC, CLONE_NEWUTS, set_hostname, setns, unshare

_LONGEST_HOSTNAME = 64
_SYSCTLS_OF_IPC = ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")
_QUEUE = 4096
_LAST_PORT = 65535


class Sandbox:
    """What the containers of a pod share, from ``open`` to ``close``; kept by descriptors, not by a process."""

    def __init__(self, spec: SandboxSpec, node: Node) -> None:
        """Makes the namespaces, or raises ``Refused`` and leaves nothing."""
        self.spec = spec
        self._node = node
        self._network: PodNetwork | None = None
        self._others: list[int] = []
        self._processes: SharedProcesses | None = None
        if not node.facts.has_namespaces:
            _refuse_all(spec.sysctls)
            return
        of_network, of_ipc = _sysctls(spec, has_network=self.has_network)
        if node.network is not None and spec.address:
            self._network = node.network.make(spec.address, of_network)
        try:
            self._others = _named(spec.hostname, of_ipc, node)
            self._processes = SharedProcesses(node.launcher) if spec.shares_processes else None
        except BaseException:
            self.close()
            raise

    @property
    def has_network(self) -> bool:
        """Whether the pod has a network, and an address, of its own."""
        return self._node.network is not None and bool(self.spec.address)

    @property
    def address(self) -> str:
        """The pod's own address; empty where it has none."""
        return self.spec.address if self.has_network else ""

    @property
    def namespaces(self) -> list[int]:
        """The namespaces that a container joins; what is missing here, it shares with the node."""
        network = [] if self._network is None else [self._network.namespace]
        processes = [] if self._processes is None else [self._processes.namespace]
        return network + self._others + processes

    def make_socket(self, spec: SocketSpec) -> socket.socket:
        """A socket in the pod's network."""
        if self._network is None:
            return make_socket(spec)
        with self._network.inside():
            return make_socket(spec)

    def close(self) -> None:
        """Lets go of the namespaces; they end with the last process in them."""
        if self._network is not None:
            self._network.close()
        self._network = None
        if self._processes is not None:
            self._processes.close()
        self._processes = None
        for one in self._others:
            os.close(one)
        self._others = []


def make_socket(spec: SocketSpec) -> socket.socket:
    """A socket in the network that this process is in, listening where the spec says so."""
    if spec.is_netfilter:
        return netfilter_socket()
    family, where = _endpoint(spec)
    made = socket.socket(family, socket.SOCK_DGRAM if spec.is_datagram else socket.SOCK_STREAM)
    if not spec.address:
        return made
    try:
        if not spec.is_datagram:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(where)
        if not spec.is_datagram:
            made.listen(_QUEUE)
    except OSError as error:
        made.close()
        raise Refused("NoSocket", f"nobody can listen at {spec.address} port {spec.port}: {error.strerror}") from error
    return made


def _endpoint(spec: SocketSpec) -> tuple[socket.AddressFamily, tuple[str, int]]:
    """A name is not an address: looking it up would keep everybody waiting."""
    try:
        address = ip_address(spec.address or ("::1" if spec.is_version_6 else "127.0.0.1"))
    except ValueError as error:
        raise Refused("Invalid", f"{spec.address!r} is not an address to listen at") from error
    if not 0 <= spec.port <= _LAST_PORT:
        raise Refused("Invalid", f"{spec.port} is not a port to listen at")
    return (socket.AF_INET if address.version == 4 else socket.AF_INET6), (str(address), spec.port)


def _named(hostname: str, sysctls: dict[str, str], node: Node) -> list[int]:
    """New namespaces for the host's name and for messages between processes, made by visiting them."""
    unshare(CLONE_NEWUTS | CLONE_NEWIPC)
    made: list[int] = []
    try:
        set_hostname(hostname[:_LONGEST_HOSTNAME])
        for name, setting in sysctls.items():
            set_sysctl(name, setting)
        made += [os.open(f"/proc/self/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in ("uts", "ipc")]
    finally:
        setns(node.uts, CLONE_NEWUTS)
        setns(node.ipc, CLONE_NEWIPC)
    return made


def _sysctls(spec: SandboxSpec, *, has_network: bool) -> tuple[dict[str, str], dict[str, str]]:
    """Those of the network and those of the messages; others would change the machine."""
    of_network: dict[str, str] = {}
    of_ipc: dict[str, str] = {}
    for name, setting in spec.sysctls.items():
        dotted = name.replace("/", ".")
        if dotted.startswith("net.") and has_network:
            of_network[name] = setting
        elif dotted.startswith(_SYSCTLS_OF_IPC):
            of_ipc[name] = setting
        else:
            _refuse_all([name])
    return of_network, of_ipc


def _refuse_all(sysctls: Iterable[str]) -> None:
    for name in sysctls:
        raise Refused("SysctlForbidden", f"sysctl {name!r} is not one that a pod has for itself here")
