import msgspec
import pytest

from shoal.api.meta.objects import Object, ObjectMeta, OwnerReference, PartialObject
from shoal.api.meta.ownership import (
    AlreadyControlled,
    is_controlled_by,
    is_left_behind,
    is_owned_by,
    owner_reference,
    with_owner,
    without_owner,
)
from shoal.api.meta.resource import Resource

JOBS = Resource(type=Object, group="batch", version="v1", kind="Job", plural="jobs")
NODES = Resource(type=PartialObject, group="", version="v1", kind="Node", plural="nodes", namespaced=False)


def an_owner(uid: str, *, controller: bool = False, kind: str = "Job", name: str = "train") -> OwnerReference:
    return OwnerReference(api_version="batch/v1", kind=kind, name=name, uid=uid, controller=controller)


def test_a_reference_names_the_object_by_its_resource_and_uid() -> None:
    # Items of a list carry no kind of their own.
    job = Object(metadata=ObjectMeta(name="train", namespace="default", uid="u1"))
    assert msgspec.to_builtins(owner_reference(job, JOBS)) == {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": "train",
        "uid": "u1",
        "controller": True,
        "blockOwnerDeletion": True,
    }


def test_a_reference_can_own_without_controlling() -> None:
    node = PartialObject(metadata=ObjectMeta(name="n1", uid="u1"))
    reference = owner_reference(node, NODES, controller=False, block_owner_deletion=False)
    assert reference == OwnerReference(api_version="v1", kind="Node", name="n1", uid="u1")


def test_an_object_that_the_server_never_saw_cannot_own() -> None:
    with pytest.raises(ValueError, match="Job 'train' has no uid"):
        owner_reference(Object(metadata=ObjectMeta(name="train")), JOBS)


def test_owners_are_known_by_uid() -> None:
    pod = ObjectMeta(name="p", owner_references=[an_owner("u1"), an_owner("u2", controller=True)])
    assert is_owned_by(pod, "u1")
    assert is_owned_by(pod, "u2")
    assert not is_owned_by(pod, "u3")
    assert is_controlled_by(pod, "u2")
    assert not is_controlled_by(pod, "u1")
    assert not is_controlled_by(ObjectMeta(), "u1")


def test_an_owner_is_added_at_the_end() -> None:
    before = [an_owner("u1")]
    assert with_owner(before, an_owner("u2", controller=True)) == [an_owner("u1"), an_owner("u2", controller=True)]
    assert before == [an_owner("u1")]


def test_an_owner_that_is_there_is_replaced_in_its_place() -> None:
    before = [an_owner("u1", controller=True), an_owner("u2")]
    assert with_owner(before, an_owner("u1")) == [an_owner("u1"), an_owner("u2")]


def test_nothing_new_gives_the_same_list() -> None:
    before = [an_owner("u1", controller=True), an_owner("u2")]
    assert with_owner(before, an_owner("u1", controller=True)) is before
    assert with_owner(before, an_owner("u2")) is before
    assert without_owner(before, "u3") is before


@pytest.mark.parametrize(
    "present",
    [
        pytest.param([an_owner("u1", controller=True, kind="JobSet", name="set")], id="new"),
        pytest.param(
            [an_owner("u2"), an_owner("u1", controller=True, kind="JobSet", name="set")], id="already an owner"
        ),
    ],
)
def test_a_second_controller_is_refused_naming_both(present: list[OwnerReference]) -> None:
    with pytest.raises(AlreadyControlled) as refusal:
        with_owner(present, an_owner("u2", controller=True))
    assert str(refusal.value).startswith(
        "Job 'train' (uid u2) cannot be the controller: JobSet 'set' (uid u1) already is; remove that reference first"
    )
    assert refusal.value.present.uid == "u1"
    assert refusal.value.refused.uid == "u2"


def test_a_controller_created_anew_under_its_old_name_does_not_adopt() -> None:
    with pytest.raises(AlreadyControlled):
        with_owner([an_owner("old", controller=True)], an_owner("new", controller=True))


def test_an_owner_is_removed_by_uid() -> None:
    assert without_owner([an_owner("u1"), an_owner("u2")], "u1") == [an_owner("u2")]


@pytest.mark.parametrize(
    ("holder", "expected"),
    [
        pytest.param(an_owner("earlier", controller=True), True, id="an earlier one of the name"),
        pytest.param(an_owner("u1", controller=True), False, id="this very one"),
        pytest.param(an_owner("earlier"), False, id="one that does not manage it"),
        pytest.param(an_owner("earlier", controller=True, name="other"), False, id="one of another name"),
        pytest.param(an_owner("earlier", controller=True, kind="CronJob"), False, id="one of another kind"),
    ],
)
def test_what_an_earlier_object_of_the_name_managed_is_left_behind(holder: OwnerReference, expected: bool) -> None:
    metadata = ObjectMeta(name="train-1", owner_references=[holder])
    assert is_left_behind(metadata, an_owner("u1", controller=True)) is expected
