"""``python -m shoal.scheduler.binding.reserve`` is what runs in a reservation: it notes on its pod which GPU it got.

The device's UUID is what the node has put into ``NVIDIA_VISIBLE_DEVICES`` or ``CUDA_VISIBLE_DEVICES``; where that is
no device, the driver is asked, which shows a container its own alone. Then it turns into ``sleep``: holding a device
takes no memory.

Exit codes: 1 there is no device, or not exactly one; 2 this is no pod, or it may not be written.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from shoal.api import kai_names as names
from shoal.api.core import PODS
from shoal.api.meta import PartialObject
from shoal.kube import ApiError, Client, ConnectionFault, HttpTransport, Retry
from shoal.kube.connection import Connection
from shoal.kube.in_cluster import SERVICE_ACCOUNT, NotInCluster, in_cluster_connection

DRIVER: Final = Path("/proc/driver/nvidia/gpus")
PATIENCE: Final = 60.0
"""Seconds in which the server must have taken note."""

_NO_DEVICE: Final = frozenset({"", "all", "none", "void", "NoDevFiles"})
_ACCOUNT_VOLUME: Final = "SHOAL_VOLUME_KUBE_API_ACCESS_"
"""How a node that cannot put volumes at their paths says where the account's is."""


def main() -> int:
    """Runs the program; gives an exit code where it cannot go on."""
    code = reserve(os.environ)
    if code == 0:
        os.execvp("sleep", ["sleep", "infinity"])  # noqa: S606, S607 - any sleep that the image has will do
    return code


def reserve(environ: Mapping[str, str]) -> int:
    """Notes the device, and gives the exit code."""
    devices = visible_devices(environ) or driver_devices()
    if len(devices) != 1:
        return _complain(f"one GPU is to be reserved, and the container sees {len(devices)}", 1)
    name, namespace = environ.get("POD_NAME", ""), environ.get("POD_NAMESPACE", "")
    if not name or not namespace:
        return _complain("POD_NAME and POD_NAMESPACE do not say which pod this is", 2)
    try:
        connection = in_cluster_connection(environ=environ, service_account=account_folder(environ))
        asyncio.run(_note(connection, name, namespace, devices[0]))
    except (NotInCluster, ApiError, ConnectionFault) as error:
        return _complain(f"the device cannot be noted on pod {namespace}/{name}: {error}", 2)
    print(f"reserved {devices[0]}", flush=True)  # noqa: T201 - what the program is there to tell
    return 0


def visible_devices(environ: Mapping[str, str]) -> list[str]:
    """The devices that the node has given to the container, as its variables say."""
    for variable in ("NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"):
        named = [device for device in environ.get(variable, "").split(",") if device not in _NO_DEVICE]
        if named:
            return [device.rpartition("gpu=")[2] for device in named]
    return []


def driver_devices(folder: Path = DRIVER) -> list[str]:
    """The devices that the driver shows, by their UUIDs."""
    found = []
    for information in sorted(folder.glob("*/information")):
        for line in information.read_text(errors="replace").splitlines():
            field, _, value = line.partition(":")
            if field.strip() == "GPU UUID":
                found.append(value.strip())
    return found


def account_folder(environ: Mapping[str, str]) -> Path:
    """Where the pod's account is mounted."""
    moved = next((value for variable, value in environ.items() if variable.startswith(_ACCOUNT_VOLUME)), "")
    return Path(moved) if moved else SERVICE_ACCOUNT


async def note_device(client: Client, name: str, namespace: str, device: str) -> None:
    """Writes the annotation that the binder waits for."""
    patch = {"metadata": {"annotations": {names.RESERVED_GPU_INDEX: device}}}
    await client.merge_patch(PODS.view(PartialObject), name, patch, namespace)


async def _note(connection: Connection, name: str, namespace: str, device: str) -> None:
    client = Client(HttpTransport(connection), retry=Retry(within=PATIENCE))
    try:
        await note_device(client, name, namespace, device)
    finally:
        await client.close()


def _complain(problem: str, code: int) -> int:
    print(problem, file=sys.stderr, flush=True)  # noqa: T201
    return code


if __name__ == "__main__":
    raise SystemExit(main())
