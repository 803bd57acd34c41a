"""Which volume suits a claim."""

from __future__ import annotations

import pytest

from shoal.api.core import PersistentVolume, PersistentVolumeClaim
from shoal.scheduler.storage import best_volume, suits
from tests.scheduler.needed_objects import a_claim, a_volume

PLAIN = a_claim("data")


@pytest.mark.parametrize(
    ("volume", "claim", "does_it"),
    [
        pytest.param(a_volume("v"), PLAIN, True, id="equal"),
        pytest.param(a_volume("v", size="2Gi"), PLAIN, True, id="larger"),
        pytest.param(a_volume("v", size="512Mi"), PLAIN, False, id="too small"),
        pytest.param(a_volume("v", of="other"), PLAIN, False, id="of another class"),
        pytest.param(a_volume("v", phase="Released"), PLAIN, False, id="not available"),
        pytest.param(a_volume("v", claimed_by="other"), PLAIN, False, id="somebody else's"),
        pytest.param(a_volume("v", claimed_by="data", phase="Pending"), PLAIN, True, id="reserved by name"),
        pytest.param(a_volume("v", claimed_by="data", claim_uid="uid-data"), PLAIN, True, id="reserved for this one"),
        pytest.param(a_volume("v", claimed_by="data", claim_uid="old"), PLAIN, False, id="reserved for an earlier one"),
        pytest.param(a_volume("v", volumeMode="Block"), PLAIN, False, id="a block device"),
        pytest.param(a_volume("v"), a_claim("data", modes=["ReadWriteMany"]), False, id="no such access"),
        pytest.param(
            a_volume("v", modes=["ReadWriteOnce", "ReadWriteMany"]),
            a_claim("data", modes=["ReadWriteMany"]),
            True,
            id="such access and more",
        ),
        pytest.param(
            a_volume("v"), a_claim("data", selector={"matchLabels": {"disk": "fast"}}), False, id="not selected"
        ),
        pytest.param(
            a_volume("v", labels={"disk": "fast"}),
            a_claim("data", selector={"matchLabels": {"disk": "fast"}}),
            True,
            id="selected",
        ),
        pytest.param(
            a_volume("v", volumeAttributesClassName="gold"), PLAIN, False, id="of another class of attributes"
        ),
    ],
)
def test_a_volume_suits_a_claim_or_not(volume: PersistentVolume, claim: PersistentVolumeClaim, does_it: bool) -> None:
    assert suits(volume, claim) is does_it


def test_the_smallest_that_suits_is_taken_and_of_equal_ones_the_first_by_name() -> None:
    found = best_volume(PLAIN, [a_volume("c", size="4Gi"), a_volume("b", size="2Gi"), a_volume("a", size="2Gi")])
    assert found is not None
    assert found.metadata.name == "a"


def test_one_that_is_reserved_for_the_claim_is_taken_though_another_is_smaller() -> None:
    found = best_volume(PLAIN, [a_volume("small"), a_volume("kept", size="9Gi", claimed_by="data")])
    assert found is not None
    assert found.metadata.name == "kept"


def test_what_others_are_to_have_is_not_taken() -> None:
    assert best_volume(PLAIN, [a_volume("v")], taken=["v"]) is None
