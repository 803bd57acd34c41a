"""The store and its indexes agree at all times."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.api.meta.objects import ObjectMeta, OwnerReference, PartialObject
from shoal.kube.store import BY_NAMESPACE, BY_OWNER, Key, Store, by_label, by_namespace, by_owner

INDEXES = {BY_NAMESPACE: by_namespace, BY_OWNER: by_owner, "team": by_label("team")}


def thing(name: str, *, namespace: str = "default", team: str = "", owner: str = "") -> PartialObject:
    owners = [OwnerReference(api_version="v1", kind="Thing", name=owner, uid=f"uid-{owner}")] if owner else []
    labels = {"team": team} if team else {}
    return PartialObject(
        metadata=ObjectMeta(name=name, namespace=namespace, labels=labels, owner_references=owners, uid=f"uid-{name}")
    )


def test_objects_are_found_by_label_owner_and_namespace() -> None:
    store: Store[PartialObject] = Store(INDEXES)
    store.put(thing("a", team="red", owner="x"))
    store.put(thing("b", team="red", namespace="other"))
    store.put(thing("c", team="blue", owner="x"))
    assert [found.metadata.name for found in store.find("team", ("default", "red"))] == ["a"]
    assert [found.metadata.name for found in store.find(BY_OWNER, "uid-x")] == ["a", "c"]
    assert [found.metadata.name for found in store.items("other")] == ["b"]


def test_an_object_moves_in_its_indexes_when_it_changes() -> None:
    store: Store[PartialObject] = Store(INDEXES)
    store.put(thing("a", team="red"))
    before = store.put(thing("a", team="blue"))
    assert before is not None
    assert before.metadata.labels == {"team": "red"}
    assert store.find("team", ("default", "red")) == []
    assert list(store.values("team")) == [("default", "blue")]


def test_an_index_added_late_covers_what_is_there() -> None:
    store: Store[PartialObject] = Store()
    store.put(thing("a", team="red"))
    function = by_label("team")
    store.add_index("team", function)
    store.add_index("team", function)
    assert len(store.find("team", ("default", "red"))) == 1
    with pytest.raises(ValueError, match="another function"):
        store.add_index("team", by_label("color"))


def test_an_unknown_index_is_named() -> None:
    with pytest.raises(KeyError, match="no index 'color'"):
        Store[PartialObject]().find("color", "red")


names = st.sampled_from(["a", "b", "c"])
objects = st.builds(thing, names, namespace=names, team=names, owner=names)


@given(st.lists(st.one_of(objects, st.builds(Key, names, names)), max_size=40))
def test_indexes_always_equal_a_full_search(steps: list[PartialObject | Key]) -> None:
    store: Store[PartialObject] = Store(INDEXES)
    for step in steps:
        if isinstance(step, Key):
            store.remove(step)
        else:
            store.put(step)
    for name, function in INDEXES.items():
        for value in {value for found in store for value in function(found)} | set(store.values(name)):
            searched = [found for found in store if value in list(function(found))]
            assert sorted(map(repr, store.find(name, value))) == sorted(map(repr, searched))
            assert searched, "an index must not remember values that nothing has"
