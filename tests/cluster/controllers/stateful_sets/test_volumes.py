"""Who owns the claims of a StatefulSet's pods, under each policy."""

from __future__ import annotations

import pytest

from shoal.api.apps import StatefulSet, StatefulSetSpec
from shoal.api.apps.stateful_sets import ClaimRetentionPolicy
from shoal.api.core import PersistentVolumeClaim, Pod
from shoal.api.meta import ObjectMeta, OwnerReference
from shoal.cluster.controllers.stateful_sets.volumes import (
    changed_owners,
    is_conflicting,
    is_stale,
    may_have_claim,
)

SET = OwnerReference(
    api_version="apps/v1", kind="StatefulSet", name="web", uid="set", controller=True, block_owner_deletion=True
)
POD = OwnerReference(api_version="v1", kind="Pod", name="web-1", uid="pod", controller=True, block_owner_deletion=True)
OTHER = OwnerReference(api_version="v1", kind="ConfigMap", name="other", uid="other")
FOREIGN = OwnerReference(api_version="x/v1", kind="Disk", name="disk", uid="disk", controller=True)
EARLIER = OwnerReference(api_version="v1", kind="Pod", name="web-1", uid="earlier", controller=True)


def a_set(*, scaled: str, deleted: str) -> StatefulSet:
    return StatefulSet(
        metadata=ObjectMeta(name="web", namespace="default", uid="set"),
        spec=StatefulSetSpec(
            volume_claim_templates=[{"metadata": {"name": "data"}}],
            persistent_volume_claim_retention_policy=ClaimRetentionPolicy(when_scaled=scaled, when_deleted=deleted),
        ),
    )


def a_claim(*owners: OwnerReference) -> PersistentVolumeClaim:
    return PersistentVolumeClaim(metadata=ObjectMeta(name="data-web-1", owner_references=list(owners)))


A_POD = Pod(metadata=ObjectMeta(name="web-1", namespace="default", uid="pod"))
BYSTANDER = OwnerReference(api_version="apps/v1", kind="StatefulSet", name="web", uid="set")


@pytest.mark.parametrize(
    ("scaled", "deleted", "wanted", "owners", "expected"),
    [
        pytest.param("Retain", "Retain", True, [], None, id="kept: nobody's"),
        pytest.param("Retain", "Retain", True, [SET, OTHER], [OTHER], id="kept: the set lets go"),
        pytest.param("Retain", "Delete", True, [], [SET], id="goes with the set"),
        pytest.param("Retain", "Delete", False, [SET], None, id="goes with the set, also when scaled down"),
        pytest.param("Delete", "Retain", True, [], None, id="goes when scaled down: not yet"),
        pytest.param("Delete", "Retain", False, [OTHER], [OTHER, POD], id="goes when scaled down: now"),
        pytest.param("Delete", "Retain", True, [POD], [], id="wanted again"),
        pytest.param("Delete", "Delete", True, [], [SET], id="both: with the set"),
        pytest.param("Delete", "Delete", False, [SET], [POD], id="both: handed to the pod"),
        pytest.param("Delete", "Delete", True, [POD], [SET], id="both: handed back"),
        pytest.param("Retain", "Delete", True, [BYSTANDER], [SET], id="an owner becomes the controller"),
        pytest.param("Retain", "Delete", True, [FOREIGN], None, id="somebody else's"),
        pytest.param("Retain", "Delete", True, [FOREIGN, BYSTANDER], [FOREIGN], id="somebody else's: we let go"),
        pytest.param("Delete", "Delete", True, [EARLIER], None, id="an earlier pod's"),
    ],
)
def test_claims_are_owned_by_policy(
    scaled: str, deleted: str, wanted: bool, owners: list[OwnerReference], expected: list[OwnerReference] | None
) -> None:
    found = changed_owners(a_claim(*owners), a_set(scaled=scaled, deleted=deleted), A_POD, is_wanted=wanted)
    assert found == expected


def test_a_claim_of_an_earlier_pod_is_waited_for() -> None:
    deleting, retaining = a_set(scaled="Delete", deleted="Retain"), a_set(scaled="Retain", deleted="Delete")
    assert is_stale(deleting, "web-1", 1, lambda name: a_claim(EARLIER))
    assert not is_stale(deleting, "web-1", 1, lambda name: a_claim(SET))
    assert not is_stale(deleting, "web-1", 1, lambda name: None)
    assert not is_stale(retaining, "web-1", 1, lambda name: a_claim(EARLIER))


def test_a_claim_that_somebody_else_manages_conflicts_only_with_a_policy_that_deletes() -> None:
    assert is_conflicting(a_claim(FOREIGN), a_set(scaled="Delete", deleted="Retain"), A_POD)
    assert not is_conflicting(a_claim(SET, OTHER), a_set(scaled="Delete", deleted="Retain"), A_POD)
    assert not is_conflicting(a_claim(FOREIGN), a_set(scaled="Retain", deleted="Retain"), A_POD)


def test_a_claim_is_known_by_its_name() -> None:
    stateful_set = a_set(scaled="Retain", deleted="Retain")
    assert may_have_claim(stateful_set, "data-web-12")
    assert not may_have_claim(stateful_set, "data-web")
    assert not may_have_claim(stateful_set, "logs-web-1")
