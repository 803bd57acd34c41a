"""What the machine is and has: rules over texts, and this very machine."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from shoal.cluster.node.process.machine.facts import (
    LEAST_DISK,
    LEAST_MEMORY,
    Shortage,
    read_machine,
    read_shortage,
    shortage,
    system_name,
    usable_cores,
)

GIB = 1 << 30
ENOUGH = {
    "memory_available": LEAST_MEMORY,
    "disk_total": 100 * GIB,
    "disk_free": LEAST_DISK,
    "pids_total": 1000,
    "pids_used": 0,
}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, Shortage()),
        ({"memory_available": LEAST_MEMORY - 1}, Shortage(memory=True)),
        ({"disk_free": LEAST_DISK - 1}, Shortage(disk=True)),
        ({"disk_total": GIB, "disk_free": GIB // 10}, Shortage()),
        ({"disk_total": GIB, "disk_free": GIB // 10 - 1}, Shortage(disk=True)),
        ({"pids_used": 950}, Shortage()),
        ({"pids_used": 951}, Shortage(pids=True)),
    ],
)
def test_a_machine_is_short_of_what_it_has_too_little_of(given: dict[str, int], expected: Shortage) -> None:
    assert shortage(**(ENOUGH | given)) == expected


@pytest.mark.parametrize(
    ("count", "quotas", "expected"), [(8, [], 8.0), (8, [None, 2.5], 2.5), (2, [4.0], 2.0), (8, [3.0, 1.5], 1.5)]
)
def test_cores_are_those_that_may_be_kept_busy(count: int, quotas: list[float | None], expected: float) -> None:
    assert usable_cores(count, quotas) == expected


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ('ID=debian\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n', "Debian GNU/Linux 12 (bookworm)"),
        ("PRETTY_NAME=Alpine\n", "Alpine"),
        ("", "Linux"),
    ],
)
def test_the_system_has_the_name_that_it_gives_itself(release: str, expected: str) -> None:
    assert system_name(release) == expected


def test_this_machine_is_read(tmp_path: Path) -> None:
    machine = read_machine(tmp_path)
    assert 0 < machine.cores <= (os.cpu_count() or 1)
    assert 0 < machine.memory_bytes <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert machine.disk_bytes > 0
    assert (machine.hostname, machine.kernel) == (socket.gethostname(), os.uname().release)
    assert len(machine.boot_id) == 36
    assert read_shortage(tmp_path) == Shortage()
