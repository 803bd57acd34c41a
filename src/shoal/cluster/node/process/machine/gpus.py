"""Which container has which GPUs. No device is had by two pods, and containers keep theirs past a restart of the agent.

Containers are given GPUs by their UUIDs: an index would mean another device to a container that sees only some. The
account is written down whenever it changes, since a container that runs on while the agent is away keeps using its
devices; kubelets keep such a file for the same reason.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
import structlog

from shoal.cluster.node.process.machine.nvml import Gpu

log = structlog.get_logger("shoal.cluster.node.process")

RESOURCE = "nvidia.com/gpu"
_SHARED_FILES = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")


class NotEnoughGpus(Exception):
    """A container asks for more GPUs than are free."""

    def __init__(self, *, asked: int, free: int) -> None:
        self.asked, self.free = asked, free
        super().__init__(f"{asked} GPUs were asked for and {free} are free: wait until others are given back")


class Allotment(msgspec.Struct, frozen=True, kw_only=True):
    """The GPUs of one container of a pod."""

    uid: str
    container: str
    devices: list[str]


class Gpus:
    """The account of one node's GPUs; devices are named by their UUIDs."""

    def __init__(self, found: Sequence[Gpu], file: Path) -> None:
        self._file = file
        self._held = {(one.uid, one.container): one for one in _written(file)}
        self.found: Sequence[Gpu] = found
        """Those that the machine has now. What containers hold stays theirs even where it is not among them."""

    def allot(self, uid: str, container: str, count: int, *, reusing: Collection[str] = ()) -> list[str]:
        """Devices for a container: those that it has, or the first free ones; raises NotEnoughGpus.

        ``reusing`` are containers of the same pod that have ended for good, such as its init containers: what they had
        is taken first, since a pod is not counted for both.
        """
        held = self.held(uid, container)
        if len(held) == count and set(held) <= {gpu.uuid for gpu in self.found}:
            return held
        given = {
            device
            for (owner, name), one in self._held.items()
            for device in one.devices
            if owner != uid or (name != container and name not in reusing)
        }
        reused = {device for name in reusing for device in self.held(uid, name)}
        free = [gpu for gpu in self.found if gpu.uuid not in given]
        free.sort(key=lambda gpu: (gpu.uuid not in reused, gpu.index))
        if count > len(free):
            raise NotEnoughGpus(asked=count, free=len(free))
        chosen = [gpu.uuid for gpu in free[:count]]
        self.restore(uid, container, chosen)
        return chosen

    def held(self, uid: str, container: str) -> list[str]:
        """The devices of a container."""
        one = self._held.get((uid, container))
        return one.devices if one is not None else []

    def restore(self, uid: str, container: str, devices: Sequence[str]) -> None:
        """Takes down what a container has, as somebody knows who found it running."""
        held = self._held | {(uid, container): Allotment(uid=uid, container=container, devices=list(devices))}
        self._write(held)
        self._held = held

    def release(self, uid: str) -> None:
        """Gives back what the containers of a pod had."""
        self.keep({owner for owner, _ in self._held} - {uid})

    def keep(self, uids: Collection[str]) -> None:
        """Gives back what pods had that are not among these, such as those that went while nobody looked."""
        kept = {place: one for place, one in self._held.items() if place[0] in uids}
        if kept != self._held:
            self._held = kept
            try:
                self._write(kept)
            except OSError as error:
                # Who reads the old account looks by himself which of these pods there are.
                log.warning("the account of GPUs cannot be written", file=str(self._file), error=str(error))

    def files(self, devices: Iterable[str], *, folder: Path = Path("/dev")) -> list[str]:
        """The device files that a container with these devices needs; none for one without."""
        minors = {gpu.uuid: gpu.minor for gpu in self.found}
        own = [f"nvidia{minors[device]}" for device in devices if device in minors]
        names = [*own, *_SHARED_FILES] if own else []
        return [str(folder / name) for name in names if (folder / name).exists()]

    def _write(self, held: Mapping[tuple[str, str], Allotment]) -> None:
        """In place of the old file at once: one that is cut short would let devices be given twice."""
        fresh = self._file.with_suffix(".new")
        fresh.write_bytes(msgspec.json.encode(list(held.values())))
        fresh.replace(self._file)


def gpu_environment(devices: Sequence[str]) -> dict[str, str]:
    """What tells CUDA which GPUs a container has; with none, that it has none."""
    listed = ",".join(devices)
    return {"CUDA_VISIBLE_DEVICES": listed, "NVIDIA_VISIBLE_DEVICES": listed or "void"}


def _written(file: Path) -> list[Allotment]:
    try:
        return msgspec.json.decode(file.read_bytes(), type=list[Allotment])
    except FileNotFoundError:
        return []
    except msgspec.DecodeError as error:
        # Only a machine that broke down while it was written leaves one, and then no container runs any more.
        log.warning("the account of GPUs cannot be read: it begins anew", file=str(file), error=str(error))
        return []
