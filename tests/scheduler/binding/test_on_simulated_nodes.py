"""Pods that share a GPU on simulated nodes, from the order to the end."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from shoal.api import kai_names as names
from shoal.api.core import CONFIG_MAPS, NODES, PODS
from shoal.cluster.node.simulated import Pool, add_simulated_nodes
from shoal.kube import Manager
from shoal.scheduler.binding import add_binding
from tests.scheduler.binding.stage import RESERVATIONS, Stage
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, writes_of
from tests.support.waiting.at_rest import at_rest

NODE = "sim-0-0"


def running(pod: dict[str, Any]) -> bool:
    return bool(pod["status"].get("phase") == "Running")


@pytest.mark.parametrize("parts", [1, 2], ids=["one device", "two devices"])
async def test_sharers_run_on_the_devices_that_are_reserved_for_them(
    cluster: Cluster, tmp_path: Path, parts: int
) -> None:
    stage = Stage(cluster)

    def add_nodes(manager: Manager) -> None:
        add_simulated_nodes(manager, sockets=tmp_path, pools=[Pool.parse("1x4:H100")])

    groups = [f"group-{number}" for number in range(parts)]
    async with cluster.controllers(add_nodes), cluster.controllers(add_binding) as manager:

        async def has_gpus() -> bool:
            node = await cluster.read(NODES, NODE) or {}
            return names.NVIDIA_GPU in (node.get("status") or {}).get("capacity", {})

        await until(has_gpus)
        for name in ("a", "b"):
            prefix = {names.SHARED_GPU_CONFIG_MAP: f"{name}-x-shared-gpu", names.GPU_FRACTION: "0.5"}
            await stage.order_part(await stage.add_pod(name, annotations=prefix), NODE, *groups)
        await asyncio.gather(*(stage.pod_that(name, running) for name in ("a", "b")))
        told = [await cluster.read(CONFIG_MAPS, f"{name}-x-shared-gpu-0") or {} for name in ("a", "b")]
        held = [
            pod["metadata"]["annotations"][names.RESERVED_GPU_INDEX] for pod in await cluster.all(PODS, RESERVATIONS)
        ]
        assert sorted(held) == [str(number) for number in range(parts)]
        assert [sorted(each["data"]["NVIDIA_VISIBLE_DEVICES"].split(",")) for each in told] == [sorted(held)] * 2
        await at_rest(manager)
        before = writes_of(manager)
        await cluster.client.delete(PODS, "a", "default")
        await at_rest(manager)
        assert len(await stage.reservations()) == parts
        await cluster.client.delete(PODS, "b", "default")
        await stage.no_reservations()
        assert writes_of(manager) == before + parts
