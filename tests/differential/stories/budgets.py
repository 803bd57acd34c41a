"""Disruption budgets: how many pods may be taken away, and who is refused."""

from __future__ import annotations

from typing import Any

from tests.differential.objects import a_bare_pod, a_budget, a_deployment, a_replica_set, a_stateful_set, an_object
from tests.differential.story import BY_HAND, Story, Teller


def _web(c: Teller, replicas: int, ready: int) -> None:
    """A ReplicaSet whose pods are, or are not, ready by hand."""
    c.create(a_replica_set(replicas=replicas, pod=BY_HAND))
    c.run(*c.until_pods(replicas)[:ready])
    c.until_status("ReplicaSet", "web", replicas=replicas, readyReplicas=ready or None)


def _budget(kind: str, value: Any, replicas: int, ready: int, allowed: int) -> Story:
    def tell(c: Teller) -> None:
        _web(c, replicas, ready)
        c.create(a_budget(**{kind: value}))
        c.until_status("PodDisruptionBudget", "web", disruptionsAllowed=allowed, currentHealthy=ready)
        c.snapshot(f"{ready} of {replicas} are healthy")

    return Story(f"budget {kind} {value} of {replicas} with {ready}", tell)


def _evicted(c: Teller) -> None:
    _web(c, 3, 3)
    c.create(a_budget(minAvailable=2))
    c.until_status("PodDisruptionBudget", "web", disruptionsAllowed=1)
    pods = c.pods()
    c.evict(pods[0]["metadata"]["name"])
    c.until(lambda: len(c.pods()) == 3 and not c.find("Pod", pods[0]["metadata"]["name"]))
    c.until_status("PodDisruptionBudget", "web", disruptionsAllowed=0, currentHealthy=2)
    c.evict(pods[1]["metadata"]["name"])
    c.snapshot("one may go, the second may not")
    c.run(*c.pods("Pending"))
    c.until_status("PodDisruptionBudget", "web", disruptionsAllowed=1)
    c.snapshot("the new one is ready")


def _unready(c: Teller) -> None:
    _web(c, 3, 1)
    c.create(a_budget(minAvailable=2, unhealthyPodEvictionPolicy="AlwaysAllow"))
    c.run(*c.pods("Pending"), ready=False)
    c.until_status("PodDisruptionBudget", "web", currentHealthy=1, disruptionsAllowed=0)
    broken = [pod for pod in c.pods() if "containerStatuses" in pod["status"] and not _is_ready(pod)]
    c.evict(broken[0]["metadata"]["name"])
    c.until(lambda: not c.find("Pod", broken[0]["metadata"]["name"]) and len(c.pods()) == 3)
    c.snapshot("one that is broken may go")


def _is_ready(pod: dict[str, Any]) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", []))


def _no_pods(c: Teller) -> None:
    c.create(a_budget(maxUnavailable=1), a_budget("least", minAvailable=1))
    c.until_condition("PodDisruptionBudget", "web", "DisruptionAllowed", "False")
    c.until_condition("PodDisruptionBudget", "least", "DisruptionAllowed", "False")
    c.snapshot("there are no pods")


def _bare(c: Teller) -> None:
    c.create(a_bare_pod("alone", {"labels": {"app": "web"}}, **BY_HAND))
    c.run(c.get("Pod", "alone"))
    c.create(a_budget(maxUnavailable=1), a_budget("share", minAvailable="50%"), a_budget("count", minAvailable=1))
    c.until_status("PodDisruptionBudget", "count", currentHealthy=1)
    c.snapshot("pods without a controller can only be counted")


def _two(c: Teller) -> None:
    _web(c, 2, 2)
    c.create(a_budget("one", minAvailable=1), a_budget("two", minAvailable=1))
    c.until_status("PodDisruptionBudget", "one", disruptionsAllowed=1)
    c.until_status("PodDisruptionBudget", "two", disruptionsAllowed=1)
    c.evict(c.pods()[0]["metadata"]["name"])
    c.snapshot("two budgets for one pod are refused")


def _controllers(c: Teller) -> None:
    c.create(a_deployment("web", replicas=4), a_stateful_set("db", replicas=2))
    c.until_ready(6)
    c.create(a_budget(maxUnavailable="50%"), a_budget("db", "db", maxUnavailable="50%"))
    c.until_status("PodDisruptionBudget", "web", currentHealthy=4, disruptionsAllowed=2)
    c.until_status("PodDisruptionBudget", "db", currentHealthy=2, disruptionsAllowed=1)
    c.snapshot("half of each")
    c.scale("Deployment", "web", 1)
    c.until_status("PodDisruptionBudget", "web", currentHealthy=1, expectedPods=1)
    c.snapshot("scaled down")


def _changed(c: Teller) -> None:
    _web(c, 2, 2)
    c.create(a_budget(minAvailable=2))
    c.until_status("PodDisruptionBudget", "web", disruptionsAllowed=0, currentHealthy=2)
    c.evict(c.pods()[0]["metadata"]["name"])
    c.snapshot("none may go")
    c.patch("PodDisruptionBudget", "web", {"spec": {"minAvailable": 1}})
    c.until_status("PodDisruptionBudget", "web", disruptionsAllowed=1)
    c.snapshot("one may")


def _everything(c: Teller) -> None:
    _web(c, 2, 2)
    spec = {"minAvailable": 1, "selector": {}}
    c.create(an_object("policy/v1", "PodDisruptionBudget", "all", spec=spec))
    c.create(an_object("policy/v1", "PodDisruptionBudget", "none", spec={"minAvailable": 1}))
    c.until_status("PodDisruptionBudget", "all", disruptionsAllowed=1)
    c.until_status("PodDisruptionBudget", "none", expectedPods=0)
    c.snapshot("an empty selector is for all pods, none for no pod")


STORIES = [
    _budget("minAvailable", 2, 3, 3, 1),
    _budget("minAvailable", "50%", 3, 3, 1),
    _budget("maxUnavailable", 1, 3, 2, 0),
    _budget("maxUnavailable", "34%", 3, 3, 2),
    _budget("minAvailable", 0, 2, 0, 0),
    Story("budget evictions", _evicted),
    Story("budget lets broken pods go", _unready),
    Story("budget without pods", _no_pods),
    Story("budget for a bare pod", _bare),
    Story("budget twice", _two),
    Story("budget for controllers", _controllers),
    Story("budget is changed", _changed),
    Story("budget selectors", _everything),
]
