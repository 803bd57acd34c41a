"""The client runtime on the embedded server, as our own controllers' tests use it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from shoal.api.core import CONFIG_MAPS
from shoal.cluster.apiserver.in_process import serve_in_process
from shoal.kube import Client
from shoal.kube.errors import Forbidden, NotFound


async def test_a_client_reads_what_it_wrote(tmp_path: Path) -> None:
    async with serve_in_process(tmp_path) as server:
        client = Client(server.transport())
        await client.create(CONFIG_MAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}}, namespace="default")
        assert (await client.get(CONFIG_MAPS, "a", namespace="default")).data == {"k": "v"}
        await client.delete(CONFIG_MAPS, "a", namespace="default")
        with pytest.raises(NotFound):
            await client.get(CONFIG_MAPS, "a", namespace="default")


async def test_a_watch_tells_what_happens(tmp_path: Path) -> None:
    async with serve_in_process(tmp_path) as server, asyncio.timeout(10):
        client = Client(server.transport())
        await client.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, namespace="default")
        seen = []
        async for event in client.watch(CONFIG_MAPS, initial_events=True):
            seen.append(event.type.value)
            if seen == ["ADDED", "BOOKMARK"]:
                await client.delete(CONFIG_MAPS, "a", namespace="default")
            if seen[-1] == "DELETED":
                break
        assert seen == ["ADDED", "BOOKMARK", "DELETED"]


async def test_a_user_may_do_what_roles_say(tmp_path: Path) -> None:
    async with serve_in_process(tmp_path) as server:
        jane = Client(server.transport(user="jane", groups=("team",)))
        with pytest.raises(Forbidden, match='User "jane" cannot list resource "configmaps"'):
            await jane.list(CONFIG_MAPS, namespace="default")


async def test_a_second_server_finds_what_the_first_kept(tmp_path: Path) -> None:
    async with serve_in_process(tmp_path) as server:
        client = Client(server.transport())
        made = await client.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, namespace="default")
    async with serve_in_process(tmp_path) as server:
        found = await Client(server.transport()).get(CONFIG_MAPS, "a", namespace="default")
    assert (found.metadata.uid, found.metadata.resource_version) == (made.metadata.uid, made.metadata.resource_version)
