"""Which devices there are, and which serve a claim."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from shoal.api.resource_k8s_io import DeviceClaim, DeviceClass, ResourceSlice
from shoal.scheduler.devices import Choice, NotUnderstood, choose, gpus_by_node, offers_of
from tests.scheduler.needed_objects import a_device_claim, a_device_class, a_slice

NIC = "nic.x.io"
CLASSES = {"gpu.x.io": a_device_class(), NIC: a_device_class(NIC)}


def devices(choice: Choice | None) -> list[tuple[str, str]] | None:
    if choice is None:
        return None
    return [(wish.request, offer.device.name) for wish, offer in choice.given]


def chosen(claim: DeviceClaim, *slices: ResourceSlice, taken: set[tuple[str, str, str]] | None = None) -> Any:
    return devices(choose(claim, CLASSES, offers_of(slices), taken=taken or set()))


FOUR = a_slice("n", "gpu-0", "gpu-1", "gpu-2", "gpu-3")
TAKEN = {("gpu.x.io", "n", "gpu-0"), ("gpu.x.io", "n", "gpu-2")}
TWO_SIDES = (
    a_slice("n", "gpu-0", "gpu-1", name="l", slices=2, attributes={"side": {"string": "left"}}),
    a_slice("n", "gpu-2", "gpu-3", name="r", slices=2, attributes={"side": {"string": "right"}}),
)
NICS = a_slice("n", "nic-0", "nic-1", driver=NIC, attributes={"gpu.x.io/side": {"string": "right"}})
BOTH = [
    {"name": "gpu", "exactly": {"deviceClassName": "gpu.x.io"}},
    {"name": "nic", "exactly": {"deviceClassName": NIC}},
]
SAME_SIDE = [{"matchAttribute": "gpu.x.io/side"}]
EITHER = [
    {
        "name": "any",
        "firstAvailable": [
            {"name": "many", "deviceClassName": "gpu.x.io", "count": 8},
            {"name": "few", "deviceClassName": "gpu.x.io", "count": 2},
        ],
    }
]


@pytest.mark.parametrize(
    ("claim", "slices", "taken", "found"),
    [
        pytest.param(a_device_claim("c"), [FOUR], set(), [("devices", "gpu-0")], id="the first by name"),
        pytest.param(
            a_device_claim("c", count=2),
            [FOUR],
            TAKEN,
            [("devices", "gpu-1"), ("devices", "gpu-3")],
            id="the free ones",
        ),
        pytest.param(a_device_claim("c", count=3), [FOUR], TAKEN, None, id="too few are free"),
        pytest.param(a_device_claim("c", count=5), [FOUR], set(), None, id="too few are there"),
        pytest.param(a_device_claim("c", of=NIC), [FOUR], set(), None, id="none of that class"),
        pytest.param(
            a_device_claim("c", mode="All"),
            [a_slice("n", "a", "b")],
            set(),
            [("devices", "a"), ("devices", "b")],
            id="all of them",
        ),
        pytest.param(a_device_claim("c", mode="All"), [FOUR], TAKEN, None, id="not all of them"),
        pytest.param(
            a_device_claim("c", requests=EITHER),
            [FOUR],
            set(),
            [("any/few", "gpu-0"), ("any/few", "gpu-1")],
            id="the best way that there is",
        ),
        pytest.param(
            a_device_claim("c", requests=BOTH, constraints=SAME_SIDE),
            [*TWO_SIDES, NICS],
            set(),
            [("gpu", "gpu-2"), ("nic", "nic-0")],
            id="what must be on one side is",
        ),
        pytest.param(
            a_device_claim("c", count=3, constraints=SAME_SIDE), TWO_SIDES, set(), None, id="no side has so many"
        ),
    ],
)
def test_a_claim_is_served_by_devices_that_suit_it(
    claim: DeviceClaim, slices: list[ResourceSlice], taken: set[tuple[str, str, str]], found: Any
) -> None:
    assert chosen(claim, *slices, taken=taken) == found


def test_a_tainted_device_serves_those_alone_who_tolerate_it() -> None:
    broken = [{"name": "gpu-0", "taints": [{"key": "broken", "effect": "NoSchedule"}]}]
    there = a_slice("n", devices=broken)
    brave = {"deviceClassName": "gpu.x.io", "tolerations": [{"key": "broken", "operator": "Exists"}]}
    assert chosen(a_device_claim("c"), there) is None
    assert chosen(a_device_claim("c", requests=[{"name": "d", "exactly": brave}]), there) == [("d", "gpu-0")]


@pytest.mark.parametrize(
    ("exactly", "said"),
    [
        pytest.param({"capacity": {"requests": {"memory": "1Gi"}}}, "part of a device's capacity", id="capacity"),
        pytest.param({"adminAccess": True}, "administrative access", id="admin"),
        pytest.param({"selectors": [{"cel": {"expression": "1 < 2"}}]}, "1 < 2", id="selector"),
    ],
)
def test_what_is_not_understood_is_said_to_be_so(exactly: dict[str, Any], said: str) -> None:
    claim = a_device_claim("c", requests=[{"name": "d", "exactly": {"deviceClassName": "gpu.x.io", **exactly}}])
    with pytest.raises(NotUnderstood, match=said):
        chosen(claim, FOUR)


def test_an_allocation_says_which_devices_how_they_are_set_up_and_where_they_are() -> None:
    opaque = {"opaque": {"driver": "gpu.x.io", "parameters": {"sharing": "none"}}}
    device_class = msgspec.structs.replace(
        CLASSES["gpu.x.io"],
        spec=msgspec.structs.replace(CLASSES["gpu.x.io"].spec, config=[opaque]),
    )
    classes: dict[str, DeviceClass] = {"gpu.x.io": device_class}
    claim = a_device_claim("c")
    choice = choose(claim, classes, offers_of([FOUR]))
    assert choice is not None
    assert choice.allocation(claim) == {
        "devices": {
            "results": [{"request": "devices", "driver": "gpu.x.io", "pool": "n", "device": "gpu-0"}],
            "config": [{"source": "FromClass", "requests": ["devices"], **opaque}],
        },
        "nodeSelector": {
            "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]
        },
    }


def test_of_a_pool_only_the_latest_generation_counts_and_only_when_all_of_it_is_there() -> None:
    old, new = a_slice("n", "old"), a_slice("n", "new", generation=2)
    assert [offer.device.name for offer in offers_of([old, new])] == ["new"]
    assert offers_of([old, a_slice("n", "half", generation=2, slices=2)]) == []


def test_gpus_are_counted_by_node() -> None:
    slices = [FOUR, a_slice("m", "a"), a_slice("m", "x", driver=NIC), a_slice("", "b")]
    assert gpus_by_node(slices) == {"n": 4, "m": 1}
