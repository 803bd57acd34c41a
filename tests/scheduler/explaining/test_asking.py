"""Asking a running scheduler: questions wait for the end of a cycle, and whatever goes wrong with one stays its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from shoal.api.core.pods import Pod
from shoal.scheduler.explaining import Questions, Unanswered, explain_routes
from shoal.scheduler.explaining.finding import find, kind_of
from shoal.scheduler.model.cluster import Cluster
from shoal.scheduler.model.jobs import Job
from shoal.scheduler.model.tasks import Task
from shoal.scheduler.session.session import Session
from tests.scheduler.builders import a_kai_pod, a_model_gpu_queue, a_model_node
from tests.scheduler.explaining.stage import a_cluster, a_job, a_request, after_a_cycle
from tests.support.builders.pods import controller_reference


@dataclass
class Outcome:
    session: Session
    number: int = 7


class Scheduler:
    """Runs a cycle whenever it is woken."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.questions = Questions(self.wake)
        self.woken = 0

    def wake(self) -> None:
        self.woken += 1
        self._cycle = asyncio.create_task(asyncio.to_thread(self._run))

    def _run(self) -> None:
        with after_a_cycle(self._cluster) as session:
            self.questions.answer(Outcome(session))


def _cluster(*jobs: Job) -> Cluster:
    return a_cluster([a_model_node("n1"), a_model_node("n2")], [a_model_gpu_queue("a")], jobs)


async def test_a_question_is_answered_by_the_cycle_that_it_wakes() -> None:
    scheduler = Scheduler(_cluster(a_job("huge", request=a_request(16))))
    assert await scheduler.questions.ask(lambda outcome: len(outcome.session.failures)) == 1
    assert scheduler.woken == 1


async def test_a_question_that_fails_fails_for_whoever_asked_alone() -> None:
    scheduler = Scheduler(_cluster())

    def wrong(outcome: object) -> None:
        raise LookupError("nothing there")

    first, second = await asyncio.gather(
        scheduler.questions.ask(wrong), scheduler.questions.ask(lambda _: "fine"), return_exceptions=True
    )
    assert isinstance(first, LookupError)
    assert second == "fine"


async def test_who_waits_for_a_cycle_in_vain_is_told_so_and_forgotten() -> None:
    questions = Questions()
    answered: list[object] = []
    with pytest.raises(Unanswered, match="no scheduling cycle ended"):
        await questions.ask(answered.append, patience=0.01)
    with after_a_cycle(_cluster()) as session:
        questions.answer(Outcome(session))
    assert answered == []


def _pod(name: str, *, owner: tuple[str, str] | None = None, **given: Any) -> Pod:
    return a_kai_pod(name, namespace="team", owner=controller_reference(*owner) if owner else None, **given)


class Pods:
    """What a scheduler knows of pods."""

    def __init__(self, cluster: Cluster, *pods: Pod) -> None:
        self._tasks = {task.key: task for job in cluster.jobs.values() for task in job.tasks.values()}
        self._pods = {("team", pod.metadata.name): pod for pod in pods}
        stray = a_job("nobody", pods=1)
        for key in self._pods:
            self._tasks.setdefault(key, next(iter(stray.tasks.values())))

    def task(self, key: tuple[str, str]) -> Task | None:
        return self._tasks.get(key)

    def pod(self, key: tuple[str, str]) -> Pod | None:
        return self._pods.get(key)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("PodGroup", "podgroup"), ("pods", "pod"), ("pg", "podgroup"), ("trainjobs.trainer.kubeflow.org", "trainjob")],
)
def test_kinds_are_understood_as_people_type_them(typed: str, meant: str) -> None:
    assert kind_of(typed) == meant


def _labelled(name: str, label: str, value: str) -> Job:
    job = a_job(name)
    for task in job.tasks.values():
        task.labels = {label: value}
    return job


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        pytest.param("podgroup", "mine", id="by its PodGroup"),
        pytest.param("pod", "mine-0", id="by a pod"),
        pytest.param("trainjob", "llama", id="by the label of a TrainJob's pods"),
        pytest.param("job", "worker", id="by the owner of its pods"),
    ],
)
def test_a_job_is_found_by_whatever_people_know_it_by(kind: str, name: str) -> None:
    cluster = _cluster(_labelled("mine", "jobset.sigs.k8s.io/jobset-name", "llama"), a_job("other"))
    pods = Pods(cluster, _pod("mine-0", owner=("Job", "worker")))
    found = find(cluster, kind, "team", name, task_of=pods.task, pod_of=pods.pod)
    assert [job.name for job in found.jobs] == ["mine"]


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("podgroup", "none", "there is no PodGroup team/none of this scheduler"),
        ("pod", "none", "there is no pod team/none, or it has ended"),
        ("pod", "early", "PodGroup later of pod team/early does not exist: the pod waits for it"),
        ("pod", "foreign", "pod team/foreign is not in a PodGroup yet, or not this scheduler's: it asks for other"),
        ("trainjob", "none", "no pod in namespace team that this scheduler knows belongs to trainjob none"),
    ],
)
def test_what_is_not_found_is_told_why(kind: str, name: str, said: str) -> None:
    cluster = _cluster(a_job("mine"))
    pods = Pods(cluster, _pod("early", group="later"), _pod("foreign", scheduler="other"))
    found = find(cluster, kind, "team", name, task_of=pods.task, pod_of=pods.pod)
    assert found.jobs == ()
    assert found.message.startswith(said)


@pytest.fixture
async def client() -> AsyncIterator[TestClient[web.Request, web.Application]]:
    cluster = _cluster(a_job("huge", request=a_request(16)))
    scheduler, pods = Scheduler(cluster), Pods(cluster)
    app = web.Application()
    app.add_routes(
        explain_routes(scheduler.questions, task_of=pods.task, pod_of=pods.pod, accepts=lambda token: token == "good")
    )
    async with TestClient(TestServer(app)) as found:
        yield found


GOOD = {"Authorization": "Bearer good"}
PATH = "/api/v1/scheduler/explain"


async def test_the_route_tells_of_a_job(client: TestClient[web.Request, web.Application]) -> None:
    query = {"kind": "podgroup", "name": "huge", "namespace": "team"}
    response = await client.get(PATH, params=query, headers=GOOD)
    assert response.status == 200
    told = await response.json()
    assert (told["cycle"], told["at"]) == (7, "2027-01-15T08:00:00Z")
    assert told["jobs"][0]["message"] == "no node has room for pod team/huge-0: not enough GPUs (2 nodes)"


@pytest.mark.parametrize(
    ("query", "headers", "status"),
    [
        pytest.param({"kind": "podgroup", "name": "none", "namespace": "team"}, GOOD, 404, id="not there"),
        pytest.param({"kind": "podgroup"}, GOOD, 400, id="no name"),
        pytest.param({"kind": "podgroup", "name": "huge"}, {}, 401, id="no token"),
    ],
)
async def test_the_route_refuses_in_words(
    client: TestClient[web.Request, web.Application], query: dict[str, str], headers: dict[str, str], status: int
) -> None:
    response = await client.get(PATH, params=query, headers=headers)
    assert response.status == status
    assert await response.text()
