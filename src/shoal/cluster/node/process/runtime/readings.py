"""What containers have used: from their control groups, and what these do not count from /proc.

Memory from /proc is resident memory, summed over the processes. It counts pages that several of them share more than
once; what would not (the proportional size) makes the kernel walk every page table, at many times the cost.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from shoal.cluster.node.process.runtime.cgroups import Cgroup, Reading
from shoal.cluster.node.process.runtime.protocol import ContainerReading

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
_NOTHING = Reading(cpu_seconds=None, memory_bytes=None, processes=0)


def readings(containers: Mapping[str, tuple[int, Cgroup | None]]) -> list[ContainerReading]:
    """What containers have used, each given by its id with the pid of its init and its group.

    /proc is walked once, and only if a group does not count something.
    """
    machine = Machine()
    return [_reading(id_, pid, group, machine) for id_, (pid, group) in containers.items()]


def _reading(container: str, pid: int, group: Cgroup | None, machine: Machine) -> ContainerReading:
    reading = group.reading() if group is not None else _NOTHING
    cpu_seconds, memory_bytes, processes = reading.cpu_seconds, reading.memory_bytes, reading.processes
    if cpu_seconds is None or memory_bytes is None:
        family = list(machine.processes.family(pid))
        processes = len(family)
        if cpu_seconds is None:
            cpu_seconds = sum(one.ticks for one in family) / _TICKS
        if memory_bytes is None:
            memory_bytes = sum(one.memory_bytes for one in family)
    return ContainerReading(id=container, cpu_seconds=cpu_seconds, memory_bytes=memory_bytes, processes=processes)


class Process(NamedTuple):
    """A process, as far as its container's account needs it."""

    pid: int
    parent: int
    ticks: int
    """Of cpu time: its own, and that of its children that ended and were waited for."""
    memory_bytes: int

    @staticmethod
    def of(stat: str) -> Process:
        """A process from the text of its ``stat``; its name, in parentheses, may hold anything."""
        fields = stat.rpartition(")")[2].split()
        return Process(
            pid=int(stat.partition(" ")[0]),
            parent=int(fields[1]),
            ticks=sum(int(field) for field in fields[11:15]),
            memory_bytes=int(fields[21]) * _PAGE,
        )


class Processes:
    """Processes and who descends from whom."""

    def __init__(self, processes: Iterable[Process]) -> None:
        self._by_pid = {one.pid: one for one in processes}
        self._children: dict[int, list[Process]] = {}
        for one in self._by_pid.values():
            self._children.setdefault(one.parent, []).append(one)

    def family(self, pid: int) -> Iterator[Process]:
        """A process and all that descend from it.

        Where it is an init, those whose parent ended are its own children: none is missed, and their time is not lost.
        """
        waiting = [self._by_pid[pid]] if pid in self._by_pid else []
        while waiting:
            one = waiting.pop()
            yield one
            waiting += self._children.get(one.pid, ())


class Machine:
    """All processes of this machine, at the moment when they are first asked for."""

    @cached_property
    def processes(self) -> Processes:
        """One walk over /proc."""
        return Processes(_walk())


def _walk() -> Iterator[Process]:
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                yield Process.of(Path(entry.path, "stat").read_text(errors="replace"))
            except (OSError, IndexError, ValueError):
                continue  # it ended meanwhile
