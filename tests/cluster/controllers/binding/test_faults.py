"""What goes wrong between two writes does not cost a pod its node, nor its words."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from shoal.api.core import NODES, PODS
from shoal.cluster.controllers.binding import add_binding, filters, words
from shoal.kube import ConnectionFault, Manager, running
from tests.cluster.controllers.binding.test_controller import make_node, make_pod, node_of, told
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, writes_of


@asynccontextmanager
async def binder(cluster: Cluster) -> AsyncIterator[Manager]:
    """A manager whose client a test may tamper with before it runs."""
    manager = Manager(cluster.server.transport(), name="controllers")
    add_binding(manager)
    yield manager


async def test_pods_are_told_why_they_wait_though_one_went_while_it_was_being_told(cluster: Cluster) -> None:
    await make_node(cluster, "a", gpu="1")
    async with binder(cluster) as manager:
        really, halted, go_on = manager.client.strategic_patch, asyncio.Event(), asyncio.Event()

        async def patch(resource: Any, name: str, *given: Any, **chosen: Any) -> Any:
            if name == "gone":
                halted.set()
                await go_on.wait()
            return await really(resource, name, *given, **chosen)

        manager.client.strategic_patch = patch  # type: ignore[method-assign]
        async with running(manager):
            await make_pod(cluster, "gone", requests={"gpu": "2"})
            await make_pod(cluster, "stays", requests={"gpu": "2"})
            await halted.wait()
            await until(lambda: told(cluster, "stays"))
            await cluster.client.delete(PODS, "gone", "default", grace_seconds=0)
            await make_pod(cluster, "marker", requests={"cpu": "1"})
            await until(lambda: node_of(cluster, "marker"))
            go_on.set()
            await make_pod(cluster, "another", requests={"gpu": "2"})
            await until(lambda: told(cluster, "another"))


async def test_a_pod_that_could_not_be_told_why_it_waits_is_told_later(cluster: Cluster) -> None:
    await make_node(cluster, "a", gpu="1")
    async with binder(cluster) as manager:
        really, tries = manager.client.strategic_patch, 0

        async def patch(*given: Any, **chosen: Any) -> Any:
            nonlocal tries
            tries += 1
            if tries == 1:
                raise ConnectionFault("the line is dead")
            return await really(*given, **chosen)

        manager.client.strategic_patch = patch  # type: ignore[method-assign]
        async with running(manager):
            await make_pod(cluster, "p", requests={"gpu": "2"})
            await until(lambda: told(cluster, "p"))
            assert tries == 2


async def test_late_words_do_not_reach_a_pod_that_has_got_its_node(cluster: Cluster) -> None:
    await make_node(cluster, "a", gpu="1")
    async with binder(cluster) as manager:
        really, halted, go_on, done = manager.client.strategic_patch, *(asyncio.Event() for _ in range(3))

        async def patch(*given: Any, **chosen: Any) -> Any:
            halted.set()
            await go_on.wait()
            try:
                return await really(*given, **chosen)
            finally:
                done.set()

        manager.client.strategic_patch = patch  # type: ignore[method-assign]
        async with running(manager):
            await make_pod(cluster, "p", requests={"gpu": "2"})
            await halted.wait()
            await make_node(cluster, "b", gpu="2")
            await until(lambda: node_of(cluster, "p"))
            before = writes_of(manager)
            go_on.set()
            await done.wait()
            assert (await told(cluster, "p"))["status"] == "True"
            assert writes_of(manager) <= before + 2  # the refused words, and the event of the node


async def test_a_node_that_comes_back_under_its_name_carries_what_it_carried(cluster: Cluster) -> None:
    await make_node(cluster, "a", gpu="1")
    async with cluster.controllers(add_binding):
        await make_pod(cluster, "first", requests={"gpu": "1"})
        await until(lambda: node_of(cluster, "first"))
        await cluster.client.delete(NODES, "a")
        await make_node(cluster, "a", gpu="1")
        await make_pod(cluster, "second", requests={"gpu": "1"})
        await until(lambda: told(cluster, "second"))
        assert await node_of(cluster, "second") == ""


async def test_a_pod_that_fits_does_not_wait_until_all_others_have_been_given_a_reason(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_node(cluster, "a", gpu="1")
    really, explained = filters.explain, 0

    def explain(*given: Any, **chosen: Any) -> str:
        nonlocal explained
        explained += 1
        time.sleep(0.02)  # as with many nodes
        return really(*given, **chosen)

    monkeypatch.setattr(words, "explain", explain)
    names = [f"large-{number}" for number in range(2, 42)]
    async with binder(cluster) as manager:
        bind, before_bind = manager.client.bind, 0

        async def bound(*given: Any, **chosen: Any) -> None:
            nonlocal before_bind
            before_bind = explained
            await bind(*given, **chosen)

        manager.client.bind = bound  # type: ignore[method-assign]
        async with running(manager):
            for number, name in enumerate(names, start=2):
                await make_pod(cluster, name, requests={"gpu": str(number)})
            await make_pod(cluster, "small", requests={"gpu": "1"})
            await until(lambda: node_of(cluster, "small"))
            assert before_bind < len(names)
            for name in names:
                await until(lambda name=name: told(cluster, name))  # type: ignore[misc]
