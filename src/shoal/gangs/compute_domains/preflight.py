"""Whether the cluster has ComputeDomains at all: asked before anything starts where the feature is on."""

from __future__ import annotations

import msgspec

from shoal.api.resource_nvidia_com import COMPUTE_DOMAINS
from shoal.gangs.settings import GangSettings
from shoal.kube import Client, NotFound


class NoComputeDomains(Exception):
    """ComputeDomains are to be made, and the cluster serves none."""

    def __init__(self) -> None:
        name = f"{COMPUTE_DOMAINS.plural}.{COMPUTE_DOMAINS.group}"
        super().__init__(
            f"network.autoMNNVLEnabled is on, but the cluster does not serve {name} {COMPUTE_DOMAINS.version}: "
            "install NVIDIA's DRA driver, or switch it off"
        )


class _Served(msgspec.Struct, frozen=True):
    name: str = ""


class _Discovery(msgspec.Struct, frozen=True):
    resources: list[_Served] = []


async def check_compute_domains(client: Client, settings: GangSettings) -> None:
    """Raises NoComputeDomains where they are to be made and cannot be."""
    if not settings.has_mnnvl:
        return
    try:
        answer = await client.read_path(f"/apis/{COMPUTE_DOMAINS.api_version}")
    except NotFound:
        raise NoComputeDomains from None
    served = msgspec.json.decode(answer, type=_Discovery).resources
    if not any(one.name == COMPUTE_DOMAINS.plural for one in served):
        raise NoComputeDomains
