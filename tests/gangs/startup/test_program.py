"""The program as a container runs it, against a real server over HTTPS."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
import zlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from shoal.api.core import NODES, PODS, is_ready
from shoal.api.meta import Resource
from shoal.cluster.node.simulated import Pool, add_simulated_nodes
from shoal.gangs.plan import Parent
from shoal.gangs.settings import GangSettings
from shoal.gangs.startup.container import start_container
from shoal.gangs.startup.gang_pods import GangPods, Refused
from shoal.gangs.startup.program import wait
from shoal.gangs.startup.surroundings import Surroundings as Found
from shoal.kube import Manager, NotFound
from shoal.kube import running as running_manager
from tests.gangs.startup.waiting_program import Surroundings, a_relay, running, surroundings
from tests.support.clusters.client import client_to, transport_to, until
from tests.support.clusters.embedded import Embedded, running_embedded
from tests.support.programs.command import environment, run_to_end
from tests.support.waiting import eventually


@pytest.fixture
async def place(embedded: Embedded, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Surroundings]:
    namespace = f"initc-{zlib.crc32(request.node.name.encode())}"
    async with surroundings(embedded, namespace, tmp_path) as found:
        yield found


async def test_it_waits_until_every_parent_has_its_number_and_tells_what_changed(place: Surroundings) -> None:
    for name, clique in (("db-a", "web-0-db"), ("db-b", "web-0-db"), ("cache", "web-0-cache")):
        await place.add_pod(name, clique)
    arguments = ("--podcliques=web-0-db:2", "--podcliques=web-0-cache:1")
    async with running(*arguments, **place.variables(place.port)) as program:
        await program.says("waiting for web-0-cache: 0 of 1 ready")
        await place.set_ready("db-a")
        await program.says("waiting for web-0-db: 1 of 2 ready")
        await place.set_ready("db-a", ready=False)
        await program.until(lambda: program.lines.count("waiting for web-0-db: 0 of 2 ready") == 2)
        for name in ("cache", "db-b", "db-a"):
            await place.set_ready(name)
        assert await program.ended() == 0
    assert program.lines[:2] == ["waiting for web-0-db: 0 of 2 ready", "waiting for web-0-cache: 0 of 1 ready"]
    assert program.lines[-1] == "ready: web-0-db, web-0-cache"
    assert program.lines.count("waiting for web-0-cache: 0 of 1 ready") == 1
    assert program.complaints == []


async def test_it_ends_at_once_where_all_are_ready_already(place: Surroundings) -> None:
    await place.add_pod("db", "web-0-db")
    await place.set_ready("db")
    async with running("--podcliques=web-0-db:1", **place.variables(place.port)) as program:
        assert await program.ended() == 0
    assert program.lines == ["ready: web-0-db"]


async def test_only_pods_of_its_gang_and_of_the_very_clique_count(place: Surroundings) -> None:
    await place.add_pod("web-0-db-x", "web-0-db-two")
    await place.add_pod("other", "web-0-db", gang="web-1")
    await place.add_pod("right", "web-0-db")
    for name in ("web-0-db-x", "other"):
        await place.set_ready(name)
    async with running("--podcliques=web-0-db:1", **place.variables(place.port)) as program:
        await program.says("waiting for web-0-db: 0 of 1 ready")
        await place.set_ready("right")
        assert await program.ended() == 0


async def test_a_pod_that_is_deleted_counts_no_longer(place: Surroundings) -> None:
    await place.add_pod("a", "web-0-db")
    await place.set_ready("a")
    async with running("--podcliques=web-0-db:2", **place.variables(place.port)) as program:
        await program.says("waiting for web-0-db: 1 of 2 ready")
        await place.client.delete(PODS, "a", place.namespace, grace_seconds=0)
        await program.says("waiting for web-0-db: 0 of 2 ready")


async def test_a_watch_that_breaks_goes_on_where_it_was(place: Surroundings) -> None:
    await place.add_pod("db", "web-0-db")
    async with a_relay(place.port) as relay:
        async with running("--podcliques=web-0-db:1", **place.variables(relay.port)) as program:
            await program.says("waiting for web-0-db: 0 of 1 ready")
            await eventually(lambda: relay.connections >= 2)
            relay.target = None
            relay.cut()
            await program.until(lambda: bool(program.complaints))
            await place.set_ready("db")
            relay.target = place.port
            assert await program.ended() == 0
        assert relay.connections == 3, "one list, and two watches"
    assert program.complaints[0].startswith("grove-initc: the API server cannot be asked: trying again (")


async def test_it_outlives_the_server(tmp_path: Path) -> None:
    data_dir = tmp_path / "server"
    data_dir.mkdir()
    async with a_relay(None) as relay, AsyncExitStack() as stack:
        with running_embedded(data_dir) as server:
            async with surroundings(server, "team", tmp_path / "pod") as place:
                relay.target = place.port
                await place.add_pod("db", "web-0-db")
                program = await stack.enter_async_context(
                    running("--podcliques=web-0-db:1", **place.variables(relay.port))
                )
                await program.says("waiting for web-0-db: 0 of 1 ready")
                relay.target = None
        await program.until(lambda: bool(program.complaints))
        with running_embedded(data_dir) as server:
            async with client_to(server.kubeconfig) as client:
                again = Surroundings(client, server, place.namespace, tmp_path / "pod")
                relay.target = again.port
                await again.set_ready("db")
                assert await program.ended() == 0
    assert program.lines == ["waiting for web-0-db: 0 of 1 ready", "ready: web-0-db"]


async def test_it_waits_for_permission_and_complains_when_none_comes(embedded: Embedded, tmp_path: Path) -> None:
    async with surroundings(embedded, "initc-permission", tmp_path, may_look=False) as place:
        await place.add_pod("db", "web-0-db")
        await place.set_ready("db")
        pods = GangPods(Found.found(place.variables(place.port)), ["web-0-db"])
        refusal = "does not let the pod's account see the pods it waits for: .*cannot list resource"
        with pytest.raises(Refused, match=refusal):
            await asyncio.to_thread(wait, {"web-0-db": 1}, pods, patience=0)
        async with running("--podcliques=web-0-db:1", **place.variables(place.port)) as program:
            await place.permit()
            assert await program.ended() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_at_once(place: Surroundings, number: signal.Signals) -> None:
    async with running("--podcliques=web-0-db:1", **place.variables(place.port)) as program:
        await program.says("waiting for web-0-db: 0 of 1 ready")
        program.process.send_signal(number)
        began = time.monotonic()
        assert await program.ended() == 128 + number
    assert time.monotonic() - began < 5
    assert program.complaints == []


async def test_it_sees_pods_of_simulated_nodes_become_ready_as_those_nodes_do(place: Surroundings) -> None:
    start_up = start_container([Parent(clique="web-0-db", min_available=1)], GangSettings(), "web")
    assert start_up is not None
    await place.add_pod("api", "web-0-api", initContainers=[start_up.init_container], volumes=start_up.volumes)
    await place.add_pod("db", "web-0-db")
    sockets = place.account.parent / "agents"
    async with transport_to(place.server.kubeconfig) as transport:
        manager = Manager(transport, name="nodes")
        add_simulated_nodes(manager, sockets=sockets, pools=[Pool.parse("1x8")])
        async with (
            running_manager(manager),
            running(*start_up.init_container["args"], **place.variables(place.port)) as program,
        ):
            await program.says("waiting for web-0-db: 0 of 1 ready")
            await until(lambda: _is_there(place, NODES, "sim-0-0", ""))
            for pod in ("api", "db"):
                await place.client.bind(PODS, pod, place.namespace, node="sim-0-0")
            assert await program.ended() == 0
            await until(lambda: _is_ready(place, "api"))


@pytest.mark.parametrize(
    ("arguments", "variables", "code", "sentence"),
    [
        pytest.param([], {}, 2, "there is nothing to wait for", id="no arguments"),
        pytest.param(["--podcliques=a"], {}, 2, "'a' is not valid", id="an argument without a number"),
        pytest.param(["--podcliques=a:1"], {}, 1, "do not say where the API server is", id="outside of a pod"),
        pytest.param(
            ["--podcliques=a:1"],
            {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"},
            1,
            "namespace cannot be read (No such file or directory): mount the volume",
            id="without its volumes",
        ),
    ],
)
def test_what_it_cannot_do_is_told_in_a_sentence(
    arguments: list[str], variables: dict[str, str], code: int, sentence: str
) -> None:
    command = [sys.executable, "-m", "shoal.gangs.startup", *arguments]
    clean = {key: value for key, value in environment().items() if not key.startswith("KUBERNETES_")}
    done = run_to_end(command, env={**clean, **variables})
    assert done.returncode == code
    assert done.stderr.startswith("grove-initc: ")
    assert sentence in done.stderr
    assert ("usage: grove-initc" in done.stderr) == (code == 2)
    assert "Traceback" not in done.stderr


def test_help_is_no_mistake() -> None:
    done = run_to_end([sys.executable, "-m", "shoal.gangs.startup", "--help"])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: grove-initc --podcliques=CLIQUE:NUMBER")


def test_it_starts_without_the_runtime_of_controllers() -> None:
    """Every waiting pod runs it, so that what it imports is paid for thousands of times."""
    heavy = "any(name in sys.modules for name in ('aiohttp', 'asyncio', 'shoal.kube'))"
    code = f"import sys, shoal.gangs.startup.program; print({heavy})"
    assert run_to_end([sys.executable, "-c", code]).stdout == "False\n"


async def _is_there(place: Surroundings, resource: Resource[Any], name: str, namespace: str) -> bool:
    try:
        await place.client.get(resource, name, namespace)
    except NotFound:
        return False
    return True


async def _is_ready(place: Surroundings, name: str) -> bool:
    return is_ready(await place.client.get(PODS, name, place.namespace))
