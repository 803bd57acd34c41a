"""Reservations on simulated nodes are given GPUs: each another one, the first that is free."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from shoal.api import kai_names as names
from shoal.api.core import NAMESPACES, PODS, SERVICE_ACCOUNTS
from tests.cluster.node.conftest import Simulation
from tests.support.clusters.client import until

NODE = "sim-0-0"


async def add_reservation(simulation: Simulation, group: str, namespace: str = names.RESERVATION_NAMESPACE) -> None:
    body = {
        "metadata": {"name": f"r-{group}", "labels": {names.GPU_GROUP: group}},
        "spec": {
            "nodeName": NODE,
            "automountServiceAccountToken": False,
            "containers": [{"name": "main", "image": "resource-reservation"}],
        },
    }
    await simulation.cluster.make(PODS, body, namespace)


async def device(simulation: Simulation, group: str) -> str | None:
    pod: dict[str, Any] = await simulation.cluster.read(PODS, f"r-{group}", names.RESERVATION_NAMESPACE) or {}
    found: str | None = pod.get("metadata", {}).get("annotations", {}).get(names.RESERVED_GPU_INDEX)
    return found


@pytest.fixture
async def reserving(simulation: Simulation) -> Simulation:
    await simulation.cluster.make(NAMESPACES, {"metadata": {"name": names.RESERVATION_NAMESPACE}})
    await simulation.cluster.make(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, names.RESERVATION_NAMESPACE)
    return simulation


async def test_each_reservation_gets_another_gpu_and_a_free_one_is_given_again(reserving: Simulation) -> None:
    async with reserving.running("1x2:H100"):
        await reserving.node(NODE, lambda node: True)
        for group in ("a", "b", "c"):
            await add_reservation(reserving, group)
        got = [await until(partial(device, reserving, group)) for group in ("a", "b")]
        assert sorted(got) == ["0", "1"]
        assert await device(reserving, "c") is None
        await reserving.client.delete(PODS, "r-a", names.RESERVATION_NAMESPACE, grace_seconds=0)
        await add_reservation(reserving, "d")
        assert await until(lambda: device(reserving, "d")) == got[0]


async def test_what_was_given_is_remembered_by_the_pods_themselves(reserving: Simulation) -> None:
    async with reserving.running("1x2:H100"):
        await reserving.node(NODE, lambda node: True)
        await add_reservation(reserving, "a")
        assert await until(lambda: device(reserving, "a")) == "0"
    async with reserving.running("1x2:H100"):
        await add_reservation(reserving, "b")
        assert await until(lambda: device(reserving, "b")) == "1"


async def test_only_reservations_are_told_a_gpu(reserving: Simulation) -> None:
    async with reserving.running("1x2:H100"):
        await reserving.node(NODE, lambda node: True)
        await add_reservation(reserving, "mine", "default")
        await add_reservation(reserving, "a")
        await until(lambda: device(reserving, "a"))
        pod = await reserving.phase("r-mine", "Running")
    assert names.RESERVED_GPU_INDEX not in pod["metadata"].get("annotations", {})
