"""Which nodes will do for a pod by its claims of volumes, and which claim it has to wait for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from shoal.scheduler.ground import Ground
from shoal.scheduler.storage import NO_PROVISIONER, SELECTED_NODE, claim_uses
from shoal.scheduler.watching.needs.stock import Kind, Look, Stock
from shoal.scheduler.watching.needs.volumes import Reach, volume_reach
from tests.scheduler.needed_objects import (
    SOON,
    ZONE,
    a_capacity,
    a_claim,
    a_class,
    a_driver,
    a_user,
    a_volume,
    claims,
    on,
    some_nodes,
)

HOST = "kubernetes.io/hostname"
GROUND = Ground(some_nodes(a={HOST: "a", ZONE: "east"}, b={HOST: "b", ZONE: "east"}, c={HOST: "c", ZONE: "west"}))
ALL = {"a", "b", "c"}
KINDS = {
    "PersistentVolumeClaim": Kind.CLAIM,
    "PersistentVolume": Kind.VOLUME,
    "StorageClass": Kind.STORAGE_CLASS,
    "CSIDriver": Kind.DRIVER,
    "CSIStorageCapacity": Kind.CAPACITY,
}


def reach(*objects: Any, uses: Sequence[str] = ("data",), users: Sequence[str] = ()) -> Reach:
    """What these objects allow a pod that uses these claims."""
    stock, pod = Stock(), a_user(volumes=claims(*uses))
    for one in objects:
        stock.put((KINDS[type(one).__name__], one.metadata.namespace, one.metadata.name), one)
    return volume_reach(pod, claim_uses(pod), Look(stock), GROUND, lambda *_: users)


def nodes(found: Reach) -> set[str]:
    assert not found.problem
    names = None if found.nodes is None else GROUND.names(found.nodes)
    return ALL if names is None else set(names)


BOUND = a_claim("data", bound_to="pv")
DELAYED = a_claim("data")
EAST = [{"matchLabelExpressions": [{"key": ZONE, "values": ["east"]}]}]
STATIC = a_class("late", provisioner=NO_PROVISIONER)


@pytest.mark.parametrize(
    ("objects", "said"),
    [
        pytest.param([], "claim data does not exist", id="missing"),
        pytest.param([BOUND], "claim data is bound to volume pv, which does not exist", id="its volume is gone"),
        pytest.param(
            [DELAYED, a_class("late", mode=SOON)], "claim data has no volume yet, and class late", id="bound at once"
        ),
        pytest.param([DELAYED], "its StorageClass late does not exist", id="no such class"),
        pytest.param([a_claim("data", of="")], "names no StorageClass", id="of no class"),
        pytest.param(
            [a_claim("data", bound_to="pv", phase="Pending"), a_class("late")],
            "claim data is not bound yet to volume pv",
            id="names its volume, and does not have it",
        ),
    ],
)
def test_a_pod_waits_for_a_claim_and_it_is_said_which_and_why(objects: list[Any], said: str) -> None:
    assert said in reach(*objects).problem


@pytest.mark.parametrize(
    ("objects", "where"),
    [
        pytest.param([BOUND, a_volume("pv")], ALL, id="bound to a volume that all reach"),
        pytest.param([BOUND, a_volume("pv", affinity=on("b"))], {"b"}, id="bound to a volume of one node"),
        pytest.param([BOUND, a_volume("pv", labels={ZONE: "west"})], {"c"}, id="bound to a volume of a zone"),
        pytest.param([DELAYED, a_class("late")], ALL, id="made wherever it is needed"),
        pytest.param([DELAYED, a_class("late", allowedTopologies=EAST)], {"a", "b"}, id="made in a zone alone"),
        pytest.param([DELAYED, STATIC], set(), id="made by people, and there is none"),
        pytest.param([DELAYED, STATIC, a_volume("v", affinity=on("b"))], {"b"}, id="there is one, of a node"),
        pytest.param(
            [DELAYED, STATIC, a_volume("v", affinity=on("b")), a_volume("w", affinity=on("c"))],
            {"b", "c"},
            id="there are two",
        ),
        pytest.param([DELAYED, STATIC, a_volume("v", size="1Mi")], set(), id="there is one, and it is too small"),
        pytest.param(
            [DELAYED, STATIC, a_volume("v"), a_volume("w", affinity=on("b"), claimed_by="data")],
            {"b"},
            id="the one that is reserved for it",
        ),
        pytest.param(
            [DELAYED, a_class("late", allowedTopologies=EAST), a_volume("v", affinity=on("c"))],
            ALL,
            id="made in a zone, or there in another",
        ),
        pytest.param(
            [a_claim("data", annotations={SELECTED_NODE: "b"}), a_class("late")], {"b"}, id="told its node already"
        ),
        pytest.param(
            [a_claim("data", annotations={SELECTED_NODE: "c"}), a_class("late", allowedTopologies=EAST)],
            set(),
            id="told a node for which none is made",
        ),
        pytest.param(
            [DELAYED, a_class("late"), a_driver("x.io/disk", tells_capacity=False)], ALL, id="nobody tells the room"
        ),
        pytest.param(
            [DELAYED, a_class("late"), a_driver("x.io/disk", tells_capacity=True)], set(), id="no room anywhere"
        ),
        pytest.param(
            [
                DELAYED,
                a_class("late"),
                a_driver("x.io/disk", tells_capacity=True),
                a_capacity("e", topology={ZONE: "east"}, capacity="10Gi"),
                a_capacity("w", topology={ZONE: "west"}, capacity="1Mi"),
                a_capacity("n", capacity="10Gi"),
                a_capacity("o", of="other", topology={ZONE: "west"}, capacity="10Gi"),
            ],
            {"a", "b"},
            id="room in one zone",
        ),
        pytest.param(
            [
                DELAYED,
                a_class("late"),
                a_driver("x.io/disk", tells_capacity=True),
                a_capacity("e", topology={}, capacity="10Gi", maximumVolumeSize="1Mi"),
            ],
            set(),
            id="room, and no volume may be so large",
        ),
    ],
)
def test_a_pod_goes_where_its_volume_is_or_may_be(objects: list[Any], where: set[str]) -> None:
    assert nodes(reach(*objects)) == where


def test_all_claims_must_be_reached_at_once() -> None:
    objects = [
        a_claim("data", bound_to="pv"),
        a_volume("pv", affinity=on("a", "b")),
        a_claim("more", bound_to="pw"),
        a_volume("pw", affinity=on("b", "c")),
    ]
    assert nodes(reach(*objects, uses=("data", "more"))) == {"b"}


def test_two_claims_of_a_pod_need_two_volumes_of_the_same_node() -> None:
    objects = [
        a_claim("data"),
        a_claim("more"),
        STATIC,
        a_volume("b1", affinity=on("b")),
        a_volume("c1", affinity=on("c")),
        a_volume("c2", affinity=on("c")),
    ]
    assert nodes(reach(*objects, uses=("data", "more"))) == {"c"}


def test_a_claim_for_one_pod_alone_is_not_shared() -> None:
    single = a_claim("data", bound_to="pv", modes=["ReadWriteOncePod"])
    said = reach(single, a_volume("pv"), users=["other"]).problem
    assert said == "claim data may be used by one pod at a time, and pod other uses it"
    assert nodes(reach(single, a_volume("pv"))) == ALL
    assert nodes(reach(BOUND, a_volume("pv"), users=["other"])) == ALL


def test_volumes_are_counted_by_driver_those_to_be_made_too() -> None:
    objects = [
        a_claim("data", bound_to="pv"),
        a_volume("pv", driver="ebs"),
        a_claim("more"),
        a_class("late", provisioner="ebs"),
        a_claim("nfs", bound_to="pn"),
        a_volume("pn"),
    ]
    assert reach(*objects, uses=("data", "more", "nfs")).drivers == {"ebs": 2}
