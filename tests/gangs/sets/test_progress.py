"""What the controller of replicas tells that of sets."""

from __future__ import annotations

from shoal.api.grove import PodCliqueSet
from shoal.gangs.sets.progress import MOST_PROBLEMS, Progress
from shoal.kube import Key
from tests.gangs.builders import a_set, typed


def a_set_at(generation: int, *, replicas: int = 2, uid: str = "one") -> PodCliqueSet:
    return typed(a_set("web", replicas=replicas, metadata={"generation": generation, "uid": uid}))


def listening() -> tuple[Progress, list[Key]]:
    progress = Progress()
    told: list[Key] = []
    progress.changed = told.append
    return progress, told


def test_a_set_is_complete_once_every_replica_came_to_its_generation() -> None:
    progress, told = listening()
    first = a_set_at(1)
    progress.passed(first, 0)
    assert not progress.is_complete(first)
    progress.passed(first, 1)
    assert progress.is_complete(first)
    assert len(told) == 2
    second = a_set_at(2)
    assert not progress.is_complete(second)
    assert not progress.is_complete(a_set_at(1, uid="another of that name"))
    progress.passed(second, 0)
    progress.passed(second, 1)
    assert progress.is_complete(second)


def test_nothing_new_is_not_told() -> None:
    progress, told = listening()
    for _ in range(3):
        progress.passed(a_set_at(1), 0)
        progress.failed(a_set_at(1), 1, ValueError("in the way"))
    assert len(told) == 2


def test_a_problem_is_told_until_the_replica_passes_or_is_gone() -> None:
    progress, _ = listening()
    pcs = a_set_at(1, replicas=30)
    for index in range(30):
        progress.failed(pcs, index, ValueError(f"problem {index}"))
    assert [str(one) for one in progress.problems(pcs)] == [f"problem {index}" for index in range(MOST_PROBLEMS)]
    progress.passed(pcs, 0)
    progress.gone(pcs, 1)
    assert str(progress.problems(pcs)[0]) == "problem 2"
    progress.forget(Key("default", "web"))
    assert progress.problems(pcs) == []


def test_a_set_of_no_replicas_is_complete() -> None:
    assert Progress().is_complete(a_set_at(1, replicas=0))
