"""The node: a user namespace in which the runtime is root, with mounts, names and a network of its own.

A child makes these namespaces and tries out in them whatever containers will need; only if they are of use does this
process enter them, since there is no way back. So a machine that forbids something, or seems to allow it and then
refuses all that matters, is found out before anything depends on it.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

import msgspec

from shoal.cluster.node.process.runtime import trial
from shoal.cluster.node.process.runtime.launcher import Launcher
from shoal.cluster.node.process.runtime.networks import Addresses, NodeNetwork
from shoal.cluster.node.process.runtime.protocol import Facts
from shoal.cluster.node.process.runtime.shortfalls import Fault, Findings, shortfalls
from shoal.cluster.node.process.runtime.syscalls import setns

_NAMESPACES = ("user", "mnt", "uts", "ipc")
"""In the order in which they are entered: who is root of the first may enter the others."""


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """Where this process is, and what it can do there."""

    facts: Facts
    root: Path
    """An empty folder, on which containers build their roots, each in mounts of its own."""
    network: NodeNetwork | None
    """None where pods use the network that this process was started in."""
    uts: int = -1
    ipc: int = -1
    """The node's own namespaces, to come back to; -1 where there are none."""
    zygote: Launcher | None = None
    """Starts the processes of containers; None until there is one."""

    @property
    def launcher(self) -> Launcher:
        """What starts the processes of containers."""
        assert self.zygote is not None, "the node has no zygote"
        return self.zygote

    def with_zygote(self) -> Node:
        """The same node with a zygote, which is in the namespaces of the node."""
        return msgspec.structs.replace(self, zygote=Launcher())


def enter(root: Path, addresses: Addresses | None) -> Node:
    """Enters the namespaces of a node, as far as this machine allows; without ``addresses`` not those of a network."""
    is_root = os.geteuid() == 0
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    child = os.fork()
    if child == 0:
        ours.close()
        trial.live(theirs, root, addresses)
    theirs.close()
    try:
        with ours:
            findings = _heard(ours)
            if findings.fault is None:
                id_fault = _write_maps(child) or findings.id_fault
                ours.send(b"mapped")
                findings = msgspec.structs.replace(_heard(ours), id_fault=id_fault)
            if findings.fault is None:
                _join(child, with_network=findings.has_network)
    finally:
        os.waitpid(child, 0)
    has_namespaces = findings.fault is None
    has_all_ids = is_root and findings.id_fault is None
    facts = Facts(
        pid=os.getpid(),
        has_namespaces=has_namespaces,
        has_network=has_namespaces and findings.has_network,
        has_translation=has_namespaces and findings.has_network and findings.translation_fault is None,
        has_all_ids=has_all_ids,
        has_overlays=has_namespaces and findings.overlay_fault is None,
        cgroups="",
        shortfalls=shortfalls(findings, wants_network=addresses is not None),
    )
    return Node(
        facts=facts,
        root=root,
        network=_network(addresses, facts),
        uts=_own_namespace("uts") if has_namespaces else -1,
        ipc=_own_namespace("ipc") if has_namespaces else -1,
    )


def _network(addresses: Addresses | None, facts: Facts) -> NodeNetwork | None:
    if addresses is None or not facts.has_network:
        return None
    return NodeNetwork(addresses, is_routed=facts.has_translation)


def _heard(ours: socket.socket) -> Findings:
    message = ours.recv(65536)
    if not message:
        return Findings(fault=Fault(step="trial", number=0, words="the process that tried it out ended"))
    return msgspec.json.decode(message, type=Findings)


def _write_maps(child: int) -> Fault | None:
    """Says who is who in the child's user namespace: everybody where root asks, else only ourselves, as its root."""
    fault: Fault | None = None
    folder = Path("/proc", str(child))
    if os.geteuid() == 0:
        try:
            for kind in ("uid_map", "gid_map"):
                (folder / kind).write_text(_same(Path("/proc/self", kind).read_text()))
            return None
        except OSError as error:
            fault = Fault.of("ids", error)
    try:
        (folder / "setgroups").write_text("deny")
        for kind, own in (("uid_map", os.geteuid()), ("gid_map", os.getegid())):
            if not (folder / kind).read_text().strip():
                (folder / kind).write_text(f"0 {own} 1")
    except OSError as error:
        return Fault.of("ids", error)  # the child goes on without, and tells what it cannot do then
    return fault


def _same(known: str) -> str:
    """A map that gives each id that is known here to itself."""
    extents = [line.split() for line in known.splitlines()]
    return "".join(f"{first} {first} {count}\n" for first, _, count in extents)


def _join(child: int, *, with_network: bool) -> None:
    opened = [
        os.open(f"/proc/{child}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)
        for kind in (*_NAMESPACES, *(["net"] if with_network else []))
    ]
    for one in opened:
        setns(one)
        os.close(one)


def _own_namespace(kind: str) -> int:
    return os.open(f"/proc/self/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)
