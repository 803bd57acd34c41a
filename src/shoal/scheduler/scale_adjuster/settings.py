"""How GPUs are asked for in the stead of pods that want a part of one."""

from __future__ import annotations

from dataclasses import dataclass

from shoal.api import kai_names as names


@dataclass(frozen=True, kw_only=True)
class ScaleAdjusterSettings:
    """What the configuration decides for the adjuster."""

    namespace: str = names.SCALE_ADJUST_NAMESPACE
    """Where the pods are that ask for GPUs."""
    image: str = "scaling-pod:latest"
    """An image whose program ends at once: it is enough that the pod was placed."""
    account: str = "default"
    app_label: str = "scaling-pod"
    cool_down: float = 60.0
    """Seconds without new pods after one was removed: the GPU that it brought is about to be used."""
    memory_portion: float = 0.1
    """What a part that is measured in memory counts for, since the coming GPU's size is not known."""
    schedulers: tuple[str, ...] = (names.SCHEDULER,)
    """The names of the schedulers whose pods are looked at."""
