from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from shoal.cluster.node.process.runtime.node import Node
from shoal.cluster.node.process.runtime.protocol import SocketSpec
from shoal.cluster.node.process.runtime.refusals import Refused
from shoal.cluster.node.process.runtime.sandbox import Sandbox, make_socket
from shoal.cluster.node.process.runtime.syscalls import setns
from tests.cluster.node.process.runtime.conftest import InNode
from tests.support.node.runtime_program import a_sandbox, in_a_process


def inside(sandbox: Sandbox, action: Callable[[], None]) -> None:
    def act() -> None:
        for one in sandbox.namespaces:
            setns(one)
        action()

    in_a_process(act)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def listen(address: str, port: int) -> None:
    with socket.socket() as made:
        made.bind((address, port))
        made.listen()


def namespaces() -> dict[str, int]:
    return {kind: Path("/proc/self/ns", kind).stat().st_ino for kind in ("net", "uts", "ipc", "mnt", "user")}


def test_a_sandbox_has_names_messages_and_a_network_of_its_own(in_node: InNode) -> None:
    def act(node: Node) -> None:
        before = namespaces()
        host = os.uname().nodename
        sandbox = Sandbox(a_sandbox(hostname="web-0"), node)

        def look() -> None:
            assert os.uname().nodename == "web-0"
            assert not {kind for kind in ("net", "uts", "ipc") if namespaces()[kind] == before[kind]}
            listen("10.88.0.2", 80)

        inside(sandbox, look)
        assert namespaces() == before
        assert os.uname().nodename == host
        assert sandbox.address == "10.88.0.2"

    in_node(act)


def test_a_pod_on_the_nodes_network_has_its_own_name_only(in_node: InNode) -> None:
    def act(node: Node) -> None:
        before = namespaces()
        sandbox = Sandbox(a_sandbox(address="", hostname="agent"), node)

        def look() -> None:
            assert os.uname().nodename == "agent"
            assert namespaces()["net"] == before["net"]
            listen("10.88.0.1", 80)

        inside(sandbox, look)
        assert sandbox.address == ""

    in_node(act)


def test_a_socket_is_in_the_network_it_was_asked_for_in(in_node: InNode) -> None:
    def act(node: Node) -> None:
        one, other = Sandbox(a_sandbox(), node), Sandbox(a_sandbox("pod-2", address="10.88.0.3"), node)
        listening = one.make_socket(SocketSpec(address="10.88.0.2", port=8080))
        calling = other.make_socket(SocketSpec())
        calling.settimeout(5)
        calling.connect(("10.88.0.2", 8080))
        assert listening.accept()[1][0] == "10.88.0.3"
        names = make_socket(SocketSpec(address="10.88.0.1", port=53, is_datagram=True))
        asking = one.make_socket(SocketSpec(is_datagram=True))
        asking.sendto(b"who", ("10.88.0.1", 53))
        names.settimeout(5)
        assert names.recvfrom(10)[0] == b"who"

    in_node(act)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(SocketSpec(address="10.88.0.9", port=80), id="an address of another"),
        pytest.param(SocketSpec(address="10.88.0.2", port=70000), id="no such port"),
        pytest.param(SocketSpec(address="nowhere", port=80), id="no address"),
    ],
)
def test_a_socket_that_cannot_be_had_is_refused(in_node: InNode, spec: SocketSpec) -> None:
    def act(node: Node) -> None:
        sandbox = Sandbox(a_sandbox(), node)
        before = namespaces()
        with pytest.raises(Refused, match="listen at"):
            sandbox.make_socket(spec)
        assert namespaces() == before

    in_node(act)


def test_settings_of_a_pod_are_its_own(in_node: InNode) -> None:
    def act(node: Node) -> None:
        file = Path("/proc/sys/kernel/shm_rmid_forced")
        before = file.read_text()
        wanted = {"kernel.shm_rmid_forced": "1", "net.ipv4.tcp_syncookies": "0"}
        sandbox = Sandbox(a_sandbox(sysctls=wanted), node)

        def look() -> None:
            assert file.read_text() == "1\n"
            assert Path("/proc/sys/net/ipv4/tcp_syncookies").read_text() == "0\n"

        inside(sandbox, look)
        assert file.read_text() == before

    in_node(act)


@pytest.mark.parametrize(
    "name", ["kernel.hostname", "vm.swappiness", "kernel.panic", "fs.file-max", "kernel/msgx/../panic"]
)
def test_a_setting_of_the_machine_is_refused(in_node: InNode, name: str) -> None:
    def act(node: Node) -> None:
        before = open_files()
        with pytest.raises(Refused) as refused:
            Sandbox(a_sandbox(sysctls={name: "1"}), node)
        assert refused.value.reason == "SysctlForbidden"
        assert open_files() == before

    in_node(act)


def test_a_setting_of_the_network_is_refused_to_a_pod_on_the_nodes(in_node: InNode) -> None:
    def act(node: Node) -> None:
        with pytest.raises(Refused, match="not one that a pod has for itself"):
            Sandbox(a_sandbox(address="", sysctls={"net.ipv4.tcp_syncookies": "0"}), node)

    in_node(act)


def test_nothing_of_a_closed_sandbox_is_held(in_node: InNode) -> None:
    def act(node: Node) -> None:
        before = open_files()
        for number in range(2, 22):
            sandbox = Sandbox(a_sandbox(address=f"10.88.0.{number}"), node)
            sandbox.close()
            sandbox.close()
        assert open_files() == before

    in_node(act)


def test_without_namespaces_a_sandbox_is_but_a_name(in_node: InNode) -> None:
    def act(node: Node) -> None:
        degraded = msgspec.structs.replace(node.facts, has_namespaces=False, has_network=False)
        plain = Node(facts=degraded, root=node.root, network=None)
        sandbox = Sandbox(a_sandbox(), plain)
        assert sandbox.namespaces == []
        assert sandbox.address == ""
        sandbox.make_socket(SocketSpec(address="127.0.0.1")).close()
        with pytest.raises(Refused):
            Sandbox(a_sandbox(sysctls={"kernel.shm_rmid_forced": "1"}), plain)

    in_node(act)
