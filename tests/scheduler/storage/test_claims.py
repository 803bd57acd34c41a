"""Claims of volumes: which a pod uses, what is wrong with one, and how far it has come."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.core import PersistentVolumeClaim
from shoal.api.storage import StorageClass
from shoal.scheduler.storage import ClaimUse, claim_problem, claim_uses, is_bound, is_delayed
from tests.scheduler.needed_objects import LATE, SOON, a_claim, a_class, a_user, claims

OWN: dict[str, Any] = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}


def test_a_pod_uses_the_claims_that_it_names_and_those_made_for_it_each_once() -> None:
    pod = a_user(
        "web", volumes=[*claims("data"), OWN, {"name": "more", "persistentVolumeClaim": {"claimName": "data"}}]
    )
    assert claim_uses(pod) == (ClaimUse("data", is_own=False), ClaimUse("web-scratch", is_own=True))


@pytest.mark.parametrize(
    ("use", "claim", "said"),
    [
        pytest.param(("data", False), None, "claim data does not exist", id="missing"),
        pytest.param(("web-scratch", True), None, "claim web-scratch is still to be made", id="not made yet"),
        pytest.param(
            ("data", False), a_claim("data", phase="Lost", bound_to="pv"), "has lost its volume pv", id="lost"
        ),
        pytest.param(("data", False), a_claim("data", deleted=True), "claim data is being deleted", id="going"),
        pytest.param(("web-scratch", True), a_claim("web-scratch"), "was not made for this pod", id="somebody else's"),
        pytest.param(("web-scratch", True), a_claim("web-scratch", owner="uid-web"), "", id="its own"),
        pytest.param(("data", False), a_claim("data"), "", id="there"),
    ],
)
def test_what_is_wrong_with_a_claim_is_said(
    use: tuple[str, bool], claim: PersistentVolumeClaim | None, said: str
) -> None:
    problem = claim_problem(a_user("web"), ClaimUse(*use), claim)
    assert said in problem
    assert bool(problem) == bool(said)


@pytest.mark.parametrize(
    ("claim", "is_it"),
    [
        pytest.param(a_claim("c", bound_to="pv"), True, id="bound"),
        pytest.param(a_claim("c"), False, id="waiting"),
        pytest.param(a_claim("c", bound_to="pv", phase="Pending"), False, id="named by a person"),
        pytest.param(
            a_claim("c", bound_to="pv", phase="Pending", annotations={"pv.kubernetes.io/bind-completed": "yes"}),
            True,
            id="bound, and its phase is not written yet",
        ),
    ],
)
def test_a_claim_is_bound_once_it_has_its_volume_for_good(claim: PersistentVolumeClaim, is_it: bool) -> None:
    assert is_bound(claim) is is_it


@pytest.mark.parametrize(
    ("claim", "storage_class", "is_it"),
    [
        pytest.param(a_claim("c"), a_class("late", mode=LATE), True, id="waits for its consumer"),
        pytest.param(a_claim("c"), a_class("late", mode=SOON), False, id="bound at once"),
        pytest.param(a_claim("c"), None, False, id="no class"),
        pytest.param(a_claim("c", bound_to="pv", phase="Pending"), a_class("late"), False, id="names its volume"),
    ],
)
def test_a_claim_waits_for_its_consumer_where_its_class_says_so(
    claim: PersistentVolumeClaim, storage_class: StorageClass | None, is_it: bool
) -> None:
    assert is_delayed(claim, storage_class) is is_it
