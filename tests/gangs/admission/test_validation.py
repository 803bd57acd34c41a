"""All rules together: who is heard, and in which order."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.api.grove import PodCliqueSet
from shoal.gangs.backends import Backends
from shoal.gangs.backends.kai import Kai
from shoal.kube.admission import FieldProblem, forbidden
from tests.gangs.admission.verdicts import CLIQUE, changed, problems, sound


class Picky(Kai):
    """A scheduler that wants no labels on sets."""

    def __init__(self, name: str, *schedulers: str) -> None:
        self.name = name
        self.scheduler_names = frozenset(schedulers)

    def problems(self, pcs: PodCliqueSet) -> Iterator[FieldProblem]:
        if pcs.metadata.labels:
            yield forbidden("metadata.labels", f"{self.name} wants none")


BACKENDS = Backends([Picky("default", "", "default-scheduler"), Picky("kai", "kai-scheduler")])
LABELLED = changed(sound(), {"metadata.labels": {"a": "b"}})


def test_the_rules_of_the_scheduler_in_use_are_heard() -> None:
    assert problems(LABELLED, backends=BACKENDS) == ["metadata.labels: Forbidden: default wants none"]
    named = {f"{CLIQUE}[{index}].spec.podSpec.schedulerName": "kai-scheduler" for index in (0, 1)}
    assert problems(changed(LABELLED, named), backends=BACKENDS) == ["metadata.labels: Forbidden: kai wants none"]


def test_they_are_heard_of_updates_too() -> None:
    assert problems(LABELLED, old=sound(), backends=BACKENDS) == ["metadata.labels: Forbidden: default wants none"]


def test_they_are_not_asked_of_a_set_that_is_wrong_anyway() -> None:
    assert problems(changed(LABELLED, {"spec.replicas": -1}), backends=BACKENDS) == [
        "spec.replicas: Invalid value: -1: must be at least 0"
    ]


def test_every_problem_is_told_at_once() -> None:
    body = changed(sound(), {"spec.replicas": -1, f"{CLIQUE}[0].spec.minAvailable": 0, f"{CLIQUE}[1].name": "b b"})
    assert len(problems(body)) == 4  # the name is no name, and the scaling group's member is gone
