"""Devices that pods claim (DRA): what a claim asks for, which devices there are, and which it is to be.

The scheduler asks on which nodes a claim could be served at all, the binder which devices it is to be: both by the
rules that are here. Selectors are understood as far as they compare a device's driver and attributes.
"""

from shoal.scheduler.devices.choosing import Choice, choose
from shoal.scheduler.devices.claims import (
    MOST_CONSUMERS,
    DeviceUse,
    asked_gpus,
    device_claim_problem,
    device_uses,
    is_of_gpus,
)
from shoal.scheduler.devices.offers import Offer, gpus_by_node, offers_of
from shoal.scheduler.devices.selecting import NotUnderstood, selects
from shoal.scheduler.devices.wishes import Wish, wishes_of

__all__ = [
    "MOST_CONSUMERS",
    "Choice",
    "DeviceUse",
    "NotUnderstood",
    "Offer",
    "Wish",
    "asked_gpus",
    "choose",
    "device_claim_problem",
    "device_uses",
    "gpus_by_node",
    "is_of_gpus",
    "offers_of",
    "selects",
    "wishes_of",
]
