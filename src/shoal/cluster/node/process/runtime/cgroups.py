"""Control groups: what containers may use at most, and what they have used.

Each container has a group of its own, ``shoal-<pid of the runtime>/<start of its id>``, below the group that the
runtime itself is in, so that whoever bounds Shoal bounds its containers too. The kernel has two forms of this: in *v2*
there is one tree of groups, in *v1* each controller has a tree of its own.

What a runtime left that was killed is removed by the next one. A runtime holds a lock on its groups for as long as it
or a process that it forked lives, so a group whose lock can be had belongs to nobody.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from shoal.cluster.node.process.runtime.cgroup_files import (
    PATIENCE,
    is_removed,
    kill,
    members,
    number,
    remove_abandoned,
    table,
    write,
)
from shoal.cluster.node.process.runtime.cgroup_places import (
    ACCOUNT,
    WANTED,
    candidates,
    hand_on,
    held,
    own_places,
)
from shoal.cluster.node.process.runtime.protocol import Limits

PREFIX = "shoal-"
PERIOD = 100_000
LEAST_QUOTA = 1_000
"""Microseconds; the kernel takes no less."""
MOST_SHARES, LEAST_SHARES = 262_144, 2
NO_CGROUPS = (
    "cpu and memory of containers are not limited: no control groups can be made here "
    "(start Shoal as root, or in a unit with Delegate=yes)"
)


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What a group has used; None where the machine does not count it."""

    cpu_seconds: float | None
    memory_bytes: int | None
    """The working set: without what is kept of files that were not used lately."""
    processes: int


class Cgroups:
    """The groups of one runtime, by the controllers that it may use."""

    def __init__(self, kind: str, folders: Mapping[str, Path], locks: Iterable[int]) -> None:
        self.kind = kind
        """``v1`` or ``v2``."""
        self.controllers = frozenset(folders) & frozenset(WANTED)
        self._folders = dict(folders)
        self._locks = list(locks)
        self._leftovers: list[Cgroup] = []

    @classmethod
    def detect(cls) -> Cgroups | None:
        """The groups that this process may make, found by making one; None where it may make none.

        It forks, so the process should have a single thread. In v2 it may move processes of Shoal to a leaf.
        """
        places = own_places(Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text())
        for kind, homes in candidates(places):
            ours = {folder: folder / f"{PREFIX}{os.getpid()}" for folder in homes.values()}
            locks = {group: descriptor for group in ours.values() if (descriptor := held(group)) is not None}
            found = {name: ours[folder] for name, folder in homes.items() if ours[folder] in locks}
            if kind == "v2":
                found = {name: group for name, group in found.items() if hand_on(group, [name])}
            if found.keys() & set(WANTED):
                return cls(kind, found, locks.values())
            for group, descriptor in locks.items():
                is_removed(group)
                os.close(descriptor)
        return None

    def shortfalls(self) -> list[str]:
        """A sentence for each thing that cannot be limited."""
        things = {"memory": "memory", "cpu": "cpu time", "pids": "number of processes"}
        return [
            f"the {things[name]} of containers is not limited: the controller {name} of cgroups cannot be used here"
            for name in WANTED
            if name not in self.controllers
        ]

    def make(self, container: str, limits: Limits) -> Cgroup:
        """A group for a container; raises OSError where the kernel refuses a limit."""
        folders = {name: folder / container[:12] for name, folder in self._folders.items()}
        group = Cgroup(self.kind, folders, self._leftovers)
        try:
            for folder in _distinct(folders):
                folder.mkdir(parents=True, exist_ok=True)
            for setting in settings(self.kind, limits):
                if setting.controller in folders:
                    write(folders[setting.controller] / setting.file, setting.value, allowed=setting.allowed)
        except OSError:
            group.remove()
            raise
        return group

    def remove_stale(self) -> None:
        """Ends and removes what runtimes left that are no more."""
        for mine in _distinct(self._folders):
            for other in mine.parent.glob(f"{PREFIX}*"):
                if other != mine and other.name.removeprefix(PREFIX).isdigit():
                    remove_abandoned(other)

    def close(self) -> None:
        """Removes the group of this runtime, whose containers were removed, and lets go of it."""
        for folder in [each for group in self._leftovers for each in group.folders] + _distinct(self._folders):
            is_removed(folder, patience=PATIENCE)
        for descriptor in self._locks:
            os.close(descriptor)
        self._leftovers.clear()
        self._locks.clear()


class Cgroup:
    """The group of one container: a folder, or in v1 one for each controller."""

    def __init__(self, kind: str, by_controller: Mapping[str, Path], leftovers: list[Cgroup]) -> None:
        self._kind = kind
        self._by_controller = dict(by_controller)
        self._leftovers = leftovers
        self.folders = _distinct(by_controller)

    def reading(self) -> Reading:
        """What all processes that are or were here have used."""
        memory, is_v2 = self._by_controller.get("memory"), self._kind == "v2"
        account = self.folders[0] if is_v2 else self._by_controller.get(ACCOUNT)
        cpu_seconds = memory_bytes = None
        if account is not None:
            cpu_seconds = table(account / "cpu.stat").get("usage_usec", 0) / 1e6 if is_v2 else _nanoseconds(account)
        if memory is not None:
            used = number(memory / ("memory.current" if is_v2 else "memory.usage_in_bytes")) or 0
            unused = table(memory / "memory.stat").get("inactive_file" if is_v2 else "total_inactive_file", 0)
            memory_bytes = max(0, used - unused)
        return Reading(cpu_seconds=cpu_seconds, memory_bytes=memory_bytes, processes=len(members(self.folders[0])))

    def was_out_of_memory(self) -> bool:
        """Whether the kernel ended a process here for want of memory; forgotten when the group is removed."""
        memory = self._by_controller.get("memory")
        file = "memory.events" if self._kind == "v2" else "memory.oom_control"
        return memory is not None and table(memory / file).get("oom_kill", 0) > 0

    def kill(self) -> None:
        """Ends every process here."""
        kill(self.folders[0])

    def remove(self) -> None:
        """Removes it when its processes are gone; if one takes long to go, when the next group is removed."""
        earlier = self._leftovers.copy()
        self._leftovers.clear()
        for group in (*earlier, self):
            patience = PATIENCE if group is self else ()
            remain = [folder for folder in group.folders if not is_removed(folder, patience=patience)]
            if remain:
                self._leftovers.append(group)


def join(folders: Iterable[Path]) -> None:
    """Moves this process to a group; those that it forks from now on are there too."""
    for folder in folders:
        write(folder / "cgroup.procs", "0")


def forbid_other_views() -> None:
    """Lets nobody in this user namespace, or below it, have another view of the groups than this process has.

    In v1 whoever has may mount the trees of all controllers. What root could then write to are its own limits, and the
    groups of others in those trees in which it has none of its own.
    """
    with suppress(OSError):
        Path("/proc/sys/user/max_cgroup_namespaces").write_text("0")


class Setting(NamedTuple):
    """A value in a file of a group, and the errors that do not matter."""

    controller: str
    file: str
    value: str
    allowed: tuple[int, ...] = ()


def settings(kind: str, limits: Limits) -> list[Setting]:
    """What is written to the files of a new group, in this order."""
    return list(_settings_v2(limits) if kind == "v2" else _settings_v1(limits))


def weight(shares: int) -> int:
    """Shares of v1 (2 to 262144) on the scale of v2 (1 to 10000), as kubelets convert them."""
    return 1 + (shares - LEAST_SHARES) * 9999 // (MOST_SHARES - LEAST_SHARES)


def _settings_v2(limits: Limits) -> Iterator[Setting]:
    if limits.memory_bytes is not None:
        # As under kubelets, the limit ends the whole container, not a part of it that the rest waits for.
        yield Setting("memory", "memory.oom.group", "1", (errno.ENOENT,))
        yield Setting("memory", "memory.swap.max", "0", (errno.ENOENT,))
        yield Setting("memory", "memory.max", str(limits.memory_bytes))
    if limits.cpu_cores is not None:
        yield Setting("cpu", "cpu.max", f"{_quota(limits.cpu_cores)} {PERIOD}")
    if limits.cpu_shares is not None:
        yield Setting("cpu", "cpu.weight", str(weight(_bounded(limits.cpu_shares))))
    if limits.processes is not None:
        yield Setting("pids", "pids.max", str(limits.processes))


def _settings_v1(limits: Limits) -> Iterator[Setting]:
    if limits.memory_bytes is not None:
        yield Setting("memory", "memory.limit_in_bytes", str(limits.memory_bytes))
        yield Setting("memory", "memory.memsw.limit_in_bytes", str(limits.memory_bytes), (errno.ENOENT,))
    if limits.cpu_cores is not None:
        yield Setting("cpu", "cpu.cfs_period_us", str(PERIOD))
        # Refused where a group above has less, which then is the limit.
        yield Setting("cpu", "cpu.cfs_quota_us", str(_quota(limits.cpu_cores)), (errno.EINVAL,))
    if limits.cpu_shares is not None:
        yield Setting("cpu", "cpu.shares", str(_bounded(limits.cpu_shares)))
    if limits.processes is not None:
        yield Setting("pids", "pids.max", str(limits.processes))


def _quota(cores: float) -> int:
    return max(LEAST_QUOTA, int(cores * PERIOD))


def _bounded(shares: int) -> int:
    return min(MOST_SHARES, max(LEAST_SHARES, shares))


def _nanoseconds(account: Path) -> float:
    return (number(account / "cpuacct.usage") or 0) / 1e9


def _distinct(folders: Mapping[str, Path]) -> list[Path]:
    """Each folder once: in v2, and where v1 joins controllers, several share one."""
    return list(dict.fromkeys(folders.values()))
