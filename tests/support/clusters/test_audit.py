"""The comparison of rights with an audit log notices what it should."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.clusters.audit import Right, by_kind, granted_rights, unused_rights, used_rights

USER = "system:serviceaccount:here:one"


def an_event(verb: str, resource: str, *, code: int = 200, user: str = USER, **about: str) -> dict[str, Any]:
    return {
        "verb": verb,
        "user": {"username": user},
        "objectRef": {"resource": resource, **about},
        "responseStatus": {"code": code},
    }


def used(folder: Path, *events: dict[str, Any]) -> set[Right]:
    log = folder / "audit.log"
    log.write_text("".join(f"{json.dumps(event)}\n" for event in events))
    return used_rights(log, USER)


def test_what_others_ask_and_what_is_refused_uses_no_right(tmp_path: Path) -> None:
    found = used(tmp_path, an_event("get", "pods", user="ann"), an_event("get", "pods", code=403))
    assert found == set()


def test_an_apply_that_makes_an_object_uses_the_right_to_create(tmp_path: Path) -> None:
    found = used(tmp_path, an_event("patch", "jobs", code=201, apiGroup="batch", name="a", subresource="status"))
    assert found == {Right("batch", "jobs/status", "patch", ("a",)), Right("batch", "jobs/status", "create", ("a",))}


def test_a_right_that_nothing_asked_for_is_found_and_a_watch_counts_as_a_list() -> None:
    granted = {Right("", "pods", verb) for verb in ("get", "list", "watch", "delete")}
    left = unused_rights(granted, [Right("", "pods", "watch"), Right("", "pods", "get", ("a",))])
    assert by_kind(left) == "core/pods: delete"


def test_a_right_for_some_names_is_not_used_by_others() -> None:
    right = Right("", "secrets", "get", ("mine",))
    assert unused_rights([right], [Right("", "secrets", "get", ("yours",))]) == [right]
    assert unused_rights([right], [Right("", "secrets", "get", ("mine",))]) == []


def test_rights_are_those_of_the_roles_that_are_bound() -> None:
    def role(name: str, verb: str) -> dict[str, Any]:
        rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": [verb]}]
        return {"kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}

    binding = {
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "x"},
        "roleRef": {"kind": "ClusterRole", "name": "bound"},
        "subjects": [{"name": "one"}],
    }
    assert granted_rights([role("bound", "get"), role("other", "delete"), binding], "one") == {Right("", "pods", "get")}
