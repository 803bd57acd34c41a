"""How long many Services take until clients are led: by rules of the kernel, and by a process that listens for each."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any

import msgspec

from shoal.cluster.node.process.client import Runtime
from shoal.cluster.node.process.network.catalogue import Catalogue
from shoal.cluster.node.process.network.proxy import Proxy
from shoal.cluster.node.process.network.turns import allow_many
from shoal.cluster.node.process.network.views import ProxiedService, ServingSlice
from shoal.kube import Change, Key
from tests.support.node.runtime_program import a_folder, a_runtime

SERVICES, ENDPOINTS = 1000, 4
_ROUNDS = 3


def measure(*, as_user: bool) -> dict[str, dict[str, list[float]]]:
    """Seconds of each round until ``all`` are led, and until ``one`` that changes is: by the ``kernel``, a ``process``.

    The first is missing where the kernel does not do it.
    """
    with a_folder(is_ordinary=as_user) as folder, a_runtime(folder, is_ordinary=as_user) as program:
        allow_many()
        return asyncio.run(_measured(program.socket))


async def _measured(socket: Any) -> dict[str, dict[str, list[float]]]:
    runtime = await Runtime.connect(socket)
    try:
        ways = {"process": False} | ({"kernel": True} if runtime.facts.has_translation else {})
        found: dict[str, dict[str, list[float]]] = {way: {"all": [], "one": []} for way in ways}
        for _ in range(_ROUNDS if runtime.facts.has_network else 0):
            for way, translates in ways.items():
                every, one = await _round(runtime, translates=translates)
                found[way]["all"].append(every)
                found[way]["one"].append(one)
        return found if runtime.facts.has_network else {}
    finally:
        await runtime.aclose()


async def _round(runtime: Runtime, *, translates: bool) -> tuple[float, float]:
    catalogue = Catalogue()
    for number in range(SERVICES):
        catalogue.service_changed(Change(None, _service(number)))
        catalogue.slice_changed(Change(None, _slice(number, first=0)))
    proxy = Proxy(catalogue, node="local", machine={})
    began = time.perf_counter()
    running = asyncio.create_task(proxy.run(runtime, translates=translates))

    def led() -> Any:
        return proxy.translated if translates else proxy.listening

    try:
        while len(led()) < SERVICES:
            await asyncio.sleep(0.001)
        every = time.perf_counter() - began
        before = led()[Key("default", "s0")]
        began = time.perf_counter()
        catalogue.slice_changed(Change(None, _slice(0, first=1)))
        while led()[Key("default", "s0")] == before:
            await asyncio.sleep(0)
        return every, time.perf_counter() - began
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


def _service(number: int) -> ProxiedService:
    spec = {
        "clusterIP": f"10.96.{10 + number // 250}.{number % 250 + 1}",
        "ports": [{"name": "http", "port": 80, "protocol": "TCP"}],
    }
    return msgspec.convert({"metadata": {"name": f"s{number}", "namespace": "default"}, "spec": spec}, ProxiedService)


def _slice(number: int, *, first: int) -> ServingSlice:
    addresses = [f"10.88.{1 + number // 250 * 8 + first + n}.{number % 250 + 1}" for n in range(ENDPOINTS)]
    return msgspec.convert(
        {
            "metadata": {
                "name": f"s{number}",
                "namespace": "default",
                "labels": {"kubernetes.io/service-name": f"s{number}"},
            },
            "endpoints": [{"addresses": [address], "conditions": {"ready": True}} for address in addresses],
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        },
        ServingSlice,
    )
