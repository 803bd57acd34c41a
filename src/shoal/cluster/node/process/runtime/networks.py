"""The node's own network and those of its pods: a bridge, and a cable from it into every pod's namespace.

The process that keeps them lives in the node's network and looks into a pod's only for moments: it has a single thread,
so nothing else of it is there meanwhile.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import msgspec

from shoal.cluster.node.process.runtime.netlink import LOOPBACK, Netlink
from shoal.cluster.node.process.runtime.refusals import Refused
from shoal.cluster.node.process.runtime.syscalls import CLONE_NEWNET, setns, unshare
from shoal.cluster.node.process.runtime.translation import try_out

BRIDGE = "shoal0"
_POD_LINK = "eth0"
_NOWHERE = b"\x0a\x58\x00\x00\x00\x00"
_PATIENCE = (0.0, 0.001, 0.002, 0.004, 0.008, 0.016)
_SETTINGS = (
    ("net.ipv4.ip_unprivileged_port_start", "0"),
    # The narrow one is for a node that knows a single group, and refuses the other.
    ("net.ipv4.ping_group_range", "0 0"),
    ("net.ipv4.ping_group_range", "0 2147483647"),
    # The network is one of IPv4; addresses that links give themselves would only send packets around to be sure.
    ("net.ipv6.conf.default.addr_gen_mode", "1"),
)


class Addresses(msgspec.Struct, frozen=True, kw_only=True):
    """Which addresses are whose."""

    node: IPv4Address
    pods: IPv4Network
    services: IPv4Network


def build(addresses: Addresses) -> None:
    """Makes the network namespace that this process is in, which is new, that of a node."""
    allow_everyone()
    netlink = Netlink()
    netlink.bring_up(LOOPBACK)
    netlink.add_bridge(BRIDGE, _hardware(addresses.node))
    bridge = netlink.index_of(BRIDGE)
    netlink.add_address(bridge, addresses.node, addresses.pods)
    netlink.add_local_route(addresses.services, source=addresses.node)
    _answer_for_the_world()
    _keep_busy(netlink, bridge)
    netlink.close()


def _answer_for_the_world() -> None:
    """Lets the node tell pods that what they look for outside cannot be reached, where else they would wait for it.

    Only who passes packets on says that of those it cannot; there is nowhere that it could. It would say so but once
    in many seconds: a program that tries the next address deserves an answer too.
    """
    for name, setting in ((f"net.ipv4.conf.{BRIDGE}.forwarding", "1"), ("net.ipv4.icmp_ratelimit", "0")):
        with suppress(OSError):
            _file_of(name).write_text(setting)


def prepare_translation() -> None:
    """Prepares the node's network for Services whose addresses the kernel translates; raises OSError if it does not.

    Answers must come back through the node for their addresses to be translated back. So pods, which are neighbours on
    one bridge, send to each other through the node, which must pass packets on and not tell them of a shorter way. Nor
    may the bridge translate by itself: it never sends a packet back to the pod from which it came.
    """
    for name, setting in (
        (f"net.ipv4.conf.{BRIDGE}.forwarding", "1"),
        (f"net.ipv4.conf.{BRIDGE}.send_redirects", "0"),
        ("net.ipv4.conf.all.send_redirects", "0"),
        ("net.bridge.bridge-nf-call-iptables", "0"),
    ):
        file = _file_of(name)
        if name.startswith("net.bridge.") and not file.exists():
            continue  # a kernel whose bridges translate nothing
        if file.read_text().strip() != setting:
            file.write_text(setting)
        if file.read_text().strip() != setting:
            raise OSError(errno.EPERM, f"sysctl {name} stays as it is")
    try_out()


def _keep_busy(netlink: Netlink, bridge: int) -> None:
    """Gives the bridge a cable that leads nowhere: without any it would sleep, and lose what wakes it."""
    here = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    end, other = f"{BRIDGE}-end", f"{BRIDGE}-other"
    netlink.add_pair(end, bridge=bridge, peer=other, hardware=_NOWHERE, namespace=here)
    os.close(here)
    netlink.bring_up(netlink.index_of(other))
    _await_connection(netlink, end, BRIDGE)


def _await_connection(netlink: Netlink, *links: str) -> None:
    """A bridge lets packets through a moment after it could; one that is sent before is lost, and missed for long."""
    for link in links:
        for wait in _PATIENCE:
            if netlink.is_connected(link):
                break
            time.sleep(wait)


class NodeNetwork:
    """Makes networks for pods, from within that of the node."""

    def __init__(self, addresses: Addresses, *, is_routed: bool) -> None:
        """``is_routed``: pods send to each other through the node, which translates the addresses of Services."""
        self.addresses = addresses
        self._is_routed = is_routed
        self._home = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        self._netlink = Netlink()
        self._bridge = self._netlink.index_of(BRIDGE)
        self._cables = 0

    def make(self, address: str, sysctls: Mapping[str, str]) -> PodNetwork:
        """A network in which ``eth0`` has the address."""
        own = self._checked(address)
        try:
            unshare(CLONE_NEWNET)
        except OSError as error:
            raise Refused(
                "NoNetwork",
                f"no network namespace could be made for {address} ({error.strerror}): "
                "raise user.max_net_namespaces, or run fewer pods",
            ) from error
        self._cables += 1
        made = PodNetwork(
            namespace=os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC),
            home=self._home,
            cable=f"pod{self._cables}",
            netlink=self._netlink,
        )
        try:
            self._connect(made, own)
            for name, setting in sysctls.items():
                set_sysctl(name, setting)
        except BaseException:
            made.close()
            raise
        finally:
            setns(self._home, CLONE_NEWNET)
        return made

    def _checked(self, address: str) -> IPv4Address:
        try:
            own = IPv4Address(address)
        except ValueError as error:
            raise Refused("InvalidAddress", f"{address!r} is not an IPv4 address") from error
        pods = self.addresses.pods
        if own not in pods or own in (pods.network_address, pods.broadcast_address, self.addresses.node):
            raise Refused("InvalidAddress", f"{address} is not one of the addresses for pods in {pods}")
        return own

    def _connect(self, made: PodNetwork, address: IPv4Address) -> None:
        """Called inside; the other end of the cable is where our own conversation with the kernel was begun."""
        allow_everyone()
        self._netlink.add_pair(
            made.cable,
            bridge=self._bridge,
            peer=_POD_LINK,
            hardware=_hardware(address),
            namespace=made.namespace,
        )
        inner = Netlink()
        index = inner.index_of(_POD_LINK)
        inner.bring_up(LOOPBACK)
        inner.bring_up(index)
        if self._is_routed:
            inner.add_address(index, address, IPv4Network(address))
            inner.add_link_route(index, self.addresses.node)
        else:
            inner.add_address(index, address, self.addresses.pods)
        inner.add_default_route(self.addresses.node)
        inner.close()
        _await_connection(self._netlink, made.cable)


class PodNetwork:
    """The network of a pod."""

    def __init__(self, *, namespace: int, home: int, cable: str, netlink: Netlink) -> None:
        self.namespace = namespace
        """A descriptor that keeps it."""
        self.cable = cable
        self._home = home
        self._netlink = netlink

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Looks into it; what is made meanwhile, such as a socket, stays there."""
        setns(self.namespace, CLONE_NEWNET)
        try:
            yield
        finally:
            setns(self._home, CLONE_NEWNET)

    def close(self) -> None:
        """Cuts it off at once, so that its address is free; the rest goes when nobody uses the namespace any more."""
        with suppress(OSError):
            self._netlink.bring_down(self.cable)
        os.close(self.namespace)


def allow_everyone() -> None:
    """Lets everybody in this network listen on low ports and ping, where the machine lets us say so."""
    for name, setting in _SETTINGS:
        with suppress(OSError):
            _file_of(name).write_text(setting)


def set_sysctl(name: str, setting: str) -> None:
    """Sets one of the kernel's settings, for the namespaces that this process is in."""
    try:
        _file_of(name).write_text(setting)
    except FileNotFoundError as error:
        raise Refused("SysctlForbidden", f"sysctl {name!r} is unknown, or not one of a pod's own") from error
    except OSError as error:
        raise Refused("SysctlForbidden", f"sysctl {name!r} cannot be set to {setting!r}: {error.strerror}") from error


def _file_of(name: str) -> Path:
    """``a.b/c.d`` is ``a/b.c/d``; names that begin with slashes between their parts are paths already."""
    first = next((one for one in name if one in "./"), ".")
    path = name if first == "/" else name.translate(str.maketrans("./", "/."))
    if any(part in ("", ".", "..") for part in path.split("/")):
        raise Refused("SysctlForbidden", f"{name!r} is not the name of a sysctl")
    return Path("/proc/sys", path)


def _hardware(address: IPv4Address) -> bytes:
    """A hardware address that follows from the other: who knew the last pod of that address finds the next one too."""
    return b"\x0a\x58" + address.packed
