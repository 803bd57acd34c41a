"""Who may do what: roles, impersonation, reviews, and what a stranger is told."""

from __future__ import annotations

from typing import Any

from tests.conformance.objects import a_bare_pod, a_config_map, a_deployment
from tests.conformance.story import APPS, CORE, Request, Story, delete, get, patch, post, status_is

RBAC = "/apis/rbac.authorization.k8s.io/v1"
ROLES = f"{RBAC}/namespaces/{{ns}}/roles"
BINDINGS = f"{RBAC}/namespaces/{{ns}}/rolebindings"
MAPS = f"{CORE}/configmaps"
AUTHORIZATION = "/apis/authorization.k8s.io/v1"


def role(name: str, *rules: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": name}, "rules": list(rules)}


def rule(resources: str, verbs: str, group: str = "", names: str = "") -> dict[str, Any]:
    given = {"resourceNames": names.split()} if names else {}
    return {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split(), **given}


def binding(name: str, to: str, *subjects: dict[str, str], kind: str = "Role") -> dict[str, Any]:
    return {"metadata": {"name": name}, "roleRef": {"kind": kind, "name": to}, "subjects": list(subjects)}


def granted(user: str, *rules: dict[str, Any]) -> list[Request]:
    """A role and its binding to a user, made by the admin."""
    name = user.replace(":", "-")
    return [
        post(ROLES, role(name, *rules), shown=lambda _: None),
        post(BINDINGS, binding(name, name, {"kind": "User", "name": user}), shown=lambda _: None),
    ]


def review(path: str, spec: dict[str, Any], asker: str = "") -> Request:
    return post(f"{AUTHORIZATION}/{path}", {"spec": spec}, user=asker)


def sorted_rules(body: Any) -> Any:
    """A rules review; the real server gathers the rules in no order."""
    for kind in ("resourceRules", "nonResourceRules"):
        body["status"][kind].sort(key=str)
    return body


STORIES = [
    Story(
        "a stranger may do nothing",
        [
            get(MAPS, user="eve"),
            get(f"{MAPS}/one", user="eve"),
            post(MAPS, a_config_map(), user="eve"),
            patch(f"{MAPS}/one", {}, user="eve"),
            delete(f"{MAPS}/one", user="eve"),
            delete(MAPS, user="eve"),
            get(MAPS, query={"watch": "true"}, user="eve"),
            get("/api/v1/nodes", user="eve"),
            get("/api/v1/nodes/n1", user="eve"),
            get(f"{CORE}/pods/one/log", user="eve"),
            patch(f"{APPS}/deployments/one/scale", {}, user="eve"),
            get("/apis/none.example.com/v1/unicorns", user="eve"),
            get("/metrics", user="eve"),
            get("/nowhere", user="eve"),
            get("/version", user="eve", shown=lambda _: None),
            get("/api", user="eve", shown=lambda body: body["kind"]),
        ],
    ),
    Story(
        "nobody in particular",
        [
            get(MAPS, user="-"),
            get("/version", user="-", shown=lambda _: None),
            get("/healthz", user="-"),
            get("/api", user="-"),
            get("/", user="-"),
            get(MAPS, user="-", headers={"Authorization": "Bearer wrong"}),
            get("/version", user="-", headers={"Authorization": "Bearer wrong"}),
            get("/healthz", user="-", headers={"Authorization": "Bearer a.b.c"}),
            get(MAPS, user="-", headers={"Authorization": "Basic dTpw"}),
        ],
    ),
    Story(
        "a role opens what it says",
        [
            *granted("ann", rule("configmaps", "get list create"), rule("secrets", "get", names="known")),
            get(MAPS, user="ann", until=status_is(200)),
            post(MAPS, a_config_map(), user="ann"),
            delete(f"{MAPS}/one", user="ann"),
            get(MAPS, query={"watch": "true"}, user="ann"),
            get(f"{CORE}/secrets/known", user="ann"),
            get(f"{CORE}/secrets/other", user="ann"),
            get(f"{CORE}/secrets", user="ann"),
            get("/api/v1/configmaps", user="ann"),
            get("/api/v1/namespaces/default/configmaps", user="ann"),
            get(f"{CORE}/pods/one/log", user="ann"),
        ],
    ),
    Story(
        "subresources are granted apart",
        [
            *granted("bob", rule("deployments/scale pods/log", "get patch", "*"), rule("pods/*", "get")),
            post(f"{APPS}/deployments", a_deployment()),
            get(f"{APPS}/deployments/one/scale", user="bob", until=status_is(200)),
            get(f"{APPS}/deployments/one", user="bob"),
            get(f"{CORE}/pods/none/status", user="bob"),
        ],
    ),
    Story(
        "groups and cluster roles",
        [
            post(BINDINGS, binding("viewers", "view", {"kind": "Group", "name": "viewers"}, kind="ClusterRole")),
            get(MAPS, user="carl", groups=["viewers", "system:authenticated"], until=status_is(200)),
            post(MAPS, a_config_map(), user="carl", groups=["viewers"]),
            get(f"{CORE}/secrets", user="carl", groups=["viewers"]),
            get(MAPS, user="carl"),
            get(MAPS, user="carl", groups=["others"]),
        ],
    ),
    Story(
        "impersonation is itself a right",
        [
            *granted("dan", rule("users", "impersonate", names="someone")),
            get(MAPS, user="admin"),
            get(MAPS, headers={"Impersonate-Group": "viewers"}),
            get(MAPS, headers={"Impersonate-Uid": "x"}),
            get(MAPS, user="system:serviceaccount:{ns}:robot"),
            get(MAPS, user="system:anonymous"),
            get(MAPS, user="x", headers={"Impersonate-Extra-scopes": "a"}),
            get(MAPS, user="x", groups=["system:masters"]),
        ],
    ),
    Story(
        "nobody grants what they do not have",
        [
            *granted(
                "erin",
                rule("roles rolebindings", "create update patch get", "rbac.authorization.k8s.io"),
                rule("configmaps", "get"),
            ),
            post(ROLES, role("ok", rule("configmaps", "get")), user="erin", until=status_is(201)),
            post(ROLES, role("more", rule("configmaps", "get list")), user="erin"),
            post(ROLES, role("all", rule("*", "*", "*")), user="erin"),
            patch(f"{ROLES}/ok", {"rules": [rule("secrets", "get")]}, user="erin"),
            post(BINDINGS, binding("self", "ok", {"kind": "User", "name": "erin"}), user="erin"),
            post(BINDINGS, binding("top", "admin", {"kind": "User", "name": "erin"}, kind="ClusterRole"), user="erin"),
            post(BINDINGS, binding("none", "missing", {"kind": "User", "name": "erin"}), user="erin"),
        ],
    ),
    Story(
        "access reviews",
        [
            *granted("fay", rule("pods", "get list")),
            get(f"{CORE}/pods", user="fay", until=status_is(200)),
            review(
                "subjectaccessreviews",
                {"user": "fay", "resourceAttributes": {"namespace": "{ns}", "verb": "get", "resource": "pods"}},
            ),
            review(
                "subjectaccessreviews",
                {"user": "fay", "resourceAttributes": {"namespace": "{ns}", "verb": "delete", "resource": "pods"}},
            ),
            review(
                "subjectaccessreviews",
                {"user": "fay", "groups": ["system:masters"], "nonResourceAttributes": {"verb": "get", "path": "/x"}},
            ),
            review("subjectaccessreviews", {"resourceAttributes": {"verb": "get", "resource": "pods"}}),
            review("subjectaccessreviews", {"user": "fay"}),
            review(
                "subjectaccessreviews",
                {
                    "user": "fay",
                    "resourceAttributes": {"verb": "get"},
                    "nonResourceAttributes": {"verb": "get", "path": "/"},
                },
            ),
            review(
                "selfsubjectaccessreviews",
                {"resourceAttributes": {"namespace": "{ns}", "verb": "list", "resource": "pods"}},
                "fay",
            ),
            review("selfsubjectaccessreviews", {"resourceAttributes": {"verb": "*", "resource": "*", "group": "*"}}),
            review(
                "namespaces/{ns}/localsubjectaccessreviews",
                {"user": "fay", "resourceAttributes": {"namespace": "{ns}", "verb": "get", "resource": "pods"}},
            ),
            review(
                "namespaces/{ns}/localsubjectaccessreviews",
                {"user": "fay", "resourceAttributes": {"namespace": "x", "verb": "get", "resource": "pods"}},
            ),
        ],
    ),
    Story(
        "rules reviews and who am I",
        [
            *granted("gus", rule("pods", "get list"), rule("configmaps", "get", names="one")),
            get(f"{CORE}/pods", user="gus", until=status_is(200)),
            post(
                f"{AUTHORIZATION}/selfsubjectrulesreviews",
                {"spec": {"namespace": "{ns}"}},
                user="gus",
                shown=sorted_rules,
            ),
            review("selfsubjectrulesreviews", {}, "gus"),
            post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, user="gus", groups=["g"]),
            post("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "wrong"}}),
            post("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {}}),
        ],
    ),
    Story(
        "an account's token opens what its role says",
        [
            post(f"{CORE}/serviceaccounts", {"metadata": {"name": "robot"}}),
            post(ROLES, role("robot", rule("configmaps", "get list"))),
            post(BINDINGS, binding("robot", "robot", {"kind": "ServiceAccount", "name": "robot", "namespace": "{ns}"})),
            post(f"{CORE}/serviceaccounts/robot/token", {"spec": {}}, called="issued"),
            get(MAPS, user="-", headers={"Authorization": "Bearer {issued.status.token}"}, until=status_is(200)),
            get(f"{CORE}/secrets", user="-", headers={"Authorization": "Bearer {issued.status.token}"}),
            post("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "{issued.status.token}"}}),
            post(
                "/apis/authentication.k8s.io/v1/tokenreviews",
                {"spec": {"token": "{issued.status.token}", "audiences": ["other"]}},
            ),
            post(
                "/apis/authentication.k8s.io/v1/selfsubjectreviews",
                {},
                user="-",
                headers={"Authorization": "Bearer {issued.status.token}"},
            ),
            delete(f"{CORE}/serviceaccounts/robot"),
            get(MAPS, user="-", headers={"Authorization": "Bearer {issued.status.token}"}, until=status_is(401)),
        ],
    ),
    Story(
        "roles that the server brings along",
        [
            get(f"{RBAC}/clusterroles/cluster-admin", shown=lambda body: [body["metadata"]["labels"], body["rules"]]),
            get(
                f"{RBAC}/clusterroles/view",
                shown=lambda body: [
                    body["metadata"]["labels"],
                    body["aggregationRule"],
                    "secrets" in str(body["rules"]),
                ],
            ),
            get(f"{RBAC}/clusterrolebindings/cluster-admin", shown=lambda body: [body["roleRef"], body["subjects"]]),
            get(f"{RBAC}/clusterroles/system:discovery", shown=lambda body: body["rules"]),
            post(f"{CORE}/pods", a_bare_pod(), user="view-only"),
        ],
    ),
]
