from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shoal.cluster.node.process.runtime.node import Node
from shoal.cluster.node.process.runtime.privileges import bits, id_maps
from shoal.cluster.node.process.runtime.protocol import Bind, ContainerSpec, Ids, Limits
from shoal.cluster.node.process.runtime.syscalls import leave_keyring
from tests.cluster.node.process.runtime.conftest import InNode
from tests.support.node.keyring import is_key_found, keep_key
from tests.support.node.runtime_program import a_container, in_a_process
from tests.support.node.small_runtime import SmallRuntime

USUAL = [
    *("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP", "NET_BIND_SERVICE"),
    *("NET_RAW", "SYS_CHROOT", "MKNOD", "AUDIT_WRITE", "SETFCAP"),
]
USUAL_MASK = "00000000a80425fb"
NONE = "0000000000000000"


def test_the_usual_capabilities_are_those_of_container_runtimes() -> None:
    assert f"{bits(USUAL):016x}" == USUAL_MASK
    assert bits(["NO_SUCH_THING"]) == 0


@pytest.mark.parametrize(
    ("has_all_ids", "known", "expected"),
    [
        (True, "         0          0 4294967295\n", "0 0 4294967295\n"),
        (True, "0 100000 1000\n5000 200000 7\n", "0 0 1000\n5000 5000 7\n"),
        (False, "0 1000 1\n", "33 0 1\n"),
    ],
    ids=["root of the machine", "root of a part", "an ordinary user"],
)
def test_ids_inside_are_those_outside_where_there_are_any(has_all_ids: bool, known: str, expected: str) -> None:
    assert id_maps(Ids(user=33, group=33), has_all_ids=has_all_ids, known=known) == (expected, expected)


OF_THE_C_LIBRARY = 0b11 << 31
"""Two signals that it keeps to itself; started by make, a process finds them ignored and cannot change that."""


def status(node: Node, folder: Path, **fields: Any) -> dict[str, str]:
    """What the kernel says of a process in a container."""
    spec = a_container(folder, "cat", "/proc/self/status", **fields)
    lines = SmallRuntime(node).output(spec).splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def test_root_has_the_capabilities_it_was_given_and_no_others(in_node: InNode, folder: Path) -> None:
    def act(node: Node) -> None:
        found = status(node, folder, capabilities=USUAL)
        assert found["Uid"].split() == ["0"] * 4
        assert {name: found[name] for name in ("CapPrm", "CapEff", "CapBnd")} == dict.fromkeys(
            ("CapPrm", "CapEff", "CapBnd"), USUAL_MASK
        )
        assert (found["CapInh"], found["CapAmb"]) == (NONE, NONE)
        assert found["NoNewPrivs"] == "0"
        assert found["SigBlk"] == NONE
        assert int(found["SigIgn"], 16) & ~OF_THE_C_LIBRARY == 0
        assert found["Umask"] == "0022"

    in_node(act)


def test_another_user_has_its_own_ids_and_no_capabilities(in_node: InNode, folder: Path) -> None:
    def act(node: Node) -> None:
        ids = Ids(user=1234, group=5678, groups=[77, 5678])
        found = status(node, folder, capabilities=USUAL, ids=ids, may_gain_privileges=False)
        assert found["Uid"].split() == ["1234"] * 4
        assert found["Gid"].split() == ["5678"] * 4
        if node.facts.has_all_ids:
            assert found["Groups"].split() == ["77", "5678"]
        assert (found["CapEff"], found["CapPrm"], found["CapBnd"]) == (NONE, NONE, USUAL_MASK)
        assert found["NoNewPrivs"] == "1"

    in_node(act)


def test_a_program_that_runs_as_its_owner_is_stopped_by_no_new_privileges(in_node: InNode, folder: Path) -> None:
    """`su` or `passwd` of a container's own: a copy of `id` that belongs to root."""

    def act(node: Node) -> None:
        if not node.facts.has_all_ids:
            return
        tool = folder / "id"
        tool.write_bytes(Path("/usr/bin/id").read_bytes())
        tool.chmod(0o4755)
        for number, (may_gain, expected) in enumerate([(True, "0\n"), (False, "1000\n")], start=1):
            spec = a_container(
                folder,
                *("/opt/who", "-u"),
                number=number,
                ids=Ids(user=1000, group=1000),
                may_gain_privileges=may_gain,
                binds=[Bind(source=str(tool), target="/opt/who")],
            )
            assert SmallRuntime(node).output(spec) == expected

    in_node(act)


def test_a_program_finds_no_open_files_but_its_own_and_may_open_many(in_node: InNode, folder: Path) -> None:
    def act(node: Node) -> None:
        spec = a_container(folder, "sh", "-c", "ls /proc/self/fd; ulimit -Sc; ulimit -Sn; ulimit -Hn")
        *files, core, soft, hard = SmallRuntime(node).output(spec).split()
        assert files == ["0", "1", "2", "3"]  # 3 is what ls reads
        assert (core, soft) == ("0", hard)

    in_node(act)


def test_processes_are_bounded_even_without_cgroups(in_node: InNode, folder: Path) -> None:
    script = "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 60 & done; echo none was refused"

    def act(node: Node) -> None:
        ids = Ids(user=1000, group=1000)  # the machine's root is bounded by its cgroup alone
        spec = a_container(folder, "sh", "-c", script, limits=Limits(processes=5), ids=ids)
        runtime = SmallRuntime(node)
        assert runtime.end(runtime.start(spec)) != 0

    in_node(act)


def test_the_processes_of_one_container_are_not_counted_for_another(in_node: InNode, folder: Path) -> None:
    def act(node: Node) -> None:
        def a_family(number: int, script: str) -> ContainerSpec:
            ids = Ids(user=1000, group=1000)
            return a_container(folder, "sh", "-c", script, number=number, limits=Limits(processes=20), ids=ids)

        runtime = SmallRuntime(node)
        large = runtime.start(a_family(1, "for i in $(seq 15); do sleep 60 & done; echo all there; wait"))
        runtime.said(large, "all there")
        try:
            small = a_family(2, "for i in $(seq 10); do sleep 60 & done; echo none was refused")
            assert runtime.output(small) == "none was refused\n"
        finally:
            large.kill()
            runtime.end(large)

    in_node(act)


def test_a_process_leaves_the_keys_behind_that_it_has_from_others() -> None:
    def act() -> None:
        if keep_key("a key", b"a secret"):
            assert is_key_found("a key")
            leave_keyring()
            assert not is_key_found("a key")

    in_a_process(act)
