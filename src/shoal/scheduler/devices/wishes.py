"""What a claim asks for, with what its classes add to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from shoal.api.resource_k8s_io import (
    Device,
    DeviceClaim,
    DeviceClass,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
)
from shoal.scheduler.devices.selecting import NotUnderstood, selects

_KEEPING_AWAY: Final = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class Wish:
    """One way to serve one request."""

    request: str
    """As results name it."""
    count: int | None
    """How many devices; None: all that there are."""
    expressions: tuple[str, ...]
    tolerations: tuple[DeviceToleration, ...]
    config: tuple[Mapping[str, Any], ...]
    """What its class says about setting devices up."""

    def means(self, driver: str, device: Device) -> bool:
        """Whether a device is one of those asked for; raises NotUnderstood."""
        if device.consumes_counters:
            raise NotUnderstood(f"that device {device.name} is a part of another")
        if not all(self._tolerates(taint) for taint in device.taints):
            return False
        return all(selects(expression, driver, device.attributes) for expression in self.expressions)

    def _tolerates(self, taint: Mapping[str, Any]) -> bool:
        if taint.get("effect") not in _KEEPING_AWAY:
            return True
        return any(_tolerates(one, taint) for one in self.tolerations)


def wishes_of(claim: DeviceClaim, classes: Mapping[str, DeviceClass]) -> list[list[Wish]]:
    """The ways to serve each request of a claim, best first; raises NotUnderstood."""
    return [
        [_wish(request.name, request.exactly, classes)]
        if request.exactly is not None
        else [_wish(f"{request.name}/{one.name}", one, classes) for one in request.first_available]
        for request in claim.spec.devices.requests
    ]


def _wish(name: str, asked: ExactDeviceRequest | DeviceSubRequest, classes: Mapping[str, DeviceClass]) -> Wish:
    if asked.capacity is not None:
        raise NotUnderstood(f"that request {name} asks for a part of a device's capacity")
    if isinstance(asked, ExactDeviceRequest) and asked.admin_access:
        raise NotUnderstood(f"that request {name} asks for administrative access")
    if asked.allocation_mode not in ("", "ExactCount", "All"):
        raise NotUnderstood(f"allocation mode {asked.allocation_mode} of request {name}")
    device_class = classes.get(asked.device_class_name)
    if device_class is None:
        raise NotUnderstood(f"DeviceClass {asked.device_class_name} of request {name}, which does not exist")
    return Wish(
        request=name,
        count=None if asked.allocation_mode == "All" else max(1, asked.count or 1),
        expressions=(*_expressions(device_class.spec.selectors), *_expressions(asked.selectors)),
        tolerations=tuple(asked.tolerations),
        config=tuple(device_class.spec.config),
    )


def _expressions(selectors: list[DeviceSelector]) -> list[str]:
    return [selector.cel.expression for selector in selectors if selector.cel is not None]


def _tolerates(toleration: DeviceToleration, taint: Mapping[str, Any]) -> bool:
    if toleration.effect not in ("", taint.get("effect")) or toleration.key not in ("", taint.get("key")):
        return False
    return toleration.operator == "Exists" or toleration.value == taint.get("value", "")
