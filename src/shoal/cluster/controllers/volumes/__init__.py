"""Gives claims their volumes: binds those that are there, makes new ones in a folder of this machine, and cleans up.

Also here: who still uses a claim or a volume and so keeps it, and the claims that pods bring with them.
"""

from shoal.cluster.controllers.volumes.names import LOCAL_CLASS, PROVISIONER
from shoal.cluster.controllers.volumes.wiring import add_volumes

__all__ = ["LOCAL_CLASS", "PROVISIONER", "add_volumes"]
