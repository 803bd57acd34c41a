"""What a pod asks of GPUs: whole devices, a part of one or several, or MIG instances.

Whole devices and MIG instances are asked for by containers, as resources; parts by the pod's annotations, since no
resource can be split among pods. A part is a portion of a device, or an amount of its memory that becomes a portion on
each node. Devices that are claimed (DRA) are counted elsewhere.

Read here and nowhere else: admission refuses what this module refuses, and what it accepts means the same to everyone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import msgspec

from shoal.api import kai_names as names
from shoal.api.core.pods import Pod, ResourceRequirements
from shoal.api.meta.quantity import InvalidQuantity, parse_quantity

STEPS: Final = 100
"""A portion is a whole number of these: 1/100 of a device."""


class GpuRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a pod asks of GPUs; nothing at all by default. A pod asks for whole devices or for parts, never for both."""

    whole: int = 0
    """Devices for the pod alone."""

    portion: float = 0.0
    """The part of each of ``devices``, in hundredths; 0 where the pod asks by memory."""

    memory: int = 0
    """MiB of each of ``devices``; 0 where the pod asks by portion."""

    devices: int = 0
    """How many shared devices the pod wants a part of; 0 where it shares none."""

    mig: tuple[tuple[str, int], ...] = ()
    """MIG instances by profile, such as ``("1g.5gb", 2)``, in the order of their names."""

    @property
    def is_shared(self) -> bool:
        """Whether the pod wants parts of devices."""
        return self.devices > 0

    @property
    def is_nothing(self) -> bool:
        """Whether the pod does without GPUs."""
        return not (self.whole or self.devices or self.mig)

    @property
    def gpus(self) -> float:
        """What the request weighs against a quota; memory weighs nothing until a device's size is known."""
        hundredths = self.whole * STEPS + round(self.portion * STEPS) * self.devices
        return hundredths / STEPS + sum(mig_slices(profile) * count for profile, count in self.mig)


NOTHING: Final = GpuRequest()


class InvalidGpuRequest(ValueError):
    """A pod asks of GPUs what nobody can give it."""

    def __init__(self, *, field: str, value: object, problem: str) -> None:
        self.field = field
        self.value = value
        self.problem = problem
        super().__init__(f"{field} is {value!r}: {problem}")


class AsksForResources(Protocol):
    """A container, as far as it asks for resources."""

    @property
    def resources(self) -> ResourceRequirements:
        """What it asks for and may not exceed."""

    @property
    def restart_policy(self) -> str:
        """``Always`` makes an init container a sidecar."""


def gpu_request_of(pod: Pod) -> GpuRequest:
    """What a pod asks of GPUs; raises InvalidGpuRequest."""
    return gpu_request(pod.metadata.annotations, pod.spec.containers, pod.spec.init_containers)


def gpu_request(
    annotations: Mapping[str, str],
    containers: Sequence[AsksForResources],
    init_containers: Sequence[AsksForResources] = (),
) -> GpuRequest:
    """What annotations and containers ask of GPUs together; raises InvalidGpuRequest."""
    asked = _asked_by_containers(containers, init_containers)
    fraction, memory = annotations.get(names.GPU_FRACTION), annotations.get(names.GPU_MEMORY)
    devices = annotations.get(names.GPU_FRACTION_DEVICES)
    if fraction is None and memory is None:
        if annotations.get(names.MPS) == "true":
            raise _wrong(names.MPS, "true", f"only parts of a device are shared: set {_PARTS}, or leave it out")
        if devices is not None:
            raise _wrong(names.GPU_FRACTION_DEVICES, devices, f"it counts parts of devices: set {_PARTS} too")
        if not asked:
            return NOTHING
        return GpuRequest(whole=sum(asked.get(gpu, 0) for gpu in names.GPUS), mig=_instances(asked))
    if fraction is not None and memory is not None:
        raise _wrong(names.GPU_MEMORY, memory, f"a part is measured once: keep it or {names.GPU_FRACTION}, not both")
    if asked:
        annotation, value = (names.GPU_FRACTION, fraction) if memory is None else (names.GPU_MEMORY, memory)
        resource = min(asked)
        raise _wrong(
            annotation, value, f"a pod has parts of devices or whole ones: do not ask for {resource} beside it"
        )
    return GpuRequest(
        portion=0.0 if fraction is None else _portion(fraction),
        memory=0 if memory is None else _counted(names.GPU_MEMORY, memory, "MiB"),
        devices=1 if devices is None else _counted(names.GPU_FRACTION_DEVICES, devices, "devices"),
    )


def mig_slices(profile: str) -> int:
    """How many slices of a device a MIG profile takes, which is what it costs: 3 for ``3g.20gb``."""
    shape = _PROFILE.search(profile)
    return int(shape[1]) if shape else 0


def rounded_portion(portion: float) -> float:
    """A part of a device in hundredths, halves up, and never nothing."""
    return max(1, math.floor(portion * STEPS + 0.5)) / STEPS


_PARTS: Final = f"{names.GPU_FRACTION} or {names.GPU_MEMORY}"
_PROFILE: Final = re.compile(r"(?:^|[.\-])([0-9]+)g\.[0-9]+gb")
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LARGEST: Final = 2**31 - 1


def _portion(text: str) -> float:
    portion = float(text) if _DECIMAL.fullmatch(text) else 0.0
    if not 0 < portion < 1:
        raise _wrong(names.GPU_FRACTION, text, "write a number between 0 and 1, such as 0.5")
    return rounded_portion(portion)


def _counted(annotation: str, text: str, unit: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0
    if not 0 < number <= _LARGEST:
        raise _wrong(annotation, text, f"write a whole number of {unit}, at least 1")
    return number


def _wrong(annotation: str, value: object, problem: str) -> InvalidGpuRequest:
    return InvalidGpuRequest(field=f"metadata.annotations[{annotation}]", value=value, problem=problem)


def _instances(asked: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(
        (resource.removeprefix(names.MIG_PREFIX), count)
        for resource, count in sorted(asked.items())
        if resource.startswith(names.MIG_PREFIX)
    )


def _asked_by_containers(
    containers: Sequence[AsksForResources], init_containers: Sequence[AsksForResources]
) -> dict[str, int]:
    """GPU resources as the node will count them: all that run together, or the hungriest moment before that."""
    together: dict[str, int] = {}
    for container in containers:
        _add(together, _gpus(container.resources))
    if not init_containers:
        return together
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in init_containers:
        asked = _gpus(container.resources)
        if container.restart_policy == "Always":
            _add(sidecars, asked)
            asked = {}
        for resource in {*asked, *sidecars}:
            peak[resource] = max(peak.get(resource, 0), asked.get(resource, 0) + sidecars.get(resource, 0))
    _add(together, sidecars)
    return {resource: max(together.get(resource, 0), peak.get(resource, 0)) for resource in {*together, *peak}}


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for resource, count in more.items():
        total[resource] = total.get(resource, 0) + count


def _gpus(resources: ResourceRequirements) -> dict[str, int]:
    """The GPUs and MIG instances of one container. A device cannot be asked for beyond its limit: they are equal."""
    counts = {}
    for asked in (resources.limits, resources.requests):
        for resource, quantity in asked.items():
            if resource in names.GPUS or resource.startswith(names.MIG_PREFIX):
                count = _devices(resource, quantity)
                if count:
                    counts[resource] = count
    return counts


def _devices(resource: str, quantity: str | int | float) -> int:
    try:
        amount = parse_quantity(quantity)
    except InvalidQuantity:
        amount = None
    if amount is None or amount.nano < 0 or amount.nano % 10**9:
        raise InvalidGpuRequest(
            field=f"resources[{resource}]", value=quantity, problem="write a whole number of devices, such as 1"
        )
    return amount.value()
