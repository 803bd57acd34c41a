"""What is done next for a StatefulSet, and what is told of it: rules without a server."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shoal.api.apps import StatefulSet, StatefulSetSpec
from shoal.api.apps.stateful_sets import Ordinals, StatefulSetRollingUpdate, StatefulSetUpdateStrategy
from shoal.api.core import Pod
from shoal.api.meta import ObjectMeta
from shoal.cluster.controllers.stateful_sets.identity import parent_and_ordinal
from shoal.cluster.controllers.stateful_sets.plan import (
    Create,
    Mend,
    Observed,
    Plan,
    Remove,
    Version,
    plan,
)
from shoal.cluster.controllers.stateful_sets.status import status_of
from tests.support.builders.pods import a_condition, a_pod

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
OLD, NEW = Version(name="web-old", template={}), Version(name="web-new", template={})


def a_set(replicas: int = 3, *, policy: str = "OrderedReady", **spec: Any) -> StatefulSet:
    return StatefulSet(
        metadata=ObjectMeta(name="web", namespace="default", uid="set", generation=1),
        spec=StatefulSetSpec(replicas=replicas, pod_management_policy=policy, **spec),
    )


def a_replica(
    ordinal: int, *, state: str = "ready", revision: str = NEW.name, going: bool = False, ready_for: int = 3600
) -> Pod:
    """``state`` is ready, starting, pending, failed or done."""
    name = f"web-{ordinal}"
    phases = {"ready": "Running", "starting": "Running", "pending": "Pending", "failed": "Failed", "done": "Succeeded"}
    since = NOW - timedelta(seconds=ready_for)
    return a_pod(
        name,
        namespace="default",
        uid=name,
        labels={"controller-revision-hash": revision, "statefulset.kubernetes.io/pod-name": name},
        deleted=NOW if going else None,
        phase=phases[state],
        conditions=[a_condition("Ready", since=since)] if state == "ready" else None,
    )


def told(found: Plan) -> list[str]:
    words = []
    for step in (step for stage in found.stages for step in stage):
        match step:
            case Create(ordinal, version):
                words.append(f"create {ordinal} {version.name.removeprefix('web-')}")
            case Remove(pod):
                words.append(f"remove {pod.metadata.name.removeprefix('web-')}")
            case Mend(_, ordinal):
                words.append(f"mend {ordinal}")
            case _:
                words.append(type(step).__name__)
    return words


def next_steps(stateful_set: StatefulSet, pods: Sequence[Pod], **options: Any) -> list[str]:
    seen = Observed(stateful_set=stateful_set, pods=pods, claim_of=lambda name: None, current=OLD, update=NEW, now=NOW)
    return told(plan(seen, **options))


def rolling(partition: int = 0, max_unavailable: int | str | None = None) -> StatefulSetUpdateStrategy:
    update = StatefulSetRollingUpdate(partition=partition, max_unavailable=max_unavailable)
    return StatefulSetUpdateStrategy(rolling_update=update)


@pytest.mark.parametrize(
    ("stateful_set", "pods", "expected"),
    [
        pytest.param(a_set(), [], ["create 0 new"], id="the first of all"),
        pytest.param(a_set(), [a_replica(0, state="starting")], [], id="waits until the one before is ready"),
        pytest.param(a_set(), [a_replica(0)], ["create 1 new"], id="the next one"),
        pytest.param(a_set(), [a_replica(0), a_replica(2)], ["create 1 new"], id="a gap is filled"),
        pytest.param(a_set(), [a_replica(0, going=True)], [], id="waits until one is gone"),
        pytest.param(a_set(), [a_replica(0, state="failed")], ["remove 0"], id="a failed one is deleted"),
        pytest.param(a_set(), [a_replica(0), a_replica(1, state="done")], ["remove 1"], id="one that has ended too"),
        pytest.param(a_set(), [a_replica(0, state="failed", going=True)], [], id="but only once"),
        pytest.param(
            a_set(min_ready_seconds=10), [a_replica(0, ready_for=5)], [], id="waits until one is ready for long enough"
        ),
        pytest.param(
            a_set(2, ordinals=Ordinals(start=4)), [a_replica(4)], ["create 5 new"], id="numbers begin elsewhere"
        ),
        pytest.param(
            a_set(1, ordinals=Ordinals(start=1)),
            [a_replica(1), a_replica(0)],
            ["remove 0"],
            id="below the first number",
        ),
        pytest.param(a_set(1), [a_replica(0), a_replica(1), a_replica(2)], ["remove 2"], id="the highest goes first"),
        pytest.param(a_set(1), [a_replica(0), a_replica(1), a_replica(2, going=True)], [], id="one at a time goes"),
        pytest.param(
            a_set(1),
            [a_replica(0, state="starting"), a_replica(1)],
            [],
            id="nothing goes before those that stay are well",
        ),
        pytest.param(
            a_set(1),
            [a_replica(0), a_replica(1), a_replica(2, state="starting")],
            ["remove 2"],
            id="the only one unwell may go",
        ),
        pytest.param(
            a_set(1),
            [a_replica(0), a_replica(1, state="starting"), a_replica(2, state="starting")],
            [],
            id="one unwell waits for those unwell below it",
        ),
        pytest.param(a_set(2, policy="Parallel"), [], ["create 0 new", "create 1 new"], id="all at once"),
        pytest.param(
            a_set(1, policy="Parallel"),
            [a_replica(0, state="starting"), a_replica(1), a_replica(2, going=True), a_replica(3)],
            ["remove 3", "remove 1"],
            id="all go at once",
        ),
        pytest.param(
            a_set(3, policy="Parallel"),
            [a_replica(0, state="failed"), a_replica(2)],
            ["remove 0", "create 1 new"],
            id="a failed one holds up nobody",
        ),
    ],
)
def test_pods_come_and_go(stateful_set: StatefulSet, pods: list[Pod], expected: list[str]) -> None:
    assert next_steps(stateful_set, pods) == expected


def old(ordinal: int, **more: Any) -> Pod:
    return a_replica(ordinal, revision=OLD.name, **more)


@pytest.mark.parametrize(
    ("stateful_set", "pods", "expected"),
    [
        pytest.param(a_set(), [old(0), old(1), old(2)], ["remove 2"], id="from the top"),
        pytest.param(a_set(), [old(0), old(1), a_replica(2)], ["remove 1"], id="then the next"),
        pytest.param(a_set(), [old(0), old(1), a_replica(2, state="starting")], [], id="waits for the new one"),
        pytest.param(
            a_set(), [old(0), old(1, state="starting"), old(2)], [], id="in order nothing moves while one is unwell"
        ),
        pytest.param(
            a_set(policy="Parallel"),
            [old(0), old(1, state="starting"), old(2)],
            ["remove 2"],
            id="in parallel an old one that is unwell holds up nobody above it",
        ),
        pytest.param(
            a_set(update_strategy=rolling(2)), [old(0), old(1), a_replica(2)], [], id="not below the partition"
        ),
        pytest.param(
            a_set(update_strategy=rolling(2)), [old(0), a_replica(2)], ["create 1 old"], id="below it old ones are made"
        ),
        pytest.param(
            a_set(update_strategy=StatefulSetUpdateStrategy(type="OnDelete")),
            [old(0), old(1), old(2)],
            [],
            id="OnDelete",
        ),
        pytest.param(
            a_set(2, update_strategy=rolling()), [old(0), old(1), old(2)], ["remove 2"], id="scaling goes first"
        ),
        pytest.param(
            a_set(update_strategy=rolling(max_unavailable=2)),
            [old(0), old(1), old(2)],
            ["remove 2"],
            id="one at a time, whatever is allowed",
        ),
    ],
)
def test_old_pods_are_replaced(stateful_set: StatefulSet, pods: list[Pod], expected: list[str]) -> None:
    assert next_steps(stateful_set, pods) == expected


@pytest.mark.parametrize(
    ("allowed", "pods", "expected"),
    [
        pytest.param(2, [old(0), old(1), old(2), old(3)], ["remove 3", "remove 2"], id="two at once"),
        pytest.param(
            2, [old(0), old(1), old(2), a_replica(3, state="starting")], ["remove 2"], id="one is away already"
        ),
        pytest.param("50%", [old(0), old(1), old(2), old(3)], ["remove 3", "remove 2"], id="half of them"),
        pytest.param("1%", [old(0), old(1), old(2), old(3)], ["remove 3"], id="at least one"),
    ],
)
def test_several_are_replaced_at_once_where_that_is_on(
    allowed: int | str, pods: list[Pod], expected: list[str]
) -> None:
    parallel = a_set(4, policy="Parallel", update_strategy=rolling(max_unavailable=allowed))
    assert next_steps(parallel, pods, honour_max_unavailable=True) == expected


def test_a_pod_without_its_label_is_mended_when_it_is_well() -> None:
    bare = Pod(metadata=ObjectMeta(name="web-0", uid="web-0"), status=a_replica(0).status)
    assert next_steps(a_set(1), [bare])[0] == "mend 0"


def test_nothing_is_done_for_a_set_that_is_going() -> None:
    going = StatefulSet(metadata=ObjectMeta(name="web", deletion_timestamp=NOW), spec=StatefulSetSpec(replicas=3))
    assert next_steps(going, [a_replica(0, state="failed")]) == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("web-0", ("web", 0)),
        ("web-1-12", ("web-1", 12)),
        ("web", ("", None)),
        ("web-x", ("", None)),
        ("web-2147483648", ("web", None)),
    ],
)
def test_a_name_tells_the_set_and_the_ordinal(name: str, expected: tuple[str, int | None]) -> None:
    assert parent_and_ordinal(name) == expected


def test_an_update_is_complete_when_all_are_new_and_ready() -> None:
    def status(pods: list[Pod], replaced: int = 0) -> Any:
        names = {"current": OLD.name, "update": NEW.name}
        return status_of(a_set(2), pods, **names, collisions=0, replaced=replaced, now=NOW)

    under_way = status([old(0), a_replica(1)])
    assert (under_way.current_revision, under_way.current_replicas, under_way.updated_replicas) == (OLD.name, 1, 1)
    waiting = status([a_replica(0, state="starting"), a_replica(1)])
    assert (waiting.current_revision, waiting.ready_replicas) == (OLD.name, 1)
    complete = status([a_replica(0), a_replica(1)])
    assert (complete.current_revision, complete.current_replicas) == (NEW.name, 2)
    assert status([old(0), old(1)], replaced=1).current_replicas == 1
    going = status([old(0), old(1, going=True)])
    assert (going.replicas, going.ready_replicas, going.current_replicas) == (2, 2, 1)
