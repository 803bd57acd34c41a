"""What runs in this room."""

from __future__ import annotations

from pathlib import Path

from shoal.cluster.controllers.volumes.binding import Binder
from shoal.cluster.controllers.volumes.claims import Claims
from shoal.cluster.controllers.volumes.default_class import DefaultClass
from shoal.cluster.controllers.volumes.ephemeral import EphemeralVolumes
from shoal.cluster.controllers.volumes.pictures import Pictures
from shoal.cluster.controllers.volumes.protection import ClaimProtection, VolumeProtection
from shoal.cluster.controllers.volumes.volumes import Volumes
from shoal.kube import Manager


def add_volumes(manager: Manager, *, folder: Path, makes_default_class: bool = True) -> None:
    """Gives claims their volumes; those that are made here are folders in ``folder``.

    ``makes_default_class`` has a class for them made at the first start, where there is no class at all.
    """
    folder = folder.absolute()
    pictures = Pictures(manager)
    binder = Binder(manager.client)
    Claims(manager, pictures, binder, folder)
    Volumes(manager, pictures, binder, folder)
    ClaimProtection(manager, pictures)
    VolumeProtection(manager, pictures)
    EphemeralVolumes(manager, pictures)
    if makes_default_class:
        DefaultClass(manager, folder)
