"""StatefulSets: pods with names and volumes of their own, in order."""

from __future__ import annotations

from typing import Any

from tests.differential.mirror import Object
from tests.differential.objects import a_bare_pod, a_stateful_set, an_object, image
from tests.differential.story import BY_HAND, Story, Teller

CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": ""},
}


def _pod(c: Teller, number: int) -> Object:
    c.until(lambda: c.find("Pod", f"db-{number}"), f"db-{number} is there")
    return c.get("Pod", f"db-{number}")


def _updates(**more: Any) -> Object:
    return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": more}}


def _ordered(c: Teller) -> None:
    c.create(a_stateful_set(replicas=3, pod=BY_HAND))
    c.run(_pod(c, 0), ready=False)
    c.until_status("StatefulSet", "db", replicas=1)
    c.snapshot("the first is not ready, so there is no second")
    c.run(_pod(c, 0))
    c.run(_pod(c, 1))
    c.run(_pod(c, 2))
    c.until_status("StatefulSet", "db", readyReplicas=3)
    c.snapshot("all three")
    c.scale("StatefulSet", "db", 1)
    c.until_pods(1)
    c.until_status("StatefulSet", "db", replicas=1)
    c.snapshot("scaled down from the end")


def _parallel(c: Teller) -> None:
    c.create(a_stateful_set(replicas=3, podManagementPolicy="Parallel", pod=BY_HAND))
    c.until_pods(3)
    c.until_status("StatefulSet", "db", replicas=3)
    c.snapshot("all at once")


def _rolling(c: Teller) -> None:
    c.create(a_stateful_set(replicas=2))
    c.until_status("StatefulSet", "db", readyReplicas=2)
    c.patch("StatefulSet", "db", image("2"))
    c.until_status("StatefulSet", "db", readyReplicas=2, currentReplicas=2, updatedReplicas=2)
    c.snapshot("rolled out")


def _partition(c: Teller) -> None:
    c.create(a_stateful_set(replicas=3, **_updates(partition=2)))
    c.until_status("StatefulSet", "db", readyReplicas=3)
    c.patch("StatefulSet", "db", image("2"))
    c.until_status("StatefulSet", "db", readyReplicas=3, updatedReplicas=1)
    c.snapshot("only the last one is new")
    c.delete("Pod", "db-0")
    c.until_status("StatefulSet", "db", readyReplicas=3, updatedReplicas=1)
    c.snapshot("below the partition a pod comes back as it was")
    c.patch("StatefulSet", "db", {"spec": _updates(partition=0)})
    c.until_status("StatefulSet", "db", readyReplicas=3, currentReplicas=3)
    c.snapshot("all are new")


def _on_delete(c: Teller) -> None:
    c.create(a_stateful_set(replicas=2, updateStrategy={"type": "OnDelete"}))
    c.until_status("StatefulSet", "db", readyReplicas=2)
    c.patch("StatefulSet", "db", image("2"))
    c.until_status("StatefulSet", "db", readyReplicas=2, currentReplicas=2)
    c.snapshot("nothing happens")
    before = c.get("Pod", "db-0")["metadata"]["uid"]
    c.delete("Pod", "db-0")
    c.until(lambda: (c.find("Pod", "db-0") or {"metadata": {"uid": before}})["metadata"]["uid"] != before)
    c.until_status("StatefulSet", "db", readyReplicas=2, updatedReplicas=1)
    c.snapshot("the deleted one is new")


def _volumes(**policy: str) -> Any:
    def tell(c: Teller) -> None:
        more: Object = {"persistentVolumeClaimRetentionPolicy": policy} if policy else {}
        c.create(a_stateful_set(replicas=2, volumeClaimTemplates=[CLAIM], podManagementPolicy="Parallel", **more))
        c.until_pods(2)
        c.until_status("StatefulSet", "db", replicas=2)
        c.snapshot("each pod has a claim")
        c.scale("StatefulSet", "db", 1)
        c.until_pods(1)
        if policy.get("whenScaled") == "Delete":
            c.until(lambda: len(c.all_of("PersistentVolumeClaim")) == 1)
        c.snapshot("scaled down")
        c.delete("StatefulSet", "db")
        c.until_gone("StatefulSet", "db")
        c.until_pods(0)
        if policy.get("whenDeleted") == "Delete":
            c.until(lambda: not c.all_of("PersistentVolumeClaim"))
        c.snapshot("deleted")

    return tell


def _ordinals(c: Teller) -> None:
    c.create(a_stateful_set(replicas=2, ordinals={"start": 5}))
    c.until_status("StatefulSet", "db", readyReplicas=2)
    c.snapshot("counted from five")


def _in_the_way(c: Teller) -> None:
    c.create(a_bare_pod("db-0", {"labels": {"app": "other"}}, **BY_HAND))
    c.create(a_stateful_set(replicas=1))
    c.later()
    c.snapshot("a stranger has the name")


def _adopts(c: Teller) -> None:
    c.create(a_bare_pod("db-0", {"labels": {"app": "db"}}, **BY_HAND))
    c.create(a_stateful_set(replicas=1, pod=BY_HAND))
    c.until(lambda: c.get("Pod", "db-0")["metadata"].get("ownerReferences"))
    c.until_status("StatefulSet", "db", replicas=1)
    c.snapshot("a pod of the right name is adopted")


def _failed(c: Teller) -> None:
    c.create(a_stateful_set(replicas=1, pod=BY_HAND))
    pod = _pod(c, 0)
    c.finish(pod, exit_code=1)
    c.until(lambda: (c.find("Pod", "db-0") or pod)["metadata"]["uid"] != pod["metadata"]["uid"])
    c.until_status("StatefulSet", "db", replicas=1)
    c.until_event("SuccessfulDelete")
    c.snapshot("a pod that failed is made anew")


def _roll(c: Teller, version: str) -> None:
    c.patch("StatefulSet", "db", image(version))
    c.until(lambda: any(pod["spec"]["containers"][0]["image"].endswith(f":{version}") for pod in c.pods()))
    c.until_status("StatefulSet", "db", readyReplicas=1, currentReplicas=1)


def _history(c: Teller) -> None:
    c.create(a_stateful_set(replicas=1, revisionHistoryLimit=1))
    c.until_status("StatefulSet", "db", readyReplicas=1)
    for version in ("2", "3", "4"):
        _roll(c, version)
    c.until(lambda: len(c.all_of("ControllerRevision")) == 2)
    c.snapshot("one old revision is left")
    _roll(c, "3")
    c.snapshot("it is used again")


def _stuck(c: Teller) -> None:
    c.create(a_stateful_set(replicas=2, pod=BY_HAND, podManagementPolicy="Parallel"))
    c.run(_pod(c, 0))
    c.run(_pod(c, 1))
    c.until_status("StatefulSet", "db", readyReplicas=2)
    c.patch("StatefulSet", "db", image("2"))
    c.until_status("StatefulSet", "db", readyReplicas=1, updatedReplicas=1)
    c.snapshot("a rollout waits for the pod that is not ready")


def _unavailable(c: Teller) -> None:
    c.create(a_stateful_set(replicas=2, minReadySeconds=3600))
    c.until_status("StatefulSet", "db", readyReplicas=1)
    c.snapshot("ready, but not yet available: the second one waits")


def _blocked(c: Teller) -> None:
    c.create(a_stateful_set(replicas=3, pod=BY_HAND))
    for number in range(3):
        c.run(_pod(c, number))
    c.until_status("StatefulSet", "db", readyReplicas=3)
    c.run(_pod(c, 0), ready=False)
    c.until_status("StatefulSet", "db", readyReplicas=2)
    c.scale("StatefulSet", "db", 1)
    c.until_status("StatefulSet", "db", readyReplicas=2, replicas=3)
    c.snapshot("none goes before the first is well")
    c.run(_pod(c, 0))
    c.until_pods(1)
    c.until_status("StatefulSet", "db", readyReplicas=1, replicas=1)
    c.snapshot("all have gone that should")


def _rolled_back(c: Teller) -> None:
    c.create(a_stateful_set(replicas=1))
    c.until_status("StatefulSet", "db", readyReplicas=1)
    _roll(c, "2")
    _roll(c, "1")
    c.snapshot("an old revision gets a new number")


def _orphan(c: Teller) -> None:
    c.create(a_stateful_set(replicas=1))
    c.until_status("StatefulSet", "db", readyReplicas=1)
    c.until_event("SuccessfulCreate")
    c.delete("StatefulSet", "db", policy="Orphan")
    c.until_gone("StatefulSet", "db")
    c.until(lambda: all(not one["metadata"].get("ownerReferences") for one in c.pods()))
    c.snapshot("orphaned")


def _bound(c: Teller) -> None:
    volume = an_object(
        "v1",
        "PersistentVolume",
        f"{c.namespace}.0",
        spec={
            "capacity": {"storage": "2Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/tmp/none"},
            "claimRef": {"namespace": c.namespace, "name": "data-db-0"},
        },
    )
    c.create(volume, a_stateful_set(replicas=1, volumeClaimTemplates=[CLAIM]))
    c.until_status("StatefulSet", "db", readyReplicas=1)
    c.snapshot("with a volume that waited for it")


STORIES = [
    Story("stateful set in order", _ordered),
    Story("stateful set in parallel", _parallel),
    Story("stateful set rolls out", _rolling),
    Story("stateful set partition", _partition),
    Story("stateful set updates on delete", _on_delete),
    Story("stateful set volumes are kept", _volumes()),
    Story("stateful set volumes go when scaled", _volumes(whenScaled="Delete", whenDeleted="Retain")),
    Story("stateful set volumes go when deleted", _volumes(whenScaled="Retain", whenDeleted="Delete")),
    Story("stateful set counted from five", _ordinals),
    Story("stateful set finds a stranger", _in_the_way),
    Story("stateful set adopts", _adopts),
    Story("stateful set replaces a pod that failed", _failed),
    Story("stateful set forgets old revisions", _history),
    Story("stateful set rollout is stuck", _stuck),
    Story("stateful set waits until pods are available", _unavailable),
    Story("stateful set deleted Orphan", _orphan),
    Story("stateful set scaled down while one is ill", _blocked),
    Story("stateful set is rolled back", _rolled_back),
    Story("stateful set with a bound volume", _bound),
]
