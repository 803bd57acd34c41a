"""Which pods an update deletes, and when it begins and ends."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.api.core import Pod, is_ready
from shoal.api.grove import PodCliqueUpdate, PodsToUpdate
from shoal.gangs.cliques.rolling import Step, Turn, is_open, next_step, next_update
from tests.gangs.builders import START, a_clique, a_clique_pod

LATER = START + timedelta(minutes=1)


def old(name: str, *, ready: bool = True, **more: Any) -> Pod:
    return a_clique_pod(name, hash="old", node="n", ready=ready, **more)


def new(name: str, *, ready: bool = True, **more: Any) -> Pod:
    return a_clique_pod(name, hash="new", node="n", ready=ready, **more)


def chosen(current: str, *completed: str) -> PodsToUpdate:
    return PodsToUpdate(current=current, completed=list(completed))


def step(pods: list[Pod], selected: PodsToUpdate | None = None, *, minimum: int = 2, replicas: int = 3) -> Step:
    return next_step(pods, target="new", minimum=minimum, replicas=replicas, selected=selected)


@pytest.mark.parametrize(
    ("pods", "selected", "deleted", "after", "is_done"),
    [
        pytest.param(
            [old("a", age=9), old("b", age=5), old("c", age=7)], None, ["a"], chosen("a"), False, id="the oldest first"
        ),
        pytest.param(
            [old("a", ready=False), old("b", ready=False), old("c", age=9)],
            None,
            ["a", "b"],
            None,
            False,
            id="those of no use at once, but no ready one below the minimum",
        ),
        pytest.param(
            [old("a", ready=False), old("b"), old("c", age=1)], None, ["a", "c"], chosen("c"), False, id="both"
        ),
        pytest.param(
            [old("a", going=True), old("b"), old("c"), new("d", ready=False)],
            chosen("a"),
            [],
            chosen("a"),
            False,
            id="the next one waits for the replacement",
        ),
        pytest.param(
            [old("b", age=2), old("c"), new("d")], chosen("a"), ["b"], chosen("b", "a"), False, id="then it goes"
        ),
        pytest.param(
            [old("a"), old("b"), old("c")], chosen("a"), ["a"], chosen("a"), False, id="chosen, and not deleted yet"
        ),
        pytest.param([new("a"), new("b"), new("c")], chosen("z", "y"), [], chosen("z", "y"), True, id="done"),
        pytest.param(
            [new("a"), new("b", ready=False)], chosen("z", "y"), [], chosen("z", "y"), False, id="the last is not ready"
        ),
        pytest.param([new("a"), old("b", going=True)], None, [], None, True, id="what goes is not waited for"),
        pytest.param([], None, [], None, True, id="no pods"),
        pytest.param([old("a", phase="Failed", ready=False)], None, ["a"], None, False, id="an ended one is of no use"),
    ],
)
def test_an_update_deletes_what_is_of_no_use_and_one_ready_pod_at_a_time(
    pods: list[Pod], selected: PodsToUpdate | None, deleted: list[str], after: PodsToUpdate | None, is_done: bool
) -> None:
    found = step(pods, selected)
    assert [pod.metadata.name for pod in found.delete] == deleted
    assert found.selected == after
    assert found.is_done == is_done


def test_an_update_of_a_clique_that_was_scaled_in_meanwhile_ends() -> None:
    assert step([new("a")], chosen("d", "c", "b"), replicas=1).is_done


@pytest.mark.parametrize(
    ("pods", "replicas"),
    [
        pytest.param([old("b")], 1, id="to what there was beside the chosen one"),
        pytest.param([new("a"), old("b")], 2, id="and a new pod went"),
    ],
)
def test_an_update_does_not_wait_for_a_replacement_that_scaling_in_made_needless(
    pods: list[Pod], replicas: int
) -> None:
    found = step(pods, chosen("y", "z"), minimum=1, replicas=replicas)
    assert [pod.metadata.name for pod in found.delete] == ["b"]


def test_a_clique_smaller_than_its_minimum_is_updated_all_the_same() -> None:
    assert step([old("a")], minimum=3, replicas=1).delete


@given(
    st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), max_size=6),
    st.integers(1, 6),
    st.lists(st.sampled_from(["gone-1", "gone-2", "p0", "p1"]), unique=True, max_size=3),
)
def test_a_step_never_takes_ready_pods_below_the_minimum_but_for_one(
    found: list[tuple[bool, bool, bool]], minimum: int, names: list[str]
) -> None:
    pods = [
        a_clique_pod(f"p{n}", hash="new" if is_new else "old", ready=ready, going=going)
        for n, (is_new, ready, going) in enumerate(found)
    ]
    selected = PodsToUpdate(current=names[0], completed=names[1:]) if names else None
    result = step(pods, selected, minimum=minimum, replicas=max(len(pods), 1))
    ready = [pod for pod in pods if is_ready(pod) and not pod.metadata.is_deleting]
    taken = [pod for pod in result.delete if is_ready(pod)]
    assert len(taken) <= 1
    assert all(pod.metadata.labels["grove.io/pod-template-hash"] == "old" for pod in result.delete)
    is_again = selected is not None and [pod.metadata.name for pod in taken] == [selected.current]
    assert not taken or is_again or len(ready) >= min(minimum, max(len(pods), 1))


def an_update(generation: str, template: str, *, ended: bool = True) -> dict[str, Any]:
    progress = PodCliqueUpdate(
        update_started_at=START,
        update_ended_at=START if ended else None,
        pod_clique_set_generation_hash=generation,
        pod_template_hash=template,
    )
    plain: dict[str, Any] = msgspec.to_builtins(progress)
    return {"updateProgress": plain, "observedGeneration": 1, "currentPodTemplateHash": template}


def a_turn(
    generation: str = "g2",
    *,
    on_delete: bool = False,
    is_here: bool = False,
    has_template: bool = True,
    has_old_pods: bool = False,
) -> Turn:
    return Turn(
        generation_hash=generation,
        on_delete=on_delete,
        is_here=is_here,
        has_template=has_template,
        has_old_pods=has_old_pods,
    )


@pytest.mark.parametrize(
    ("status", "turn", "expected"),
    [
        pytest.param({}, a_turn(), ("g2", "new", "closed"), id="a fresh clique is born new"),
        pytest.param({}, a_turn(""), None, id="the set has not said its templates yet"),
        pytest.param({}, a_turn(has_old_pods=True), None, id="changed before anything was told of it, not its turn"),
        pytest.param(
            {},
            a_turn(has_old_pods=True, is_here=True),
            ("g2", "new", "open"),
            id="changed before anything was told of it, its turn",
        ),
        pytest.param(
            {},
            a_turn(has_old_pods=True, on_delete=True),
            ("g2", "new", "closed"),
            id="changed before anything was told of it, on delete",
        ),
        pytest.param(an_update("g1", "old"), a_turn(), ("g1", "old", "closed"), id="not its turn yet"),
        pytest.param(an_update("g1", "old"), a_turn(is_here=True), ("g2", "new", "open"), id="its turn"),
        pytest.param(
            an_update("g1", "old"),
            a_turn(is_here=True, has_template=False),
            ("g1", "old", "closed"),
            id="its turn, but its template is still to come",
        ),
        pytest.param(an_update("g2", "new", ended=False), a_turn(is_here=True), ("g2", "new", "open"), id="it goes on"),
        pytest.param(an_update("g2", "new"), a_turn(is_here=True), ("g2", "new", "closed"), id="it is through"),
        pytest.param(
            an_update("g1", "old", ended=False), a_turn(is_here=True), ("g2", "new", "open"), id="changed in the middle"
        ),
        pytest.param(an_update("g1", "new"), a_turn(is_here=True), ("g2", "new", "open"), id="another clique changed"),
        pytest.param(an_update("g1", "old"), a_turn(on_delete=True), ("g2", "new", "closed"), id="on delete"),
        pytest.param(
            an_update("g1", "old"),
            a_turn(on_delete=True, has_template=False),
            ("g1", "old", "closed"),
            id="on delete, but its template is still to come",
        ),
        pytest.param(
            an_update("g2", "new", ended=False),
            a_turn(on_delete=True),
            ("g2", "new", "closed"),
            id="switched to on delete in the middle",
        ),
        pytest.param(
            {"currentPodTemplateHash": "old"}, a_turn(is_here=True), ("g2", "new", "open"), id="made before updates"
        ),
    ],
)
def test_an_update_begins_with_the_turn_of_its_replica(
    status: dict[str, Any], turn: Turn, expected: tuple[str, str, str] | None
) -> None:
    found = next_update(a_clique(status=status), turn, LATER)
    if expected is None:
        assert found is None
        return
    assert found is not None
    state = "open" if is_open(found) else "closed"
    assert (found.pod_clique_set_generation_hash, found.pod_template_hash, state) == expected


def test_a_change_in_the_middle_forgets_what_was_chosen() -> None:
    status = an_update("g1", "old", ended=False)
    status["updateProgress"]["readyPodsSelectedToUpdate"] = {"current": "a"}
    found = next_update(a_clique(status=status), a_turn(is_here=True), LATER)
    assert found is not None
    assert found.ready_pods_selected_to_update is None
    assert found.update_started_at == LATER
