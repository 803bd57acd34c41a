"""Deployments: rollouts, their limits, and what becomes of the ReplicaSets."""

from __future__ import annotations

from tests.differential.mirror import Object
from tests.differential.objects import a_deployment, a_quota, a_replica_set, image
from tests.differential.story import BY_HAND, Story, Teller


def _create(c: Teller) -> None:
    c.create(a_deployment(replicas=3))
    c.until_condition("Deployment", "web", "Progressing", reason="NewReplicaSetAvailable")
    c.snapshot("rolled out")


def _roll_by_hand(c: Teller) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}
    c.create(a_deployment(replicas=3, strategy=strategy, pod=BY_HAND))
    c.run(*c.until_pods(3))
    c.until_status("Deployment", "web", readyReplicas=3)
    c.snapshot("all are ready")
    c.patch("Deployment", "web", image("2"))
    c.until(lambda: len(_new(c, "2")) == 2 and len(c.pods()) == 4)
    c.snapshot("one more than wanted, of which one less than before is ready")
    first, second = _new(c, "2")
    c.run(first)
    c.until(lambda: len(_new(c, "2")) == 3 and len(c.pods()) == 4)
    c.snapshot("half way")
    c.run(second)
    c.until_pods(3)
    c.until_status("Deployment", "web", readyReplicas=2, replicas=3)
    c.snapshot("only new ones")
    c.run(*c.pods("Pending"))
    c.until_condition("Deployment", "web", "Progressing", reason="NewReplicaSetAvailable")
    c.snapshot("done")


def _percentages(c: Teller) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "30%", "maxUnavailable": "30%"}}
    c.create(a_deployment(replicas=4, strategy=strategy, pod=BY_HAND))
    c.run(*c.until_pods(4))
    c.until_status("Deployment", "web", readyReplicas=4)
    c.patch("Deployment", "web", image("2"))
    c.until_pods(6)
    c.snapshot("the surge is rounded up and the unavailable down")


def _pause(c: Teller) -> None:
    c.create(a_deployment(replicas=1))
    c.until_status("Deployment", "web", readyReplicas=1)
    c.patch("Deployment", "web", {"spec": {"paused": True}})
    c.until_condition("Deployment", "web", "Progressing", "Unknown")
    c.snapshot("paused")
    c.patch("Deployment", "web", image("2"))
    c.until_status("Deployment", "web", observedGeneration=c.get("Deployment", "web")["metadata"]["generation"])
    c.scale("Deployment", "web", 2)
    c.until_ready(2)
    c.snapshot("scaled, but not rolled out")
    c.patch("Deployment", "web", {"spec": {"paused": None}})
    c.until(lambda: len(_new(c, "2")) == 2 and len(c.pods()) == 2)
    c.until_condition("Deployment", "web", "Progressing", reason="NewReplicaSetAvailable")
    c.snapshot("resumed")


def _scale_during(replicas: int) -> Story:
    def tell(c: Teller) -> None:
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2, "maxUnavailable": 2}}
        c.create(a_deployment(replicas=6, strategy=strategy, pod=BY_HAND))
        c.run(*c.until_pods(6))
        c.until_status("Deployment", "web", readyReplicas=6)
        c.later()  # of two sets of one size the older one changes first
        c.patch("Deployment", "web", image("2"))
        c.until_pods(8)
        c.snapshot("in the middle")
        c.scale("Deployment", "web", replicas)
        c.until_status("Deployment", "web", replicas=replicas + 2 if replicas else None)
        c.snapshot("scaled in proportion")

    return Story(f"deployment is scaled to {replicas} during a rollout", tell)


def _rollback(c: Teller) -> None:
    c.create(a_deployment(replicas=1))
    c.until_condition("Deployment", "web", "Progressing", reason="NewReplicaSetAvailable")
    for version in ("2", "1"):
        _roll(c, version)
        c.snapshot(f"version {version}")


def _recreate(c: Teller) -> None:
    c.create(a_deployment(replicas=2, strategy={"type": "Recreate"}, pod=BY_HAND))
    c.run(*c.until_pods(2))
    c.until_condition("Deployment", "web", "Progressing", reason="NewReplicaSetAvailable")
    c.patch("Deployment", "web", image("2"))
    c.until(lambda: len(_new(c, "2")) == 2)
    c.until_status("Deployment", "web", updatedReplicas=2, unavailableReplicas=2)
    c.snapshot("all old ones went first")
    c.run(*c.until_pods(2))
    c.until_condition("Deployment", "web", "Progressing", reason="NewReplicaSetAvailable")
    c.snapshot("recreated")


def _recreate_waits(c: Teller) -> None:
    c.create(a_deployment(replicas=1, strategy={"type": "Recreate"}, pod=c.a_silent_node()))
    c.run(*c.until_pods(1))
    c.until_condition("Deployment", "web", "Progressing", reason="NewReplicaSetAvailable")
    c.patch("Deployment", "web", image("2"))
    c.until(lambda: all("deletionTimestamp" in pod["metadata"] for pod in c.pods()))
    c.snapshot("the old one takes its time, and there is no new one")


def _deadline(c: Teller) -> None:
    c.create(a_deployment(replicas=2, progressDeadlineSeconds=2, pod=BY_HAND, minReadySeconds=1))
    c.until_condition("Deployment", "web", "Progressing", "False")
    c.snapshot("failed")
    c.run(*c.until_pods(2))
    c.until_condition("Deployment", "web", "Progressing")
    c.snapshot("made it after all")


def _history(c: Teller) -> None:
    c.create(a_deployment(replicas=1, revisionHistoryLimit=1))
    c.until_ready(1)
    c.until_condition("Deployment", "web", "Progressing", reason="NewReplicaSetAvailable")
    for version in ("2", "3", "4"):
        _roll(c, version)
    c.until(lambda: len(c.all_of("ReplicaSet")) == 2)
    c.snapshot("one old revision is left")


def _deleted(policy: str) -> Story:
    def tell(c: Teller) -> None:
        c.create(a_deployment(replicas=2))
        c.until_ready(2)
        c.until_status("Deployment", "web", readyReplicas=2)
        c.delete("Deployment", "web", policy=policy)
        c.until_gone("Deployment", "web")
        if policy != "Orphan":
            c.until_pods(0)
        c.snapshot("deleted")
        if policy == "Orphan":
            c.create(a_deployment(replicas=2))
            c.until_status("Deployment", "web", readyReplicas=2)
            c.snapshot("adopted again")

    return Story(f"deployment deleted {policy}", tell)


def _adopt(c: Teller) -> None:
    c.create(a_replica_set("web", replicas=1))
    c.until_ready(1)
    c.create(a_deployment(replicas=1))
    c.until_condition("Deployment", "web", "Progressing", reason="NewReplicaSetAvailable")
    c.snapshot("the same template in a set of another name is the deployment's own")


def _quota(c: Teller) -> None:
    c.create(a_quota(pods="1"))
    c.until_status("ResourceQuota", "quota", hard={"pods": "1"})
    c.create(a_deployment(replicas=2))
    c.until_condition("Deployment", "web", "ReplicaFailure")
    c.until_ready(1)
    c.snapshot("the second pod is refused")


def _annotations(c: Teller) -> None:
    c.create(a_deployment(replicas=1, metadata={"annotations": {"team": "a", "kubernetes.io/change-cause": "first"}}))
    c.until_condition("Deployment", "web", "Progressing", reason="NewReplicaSetAvailable")
    c.patch("Deployment", "web", {"metadata": {"annotations": {"team": "b", "more": "x"}, "labels": {"tier": "web"}}})
    c.until(lambda: c.all_of("ReplicaSet")[0]["metadata"]["annotations"].get("team") == "b")
    c.snapshot("annotations are handed on")


def _zero(c: Teller) -> None:
    c.create(a_deployment(replicas=0))
    c.until_condition("Deployment", "web", "Progressing", reason="NewReplicaSetAvailable")
    c.snapshot("none is complete")
    c.scale("Deployment", "web", 2)
    c.until_status("Deployment", "web", readyReplicas=2)
    c.scale("Deployment", "web", 0)
    c.until_pods(0)
    c.until_status("Deployment", "web", replicas=None)
    c.snapshot("scaled up and down again")


def _bereft(c: Teller) -> None:
    c.create(a_deployment(replicas=2))
    c.until_condition("Deployment", "web", "Progressing", reason="NewReplicaSetAvailable")
    (before,) = (one["metadata"] for one in c.all_of("ReplicaSet"))
    c.delete("ReplicaSet", before["name"])
    c.until(lambda: [one["metadata"]["uid"] for one in c.all_of("ReplicaSet")] not in ([], [before["uid"]]))
    c.until_ready(2)
    c.until_status("Deployment", "web", readyReplicas=2, replicas=2)
    c.snapshot("a set that was deleted is made anew")


def _available_later(c: Teller) -> None:
    c.create(a_deployment(replicas=1, minReadySeconds=500, pod=BY_HAND))
    c.run(*c.until_pods(1))
    c.until_status("Deployment", "web", readyReplicas=1)
    c.snapshot("ready, but not yet available")


def _surge_only(c: Teller) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    c.create(a_deployment(replicas=2, strategy=strategy, pod=BY_HAND))
    c.run(*c.until_pods(2))
    c.until_status("Deployment", "web", readyReplicas=2)
    c.patch("Deployment", "web", image("2"))
    c.until_pods(3)
    c.snapshot("one more, none less")
    c.patch("Deployment", "web", image("3"))
    c.until(lambda: len(_new(c, "3")) == 1 and len(c.pods()) == 3)
    c.snapshot("overtaken by a third version")


def _roll(c: Teller, version: str) -> None:
    c.patch("Deployment", "web", image(version))
    c.until(lambda: len(_new(c, version)) == 1 and len(c.pods()) == 1)
    c.until_condition("Deployment", "web", "Progressing", reason="NewReplicaSetAvailable")


def _new(c: Teller, version: str) -> list[Object]:
    return [pod for pod in c.pods() if pod["spec"]["containers"][0]["image"] == f"example.com/app:{version}"]


STORIES = [
    Story("deployment is created", _create),
    Story("deployment rolls out step by step", _roll_by_hand),
    Story("deployment limits in percent", _percentages),
    Story("deployment is paused and resumed", _pause),
    *(_scale_during(replicas) for replicas in (12, 3, 0)),
    Story("deployment is rolled back", _rollback),
    Story("deployment recreates its pods", _recreate),
    Story("deployment waits before it recreates", _recreate_waits),
    Story("deployment makes no progress", _deadline),
    Story("deployment forgets old revisions", _history),
    *(_deleted(policy) for policy in ("Background", "Foreground", "Orphan")),
    Story("deployment adopts a replica set", _adopt),
    Story("deployment beyond a quota", _quota),
    Story("deployment annotations", _annotations),
    Story("deployment without replicas", _zero),
    Story("deployment loses its set", _bereft),
    Story("deployment waits before pods are available", _available_later),
    Story("deployment is overtaken", _surge_only),
]
