"""How many pods are made, and which go first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.api.core import Pod
from shoal.gangs.cliques.plan import first_to_go, sizing
from tests.gangs.builders import a_clique_pod


@pytest.mark.parametrize(
    ("pods", "replicas", "create", "deleted"),
    [
        pytest.param([], 3, 3, [], id="all are made"),
        pytest.param([a_clique_pod("a")], 3, 2, [], id="the missing ones are made"),
        pytest.param(
            [a_clique_pod("a"), a_clique_pod("b", going=True)], 2, 1, [], id="one that goes is replaced at once"
        ),
        pytest.param(
            [a_clique_pod("a", phase="Failed"), a_clique_pod("b", phase="Succeeded")], 2, 0, [], id="ended ones count"
        ),
        pytest.param([a_clique_pod("a", age=9), a_clique_pod("b", age=1)], 1, 0, ["b"], id="the youngest goes"),
        pytest.param(
            [a_clique_pod("a"), a_clique_pod("b", going=True)], 1, 0, [], id="one that goes is not deleted twice"
        ),
        pytest.param(
            [a_clique_pod("a"), a_clique_pod("b", index=1)], 0, 0, ["b", "a"], id="all go, the highest number first"
        ),
    ],
)
def test_what_is_missing_is_made_and_what_is_too_much_goes(
    pods: list[Pod], replicas: int, create: int, deleted: list[str]
) -> None:
    plan = sizing(pods, replicas=replicas, template_hash="new")
    assert plan.create == create
    assert [pod.metadata.name for pod in plan.delete] == deleted


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param({"node": ""}, {"node": "n", "phase": "Pending"}, id="no node before a node"),
        pytest.param({"node": "n", "phase": "Pending"}, {"node": "n", "phase": "Unknown"}, id="pending before unknown"),
        pytest.param({"node": "n", "phase": "Unknown"}, {"node": "n"}, id="unknown before running"),
        pytest.param({"node": "n"}, {"node": "n", "ready": True}, id="not ready before ready"),
        pytest.param({"node": "n", "hash": "old"}, {"node": "n", "hash": "new"}, id="old template before new"),
        pytest.param({"node": "n", "age": 1}, {"node": "n", "age": 9}, id="young before old"),
        pytest.param(
            {"node": "n", "hash": "new"},
            {"node": "n", "hash": "old", "ready": True},
            id="readiness counts more than age",
        ),
        pytest.param({"age": 9}, {"node": "n", "hash": "old", "age": 1}, id="a node counts most"),
    ],
)
def test_the_pod_whose_loss_costs_least_goes_first(first: dict[str, object], second: dict[str, object]) -> None:
    pods = [a_clique_pod("second", **second), a_clique_pod("first", **first)]  # type: ignore[arg-type]
    assert [pod.metadata.name for pod in first_to_go(pods, "new")] == ["first", "second"]
    assert [pod.metadata.name for pod in first_to_go(pods[::-1], "new")] == ["first", "second"]


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(["", "Failed", "Running"])), max_size=12), st.integers(0, 12))
def test_there_are_never_more_pods_than_asked_for(found: list[tuple[bool, str]], replicas: int) -> None:
    pods = [a_clique_pod(f"p{n}", going=is_going, phase=phase) for n, (is_going, phase) in enumerate(found)]
    staying = [pod for pod in pods if not pod.metadata.is_deleting]
    plan = sizing(pods, replicas=replicas, template_hash="new")
    assert len(staying) + plan.create - len(plan.delete) == replicas
    assert not plan.create or not plan.delete
    assert all(pod in staying for pod in plan.delete)
