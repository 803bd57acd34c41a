"""Claims of devices: which a pod uses, what they weigh, and what is wrong with one."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.resource_k8s_io import DeviceClaim
from shoal.scheduler.devices import MOST_CONSUMERS, DeviceUse, asked_gpus, device_claim_problem, device_uses
from tests.scheduler.needed_objects import a_device_claim, a_device_class, a_user

QUEUE = "kai.scheduler/queue"
NAMED = DeviceUse("mine", "gpus", "")
MADE = DeviceUse("mine", "gpus", "one-gpu")
NIC = "nic.x.io"


def test_a_pod_uses_claims_by_name_and_those_that_were_made_for_it() -> None:
    pod = a_user(
        resourceClaims=[
            {"name": "shared", "resourceClaimName": "gpus"},
            {"name": "own", "resourceClaimTemplateName": "one-gpu"},
            {"name": "later", "resourceClaimTemplateName": "one-gpu"},
            {"name": "needless", "resourceClaimTemplateName": "none"},
        ],
        status={"resourceClaimStatuses": [{"name": "own", "resourceClaimName": "web-own-x"}, {"name": "needless"}]},
    )
    assert device_uses(pod) == (
        DeviceUse("shared", "gpus", ""),
        DeviceUse("own", "web-own-x", "one-gpu"),
        DeviceUse("later", "", "one-gpu"),
    )


@pytest.mark.parametrize(
    ("claim", "gpus"),
    [
        pytest.param(a_device_claim("c", count=2), 2, id="so many"),
        pytest.param(a_device_claim("c"), 1, id="one where nothing is said"),
        pytest.param(a_device_claim("c", mode="All"), 1, id="all, of which nobody knows how many they are"),
        pytest.param(a_device_claim("c", mode="Another", count=4), 0, id="in a mode that is not known"),
        pytest.param(a_device_claim("c", of=NIC, count=4), 0, id="no GPUs"),
        pytest.param(a_device_claim("c", of="nvidia.com/GPU", count=3), 3, id="whatever the case"),
        pytest.param(
            a_device_claim(
                "c",
                requests=[
                    {"name": "a", "exactly": {"deviceClassName": "gpu.x.io", "count": 2}},
                    {"name": "b", "exactly": {"deviceClassName": NIC, "count": 2}},
                    {"name": "c", "exactly": {"deviceClassName": "other-gpu"}},
                    {"name": "d", "firstAvailable": [{"name": "x", "deviceClassName": "gpu.x.io", "count": 8}]},
                ],
            ),
            3,
            id="several requests, alternatives not counted",
        ),
        pytest.param(
            a_device_claim("c", count=2, annotations={"resource.kubernetes.io/extended-resource-claim": "true"}),
            0,
            id="for an extended resource, which the pod asks for already",
        ),
    ],
)
def test_a_claim_weighs_as_many_gpus_as_it_asks_for(claim: DeviceClaim, gpus: int) -> None:
    assert asked_gpus(claim) == gpus


CROWD = [f"p{each}" for each in range(MOST_CONSUMERS)]


@pytest.mark.parametrize(
    ("use", "claim", "said"),
    [
        pytest.param(DeviceUse("mine", "", "one-gpu"), None, "still to be made from template one-gpu", id="not made"),
        pytest.param(NAMED, None, "claim gpus of devices does not exist", id="missing"),
        pytest.param(NAMED, a_device_claim("gpus"), "names no queue: set its label", id="no queue"),
        pytest.param(NAMED, a_device_claim("gpus", queue="other"), "belongs to queue other", id="another queue"),
        pytest.param(NAMED, a_device_claim("gpus", queue="team"), "", id="its queue"),
        pytest.param(MADE, a_device_claim("gpus"), "", id="made for the pod, and so of its queue"),
        pytest.param(NAMED, a_device_claim("gpus", of=NIC), "", id="no GPUs, and so of no queue"),
        pytest.param(
            MADE, a_device_claim("gpus", of="gone.io"), "DeviceClass gone.io, which does not exist", id="class"
        ),
        pytest.param(
            MADE, a_device_claim("gpus", of="gone.io", allocation={"devices": {}}), "", id="class of what it has"
        ),
        pytest.param(NAMED, a_device_claim("gpus", of=NIC, users=CROWD), "256 users", id="too many users"),
        pytest.param(NAMED, a_device_claim("gpus", of=NIC, users=[*CROWD[1:], "uid-web"]), "", id="one of them itself"),
    ],
)
def test_what_is_wrong_with_a_claim_is_said(use: DeviceUse, claim: DeviceClaim | None, said: str) -> None:
    classes: dict[str, Any] = {name: a_device_class(name) for name in ("gpu.x.io", NIC)}
    problem = device_claim_problem(a_user(), use, claim, classes, queue="team", queue_key=QUEUE)
    assert said in problem
    assert bool(problem) == bool(said)


def test_where_nobody_knows_the_queue_nothing_is_said_about_it() -> None:
    classes = {"gpu.x.io": a_device_class()}
    assert device_claim_problem(a_user(), NAMED, a_device_claim("gpus"), classes, queue=None, queue_key=QUEUE) == ""
