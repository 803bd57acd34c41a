"""What a cluster has from the start, and that it is people's from then on."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.api import kai_scheduler, scheduling_run_ai
from shoal.api.core import NAMESPACES
from shoal.api.scheduling_k8s_io import PRIORITY_CLASSES
from shoal.api.scheduling_run_ai import QUEUES
from shoal.cli.processes.api import define
from shoal.kube import Manager
from shoal.kube.backoff import Backoff
from shoal.kube.defaults import make_absent
from shoal.scheduler.defaults import FIELD_MANAGER, add_defaults, default_objects
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, in_process_cluster, writes_of
from tests.support.schemas.corpus import needs_corpus, upstream_samples

QUICKLY = Backoff(initial=0.01, cap=0.02)


async def has_all(cluster: Cluster) -> bool:
    found = [await cluster.read(each.resource, each.name) for each in default_objects()]
    return None not in found


async def test_an_empty_cluster_gets_queues_priorities_and_namespaces(cluster: Cluster) -> None:
    async with cluster.controllers(add_defaults):
        await until(lambda: has_all(cluster))
    assert [queue["metadata"]["name"] for queue in await cluster.all(QUEUES)] == [
        "default-parent-queue",
        "default-queue",
    ]
    child = await cluster.read(QUEUES, "default-queue")
    assert child is not None
    share = {"quota": 0, "limit": -1, "overQuotaWeight": 1}
    assert child["spec"] == {
        "parentQueue": "default-parent-queue",
        "resources": {"cpu": share, "gpu": share, "memory": share},
    }
    classes = {each["metadata"]["name"]: each["value"] for each in await cluster.all(PRIORITY_CLASSES)}
    assert classes.items() >= {"train": 50, "build-preemptible": 75, "build": 100, "inference": 125}.items()
    for namespace in ("kai-resource-reservation", "kai-scale-adjust"):
        assert await cluster.read(NAMESPACES, namespace) is not None


async def test_what_a_person_changed_stays_so_and_what_they_deleted_stays_away_until_the_next_start(
    cluster: Cluster,
) -> None:
    async def changed_by_hand() -> None:
        await cluster.client.merge_patch(QUEUES.documents(), "default-queue", {"spec": {"priority": 7}})
        await cluster.client.delete(QUEUES, "default-parent-queue")

    async with cluster.controllers(add_defaults):
        await until(lambda: has_all(cluster))
        await changed_by_hand()
        assert await cluster.read(QUEUES, "default-parent-queue") is None
    async with cluster.controllers(add_defaults):
        await until(lambda: has_all(cluster))  # a start makes what is absent, and that alone
    found = await cluster.read(QUEUES, "default-queue")
    assert found is not None
    assert found["spec"]["priority"] == 7


async def test_a_second_start_writes_nothing(cluster: Cluster) -> None:
    await make_absent(cluster.client, default_objects(), field_manager=FIELD_MANAGER)
    manager = Manager(cluster.server.transport(), name="second")
    await make_absent(manager.client, default_objects(), field_manager=FIELD_MANAGER)
    assert writes_of(manager) == 0


async def test_a_kind_that_comes_late_keeps_nothing_else_waiting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with in_process_cluster(tmp_path / "server") as bare, bare.controllers(_hurried):

        async def others_are_there() -> bool:
            return await bare.read(NAMESPACES, "kai-scale-adjust") is not None

        await until(others_are_there)
        await define(bare.client, (*kai_scheduler.DEFINITIONS, *scheduling_run_ai.DEFINITIONS))
        await until(lambda: has_all(bare))
    assert capsys.readouterr().out.count("default object not made yet") <= 2


def _hurried(manager: Manager) -> None:
    manager.add_leader_task(
        lambda: make_absent(manager.client, default_objects(), field_manager=FIELD_MANAGER, patience=QUICKLY)
    )


@needs_corpus
def test_the_queues_are_those_of_kais_quickstart() -> None:
    theirs = {
        sample["metadata"]["name"]: sample["spec"]
        for name, sample in upstream_samples("kai")
        if name.startswith("docs__quickstart__default-queues")
    }
    ours = {each.name: each.body["spec"] for each in default_objects() if each.resource.kind == "Queue"}
    assert ours == theirs
