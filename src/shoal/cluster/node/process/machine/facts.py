"""What this machine is and has, and whether it runs short of something; read from the kernel, never written."""

from __future__ import annotations

import os
import platform
import shutil
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from shoal.cluster.node.process.runtime.cgroup_files import number, text
from shoal.cluster.node.process.runtime.cgroup_places import Place, own_places

LEAST_MEMORY = 100 * 1024 * 1024
"""Bytes; with less available the machine is short of memory, as with kubelets."""
LEAST_DISK = 1024 * 1024 * 1024
"""Bytes; with less free, or a tenth of a small disk, the machine is short of disk. Kubelets want a tenth of any disk,
which would shut out most workstations."""
LEAST_PIDS_SHARE = 20
"""With less than this part of all process ids free the machine is short of them."""

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}
"""Where Go, and so Kubernetes, has another word than the kernel."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """What does not change while the machine runs."""

    cores: float
    """Those that we may use: by affinity, and by what our control group may use."""
    memory_bytes: int
    disk_bytes: int
    """Of the disk that holds the data dir."""
    hostname: str
    architecture: str
    kernel: str
    system: str
    """The name of the operating system, for people."""
    machine_id: str
    boot_id: str


class Shortage(msgspec.Struct, frozen=True, kw_only=True):
    """What the machine runs short of."""

    memory: bool = False
    disk: bool = False
    pids: bool = False


def read_machine(disk: Path) -> Machine:
    """What this machine is and has; ``disk`` is a folder on the disk that pods use."""
    places = own_places(text(Path("/proc/self/mountinfo")), text(Path("/proc/self/cgroup")))
    return Machine(
        cores=usable_cores(len(os.sched_getaffinity(0)), (_quota(folder) for folder in _bounding(places, "cpu"))),
        memory_bytes=min([memory_table()["MemTotal"], *_memory_limits(places)]),
        disk_bytes=shutil.disk_usage(disk).total,
        hostname=socket.gethostname(),
        architecture=_ARCHITECTURES.get(platform.machine(), platform.machine()),
        kernel=platform.release(),
        system=system_name(text(Path("/etc/os-release")) or text(Path("/usr/lib/os-release"))),
        machine_id=text(Path("/etc/machine-id")).strip(),
        boot_id=text(Path("/proc/sys/kernel/random/boot_id")).strip(),
    )


def read_shortage(disk: Path) -> Shortage:
    """What the machine runs short of now; ``disk`` is a folder on the disk that pods use."""
    used = shutil.disk_usage(disk)
    most_pids = number(Path("/proc/sys/kernel/pid_max")) or 0
    threads = int(text(Path("/proc/loadavg")).split()[3].partition("/")[2])
    return shortage(
        memory_available=memory_table()["MemAvailable"],
        disk_total=used.total,
        disk_free=used.free,
        pids_total=most_pids,
        pids_used=threads,
    )


def shortage(*, memory_available: int, disk_total: int, disk_free: int, pids_total: int, pids_used: int) -> Shortage:
    """What is short of these."""
    return Shortage(
        memory=memory_available < LEAST_MEMORY,
        disk=disk_free < least_disk(disk_total),
        pids=pids_total - pids_used < pids_total // LEAST_PIDS_SHARE,
    )


def least_disk(total: int) -> int:
    """How many bytes of a disk must be free."""
    return min(LEAST_DISK, total // 10)


def usable_cores(count: int, quotas: Iterable[float | None]) -> float:
    """How many cores we may keep busy, of those that we may run on."""
    return min([float(count), *(quota for quota in quotas if quota is not None)])


def system_name(release: str) -> str:
    """What an os-release file calls the system."""
    for line in release.splitlines():
        name, _, value = line.partition("=")
        if name == "PRETTY_NAME":
            return value.strip().strip("\"'")
    return "Linux"


def memory_table() -> Mapping[str, int]:
    """/proc/meminfo, in bytes."""
    pairs = (line.partition(":") for line in text(Path("/proc/meminfo")).splitlines())
    return {name: int(rest.split()[0]) * 1024 for name, _, rest in pairs if rest.strip().endswith("kB")}


def _bounding(places: Iterable[Place], controller: str) -> Iterable[Path]:
    """The groups, our own and those above it, that may bound what we use."""
    for place in places:
        if place.kind == "v2" or controller in place.controllers:
            for folder in (place.folder, *place.folder.parents):
                yield folder
                if folder == place.top:
                    break


def _quota(folder: Path) -> float | None:
    """How many cores a group may use."""
    v2 = text(folder / "cpu.max").split()
    if len(v2) == 2 and v2[0].isdigit():
        return int(v2[0]) / int(v2[1])
    v1, period = number(folder / "cpu.cfs_quota_us"), number(folder / "cpu.cfs_period_us")
    return v1 / period if v1 and period else None


def _memory_limits(places: Iterable[Place]) -> Iterable[int]:
    for folder in _bounding(places, "memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            limit = number(folder / name)
            if limit is not None:
                yield limit
