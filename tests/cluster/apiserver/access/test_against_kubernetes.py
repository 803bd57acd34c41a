"""The same questions to a real API server and to ours."""

from __future__ import annotations

import random
from typing import Any

import pytest

from shoal.cluster.apiserver.access import reviews
from shoal.cluster.apiserver.access.escalation import check_binding, check_role
from shoal.cluster.apiserver.access.user import User
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.refusals import Refused
from shoal.cluster.kubernetes import AdminApi, RealKubernetes
from shoal.cluster.kubernetes import Refused as RefusedByServer
from tests.cluster.apiserver.access.memory import Memory, a_binding, a_role, account, group, on, user
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kube

RBAC = "/apis/rbac.authorization.k8s.io/v1"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
QUESTIONS = 400


class Twins:
    """A real server and a dict that hold the same roles and bindings."""

    def __init__(self, kube: RealKubernetes, namespace: str, chance: random.Random) -> None:
        self.kube = kube
        self.state = Memory()
        self.namespace = namespace
        self.chance = chance
        self.who = [f"{namespace}-{letter}" for letter in "uvw"]
        self.groups = [f"{namespace}-{letter}" for letter in "gh"]

    def put(self, made: Object) -> None:
        self.state.put(made)
        metadata = {key: value for key, value in made["metadata"].items() if key != "uid"}
        home = metadata.get("namespace")
        resource = f"{made['kind'].lower()}s"
        path = f"{RBAC}/namespaces/{home}/{resource}" if home else f"{RBAC}/{resource}"
        sent = {**made, "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": metadata}
        self.kube.admin.request("POST", path, sent)

    def some(self, *values: str, most: int = 2) -> list[str]:
        return self.chance.sample(values, self.chance.randint(1, most))

    def rule(self, *, paths: bool) -> Object:
        if paths and self.chance.random() < 0.2:
            return {"verbs": self.some("get", "post", "*"), "nonResourceURLs": self.some("/a", "/a/*", "/b*", "*")}
        rule: Object = {
            "verbs": self.some("get", "list", "delete", "*"),
            "apiGroups": self.some("", "apps", "*"),
            "resources": self.some("pods", "pods/log", "*/scale", "*", "deployments", "pods/*", most=3),
        }
        return rule | {"resourceNames": self.some("a", "b", "*")} if self.chance.random() < 0.4 else rule

    def subject(self) -> Object:
        return self.chance.choice(
            [
                user(self.chance.choice(self.who)),
                group(self.chance.choice(self.groups)),
                account(self.chance.choice("xy"), self.namespace),
            ]
        )

    def probes(self) -> list[Object]:
        """Questions that are answered with yes once the server has seen all that was made before.

        It keeps a copy of each of the four kinds, and each copy follows in order.
        """
        name, whom = f"{self.namespace}-probe", user(f"{self.namespace}-probe")
        self.put(a_role(name, on("probes", "probe")))
        self.put(a_role(name, on("probes", "probe-here"), namespace=self.namespace))
        self.put(a_binding(name, name, whom))
        self.put(a_binding(name, name, whom, namespace=self.namespace, of="Role"))
        return [
            {"user": name, "resourceAttributes": {"verb": verb, "resource": "probes", "namespace": self.namespace}}
            for verb in ("probe", "probe-here")
        ]

    def question(self) -> Object:
        chance = self.chance
        spec: Object = {
            "user": chance.choice([*self.who, f"system:serviceaccount:{self.namespace}:{chance.choice('xy')}"]),
            "groups": chance.sample(self.groups, chance.randint(0, 2)),
        }
        if chance.random() < 0.2:
            path = chance.choice(["/a", "/a/", "/a/b", "/b", "/bb/c", "/", ""])
            return spec | {"nonResourceAttributes": {"verb": chance.choice(["get", "post", "put"]), "path": path}}
        asked = {
            "verb": chance.choice(["get", "list", "delete", "zap"]),
            "group": chance.choice(["", "apps", "batch"]),
            "resource": chance.choice(["pods", "deployments", "jobs"]),
            "subresource": chance.choice(["", "log", "scale", "*"]),
            "namespace": chance.choice(["", self.namespace, "elsewhere"]),
            "name": chance.choice(["", "a", "b", "c"]),
        }
        return spec | {"resourceAttributes": asked}


def test_a_few_hundred_random_questions_get_the_same_answers(kube: RealKubernetes, namespace: str) -> None:
    seed = random.randrange(1 << 32)
    twins = Twins(kube, namespace, random.Random(seed))
    for number in range(6):
        cluster, home = f"{namespace}-{number}", f"r{number}"
        twins.put(a_role(cluster, *(twins.rule(paths=True) for _ in range(2))))
        twins.put(a_role(home, *(twins.rule(paths=False) for _ in range(2)), namespace=namespace))
        twins.put(a_binding(cluster, cluster, twins.subject()))
        twins.put(a_binding(f"a{number}", home, twins.subject(), namespace=namespace, of="Role"))
        twins.put(a_binding(f"b{number}", cluster, twins.subject(), account("x"), namespace=namespace))
    twins.put(a_binding(f"{namespace}-gone", f"{namespace}-none", user(twins.who[0])))
    probes = twins.probes()
    authorizer = twins.state.authorizer()

    def ask(spec: Object) -> Any:
        question = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        return kube.admin.request("POST", REVIEWS, question)

    wait_until(lambda: all(ask(probe)["status"]["allowed"] for probe in probes), "the last roles and bindings")
    for number in range(QUESTIONS):
        spec = twins.question()
        theirs = ask(spec)["status"]
        ours = reviews.subject_access_review({"spec": spec}, authorizer)["status"]
        said = f"question {number} of seed {seed}: {spec}"
        assert ours["allowed"] == theirs["allowed"], said
        if not theirs["allowed"]:  # several bindings may allow, in no certain order
            assert ours.get("reason") == theirs.get("reason"), said


def told(kube: RealKubernetes, who: User, path: str, body: Object) -> str:
    """What the real server says to one who posts this, or nothing."""
    token = kube.token_for(who.name, [each for each in who.groups if each != "system:authenticated"])
    api = AdminApi(kube.server, token=token, authority=kube.ca_file.read_text())
    try:
        api.request("POST", path, body)
    except RefusedByServer as error:
        return str(error).removeprefix(f"POST {path} was refused: ")
    return ""


def test_an_escalation_is_refused_in_the_same_words(kube: RealKubernetes, namespace: str) -> None:
    who = User(name=f"{namespace}-u", groups=("devs", "system:authenticated"))
    twins = Twins(kube, namespace, random.Random(0))
    rbac = ("rbac.authorization.k8s.io",)
    twins.put(a_role(namespace, on("*", "create", groups=rbac), on("pods", "get"), on("secrets", "get", names=["a"])))
    twins.put(a_binding(namespace, namespace, user(who.name)))
    twins.put(a_role("target", on("pods,secrets", "get,list", names=["a", "b"]), namespace=namespace))
    authorizer = twins.state.authorizer()

    def ours(check: Any, new: Object, **more: Any) -> str:
        try:
            check(authorizer, who, new, **more)
        except Refused as error:
            return f"{error.status.message} ({error.status.code})"
        return ""

    role = a_role("w", on("pods,secrets", "get,watch", groups=["", "apps"]), namespace=namespace)
    binding = a_binding("w", "target", user("joe"), namespace=namespace, of="Role")
    missing = a_binding("w", "none", user("joe"), namespace=namespace, of="Role")
    for resource, new, check in (
        ("roles", role, check_role),
        ("rolebindings", binding, check_binding),
        ("rolebindings", missing, check_binding),
    ):
        path = f"{RBAC}/namespaces/{namespace}/{resource}"
        sent = {key: value for key, value in new.items() if key not in ("apiVersion", "kind")}
        sent["metadata"] = {"name": "w"}

        def theirs(path: str = path, sent: Object = sent) -> str:
            return told(kube, who, path, sent)

        wait_until(lambda: "cannot create" not in theirs(), "the binding")
        assert theirs()
        assert ours(check, new, resource=resource, namespace=namespace) == theirs()
