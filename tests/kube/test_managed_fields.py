"""Whether an apply would change anything, told from an object and our record in it."""

from typing import Any

import pytest

from shoal.kube.managed_fields import difference, fields_of, owned_part, without

LIVE = {
    "metadata": {"name": "web", "labels": {"app": "web", "foreign": "x"}},
    "spec": {
        "replicas": 3,
        "containers": [
            {
                "name": "main",
                "image": "one",
                "resources": {"requests": {"cpu": "1"}},
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "pullPolicy": "Always",
            },
            {"name": "sidecar", "image": "injected"},
        ],
        "args": ["a", "b"],
        "finalizers": ["ours", "theirs"],
    },
}
OWNED: dict[str, Any] = {
    "f:metadata": {"f:labels": {"f:app": {}}},
    "f:spec": {
        "f:replicas": {},
        "f:containers": {
            'k:{"name":"main"}': {
                ".": {},
                "f:name": {},
                "f:image": {},
                "f:resources": {"f:requests": {"f:cpu": {}}},
                "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}},
            }
        },
        "f:args": {},
        "f:finalizers": {'v:"ours"': {}},
    },
}


def wanted(**spec: Any) -> dict[str, Any]:
    main = {
        "name": "main",
        "image": "one",
        "resources": {"requests": {"cpu": "1000m"}},
        "ports": [{"containerPort": 80}],
    }
    base = {"replicas": 3, "containers": [main], "args": ["a", "b"], "finalizers": ["ours"]}
    return {
        "apiVersion": "v1",
        "kind": "Web",
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {key: value for key, value in (base | spec).items() if value is not None},
    }


def main_with(**changes: Any) -> list[dict[str, Any]]:
    main = wanted()["spec"]["containers"][0]
    return [{key: value for key, value in (main | changes).items() if value is not None}]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        pytest.param({}, None, id="all is as applied, beside what others added"),
        pytest.param({"replicas": 4}, "spec.replicas", id="a value changed"),
        pytest.param({"replicas": None}, "spec.replicas", id="a field of ours is not wanted any more"),
        pytest.param({"paused": True}, "spec.paused", id="a new field"),
        pytest.param({"note": ""}, "spec.note", id="an empty new field, which may mean something"),
        pytest.param({"args": []}, "spec.args", id="an atomic list is to be empty"),
        pytest.param(
            {"containers": main_with(ports=[{"containerPort": 80, "protocol": "UDP"}])},
            'spec.containers[{"name":"main"}].ports[1]',
            id="another key",
        ),
        pytest.param({"paused": False}, "spec.paused", id="a zero value that is not ours yet"),
        pytest.param({"args": ["b", "a"]}, "spec.args", id="an atomic list in another order"),
        pytest.param({"finalizers": ["ours", "more"]}, "spec.finalizers", id="one more value in a set"),
        pytest.param({"finalizers": []}, "spec.finalizers", id="a value of ours left a set"),
        pytest.param(
            {"containers": main_with(image="two")}, 'spec.containers[{"name":"main"}].image', id="inside an element"
        ),
        pytest.param(
            {"containers": [*main_with(), {"name": "new"}]}, "spec.containers[0]", id="a new element of a keyed list"
        ),
        pytest.param({"containers": []}, 'spec.containers[{"name":"main"}]', id="an element of ours is not wanted"),
        pytest.param(
            {"containers": main_with(resources={"requests": {"cpu": "2"}})},
            'spec.containers[{"name":"main"}].resources.requests.cpu',
            id="another amount",
        ),
    ],
)
def test_a_difference_is_found_where_an_apply_would_change_something(spec: dict[str, Any], path: str | None) -> None:
    assert difference(wanted(**spec), LIVE, OWNED) == path


def test_a_field_that_another_manager_took_is_a_difference() -> None:
    owned: dict[str, Any] = {"f:metadata": OWNED["f:metadata"], "f:spec": {**OWNED["f:spec"]}}
    del owned["f:spec"]["f:replicas"]
    assert difference(wanted(), LIVE, owned) == "spec.replicas"


def test_a_field_that_somebody_removed_is_a_difference() -> None:
    live = {**LIVE, "metadata": {"name": "web", "labels": {}}}
    assert difference(wanted(), live, OWNED) == "metadata.labels.app"


def test_a_key_that_was_ours_and_is_left_to_its_default_is_a_difference() -> None:
    live = {"ports": [{"containerPort": 80, "protocol": "UDP"}]}
    owned: dict[str, Any] = {
        "f:ports": {'k:{"containerPort":80,"protocol":"UDP"}': {".": {}, "f:containerPort": {}, "f:protocol": {}}}
    }
    assert difference({"ports": [{"containerPort": 80}]}, live, owned) == "ports[1]"


@pytest.mark.parametrize(
    ("wanted", "live", "same"),
    [
        pytest.param({"fieldPath": "a"}, {"fieldPath": "a", "apiVersion": "v1"}, True, id="with the server's default"),
        pytest.param({"fieldPath": "a"}, {"fieldPath": "a", "apiVersion": "v2"}, False, id="with another value"),
        pytest.param({"fieldPath": "a", "selector": {}}, {"fieldPath": "a"}, False, id="without an empty map of ours"),
        pytest.param({"fieldPath": "a", "list": []}, {"fieldPath": "a"}, True, id="without an empty list of ours"),
        pytest.param({}, {"fieldPath": "a"}, False, id="that is to be empty"),
    ],
)
def test_a_value_that_is_owned_whole_is_compared_whole(wanted: Any, live: Any, same: bool) -> None:
    found = difference({"fieldRef": wanted}, {"fieldRef": live}, {"f:fieldRef": {}})
    assert found == (None if same else "fieldRef")


def test_a_zero_value_that_the_server_dropped_is_no_difference() -> None:
    owned: dict[str, Any] = {"f:spec": {"f:paused": {}, "f:data": {}}}
    assert difference({"spec": {"paused": False, "data": {}}}, {"spec": {}}, owned) is None


@pytest.mark.parametrize(
    ("part", "held"),
    [
        pytest.param({"spec": {"replicas": 7}}, {"spec": {"replicas": 3}}, id="the live value of a field of ours"),
        pytest.param({"spec": {"paused": True}}, {}, id="a field of nobody"),
        pytest.param({"spec": {"deep": {"er": 1}}}, {}, id="a map of nobody"),
        pytest.param({"spec": {"paused": True, "args": []}}, {"spec": {"args": ["a", "b"]}}, id="one of two"),
        pytest.param({"spec": {"finalizers": ["ours"]}}, {"spec": {"finalizers": ["ours"]}}, id="our value of a set"),
        pytest.param(
            {"spec": {"containers": [{"name": "main"}]}},
            {"spec": {"containers": [LIVE["spec"]["containers"][0]]}},  # type: ignore[index]
            id="our element of a list",
        ),
    ],
)
def test_what_of_an_object_is_ours_is_told_from_the_record(part: dict[str, Any], held: dict[str, Any]) -> None:
    assert owned_part(OWNED, part, LIVE) == held


def test_a_record_less_some_fields_is_that_of_an_object_without_them() -> None:
    part = {"metadata": {"labels": {"app": "web"}}, "spec": {"replicas": 1, "finalizers": []}}
    left = without(OWNED, part)
    rest = wanted(replicas=None, finalizers=None)
    assert difference({"spec": rest["spec"]}, LIVE, left) is None
    assert "f:metadata" not in left
    assert difference({"spec": wanted(finalizers=None)["spec"]}, LIVE, left) == "spec.replicas"


def test_one_and_true_are_not_the_same() -> None:
    assert difference({"spec": {"on": True}}, {"spec": {"on": 1}}, {"f:spec": {"f:on": {}}}) == "spec.on"


def test_only_amounts_are_compared_as_amounts() -> None:
    def compared(path: str) -> str | None:
        wanted: Any = "1000m"
        live: Any = "1"
        owned: dict[str, Any] = {}
        for part in reversed(path.split("/")):
            wanted, live, owned = {part: wanted}, {part: live}, {f"f:{part}": owned}
        return difference(wanted, live, owned)

    assert compared("spec/resources/requests/cpu") is None
    assert compared("spec/hard/requests.cpu") is None
    for path in ("data/size", "data/limits", "data/limits.conf", "metadata/labels/limits", "spec/limits"):
        assert compared(path) is not None, path


def test_our_record_is_the_applied_one_of_our_name_and_subresource() -> None:
    def entry(manager: str, operation: str, fields: str, **more: str) -> dict[str, Any]:
        return {"manager": manager, "operation": operation, "fieldsV1": {fields: {}}, **more}

    entries = [
        entry("shoal", "Update", "f:update"),
        entry("other", "Apply", "f:other"),
        entry("shoal", "Apply", "f:status", subresource="status"),
        entry("shoal", "Apply", "f:spec"),
    ]
    content = {"metadata": {"managedFields": entries}}
    assert fields_of(content, "shoal") == {"f:spec": {}}
    assert fields_of(content, "shoal", subresource="status") == {"f:status": {}}
    assert fields_of(content, "nobody") is None
