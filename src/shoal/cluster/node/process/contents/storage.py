"""Local storage of pods: what one may use (emptyDir ``sizeLimit``, limits on ``ephemeral-storage``), and what it uses.

As with a kubelet, a limit is not a wall: usage is measured now and then, and a pod that exceeds a limit is evicted.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from shoal.api.core.pod_details import PodDetails
from shoal.api.meta import ZERO_QUANTITY, Quantity, parse_quantity

_BLOCK = 512


@dataclass(frozen=True, kw_only=True)
class StorageLimits:
    """What a pod may use, by the names of its emptyDir volumes and of its containers."""

    volumes: Mapping[str, Quantity] = field(default_factory=dict)
    containers: Mapping[str, Quantity] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether there is any limit."""
        return bool(self.volumes or self.containers)

    @property
    def of_pod(self) -> Quantity:
        """All limits of containers together, which bind the pod with its volumes."""
        return sum(self.containers.values(), ZERO_QUANTITY)


@dataclass(frozen=True, kw_only=True)
class StorageUsage:
    """Bytes that a pod uses. What a container uses is its writable files and its logs."""

    volumes: Mapping[str, int]
    containers: Mapping[str, int]
    in_memory: frozenset[str] = frozenset()
    """The volumes that are not on disk, and do not count for the pod."""

    @property
    def on_disk(self) -> int:
        """What the pod uses of the disk."""
        volumes = sum(used for name, used in self.volumes.items() if name not in self.in_memory)
        return volumes + sum(self.containers.values())


def storage_limits(pod: PodDetails) -> StorageLimits:
    """The limits of a pod."""
    volumes = {
        volume.name: parse_quantity(volume.empty_dir.size_limit)
        for volume in pod.spec.volumes
        if volume.empty_dir is not None and volume.empty_dir.size_limit is not None
    }
    containers = {
        container.name: parse_quantity(container.resources.limits["ephemeral-storage"])
        for container in pod.spec.containers
        if "ephemeral-storage" in container.resources.limits
    }
    return StorageLimits(
        volumes={name: limit for name, limit in volumes.items() if not limit.is_zero},
        containers={name: limit for name, limit in containers.items() if not limit.is_zero},
    )


def excess(limits: StorageLimits, usage: StorageUsage) -> str:
    """Which limit is exceeded, in a kubelet's words; empty where none is."""
    for name, limit in limits.volumes.items():
        if usage.volumes.get(name, 0) > limit.value():
            return f'Usage of EmptyDir volume "{name}" exceeds the limit "{limit}". '
    if limits.containers and usage.on_disk > limits.of_pod.value():
        return f"Pod ephemeral local storage usage exceeds the total limit of containers {limits.of_pod}. "
    for name, limit in limits.containers.items():
        if usage.containers.get(name, 0) > limit.value():
            return f'Container {name} exceeded its local ephemeral storage limit "{limit}". '
    return ""


def disk_usage(*folders: Path) -> int:
    """The bytes that files and folders take; those that others remove or hide meanwhile do not count."""
    total = 0
    seen: set[tuple[int, int]] = set()
    left = [str(folder) for folder in folders]
    while left:
        with suppress(OSError), os.scandir(left.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    found = entry.stat(follow_symlinks=False)
                    if found.st_nlink > 1 and not entry.is_dir(follow_symlinks=False):
                        if (found.st_dev, found.st_ino) in seen:
                            continue
                        seen.add((found.st_dev, found.st_ino))
                    total += found.st_blocks * _BLOCK
                    if entry.is_dir(follow_symlinks=False):
                        left.append(entry.path)
    return total
