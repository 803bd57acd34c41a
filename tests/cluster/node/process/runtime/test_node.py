from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import pytest

from shoal.cluster.node.process.runtime.node import Node, enter
from shoal.cluster.node.process.runtime.syscalls import (
    CLONE_NEWNS,
    CLONE_NEWUSER,
    MS_NODEV,
    PR_SET_DUMPABLE,
    mount,
    prctl,
    unshare,
)
from tests.cluster.node.process.runtime.conftest import InNode
from tests.support.node.runtime_program import ADDRESSES, in_a_process

KINDS = ("user", "mnt", "net", "uts", "ipc")


def namespaces() -> dict[str, int]:
    return {kind: Path("/proc/self/ns", kind).stat().st_ino for kind in KINDS}


def ids(kind: str) -> list[str]:
    return Path("/proc/self", kind).read_text().split()


def test_the_node_is_a_world_of_its_own(in_node: InNode, is_ordinary: bool) -> None:
    before = namespaces()
    user = os.getuid() if not is_ordinary or os.getuid() else 65534
    known = ids("uid_map")

    def act(node: Node) -> None:
        assert not [kind for kind in KINDS if namespaces()[kind] == before[kind]]
        facts = node.facts
        assert (facts.has_namespaces, facts.has_network, facts.has_all_ids) == (True, True, not is_ordinary)
        assert facts.has_translation
        assert facts.shortfalls == []
        assert facts.pid == os.getpid()
        assert os.geteuid() == 0
        assert ids("uid_map") == (["0", str(user), "1"] if is_ordinary else [known[0], known[0], known[2]])

    in_node(act)
    assert namespaces() == before


def test_the_node_may_mount_and_nobody_else_sees_it(in_node: InNode, folder: Path) -> None:
    def act(node: Node) -> None:
        assert list(node.root.iterdir()) == []
        mount("tmpfs", str(node.root), "tmpfs", MS_NODEV)
        (node.root / "seen").touch()

    in_node(act)
    assert list((folder / "root").iterdir()) == []


def test_without_a_network_of_its_own_it_is_in_the_machines(folder: Path, is_ordinary: bool) -> None:
    before = namespaces()

    def look() -> None:
        if is_ordinary and os.getuid() == 0:
            os.setresuid(65534, 65534, 65534)
            prctl(PR_SET_DUMPABLE, 1)
        node = enter(folder, None)
        assert node.network is None
        assert (node.facts.has_namespaces, node.facts.has_network, node.facts.shortfalls) == (True, False, [])
        assert namespaces()["net"] == before["net"]

    in_a_process(look)


def test_a_machine_that_refuses_leaves_the_process_where_it_is(folder: Path) -> None:
    def look() -> None:
        unshare(CLONE_NEWUSER | CLONE_NEWNS)  # without a map of ids nothing more may be done in it
        before = namespaces()
        node = enter(folder, ADDRESSES)
        assert not node.facts.has_namespaces
        assert node.network is None
        assert node.facts.shortfalls
        assert namespaces() == before

    in_a_process(look)


def test_where_the_kernel_translates_no_addresses_pods_still_reach_each_other(
    in_node: InNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr("shoal.cluster.node.process.runtime.trial.prepare_translation", refuse)

    def act(node: Node) -> None:
        assert (node.facts.has_network, node.facts.has_translation) == (True, False)
        (shortfall,) = node.facts.shortfalls
        assert "Operation not supported" in shortfall
        assert node.network is not None
        one, two = node.network.make("10.88.0.2", {}), node.network.make("10.88.0.3", {})
        with one.inside():
            server = socket.create_server(("10.88.0.2", 80))
        with two.inside(), socket.socket() as connected:
            connected.settimeout(10)
            connected.connect(("10.88.0.2", 80))
            assert connected.getsockname()[0] == "10.88.0.3"
        server.close()

    in_node(act)
