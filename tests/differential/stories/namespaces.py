"""Namespaces, and what every one of them has."""

from __future__ import annotations

from tests.differential.objects import a_config_map, a_deployment, a_service, an_object
from tests.differential.story import Story, Teller


def _inhabited(c: Teller) -> None:
    c.until(lambda: c.find("ConfigMap", "kube-root-ca.crt"))
    c.snapshot("what every namespace has")
    c.delete("ServiceAccount", "default")
    c.delete("ConfigMap", "kube-root-ca.crt")
    c.until(lambda: c.find("ServiceAccount", "default") and c.find("ConfigMap", "kube-root-ca.crt"))
    c.patch("ConfigMap", "kube-root-ca.crt", {"data": {"ca.crt": "forged", "more": "x"}})
    c.until(lambda: c.get("ConfigMap", "kube-root-ca.crt")["data"].keys() == {"ca.crt"})
    c.snapshot("restored")


def _token(c: Teller) -> None:
    c.create(an_object("v1", "ServiceAccount", "robot"))
    annotations = {"kubernetes.io/service-account.name": "robot"}
    kind = "kubernetes.io/service-account-token"
    c.create(an_object("v1", "Secret", "token", type=kind, metadata={"annotations": annotations}))
    c.until(lambda: "token" in c.get("Secret", "token").get("data", {}))
    c.snapshot("a token is filled in")
    c.patch("Secret", "token", {"data": {"token": None}})
    c.until(lambda: "token" in c.get("Secret", "token").get("data", {}))
    c.snapshot("and filled in again")
    c.delete("ServiceAccount", "robot")
    c.until_gone("Secret", "token")
    c.snapshot("it goes with its account")


def _stray_token(c: Teller) -> None:
    annotations = {"kubernetes.io/service-account.name": "nobody"}
    kind = "kubernetes.io/service-account-token"
    c.try_to_create(an_object("v1", "Secret", "stray", type=kind, metadata={"annotations": annotations}))
    c.until_gone("Secret", "stray")
    c.snapshot("a token of nobody is removed")


def _deleted(c: Teller) -> None:
    c.create(a_config_map("one"), a_deployment(replicas=2), a_service())
    c.until_ready(2)
    c.delete("Namespace", c.namespace)
    c.until_gone("Namespace", c.namespace)
    c.snapshot("nothing is left")


def _held(c: Teller) -> None:
    c.create(a_config_map("one"), a_config_map("held", finalizers=["example.com/hold"]))
    c.delete("Namespace", c.namespace)
    c.until_condition("Namespace", c.namespace, "NamespaceFinalizersRemaining")
    c.until_condition("Namespace", c.namespace, "NamespaceContentRemaining")
    c.try_to_create(a_config_map("late"))
    c.snapshot("it waits for what is held")
    c.patch("ConfigMap", "held", {"metadata": {"finalizers": None}})
    c.until_gone("Namespace", c.namespace)
    c.snapshot("nothing is left")


def _aggregated(c: Teller) -> None:
    version, label = "rbac.authorization.k8s.io/v1", f"{c.namespace}.example.com/part"
    rule = {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {label: "yes"}}]}}
    c.create(an_object(version, "ClusterRole", f"{c.namespace}.whole", **rule, rules=[]))
    for number, verb in enumerate(("get", "list")):
        rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": [verb]}]
        metadata = {"labels": {label: "yes"}}
        c.create(an_object(version, "ClusterRole", f"{c.namespace}.part{number}", metadata=metadata, rules=rules))
    c.until(lambda: len(c.get("ClusterRole", f"{c.namespace}.whole").get("rules") or []) == 2)
    c.snapshot("the whole has the rules of its parts")
    c.delete("ClusterRole", f"{c.namespace}.part0")
    c.patch("ClusterRole", f"{c.namespace}.part1", {"metadata": {"labels": {"other": "label"}}})
    c.until(lambda: len(c.get("ClusterRole", f"{c.namespace}.whole").get("rules") or []) == 1)
    c.snapshot("and no others")


STORIES = [
    Story("namespace inhabitants", _inhabited, with_accounts=True),
    Story("namespace token secrets", _token, with_accounts=True),
    Story("namespace token of nobody", _stray_token),
    Story("namespace is deleted", _deleted),
    Story("namespace is held", _held),
    Story("cluster roles are aggregated", _aggregated),
]
