"""Volumes and claims that somebody made by hand: how they find each other, and what protects them."""

from __future__ import annotations

from typing import Any

from tests.differential.mirror import Object
from tests.differential.objects import a_bare_pod, an_object
from tests.differential.story import BY_HAND, Story, Teller


def _volume(c: Teller, name: str, storage: str = "1Gi", **spec: Any) -> Object:
    """A volume of a class that is this story's own."""
    content = {
        "capacity": {"storage": storage},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/tmp/none"},
        "storageClassName": c.namespace,
        **spec,
    }
    return an_object("v1", "PersistentVolume", f"{c.namespace}.{name}", spec=content)


def _claim(c: Teller, name: str = "data", storage: str = "1Gi", **spec: Any) -> Object:
    content = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": storage}},
        "storageClassName": c.namespace,
        **spec,
    }
    return an_object("v1", "PersistentVolumeClaim", name, spec=content)


def _bound(c: Teller, name: str = "data") -> None:
    c.until_status("PersistentVolumeClaim", name, phase="Bound")
    volume = c.get("PersistentVolumeClaim", name)["spec"]["volumeName"]
    c.until_status("PersistentVolume", volume, phase="Bound")


def _available(c: Teller, name: str) -> None:
    c.until_status("PersistentVolume", f"{c.namespace}.{name}", phase="Available")


def _smallest(c: Teller) -> None:
    for name, storage in (("big", "9Gi"), ("fits", "3Gi"), ("small", "1Gi")):
        c.create(_volume(c, name, storage))
        _available(c, name)
    c.create(_claim(c, storage="2Gi"))
    _bound(c)
    c.snapshot("the smallest that fits")


def _waits(c: Teller) -> None:
    c.create(_claim(c, storageClassName=""))
    c.until_event("FailedBinding")
    c.snapshot("no volume and no class")
    c.create(_claim(c, "late"))
    c.until_event("ProvisioningFailed")
    c.create(_volume(c, "late"))
    _bound(c, "late")
    c.snapshot("a volume has come")


def _named(c: Teller) -> None:
    c.create(_volume(c, "one"), _volume(c, "two"))
    _available(c, "one")
    _available(c, "two")
    c.create(_claim(c, volumeName=f"{c.namespace}.two"))
    _bound(c)
    c.snapshot("the one that is named")


def _reserved(c: Teller) -> None:
    c.create(_volume(c, "one", claimRef={"namespace": c.namespace, "name": "data"}))
    _available(c, "one")
    c.snapshot("it waits for its claim")
    c.create(_claim(c, "other"), _claim(c, "data"))
    _bound(c)
    c.snapshot("only the right claim gets it")


def _selected(c: Teller) -> None:
    c.create(_volume(c, "plain"), _volume(c, "fast"))
    c.patch("PersistentVolume", f"{c.namespace}.fast", {"metadata": {"labels": {"disk": "fast"}}})
    _available(c, "plain")
    _available(c, "fast")
    c.create(_claim(c, selector={"matchLabels": {"disk": "fast"}}))
    _bound(c)
    c.snapshot("by labels")


def _released(c: Teller) -> None:
    c.create(_volume(c, "one"))
    _available(c, "one")
    c.create(_claim(c))
    _bound(c)
    c.delete("PersistentVolumeClaim", "data")
    c.until_status("PersistentVolume", f"{c.namespace}.one", phase="Released")
    c.snapshot("kept, but for nobody else")
    c.patch("PersistentVolume", f"{c.namespace}.one", {"spec": {"claimRef": None}})
    _available(c, "one")
    c.snapshot("free again")


def _lost(c: Teller) -> None:
    c.create(_volume(c, "one"))
    _available(c, "one")
    c.create(_claim(c))
    _bound(c)
    c.delete("PersistentVolume", f"{c.namespace}.one")
    c.forget_finalizers("PersistentVolume", f"{c.namespace}.one")
    c.until_status("PersistentVolumeClaim", "data", phase="Lost")
    c.snapshot("the volume is lost")


def _protected(c: Teller) -> None:
    c.create(_volume(c, "one"))
    _available(c, "one")
    c.create(_claim(c))
    _bound(c)
    mounts = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    c.create(a_bare_pod("user", volumes=mounts))
    c.until_ready(1)
    c.delete("PersistentVolumeClaim", "data")
    c.delete("PersistentVolume", f"{c.namespace}.one")
    c.snapshot("both wait for the pod")
    c.delete("Pod", "user")
    c.until_gone("PersistentVolumeClaim", "data")
    c.until_gone("PersistentVolume", f"{c.namespace}.one")
    c.snapshot("all are gone")


def _unused(c: Teller) -> None:
    c.create(_claim(c))
    mounts = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    c.create(a_bare_pod("waiting", volumes=mounts, **BY_HAND))
    c.until_event("ProvisioningFailed")
    c.delete("PersistentVolumeClaim", "data")
    c.until_gone("PersistentVolumeClaim", "data")
    c.snapshot("a pod on no node protects nothing")


def _other_modes(c: Teller) -> None:
    c.create(_volume(c, "one"))
    _available(c, "one")
    c.create(_claim(c, accessModes=["ReadWriteMany"], storageClassName=c.namespace))
    c.create(_claim(c, "block", volumeMode="Block"))
    c.create(_claim(c, "class", storageClassName="no-such-class"))
    c.until_event("ProvisioningFailed", 3)
    c.snapshot("nothing fits")


def _first_consumer(c: Teller) -> None:
    storage_class = {
        **an_object("storage.k8s.io/v1", "StorageClass", f"{c.namespace}.late"),
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    c.create(storage_class, _volume(c, "one", storageClassName=f"{c.namespace}.late"))
    _available(c, "one")
    c.create(_claim(c, storageClassName=f"{c.namespace}.late"))
    c.until_event("WaitForFirstConsumer")
    c.snapshot("it waits for a pod")
    mounts = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    c.create(a_bare_pod("user", volumes=mounts))
    c.until_ready(1)
    _bound(c)
    c.snapshot("a pod has come")


def _ephemeral(c: Teller) -> None:
    template = {"spec": _claim(c)["spec"], "metadata": {"labels": {"of": "pod"}}}
    c.create(a_bare_pod("user", volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]))
    c.until(lambda: c.find("PersistentVolumeClaim", "user-scratch"))
    c.until_event("ProvisioningFailed")
    c.snapshot("a claim of the pod's own")
    c.delete("Pod", "user")
    c.until_gone("PersistentVolumeClaim", "user-scratch")
    c.snapshot("it goes with the pod")


def _undeletable(c: Teller) -> None:
    nfs = {"server": "nowhere.invalid", "path": "/"}
    c.create(_volume(c, "one", persistentVolumeReclaimPolicy="Delete", hostPath=None, nfs=nfs))
    _available(c, "one")
    c.create(_claim(c))
    _bound(c)
    c.delete("PersistentVolumeClaim", "data")
    c.until_status("PersistentVolume", f"{c.namespace}.one", phase="Failed")
    c.snapshot("nobody knows how to delete it")


STORIES = [
    Story("volume the smallest that fits", _smallest),
    Story("volume that is not there", _waits),
    Story("volume that is named", _named),
    Story("volume reserved for a claim", _reserved),
    Story("volume by labels", _selected),
    Story("volume released", _released),
    Story("volume lost", _lost),
    Story("volume in use", _protected),
    Story("volume claim not in use", _unused),
    Story("volume that does not fit", _other_modes),
    Story("volume waits for its first consumer", _first_consumer),
    Story("volume of a pod", _ephemeral),
    Story("volume that nobody can delete", _undeletable),
]
