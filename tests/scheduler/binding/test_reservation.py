"""Names and labels of shared devices, the pod that holds one, and who has lost his."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from shoal.api.core.pods import Pod, Toleration
from shoal.api.meta import format_time
from shoal.scheduler.binding.groups import group_labels, groups_of
from shoal.scheduler.binding.keeper import unreserved
from shoal.scheduler.binding.reservation import reservation_body, reservation_name
from shoal.scheduler.binding.settings import ReservationSettings
from tests.support.builders.pods import a_pod

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def test_a_reservation_is_named_after_its_node_and_group() -> None:
    # The first eight bytes of the SHA-256 of "node-a/group-1", as any tool computes it.
    assert reservation_name("node-a", "group-1") == "gpu-reservation-bfbf6ae2fb6bd3df"
    assert reservation_name("node-b", "group-1") != reservation_name("node-a", "group-1")


def test_a_reservation_takes_one_gpu_whatever_else_it_is_given() -> None:
    settings = ReservationSettings(
        command=("reserve",),
        runtime_class="nvidia",
        resources={"requests": {"cpu": "10m", "nvidia.com/gpu": "8"}, "limits": {"memory": "64Mi"}},
    )
    pod = reservation_body("n1", "g", [Toleration(key="gpu", operator="Exists")], settings)
    [container] = pod["spec"]["containers"]
    assert container["resources"] == {
        "requests": {"cpu": "10m", "nvidia.com/gpu": "1"},
        "limits": {"memory": "64Mi", "nvidia.com/gpu": "1"},
    }
    assert container["command"] == ["reserve"]
    assert (pod["spec"]["nodeName"], pod["spec"]["runtimeClassName"]) == ("n1", "nvidia")
    assert pod["spec"]["tolerations"] == [{"key": "gpu", "operator": "Exists"}]
    assert pod["metadata"]["labels"] == {"app": "kai-resource-reservation", "runai-gpu-group": "g"}


@pytest.mark.parametrize(
    ("groups", "labels"),
    [
        (["a"], {"runai-gpu-group": "a"}),
        (["b", "a"], {"runai-gpu-group/a": "a", "runai-gpu-group/b": "b"}),
    ],
    ids=["one device", "two devices"],
)
def test_labels_say_which_devices_a_pod_is_on(groups: list[str], labels: dict[str, str]) -> None:
    assert group_labels(groups) == labels
    assert groups_of({**labels, "app": "web", "runai-gpu-groups": "no"}) == tuple(sorted(groups))


def a_sharer(*, phase: str = "Running", bound: datetime = NOON, deleting: bool = False) -> Pod:
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": format_time(bound)}
    return a_pod(node="n1", phase=phase, conditions=[condition], deleted=NOON if deleting else None)


def a_reservation(*, made: datetime = NOON, phase: str = "Running") -> Pod:
    return a_pod(created=made, phase=phase)


LATER = NOON + timedelta(minutes=1)


@pytest.mark.parametrize(
    ("sharer", "reservations", "is_lost"),
    [
        pytest.param(a_sharer(), [a_reservation()], False, id="reserved"),
        pytest.param(a_sharer(), [], True, id="no reservation"),
        pytest.param(a_sharer(), [a_reservation(phase="Failed")], True, id="one that ended"),
        pytest.param(a_sharer(), [a_reservation(made=LATER)], True, id="another one, made later"),
        pytest.param(a_sharer(bound=LATER), [a_reservation(made=LATER)], False, id="the later one is its own"),
        pytest.param(
            a_sharer(), [a_reservation(made=NOON + timedelta(seconds=2))], False, id="clocks may be a little apart"
        ),
        pytest.param(a_sharer(), [a_reservation(), a_reservation(made=LATER)], False, id="the older one still stands"),
        pytest.param(a_sharer(phase="Pending"), [], False, id="not running yet"),
        pytest.param(a_sharer(deleting=True), [], False, id="going anyway"),
    ],
)
def test_a_running_pod_is_lost_without_the_reservation_it_started_under(
    sharer: Pod, reservations: list[Pod], is_lost: bool
) -> None:
    assert unreserved([sharer], reservations) == ([sharer] if is_lost else [])
