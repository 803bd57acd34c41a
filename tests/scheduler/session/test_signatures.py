"""Jobs that are alike: whether one that found nothing speaks for another."""

from __future__ import annotations

import pytest

from shoal.scheduler.gpu_requests import GpuRequest
from shoal.scheduler.model.jobs import Job, single_pod_set
from shoal.scheduler.model.resources import ResourceNames
from shoal.scheduler.model.statuses import Status
from shoal.scheduler.model.tasks import ANYWHERE, Constraints, Request
from shoal.scheduler.session.signatures import Failed, signature
from tests.scheduler.builders import a_model_job, a_model_task

NAMES = ResourceNames()
REQUESTS = {
    gpus: Request(NAMES.vector({"cpu": 1000.0, "gpu": float(gpus), "pods": 1.0}), gpu=GpuRequest(whole=gpus))
    for gpus in (1, 2, 4)
}


def asking(*gpus: int, priority: int = 50, constraints: Constraints = ANYWHERE, status: Status = Status.PENDING) -> Job:
    job = a_model_job("-".join(map(str, gpus)), priority=priority, root=single_pod_set(len(gpus)))
    for place, count in enumerate(gpus):
        task = a_model_task(f"{job.name}/{place}", REQUESTS[count])
        task.constraints, task.status = constraints, status
        job.add(task)
    return job


@pytest.mark.parametrize(
    ("failed", "other", "is_easier"),
    [
        ((2, 2), (2, 2), False),
        ((2, 2), (4, 4), False),
        ((2, 2), (1, 2), True),
        ((2, 2), (2,), True),
        ((2, 2), (2, 2, 2), False),
        ((2, 2), (1, 1, 1), True),
    ],
    ids=["the same", "larger pods", "a smaller pod", "fewer pods", "more pods", "more pods, but smaller ones"],
)
def test_whether_a_job_is_easier_than_one_that_failed(
    failed: tuple[int, ...], other: tuple[int, ...], is_easier: bool
) -> None:
    known = Failed()
    known.note(asking(*failed))

    assert known.is_easier(asking(*other)) is is_easier


def test_the_least_demanding_that_failed_is_remembered() -> None:
    known = Failed()
    for gpus in ((4, 4), (2, 2), (4,)):
        known.note(asking(*gpus))

    assert not known.is_easier(asking(4, 4))
    assert not known.is_easier(asking(2, 2))
    assert known.is_easier(asking(1, 1))


def test_who_is_not_alike_is_tried() -> None:
    known = Failed()
    known.note(asking(2))

    assert known.is_easier(asking(2, priority=75))
    assert known.is_easier(asking(2, constraints=Constraints(node_selector={"a": "b"})))


def test_only_what_waits_makes_a_job_what_it_is() -> None:
    waiting = asking(2)
    more = asking(2)
    task = a_model_task("runs", REQUESTS[4], status=Status.RUNNING)
    task.constraints = Constraints()
    more.add(task)

    assert signature(waiting) == signature(more)
