"""The sections that hold what pods need of other objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from shoal.scheduler.watching.needs import Kind

NEEDED_SECTIONS: Final[Mapping[str, Kind]] = {
    "configMaps": Kind.CONFIG_MAP,
    "persistentVolumes": Kind.VOLUME,
    "persistentVolumeClaims": Kind.CLAIM,
    "csiStorageCapacities": Kind.CAPACITY,
    "storageClasses": Kind.STORAGE_CLASS,
    "csiDrivers": Kind.DRIVER,
    "csiNodes": Kind.NODE_DRIVERS,
    "resourceClaims": Kind.DEVICE_CLAIM,
    "resourceSlices": Kind.SLICE,
    "deviceClasses": Kind.DEVICE_CLASS,
    "namespaces": Kind.NAMESPACE,
}
