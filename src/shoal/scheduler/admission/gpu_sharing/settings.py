"""What pods may do with GPUs."""

from __future__ import annotations

from dataclasses import dataclass

from shoal.api import kai_names as names


@dataclass(frozen=True, kw_only=True)
class GpuSharingSettings:
    """What the configuration decides for pods that share GPUs."""

    is_enabled: bool = False
    """Whether pods may share GPUs at all."""
    runtime_class: str = "nvidia"
    """The runtime class of pods that share a GPU and name none; empty leaves them without."""
    guards_devices: bool = False
    """Whether pods are kept from choosing devices by themselves, through ``NVIDIA_VISIBLE_DEVICES``."""
    schedulers: tuple[str, ...] = (names.SCHEDULER,)
    """The names of the schedulers whose pods are looked at."""
