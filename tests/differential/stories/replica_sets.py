"""ReplicaSets and ReplicationControllers: how many pods there are, whose they are, and which go first."""

from __future__ import annotations

from tests.differential.objects import (
    a_bare_pod,
    a_budget,
    a_config_map,
    a_quota,
    a_replica_set,
    a_replication_controller,
    owned_by,
)
from tests.differential.story import BY_HAND, Story, Teller

COST = "controller.kubernetes.io/pod-deletion-cost"


def _scale(c: Teller) -> None:
    c.create(a_replica_set(replicas=2))
    c.until_status("ReplicaSet", "web", readyReplicas=2)
    c.snapshot("two")
    c.scale("ReplicaSet", "web", 4)
    c.until_status("ReplicaSet", "web", readyReplicas=4)
    c.snapshot("four")
    c.scale("ReplicaSet", "web", 0)
    c.until_status("ReplicaSet", "web", replicas=0)
    c.snapshot("none")


def _adopts(c: Teller) -> None:
    c.create(a_bare_pod("early", {"labels": {"app": "web"}}), a_bare_pod("stranger", {"labels": {"app": "other"}}))
    c.until_ready(2)
    c.create(a_replica_set(replicas=2))
    c.until_status("ReplicaSet", "web", readyReplicas=2)
    c.snapshot("a pod that fits is adopted")


def _adopts_too_many(c: Teller) -> None:
    for name in ("a", "b"):
        c.create(a_bare_pod(name, {"labels": {"app": "web"}}, **BY_HAND))
    c.run(c.get("Pod", "a"))
    # Controllers share one picture of pods: what the budget knows, the ReplicaSet's controller knows too.
    c.create(a_budget(minAvailable=0))
    c.until_status("PodDisruptionBudget", "web", currentHealthy=1)
    c.delete("PodDisruptionBudget", "web")
    c.until_gone("PodDisruptionBudget", "web")
    c.create(a_replica_set(replicas=1))
    c.until_pods(1)
    c.until_status("ReplicaSet", "web", replicas=1)
    c.snapshot("the pod that does not run goes")


def _releases(c: Teller) -> None:
    c.create(a_replica_set(replicas=1))
    (pod,) = c.until_ready(1)
    c.patch("Pod", pod["metadata"]["name"], {"metadata": {"labels": {"app": "mine"}}})
    c.until_ready(2)
    c.until_status("ReplicaSet", "web", readyReplicas=1)
    c.snapshot("a pod that fits no more is let go and replaced")


def _not_of_others(c: Teller) -> None:
    c.create(a_config_map("other"))
    owner = owned_by(c.get("ConfigMap", "other") | {"apiVersion": "v1", "kind": "ConfigMap"}, controller=True)
    c.create(a_bare_pod("taken", {"labels": {"app": "web"}, "ownerReferences": [owner]}, **BY_HAND))
    c.create(a_replica_set(replicas=1))
    c.until_status("ReplicaSet", "web", readyReplicas=1)
    c.snapshot("a pod of another owner stays with it")


def _cost(c: Teller) -> None:
    c.create(a_replica_set(replicas=3, pod=BY_HAND))
    pods = c.until_pods(3)
    c.run(*pods)
    for pod, cost in zip(pods, ("100", "-5", "50"), strict=True):
        change = {"metadata": {"annotations": {COST: cost}}}
        c.patch("Pod", pod["metadata"]["name"], change)
    c.until_status("ReplicaSet", "web", readyReplicas=3)
    c.scale("ReplicaSet", "web", 2)
    c.until_pods(2)
    c.snapshot("the cheapest went")
    c.scale("ReplicaSet", "web", 1)
    c.until_pods(1)
    c.snapshot("the dearest is left")


def _unready_first(c: Teller) -> None:
    c.create(a_replica_set(replicas=3, pod=BY_HAND))
    pods = c.until_pods(3)
    c.run(pods[0])
    c.run(pods[1], ready=False)
    c.until_status("ReplicaSet", "web", readyReplicas=1)
    c.scale("ReplicaSet", "web", 2)
    c.until_pods(2)
    c.snapshot("one that is pending goes before one that runs")
    c.scale("ReplicaSet", "web", 1)
    c.until_pods(1)
    c.snapshot("and that before one that is ready")


def _ended(c: Teller) -> None:
    c.create(a_replica_set(replicas=2, pod=BY_HAND))
    pods = c.until_pods(2)
    c.run(*pods)
    c.until_status("ReplicaSet", "web", readyReplicas=2)
    c.finish(pods[0], exit_code=1, reason="Evicted")
    c.until_pods(3)
    c.until_status("ReplicaSet", "web", replicas=2, readyReplicas=1)
    c.snapshot("a pod that failed stays, and is replaced")


def _min_ready(c: Teller) -> None:
    c.create(a_replica_set(replicas=1, minReadySeconds=3600))
    c.until_status("ReplicaSet", "web", readyReplicas=1)
    c.snapshot("ready, but not available")


def _quota(c: Teller) -> None:
    c.create(a_quota(pods="1"))
    c.until_status("ResourceQuota", "quota", hard={"pods": "1"})
    c.create(a_replica_set(replicas=3))
    c.until_condition("ReplicaSet", "web", "ReplicaFailure")
    c.until_status("ReplicaSet", "web", readyReplicas=1)
    c.snapshot("refused")
    c.scale("ReplicaSet", "web", 1)
    c.until(lambda: not c.get("ReplicaSet", "web")["status"].get("conditions"))
    c.snapshot("satisfied with one")


def _labels(c: Teller) -> None:
    c.create(a_replica_set(replicas=2))
    pods = c.until_ready(2)
    c.until_status("ReplicaSet", "web", readyReplicas=2)
    template = {"spec": {"template": {"metadata": {"labels": {"more": "x"}}}}}
    c.patch("ReplicaSet", "web", template)
    c.until_status("ReplicaSet", "web", fullyLabeledReplicas=None)
    c.snapshot("no pod has all labels of the new template")
    c.patch("Pod", pods[0]["metadata"]["name"], {"metadata": {"labels": {"more": "x"}}})
    c.until_status("ReplicaSet", "web", fullyLabeledReplicas=1)
    c.snapshot("one has")


def _deleted_pod(c: Teller) -> None:
    c.create(a_replica_set(replicas=2))
    pods = c.until_ready(2)
    before = pods[0]["metadata"]["name"]
    c.delete("Pod", before)
    c.until(lambda: c.find("Pod", before) is None and len(c.pods()) == 2)
    c.until_status("ReplicaSet", "web", readyReplicas=2)
    c.snapshot("a deleted pod is replaced")


def _terminating(c: Teller) -> None:
    c.create(a_replica_set(replicas=2, pod=c.a_silent_node()))
    c.run(*c.until_pods(2))
    c.until_status("ReplicaSet", "web", readyReplicas=2)
    c.scale("ReplicaSet", "web", 1)
    c.until_status("ReplicaSet", "web", replicas=1, terminatingReplicas=1)
    c.snapshot("one takes its time to go")


def _controller(c: Teller) -> None:
    c.create(a_replication_controller(replicas=2))
    c.until_status("ReplicationController", "web", readyReplicas=2)
    c.snapshot("two")
    c.scale("ReplicationController", "web", 1)
    c.until_status("ReplicationController", "web", replicas=1)
    (pod,) = c.until_pods(1)
    c.patch("Pod", pod["metadata"]["name"], {"metadata": {"labels": {"app": "mine"}}})
    c.until_ready(2)
    c.until_status("ReplicationController", "web", readyReplicas=1)
    c.snapshot("one, and one let go")
    c.delete("ReplicationController", "web")
    c.until_pods(1)
    c.snapshot("deleted")


def _controller_quota(c: Teller) -> None:
    c.create(a_quota(pods="0"))
    c.until_status("ResourceQuota", "quota", hard={"pods": "0"})
    c.create(a_replication_controller(replicas=1))
    c.until_condition("ReplicationController", "web", "ReplicaFailure")
    c.snapshot("refused")


STORIES = [
    Story("replica set is scaled", _scale),
    Story("replica set adopts", _adopts),
    Story("replica set adopts too many", _adopts_too_many),
    Story("replica set releases", _releases),
    Story("replica set leaves the pods of others", _not_of_others),
    Story("replica set deletes the cheapest pods", _cost),
    Story("replica set deletes unready pods first", _unready_first),
    Story("replica set replaces pods that ended", _ended),
    Story("replica set waits before pods are available", _min_ready),
    Story("replica set beyond a quota", _quota),
    Story("replica set counts labels of its template", _labels),
    Story("replica set replaces deleted pods", _deleted_pod),
    Story("replica set with a terminating pod", _terminating),
    Story("replication controller", _controller),
    Story("replication controller beyond a quota", _controller_quota),
]
