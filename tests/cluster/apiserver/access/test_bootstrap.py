from __future__ import annotations

from typing import Any

import pytest

from shoal.cluster.apiserver.access.authorization import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    ROLE_BINDINGS,
    ROLES,
    Query,
)
from shoal.cluster.apiserver.access.bootstrap import (
    aggregated,
    default_objects,
    default_roles,
    kubernetes_service,
    reconciled,
)
from shoal.cluster.apiserver.access.user import User
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.kubernetes import RealKubernetes
from tests.cluster.apiserver.access.memory import ANN, Memory, a_role, on

DEFAULTS = default_roles()


def defaults() -> Memory:
    return Memory(*(each for _, each in DEFAULTS))


def may(who: User, verb: str, resource: str = "", **more: str) -> bool:
    return defaults().authorizer().allowed(Query(user=who, verb=verb, resource=resource, **more))


def test_a_new_cluster_has_its_namespaces_first() -> None:
    objects = list(default_objects())
    assert [each["metadata"]["name"] for storage, each in objects if storage == "namespaces"] == [
        "default",
        "kube-node-lease",
        "kube-public",
        "kube-system",
    ]
    assert [storage for storage, _ in objects[:4]] == ["namespaces"] * 4
    keys = [(storage, each["metadata"].get("namespace"), each["metadata"]["name"]) for storage, each in objects]
    assert len(set(keys)) == len(keys)


def test_a_user_without_roles_may_look_around_and_ask_what_it_may() -> None:
    assert may(ANN, "get", path="/apis/apps/v1")
    assert may(ANN, "create", "selfsubjectaccessreviews", group="authorization.k8s.io")
    assert not may(ANN, "list", "pods", namespace="default")
    nobody = User(name="system:anonymous", groups=("system:unauthenticated",))
    assert may(nobody, "get", path="/healthz")
    assert not may(nobody, "get", path="/apis")


def test_a_controllers_account_may_do_its_work() -> None:
    account = User(name="system:serviceaccount:kube-system:job-controller")
    assert may(account, "create", "pods", namespace="x")
    assert not may(account, "delete", "nodes")


def test_view_edit_and_admin_hold_each_other() -> None:
    roles: dict[str, Any] = {each["metadata"]["name"]: each for storage, each in DEFAULTS if storage == CLUSTER_ROLES}
    view, edit, admin = (roles[name]["rules"] for name in ("view", "edit", "admin"))
    assert view
    assert all(rule in edit for rule in view)
    assert all(rule in admin for rule in edit)
    assert len(view) < len(edit) < len(admin)


def labelled(name: str, label: str, *rules: Object) -> Object:
    return a_role(name, *rules, metadata={"labels": {label: "true"}})


def test_a_role_collects_the_rules_of_those_it_selects_each_once_and_by_name() -> None:
    shared = on("pods")
    others = [
        labelled("z", "a", on("nodes"), shared),
        labelled("y", "a", shared),
        labelled("x", "b", on("secrets")),
        labelled("w", "c", on("events")),
        a_role("v", on("jobs")),
    ]
    selectors = [{"matchLabels": {"a": "true"}}, {"matchExpressions": [{"key": "b", "operator": "Exists"}]}]
    role = labelled("collector", "a", on("old"))
    role["aggregationRule"] = {"clusterRoleSelectors": selectors}
    assert aggregated(role, [*others, role]) == [shared, on("nodes"), on("secrets")]
    assert aggregated({**role, "aggregationRule": {}}, others) == []


def test_a_later_start_adds_what_a_default_has_lost_and_takes_nothing_away() -> None:
    wanted: Object = next(each for _, each in DEFAULTS if each["metadata"]["name"] == "system:basic-user")
    assert reconciled(wanted, wanted) is None
    live = {**wanted, "rules": [on("pods")], "metadata": {"name": "system:basic-user", "labels": {"own": "1"}}}
    changed = reconciled(live, wanted)
    assert changed is not None
    assert changed["rules"][0] == on("pods")
    assert reconciled(changed, wanted) is None
    assert changed["metadata"]["labels"] == {"own": "1", "kubernetes.io/bootstrapping": "rbac-defaults"}
    alone = {"rbac.authorization.kubernetes.io/autoupdate": "false"}
    assert reconciled({**live, "metadata": {**live["metadata"], "annotations": alone}}, wanted) is None


def test_a_later_start_adds_the_subjects_that_a_default_binding_has_lost() -> None:
    wanted = next(each for storage, each in DEFAULTS if storage == CLUSTER_ROLE_BINDINGS)
    live = {**wanted, "subjects": [{"kind": "User", "name": "ann"}]}
    changed = reconciled(live, wanted)
    assert changed is not None
    assert changed["subjects"] == [*live["subjects"], *wanted["subjects"]]
    assert reconciled({**live, "roleRef": {"kind": "ClusterRole", "name": "other"}}, wanted) is None


GENERATED = ("uid", "resourceVersion", "creationTimestamp", "managedFields")


def stated(live: Object) -> Object:
    metadata = {key: value for key, value in live["metadata"].items() if key not in GENERATED}
    return {**live, "metadata": metadata}


@pytest.mark.kube
@pytest.mark.parametrize("storage", [CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, ROLES, ROLE_BINDINGS])
def test_the_default_roles_are_those_of_a_real_server(kube: RealKubernetes, storage: str) -> None:
    resource = storage.partition(".")[0]
    selector = "labelSelector=kubernetes.io/bootstrapping%3Drbac-defaults"
    found: Any = kube.admin.request("GET", f"/apis/rbac.authorization.k8s.io/v1/{resource}?{selector}")
    live = {(each["metadata"].get("namespace"), each["metadata"]["name"]): stated(each) for each in found["items"]}
    ours = {
        (each["metadata"].get("namespace"), each["metadata"]["name"]): {
            key: value for key, value in each.items() if key not in ("apiVersion", "kind")
        }
        for kind, each in DEFAULTS
        if kind == storage
    }
    assert ours == live


@pytest.mark.kube
def test_the_other_defaults_are_those_of_a_real_server(kube: RealKubernetes) -> None:
    places = {
        "namespaces": "/api/v1/namespaces",
        "priorityclasses.scheduling.k8s.io": "/apis/scheduling.k8s.io/v1/priorityclasses",
    }
    for storage, each in default_objects():
        if storage in places:
            live: Any = kube.admin.request("GET", f"{places[storage]}/{each['metadata']['name']}")
            assert stated(live) == each
    live = kube.admin.request("GET", "/api/v1/namespaces/default/services/kubernetes")
    port = live["spec"]["ports"][0]["targetPort"]
    assert stated(live) == kubernetes_service(cluster_ip=live["spec"]["clusterIP"], target_port=port)
