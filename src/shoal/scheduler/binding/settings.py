"""How pods are bound; every field has the value that suits a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from shoal.api import kai_names as names

RESERVATION_IMAGE: Final = "resource-reservation:latest"
"""A name that the nodes of `shoal up` know; elsewhere it is to be had from somewhere."""


@dataclass(frozen=True, kw_only=True)
class ReservationSettings:
    """The pods that hold a whole GPU, so that others may share it."""

    namespace: str = names.RESERVATION_NAMESPACE
    image: str = RESERVATION_IMAGE
    """An image whose program writes the device it was given into its own pod's annotation, and stays."""
    command: tuple[str, ...] = ()
    """What runs instead of the image's own program."""
    account: str = names.RESERVATION_NAMESPACE
    """The service account of these pods: it may patch pods of their namespace."""
    app_label: str = names.RESERVATION_NAMESPACE
    """The value of their label ``app``, by which the scheduler knows them."""
    runtime_class: str = ""
    resources: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Requests and limits beside the one GPU."""
    timeout: float = 40.0
    """Seconds until the device must be known."""


@dataclass(frozen=True, kw_only=True)
class BindingSettings:
    """What the configuration decides for the binder."""

    reservations: ReservationSettings = ReservationSettings()
    workers: int = 32
    """Nodes that pods are bound to at once; on each they are bound one by one."""
    volume_timeout: float = 120.0
    """Seconds that a binding waits for its volumes."""
    uses_cdi: bool = False
    """Whether devices are named to containers as the Container Device Interface does."""
    limits_memory: bool = False
    """Whether containers are told how much of a device's memory is theirs, for HAMi-core to hold them to it."""
