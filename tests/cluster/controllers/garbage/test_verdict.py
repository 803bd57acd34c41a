"""What becomes of an object by the standing of its owners, and the patches that follow from it."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.meta import ObjectMeta, OwnerReference
from shoal.cluster.controllers.garbage import edits
from shoal.cluster.controllers.garbage.absence import Absent, Coordinates
from shoal.cluster.controllers.garbage.verdict import (
    FOREGROUND,
    ORPHAN,
    Delete,
    Detach,
    Keep,
    Standing,
    Verdict,
    verdict,
)

SOLID, DANGLING, WAITING = Standing.SOLID, Standing.DANGLING, Standing.WAITING


@pytest.mark.parametrize(
    ("owners", "more", "expected"),
    [
        pytest.param({}, {}, Keep(), id="nobody owns it"),
        pytest.param({"a": SOLID}, {}, Keep(), id="its owner is there"),
        pytest.param({"a": DANGLING}, {}, Delete("Background"), id="its owner is gone"),
        pytest.param({"a": DANGLING, "b": DANGLING}, {}, Delete("Background"), id="all owners are gone"),
        pytest.param({"a": DANGLING, "b": SOLID}, {}, Detach(frozenset("a")), id="one owner is left"),
        pytest.param({"a": WAITING, "b": SOLID}, {}, Detach(frozenset("a")), id="one waits, one is left"),
        pytest.param(
            {"a": WAITING, "b": DANGLING, "c": SOLID}, {}, Detach(frozenset("ab")), id="one waits, one is gone"
        ),
        pytest.param({"a": WAITING}, {}, Delete("Background"), id="an owner waits for a leaf"),
        pytest.param({"a": WAITING}, {"dependents": True}, Delete("Foreground"), id="an owner waits for a branch"),
        pytest.param(
            {"a": WAITING},
            {"dependents": True, "waiting": True},
            Delete("Foreground", unblock=True),
            id="two may wait for each other",
        ),
        pytest.param({"a": DANGLING}, {"dependents": True}, Delete("Background"), id="a branch without an owner"),
        pytest.param({"a": DANGLING}, {"finalizers": [ORPHAN]}, Delete("Orphan"), id="it asks to orphan"),
        pytest.param({"a": DANGLING}, {"finalizers": [FOREGROUND]}, Delete("Foreground"), id="it asks to wait"),
    ],
)
def test_an_object_goes_with_the_last_of_its_owners(
    owners: dict[str, Standing], more: dict[str, Any], expected: Verdict
) -> None:
    found = verdict(
        owners,
        more.get("finalizers", []),
        has_dependents=more.get("dependents", False),
        has_waiting_dependents=more.get("waiting", False),
    )
    assert found == expected


def owned(*owners: str, finalizers: tuple[str, ...] = ()) -> ObjectMeta:
    """Metadata with owners; one in capitals is blocked."""
    references = [
        OwnerReference(api_version="v1", kind="Pod", name=uid, uid=uid, block_owner_deletion=uid.isupper())
        for uid in owners
    ]
    return ObjectMeta(uid="me", owner_references=references, finalizers=list(finalizers))


def test_an_edit_tests_what_it_rests_on_and_touches_nothing_else() -> None:
    assert edits.without_owners(owned("a", "b", "c"), {"a", "c"}) == [
        {"op": "test", "path": "/metadata/uid", "value": "me"},
        {"op": "test", "path": "/metadata/ownerReferences/0/uid", "value": "a"},
        {"op": "test", "path": "/metadata/ownerReferences/2/uid", "value": "c"},
        {"op": "remove", "path": "/metadata/ownerReferences/2"},
        {"op": "remove", "path": "/metadata/ownerReferences/0"},
    ]
    assert edits.without_finalizer(owned(finalizers=("x", ORPHAN)), ORPHAN)[1:] == [
        {"op": "test", "path": "/metadata/finalizers/1", "value": ORPHAN},
        {"op": "remove", "path": "/metadata/finalizers/1"},
    ]
    assert edits.unblocked(owned("a", "B"))[1:] == [
        {"op": "test", "path": "/metadata/ownerReferences/1/uid", "value": "B"},
        {"op": "replace", "path": "/metadata/ownerReferences/1/blockOwnerDeletion", "value": False},
    ]


def test_where_there_is_nothing_to_edit_nothing_is_sent() -> None:
    assert edits.without_owners(owned("a"), {"b"}) == []
    assert edits.without_finalizer(owned("a"), ORPHAN) == []
    assert edits.unblocked(owned("a")) == []


def test_absent_owners_are_remembered_up_to_a_limit() -> None:
    absent = Absent(remembered=2)
    owners = [Coordinates("v1", "Pod", "default", name, name) for name in "abc"]
    for owner in owners:
        absent.add(owner)
    assert [absent.find(owner) for owner in owners] == [None, *owners[1:]]


def test_an_absent_cluster_scoped_owner_is_known_from_every_namespace() -> None:
    absent = Absent()
    node = Coordinates("v1", "Node", "", "n", "uid")
    absent.add(node)
    assert absent.find(node._replace(namespace="default")) == node
    assert absent.find(node._replace(uid="other")) is None
