"""What a write does to the managers of an object, told in small stories."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from shoal.cluster.apiserver.apply import apply, keep_times, record_update
from shoal.cluster.apiserver.kinds.tables import type_schema
from shoal.cluster.apiserver.refusals import Refused
from shoal.cluster.apiserver.schema import ListType, Schema

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
CONFIG_MAP = type_schema("core.v1.ConfigMap")
POD = type_schema("core.v1.Pod")
STATUS = (("status",),)

Object = dict[str, Any]


def config_map(data: dict[str, str] | None = None, **metadata: Any) -> Object:
    out: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", **metadata}}
    return out if data is None else {**out, "data": data}


def stored(data: dict[str, str], *, by: str = "ann", now: str = EARLY) -> Object:
    """A ConfigMap as it is after a create."""
    new = config_map(data)
    record_update(CONFIG_MAP, None, new, manager=by, subresource="", now=now)
    new["metadata"]["uid"] = "1"
    return new


def updated(live: Object, data: dict[str, str], *, by: str, now: str = LATE, **metadata: Any) -> Object:
    new = config_map(data, uid="1", **metadata)
    record_update(CONFIG_MAP, live, new, manager=by, subresource="", now=now)
    return new


def applied(
    live: Object | None, data: dict[str, Any] | None, *, by: str, force: bool = False, now: str = LATE
) -> Object:
    return apply(CONFIG_MAP, live, config_map(data), manager=by, force=force, subresource="", now=now)


def managers(thing: Object) -> dict[str, Any]:
    return {entry["manager"]: entry["fieldsV1"] for entry in thing["metadata"].get("managedFields", [])}


def refusal(attempt: Any) -> Refused:
    with pytest.raises(Refused) as raised:
        attempt()
    return raised.value


def test_a_creator_owns_all_but_what_names_the_object() -> None:
    new = config_map({"a": "1"}, namespace="n", uid="u", labels={"l": "x"}, resourceVersion="1")
    record_update(CONFIG_MAP, None, new, manager="ann", subresource="", now=EARLY)
    fields = {"f:metadata": {"f:labels": {".": {}, "f:l": {}}}, "f:data": {".": {}, "f:a": {}}}
    assert new["metadata"]["managedFields"] == [
        {
            "manager": "ann",
            "operation": "Update",
            "apiVersion": "v1",
            "time": EARLY,
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
        }
    ]


def test_what_a_created_object_has_anyway_is_not_owned() -> None:
    new: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "a", "image": "x", "resources": {}}]},
        "status": {},
    }
    record_update(POD, None, new, manager="ann", subresource="", now=EARLY, resets=STATUS)
    container: Object = {".": {}, "f:name": {}, "f:image": {}, "f:resources": {}}
    assert managers(new) == {"ann": {"f:spec": {"f:containers": {'k:{"name":"a"}': container}}}}


def test_a_write_that_changes_nothing_leaves_managers_and_times() -> None:
    live = stored({"a": "1"})
    assert updated(live, {"a": "1"}, by="ben")["metadata"]["managedFields"] == live["metadata"]["managedFields"]


def test_who_changes_a_field_takes_it_and_who_removes_one_leaves_it_to_nobody() -> None:
    live = stored({"a": "1", "b": "1", "c": "1"})
    new = updated(live, {"a": "2", "b": "1"}, by="ben")
    assert managers(new) == {"ann": {"f:data": {".": {}, "f:b": {}}}, "ben": {"f:data": {"f:a": {}}}}
    assert [entry["time"] for entry in new["metadata"]["managedFields"]] == [EARLY, LATE]


def test_the_live_object_is_never_touched() -> None:
    live = stored({"a": "1", "b": "1"})
    before = copy.deepcopy(live)
    updated(live, {"a": "2"}, by="ben")
    new = applied(live, {"a": "3"}, by="cat", force=True)
    new["data"]["z"] = "1"
    new["metadata"]["name"] = "other"
    assert live == before


def test_appliers_of_one_value_share_it() -> None:
    live = applied(None, {"a": "1"}, by="ann", now=EARLY)
    new = applied(live, {"a": "1"}, by="ben")
    assert managers(new) == {"ben": {"f:data": {"f:a": {}}}, "ann": {"f:data": {"f:a": {}}}}
    # The object has not changed, so that there is no time at which it did.
    assert [entry.get("time") for entry in new["metadata"]["managedFields"]] == [None, EARLY]


def test_a_field_that_its_last_applier_gives_up_goes() -> None:
    live = applied(None, {"a": "1", "b": "1"}, by="ann")
    shared = applied(live, {"b": "1"}, by="ben")
    assert applied(shared, {}, by="ann")["data"] == {"b": "1"}
    assert not applied(live, {}, by="ann").get("data")


def test_a_conflict_names_the_other_manager_and_the_field() -> None:
    live = updated(stored({"a": "1"}), {"a": "2"}, by="kubectl")
    found = refusal(lambda: applied(live, {"a": "3"}, by="ann"))
    assert str(found) == 'Apply failed with 1 conflict: conflict with "kubectl" using v1: .data.a'
    cause = found.status.details.causes[0]
    assert (found.status.code, found.status.reason) == (409, "Conflict")
    assert (cause.reason, cause.message, cause.field) == (
        "FieldManagerConflict",
        'conflict with "kubectl" using v1',
        ".data.a",
    )


def test_several_conflicts_are_listed_by_manager() -> None:
    live = applied(None, {"a": "1", "b": "1"}, by="ann")
    live = applied(live, {"c": "1"}, by="ben")
    found = refusal(lambda: applied(live, {"a": "2", "b": "2", "c": "2"}, by="cat"))
    assert str(found) == (
        'Apply failed with 3 conflicts: conflicts with "ann":\n- .data.a\n- .data.b\nconflicts with "ben":\n- .data.c'
    )


def test_force_takes_fields_from_others() -> None:
    live = applied(None, {"a": "1", "b": "1"}, by="ann")
    new = applied(live, {"a": "2"}, by="ben", force=True)
    assert new["data"] == {"a": "2", "b": "1"}
    assert managers(new) == {"ann": {"f:data": {"f:b": {}}}, "ben": {"f:data": {"f:a": {}}}}


def test_the_first_apply_finds_an_owner_for_what_nobody_tracked() -> None:
    live = config_map({"a": "1"}, uid="1")
    assert managers(updated(live, {"a": "2"}, by="ann")) == {}
    new = applied(live, {"b": "1"}, by="ben")
    assert managers(new) == {"before-first-apply": {"f:data": {".": {}, "f:a": {}}}, "ben": {"f:data": {"f:b": {}}}}


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        pytest.param([], {}, id="empty-list"),
        pytest.param([{}], {}, id="empty-entry"),
        pytest.param(None, {"ann": {"f:data": {".": {}, "f:a": {}}}}, id="null"),
        pytest.param([{"operation": "Nonsense"}], {"ann": {"f:data": {".": {}, "f:a": {}}}}, id="unreadable"),
    ],
)
def test_clients_may_forget_managers_but_not_break_them(sent: Any, kept: Object) -> None:
    assert managers(updated(stored({"a": "1"}), {"a": "1"}, by="ben", managedFields=sent)) == kept


def test_a_subresource_ignores_managers_that_are_sent() -> None:
    live = stored({"a": "1"})
    new = config_map({"a": "1"}, uid="1", managedFields=[{}])
    record_update(CONFIG_MAP, live, new, manager="ben", subresource="status", now=LATE)
    assert managers(new) == managers(live)


def test_a_write_does_not_own_what_its_endpoint_resets() -> None:
    schema = Schema(
        type="object",
        properties={
            part: Schema(type="object", properties={"x": Schema(type="integer")}) for part in ("spec", "status")
        },
    )
    base: Object = {"apiVersion": "e/v1", "kind": "T", "metadata": {"name": "t"}}
    live = {**base, "metadata": {"name": "t"}, "spec": {"x": 1}, "status": {"x": 1}}
    record_update(schema, None, live, manager="ann", subresource="", now=EARLY, resets=STATUS)
    assert managers(live) == {"ann": {"f:spec": {".": {}, "f:x": {}}}}
    new = copy.deepcopy(live) | {"status": {"x": 2}, "spec": {"x": 2}}
    resets = (("spec",), ("metadata",))
    record_update(schema, live, new, manager="ann", subresource="status", now=LATE, resets=resets)
    entry = new["metadata"]["managedFields"][1]
    assert (entry["fieldsV1"], entry["subresource"]) == ({"f:status": {"f:x": {}}}, "status")
    assert managers(new) == {"ann": {"f:status": {"f:x": {}}}}
    assert len(new["metadata"]["managedFields"]) == 2


def test_at_most_ten_updaters_are_kept_apart() -> None:
    live = stored({"k0": "x"}, by="m0", now="2026-01-01T00:00:00Z")
    for number in range(1, 12):
        data = {f"k{key}": "x" for key in range(number + 1)}
        live = updated(live, data, by=f"m{number}", now=f"2026-01-01T00:00:{number:02}Z")
    entries = live["metadata"]["managedFields"]
    assert len(entries) == 10
    assert entries[0]["manager"] == "ancient-changes"
    assert entries[0]["time"] == "2026-01-01T00:00:02Z"
    assert entries[0]["fieldsV1"] == {"f:data": {".": {}, "f:k0": {}, "f:k1": {}, "f:k2": {}}}


def test_entries_of_versions_that_are_gone_are_forgotten() -> None:
    live = stored({"a": "1"})
    live["metadata"]["managedFields"][0]["apiVersion"] = "v0"
    new = config_map({"a": "1", "b": "1"}, uid="1")
    record_update(CONFIG_MAP, live, new, manager="ben", subresource="", now=LATE, versions={"v1"})
    assert managers(new) == {"ben": {"f:data": {"f:b": {}}}}


def test_times_are_kept_where_nothing_else_changes() -> None:
    live = stored({"a": "1"})
    new = copy.deepcopy(live)
    new["metadata"]["managedFields"][0]["time"] = LATE
    changed = copy.deepcopy(new) | {"data": {"a": "2"}}
    keep_times(live, new)
    keep_times(live, changed)
    assert new == live
    assert changed["metadata"]["managedFields"][0]["time"] == LATE


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        pytest.param({"metadata": {"managedFields": []}}, 400, "metadata.managedFields must be nil", id="managers"),
        pytest.param(
            {"bogus": 1},
            500,
            "failed to create typed patch object (/c; /v1, Kind=ConfigMap): .bogus: field not declared in schema",
            id="unknown-field",
        ),
        pytest.param(
            {"data": {"a": 1}},
            500,
            "failed to create typed patch object (/c; /v1, Kind=ConfigMap): "
            ".data.a: expected string, got &value.valueUnstructured{Value:1}",
            id="wrong-type",
        ),
        pytest.param(
            {"metadata": {"finalizers": ["a/b", "a/b"]}},
            500,
            "failed to create typed patch object (/c; /v1, Kind=ConfigMap): "
            '.metadata.finalizers: duplicate entries for key [="a/b"]',
            id="duplicate",
        ),
        pytest.param({"kind": "Secret"}, 400, "invalid object type: /v1, Kind=Secret", id="other-kind"),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused(change: Object, code: int, message: str) -> None:
    body = config_map()
    body |= {**change, "metadata": {**body["metadata"], **change.get("metadata", {})}}
    live = stored({"a": "1"})
    found = refusal(lambda: apply(CONFIG_MAP, live, body, manager="a", force=False, subresource="", now=LATE))
    assert (found.status.code, found.status.message) == (code, message)


def test_true_is_not_one_where_any_value_may_be() -> None:
    schema = Schema(type="object", properties={"spec": Schema(preserves_unknown=True)})
    live: Object = {"apiVersion": "e/v1", "kind": "T", "metadata": {"name": "t", "uid": "1"}, "spec": {"a": {"b": 1}}}
    record_update(schema, None, live, manager="ann", subresource="", now=EARLY)
    new = copy.deepcopy(live) | {"spec": {"a": {"b": True}}}
    record_update(schema, live, new, manager="ben", subresource="", now=LATE)
    assert managers(new)["ben"] == {"f:spec": {"f:a": {"f:b": {}}}}


def test_an_object_that_does_not_fit_its_schema_has_no_managers() -> None:
    ports = Schema(
        type="array",
        list_type=ListType.MAP,
        list_keys=("port",),
        items=Schema(type="object", properties={"port": Schema(type="integer")}),
    )
    schema = Schema(type="object", properties={"ports": ports})
    new: Object = {"apiVersion": "e/v1", "kind": "T", "metadata": {"name": "t"}, "ports": [{"port": 1}, {}]}
    record_update(schema, None, new, manager="ann", subresource="", now=EARLY)
    assert "managedFields" not in new["metadata"]


def test_deep_nesting_is_refused_and_not_a_crash() -> None:
    schema = Schema(type="object", properties={"spec": Schema(preserves_unknown=True)})
    spec: Object = {}
    for _ in range(20_000):
        spec = {"a": spec}
    body: Object = {"apiVersion": "e/v1", "kind": "T", "metadata": {"name": "t"}, "spec": spec}
    found = refusal(lambda: apply(schema, None, body, manager="a", force=False, subresource="", now=LATE))
    assert found.status.code == 400
    found = refusal(lambda: record_update(schema, None, body, manager="a", subresource="", now=LATE))
    assert found.status.code == 400
