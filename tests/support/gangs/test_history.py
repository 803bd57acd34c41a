"""The record of gangs finds what must not happen, and lets pass what may."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from shoal.api.grove import PodClique, names
from shoal.api.scheduler_grove_io import PodGang
from shoal.kube import EventType
from tests.support.builders.pods import controller_reference
from tests.support.gangs.builders import a_gang_pod
from tests.support.gangs.history import A_MOMENT_AGO, History, Moment, Watched

Step = tuple[EventType, Watched]
ADDED, MODIFIED, DELETED = EventType.ADDED, EventType.MODIFIED, EventType.DELETED


def a_clique(replicas: int = 2, *, name: str = "c", uid: str = "c-1", scheduled: int = 0, noted: bool = True) -> Step:
    metadata = {"name": name, "uid": uid, "generation": 1}
    status = {"scheduledReplicas": scheduled, **({"observedGeneration": 1} if noted else {})}
    return MODIFIED, msgspec.convert(
        {"metadata": metadata, "spec": {"replicas": replicas, "minAvailable": 1}, "status": status}, PodClique
    )


def pod_step(
    name: str, *, number: int = 0, gated: bool = True, going: bool = False, owner: str = "c-1", base: str = ""
) -> Step:
    return MODIFIED, a_gang_pod(
        name,
        gang="g",
        clique="c",
        gated=gated,
        uid=name,
        labels={names.BASE_GANG_LABEL: base} if base else {},
        owner=controller_reference("PodClique", "c", version="grove.io/v1alpha1", uid=owner),
        deleted=datetime(2026, 1, 1, tzinfo=UTC) if going else None,
        hostname=f"c-{number}",
    )


def a_gang(*pods: str, name: str = "g", group: str = "c", initialized: bool = True) -> Step:
    references = [{"namespace": "default", "name": pod} for pod in pods]
    groups = [{"name": group, "minReplicas": 1, "podReferences": references}]
    condition = {"type": "Initialized", "status": "True" if initialized else "False", "reason": "", "message": ""}
    return MODIFIED, msgspec.convert(
        {"metadata": {"name": name, "uid": name}, "spec": {"podgroups": groups}, "status": {"conditions": [condition]}},
        PodGang,
    )


def gone(step: Step) -> Step:
    return DELETED, step[1]


def found(*steps: Step, asked: list[tuple[str, int]] | None = None) -> list[str]:
    moments = [Moment(100 + number, kind, thing) for number, (kind, thing) in enumerate(steps)]
    return History(moments=moments, asked=asked or []).violations()


FULL = [a_clique(), pod_step("p", number=0), pod_step("q", number=1)]
LIFTED = pod_step("p", number=0, gated=False)


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(FULL, id="as many pods as asked for"),
        pytest.param([*FULL, pod_step("q", number=1, going=True), pod_step("r", number=1)], id="one is replaced"),
        pytest.param(
            [*FULL, gone(pod_step("q")), a_clique(1, noted=False), pod_step("r", number=1)],
            id="one is replaced before it is noted that it need not be",
        ),
        pytest.param([*FULL, a_gang("p", "q"), LIFTED], id="lifted when all are named"),
        pytest.param([*FULL, a_gang("p", "q"), gone(a_gang("p", "q")), LIFTED], id="its gang went a moment ago"),
        pytest.param([*FULL, a_gang("p", "q"), a_gang("p"), LIFTED], id="another was lost a moment ago"),
    ],
)
def test_what_may_happen_is_let_pass(steps: list[Step]) -> None:
    assert found(*steps, asked=[("c", 1)]) == []


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        pytest.param([*FULL, pod_step("r", number=2)], "3 pods of c, and 2 were asked for", id="one too many"),
        pytest.param(
            [*FULL, a_clique(1), gone(pod_step("q")), a_clique(1), pod_step("r", number=2)],
            "2 pods of c, and 1 were asked for",
            id="one too many after a change that is noted",
        ),
        pytest.param(
            [a_clique(), pod_step("p"), pod_step("q")], "pods ['p', 'q'] have the same number", id="a number twice"
        ),
        pytest.param(
            [a_clique(), pod_step("p"), a_clique(uid="c-2"), pod_step("q", owner="c-2")],
            "pods ['p', 'q'] have the same number",
            id="a number twice, in two cliques of one name",
        ),
        pytest.param([a_clique(), pod_step("p", gated=False)], "was made without a gate", id="born free"),
        pytest.param([*FULL, LIFTED], "lifted without a PodGang", id="no gang"),
        pytest.param([*FULL, a_gang("q", "r"), LIFTED], "before PodGang g named it", id="not named"),
        pytest.param([*FULL, a_gang("p"), LIFTED], "when c had 1 of 2", id="not all are named"),
        pytest.param(
            [*FULL, a_gang("p", "q"), a_gang("p"), *[a_clique()] * A_MOMENT_AGO, LIFTED],
            "when c had 1 of 2",
            id="another was lost long ago",
        ),
        pytest.param(
            [*FULL, a_gang("p", "q", initialized=False), LIFTED], "was initialised", id="the gang is not complete"
        ),
        pytest.param(
            [
                *FULL,
                a_gang("p", "q"),
                a_gang(name="base", group="b"),
                a_clique(name="b", uid="b"),
                *[a_clique()] * A_MOMENT_AGO,
                pod_step("p", base="base"),
                pod_step("p", base="base", gated=False),
            ],
            "before b of its base PodGang was scheduled",
            id="its base gang has no nodes",
        ),
        pytest.param([*FULL, a_clique(3)], "c was given 3 replicas by nobody, and had 2", id="a size of nobody's"),
    ],
)
def test_what_must_not_happen_is_found(steps: list[Step], problem: str) -> None:
    assert [text for text in found(*steps, asked=[("c", 1)]) if problem in text]
