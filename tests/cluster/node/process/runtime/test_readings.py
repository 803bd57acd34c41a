"""What containers have used, told from /proc with real processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from shoal.cluster.node.process.runtime.cgroups import Cgroup
from shoal.cluster.node.process.runtime.protocol import ContainerReading
from shoal.cluster.node.process.runtime.readings import Process, Processes, readings

MIB = 1 << 20
BUSY = f"""
import os, sys, time

def burn(seconds):
    while time.process_time() < seconds: pass

child = os.fork()
if child == 0:
    burn(0.3)
    os._exit(0)
os.waitpid(child, 0)
if os.fork() == 0:
    hold = b"x" * {40 * MIB}
    print("ready", flush=True)
    sys.stdin.read()
    os._exit(0)
sys.stdin.read()
"""


def test_without_groups_usage_is_that_of_the_init_its_descendants_and_those_it_waited_for() -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", BUSY], stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        (found,) = readings({"a": (process.pid, None)})
        process.communicate()
    assert found.id == "a"
    assert found.processes == 2
    assert 0.29 <= found.cpu_seconds < 5
    assert 40 * MIB <= found.memory_bytes < 200 * MIB


def test_a_container_that_is_gone_has_used_nothing() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    assert readings({"a": (process.pid, None)}) == [
        ContainerReading(id="a", cpu_seconds=0, memory_bytes=0, processes=0)
    ]


def test_what_a_group_counts_is_taken_from_it_and_the_rest_from_proc(tmp_path: Path) -> None:
    (tmp_path / "memory.usage_in_bytes").write_text("4096")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        (found,) = readings({"a": (process.pid, Cgroup("v1", {"memory": tmp_path}, []))})
        process.communicate(b"\n")
    assert (found.memory_bytes, found.processes) == (4096, 1)


@pytest.mark.parametrize("name", ["sleep", "a b", ") S 9 9 (", "(("])
def test_the_name_of_a_process_may_hold_anything(name: str) -> None:
    fields = "S 7 0 0 0 -1 0 0 0 0 0 10 20 30 40 20 0 1 0 100 1000 3 0"
    assert Process.of(f"42 ({name}) {fields}")._replace(memory_bytes=0) == Process(42, 7, 100, 0)


def test_a_family_is_all_that_descend_from_its_first() -> None:
    parents = {1: 0, 10: 1, 11: 10, 12: 11, 13: 10, 20: 1, 21: 20}
    processes = Processes(Process(pid, parent, 1, 1) for pid, parent in parents.items())
    assert {one.pid for one in processes.family(10)} == {10, 11, 12, 13}
    assert not list(processes.family(99))
