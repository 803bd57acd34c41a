"""When a pod may be scheduled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.api.grove import names
from shoal.gangs.backends import Marks
from shoal.gangs.cliques.gates import (
    BASE_NOT_SCHEDULED,
    GANG_INCOMPLETE,
    GANG_MISSING,
    NOT_GATED,
    NOT_REFERENCED,
    Gating,
    correction,
    gating,
)
from tests.gangs.builders import CLIQUE, a_clique, a_clique_pod
from tests.gangs.cliques.builders import a_naming_gang

SCALED = {names.BASE_GANG_LABEL: "web-0", names.GANG_LABEL: "web-0-group-0"}


def verdict(
    pods: list[Any] | None = None,
    *,
    gang: Any = None,
    base: Any = None,
    labels: Mapping[str, str] | None = None,
    scheduled: Mapping[str, int] | None = None,
) -> Gating:
    found = [a_clique_pod("a", gated=True), a_clique_pod("b", gated=True)] if pods is None else pods
    clique = a_clique(labels=labels)
    return gating(clique, found, gang=gang, base_gang=base, scheduled=lambda name: (scheduled or {}).get(name, 0))


@pytest.mark.parametrize(
    ("situation", "lifted", "reason"),
    [
        pytest.param({"gang": None}, [], GANG_MISSING, id="no gang"),
        pytest.param({"gang": None, "pods": []}, [], GANG_MISSING, id="no gang, and so no pods"),
        pytest.param(
            {"gang": None, "pods": [a_clique_pod("a"), a_clique_pod("b")]},
            [],
            NOT_GATED,
            id="the gang of running pods is gone",
        ),
        pytest.param(
            {"gang": a_naming_gang({CLIQUE: ["a", "b"]}, initialized=False)}, [], GANG_INCOMPLETE, id="not complete"
        ),
        pytest.param({"gang": a_naming_gang({CLIQUE: []})}, [], NOT_REFERENCED, id="names none"),
        pytest.param({"gang": a_naming_gang({CLIQUE: ["a"]})}, ["a"], NOT_REFERENCED, id="names one"),
        pytest.param({"gang": a_naming_gang({"other": ["a", "b"]})}, [], NOT_REFERENCED, id="in another clique"),
        pytest.param({"gang": a_naming_gang({CLIQUE: ["a", "b"]})}, ["a", "b"], NOT_GATED, id="names all"),
        pytest.param(
            {
                "gang": a_naming_gang({CLIQUE: ["a", "b"]}),
                "pods": [a_clique_pod("a", gated=True, going=True), a_clique_pod("b")],
            },
            [],
            NOT_GATED,
            id="one that goes keeps its gate, one without has none to lift",
        ),
        pytest.param(
            {"gang": a_naming_gang({CLIQUE: ["a", "b"]}), "labels": SCALED}, [], BASE_NOT_SCHEDULED, id="no base gang"
        ),
        pytest.param(
            {
                "gang": a_naming_gang({CLIQUE: ["a", "b"]}),
                "labels": SCALED,
                "base": a_naming_gang({"x": [], "y": []}, minimum=2),
                "scheduled": {"x": 2, "y": 1},
            },
            [],
            BASE_NOT_SCHEDULED,
            id="base gang half on nodes",
        ),
        pytest.param(
            {
                "gang": a_naming_gang({CLIQUE: ["a", "b"]}),
                "labels": SCALED,
                "base": a_naming_gang({"x": [], "y": []}, minimum=2),
                "scheduled": {"x": 2, "y": 3},
            },
            ["a", "b"],
            NOT_GATED,
            id="base gang on nodes",
        ),
    ],
)
def test_a_gate_is_lifted_when_the_gang_is_complete(situation: dict[str, Any], lifted: list[str], reason: str) -> None:
    found = verdict(**situation)
    assert [pod.metadata.name for pod in found.lift] == lifted
    assert found.reason == reason


def test_the_reason_says_who_is_waited_for() -> None:
    found = verdict(
        gang=a_naming_gang({CLIQUE: ["a", "b"]}),
        labels=SCALED,
        base=a_naming_gang({"web-0-x": []}, minimum=2),
        scheduled={"web-0-x": 1},
    )
    assert found.message == "base PodGang web-0 is not scheduled: PodClique web-0-x has 1 of 2 pods on nodes"


@given(
    st.lists(st.booleans(), max_size=6),
    st.sets(st.integers(0, 5)),
    st.booleans(),
    st.booleans(),
    st.dictionaries(st.sampled_from("xy"), st.integers(0, 3)),
)
def test_no_pod_is_ungated_before_its_gang_is_complete(
    gates: list[bool], named: set[int], initialized: bool, is_scaled: bool, scheduled: dict[str, int]
) -> None:
    pods = [a_clique_pod(f"p{n}", gated=is_gated) for n, is_gated in enumerate(gates)]
    found = verdict(
        pods,
        gang=a_naming_gang({CLIQUE: [f"p{n}" for n in named]}, initialized=initialized),
        base=a_naming_gang({"x": [], "y": []}, minimum=2),
        labels=SCALED if is_scaled else None,
        scheduled=scheduled,
    )
    for pod in found.lift:
        assert initialized
        assert pod.metadata.name in {f"p{n}" for n in named}
        assert not is_scaled or all(scheduled.get(clique, 0) >= 2 for clique in "xy")
    still = [pod for pod in pods if pod.spec.scheduling_gates and pod not in found.lift]
    assert found.is_holding == bool(still)


def test_the_patch_takes_our_gate_alone_and_tests_that_it_is_ours() -> None:
    pod = a_clique_pod("a", gated=True)
    assert correction(pod, Marks(), lift=True) == [
        {"op": "test", "path": "/metadata/uid", "value": "uid-a"},
        {"op": "test", "path": "/spec/schedulingGates/0/name", "value": "grove.io/podgang-pending-creation"},
        {"op": "remove", "path": "/spec/schedulingGates/0"},
    ]


def test_wrong_marks_are_corrected_in_the_same_patch() -> None:
    marks = Marks(labels={"a/b": "c"}, annotations={"group": "mine"})
    patched = correction(a_clique_pod("a", gated=True, annotations={"group": "other"}), marks, lift=True)
    assert {"op": "add", "path": "/metadata/labels/a~1b", "value": "c"} in patched
    assert {"op": "add", "path": "/metadata/annotations/group", "value": "mine"} in patched
    assert patched[-1] == {"op": "remove", "path": "/spec/schedulingGates/0"}


def test_true_marks_need_no_patch() -> None:
    pod = a_clique_pod("a", annotations={"group": "mine", "other": "x"})
    assert correction(pod, Marks(annotations={"group": "mine"}), lift=False) == []


def test_the_first_annotation_never_replaces_one_that_is_made_meanwhile() -> None:
    patched = correction(a_clique_pod("a"), Marks(annotations={"group": "mine"}), lift=False)
    assert {"op": "test", "path": "/metadata/resourceVersion", "value": "7"} in patched
    assert {"op": "add", "path": "/metadata/annotations", "value": {"group": "mine"}} in patched
