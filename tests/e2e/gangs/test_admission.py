"""What checks our kinds is there whenever the API is: through a killed process, another port, and a part left out."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from shoal.api.core import PODS
from shoal.api.grove import POD_CLIQUE_SETS, PodCliqueSet
from shoal.kube import ApiError, Client, Retry
from shoal.kube.admission.configuration import MUTATING_CONFIGURATIONS, VALIDATING_CONFIGURATIONS
from tests.gangs.builders import a_bare_set
from tests.support.clusters.both_engines import ON_KUBE, engine_options
from tests.support.clusters.client import client_to, transport_to, until
from tests.support.clusters.shoal_up import Shoal
from tests.support.waiting import eventually

SETS = POD_CLIQUE_SETS.documents()
WEBHOOK_TIMEOUT = 10.0


@pytest.fixture(params=["embedded", ON_KUBE])
def shoal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shoal]:
    shoal = Shoal(tmp_path / "data", *engine_options(request.param, request))
    yield shoal
    shoal("down")


@asynccontextmanager
async def impatient(kubeconfig: Path) -> AsyncIterator[Client]:
    """A client that tries nothing twice."""
    async with transport_to(kubeconfig) as transport:
        yield Client(transport, retry=Retry(within=0))


class Creator:
    """Makes sets, one after the other, and notes how each went."""

    def __init__(self, client: Client, *, tries_again: bool) -> None:
        self.made: list[str] = []
        self.refused: list[str] = []
        self._client = client
        self._tries_again = tries_again
        self._is_asked_to_stop = False

    def stop(self) -> None:
        self._is_asked_to_stop = True

    async def work(self, prefix: str) -> None:
        number = 0
        while not self._is_asked_to_stop:
            number += 1
            await self._make(f"{prefix}-{number}")

    async def _make(self, name: str) -> None:
        async with asyncio.timeout(WEBHOOK_TIMEOUT):
            while True:
                try:
                    await self._client.create(SETS, a_bare_set(name, replicas=0), "default")
                except ApiError as error:
                    # A request that was being answered when its webhook died is refused by Kubernetes, never half-made.
                    if self._tries_again and "failed calling webhook" in error.message:
                        continue
                    self.refused.append(str(error))
                else:
                    self.made.append(name)
                return


async def test_sets_can_be_made_while_the_controllers_are_killed(shoal: Shoal) -> None:
    with shoal.foreground() as (_, line):
        assert line.startswith("Shoal is ready")
        async with impatient(shoal.kubeconfig) as client:
            creator = Creator(client, tries_again="--engine=kube" in shoal.options)
            workers = [asyncio.create_task(creator.work(f"set-{number}")) for number in range(8)]
            for restarts in (1, 2):
                before = len(creator.made)
                await eventually(lambda before=before: len(creator.made) > before + 40)  # type: ignore[misc]
                os.kill((await asyncio.to_thread(shoal.part, "controllers"))["pid"], signal.SIGKILL)
                await until(lambda restarts=restarts: has_restarted(shoal, restarts))  # type: ignore[misc]
            before = len(creator.made)
            await eventually(lambda: len(creator.made) > before + 40)
            creator.stop()
            await asyncio.gather(*workers)
            kept = (await client.list(POD_CLIQUE_SETS, "default")).items

    assert creator.refused == []
    assert {pcs.metadata.name for pcs in kept} == set(creator.made)
    assert [pcs.metadata.name for pcs in kept if not is_whole(pcs)] == []


async def has_restarted(shoal: Shoal, restarts: int) -> bool:
    part = await asyncio.to_thread(shoal.part, "controllers")
    return bool(part["restarts"] == restarts and part["state"] == "running")


def is_whole(pcs: PodCliqueSet) -> bool:
    """Whether a set got its defaults."""
    return pcs.spec.template.termination_delay == "4h" and all(
        clique.spec.min_available == 2 for clique in pcs.spec.template.cliques
    )


async def addresses(client: Client) -> dict[str, str]:
    """Where the API server looks for each webhook of grove.io."""
    found = [
        webhook
        for kind in (MUTATING_CONFIGURATIONS, VALIDATING_CONFIGURATIONS)
        for registration in (await client.list(kind)).items
        for webhook in registration.content["webhooks"]
        if webhook["name"].endswith(".webhooks.grove.io")
    ]
    return {webhook["name"]: webhook["clientConfig"].get("url", "") for webhook in found}


async def test_webhooks_go_with_the_part_that_answers_them_and_come_back_at_another_port(shoal: Shoal) -> None:
    with shoal.foreground("--sim=1x0"):
        async with client_to(shoal.kubeconfig) as client:
            before = await addresses(client)
        shoal("down")
    port = int((shoal.data_dir / "agents" / "webhooks.port").read_text())
    assert len(before) == 3
    assert all(f":{port}/" in url for url in before.values())

    # A part that is left out refuses nothing.
    with shoal.foreground("--only=api"):
        async with impatient(shoal.kubeconfig) as client:
            assert await addresses(client) == {}
            made = await client.create(SETS, a_bare_set("early"), "default")
            assert "terminationDelay" not in made.content["spec"]["template"]
        shoal("down")

    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections to it may still be ending
        with suppress(OSError):  # somebody else has it already
            taken.bind(("127.0.0.1", port))
            taken.listen()
        with shoal.foreground("--sim=1x0"):
            async with client_to(shoal.kubeconfig) as client:
                after = await addresses(client)
                assert after.keys() == before.keys()
                assert not any(f":{port}/" in url for url in after.values())
                await until(lambda: is_running(client, "early-0"))
                patch = {"metadata": {"labels": {"written": "again"}}}
                assert is_whole(await client.merge_patch(POD_CLIQUE_SETS, "early", patch, "default"))
                made = await client.create(SETS, a_bare_set("late", replicas=0), "default")
                assert made.content["spec"]["template"]["terminationDelay"] == "4h"
                # As if an operator outside had registered it.
                foreign = {"metadata": {"labels": {"app.kubernetes.io/managed-by": None}}}
                await client.merge_patch(MUTATING_CONFIGURATIONS, "podcliqueset-defaulting-webhook", foreign)
            shoal("down")

    # Webhooks that run elsewhere are left alone.
    with shoal.foreground("--only=api"):
        async with client_to(shoal.kubeconfig) as client:
            assert list(await addresses(client)) == ["pcs.defaulting.webhooks.grove.io"]
        shoal("down")


async def is_running(client: Client, gang: str) -> bool:
    pods = (await client.list(PODS, "default", label_selector=f"grove.io/podgang={gang}")).items
    return len(pods) == 2 and all(pod.status.phase == "Running" for pod in pods)
