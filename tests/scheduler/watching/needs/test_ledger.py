"""What pods need, kept up to date: a change concerns those who looked at it, and no others."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.core import Pod
from shoal.scheduler.watching.needs import NO_NEED, Kind, Need, Needs
from shoal.scheduler.watching.needs.gear import Gear
from tests.scheduler.needed_objects import (
    ZONE,
    a_claim,
    a_class,
    a_config_map,
    a_csi_node,
    a_device_claim,
    a_device_class,
    a_slice,
    a_user,
    a_volume,
    claims,
    on,
    some_nodes,
)

NODES = some_nodes(a={"kubernetes.io/hostname": "a", ZONE: "east"}, b={"kubernetes.io/hostname": "b", ZONE: "west"})
KINDS = {
    "Existence": Kind.CONFIG_MAP,
    "PersistentVolumeClaim": Kind.CLAIM,
    "PersistentVolume": Kind.VOLUME,
    "StorageClass": Kind.STORAGE_CLASS,
    "CSINode": Kind.NODE_DRIVERS,
    "DeviceClaim": Kind.DEVICE_CLAIM,
    "DeviceClass": Kind.DEVICE_CLASS,
    "ResourceSlice": Kind.SLICE,
}


class Scene:
    """A ledger, and the pods that have a place."""

    def __init__(self, *objects: Any) -> None:
        self.placed: set[str] = set()
        self.needs = Needs(NODES, lambda key: key[1] in self.placed)
        self.show(*objects)

    def show(self, *objects: Any) -> set[str]:
        """Shows objects; gives the names of the pods that they concern."""
        seen = {(KINDS[type(one).__name__], one.metadata.namespace, one.metadata.name): one for one in objects}
        return {name for _, name in self.needs.take_in(seen)[0]}

    def hide(self, one: Any) -> set[str]:
        """Takes an object away."""
        key = KINDS[type(one).__name__], one.metadata.namespace, one.metadata.name
        return {name for _, name in self.needs.take_in({key: None})[0]}

    def of(self, pod: Pod, queue: str | None = "team") -> Need:
        """What a pod needs."""
        return self.needs.of(pod, lambda: queue)


def config_map_user(name: str, config_map: str) -> Pod:
    return a_user(name, containers=[{"name": "main", "envFrom": [{"configMapRef": {"name": config_map}}]}])


def device_user(name: str, claim: str = "gpus", template: str = "") -> Pod:
    if template:
        status = {"resourceClaimStatuses": [{"name": "own", "resourceClaimName": claim}]}
        return a_user(name, resourceClaims=[{"name": "own", "resourceClaimTemplateName": template}], status=status)
    return a_user(name, resourceClaims=[{"name": "own", "resourceClaimName": claim}])


def test_a_pod_that_needs_nothing_is_not_remembered() -> None:
    scene = Scene()
    assert scene.of(a_user()) is NO_NEED
    assert scene.show(a_config_map("settings"), a_claim("data")) == set()


def test_a_config_map_that_comes_concerns_those_who_wait_for_it() -> None:
    scene = Scene()
    web, other = config_map_user("web", "settings"), config_map_user("other", "else")
    assert scene.of(web).missing == "ConfigMap settings does not exist"
    scene.of(other)
    assert scene.show(a_config_map("settings", "elsewhere")) == set()
    assert scene.show(a_config_map("settings")) == {"web"}
    assert scene.of(web) == Need()
    assert scene.hide(a_config_map("settings")) == {"web"}
    assert scene.of(web).missing


def test_all_that_is_missing_is_said_at_once() -> None:
    pod = a_user(
        containers=[{"name": "main", "envFrom": [{"configMapRef": {"name": "settings"}}]}],
        volumes=claims("data"),
        resourceClaims=[{"name": "own", "resourceClaimName": "gpus"}],
    )
    assert Scene().of(pod).missing == (
        "ConfigMap settings does not exist; "
        "claim data does not exist: create PersistentVolumeClaim data; "
        "claim gpus of devices does not exist: create ResourceClaim gpus"
    )


@pytest.mark.parametrize(
    ("change", "does_it"),
    [
        pytest.param(a_claim("data", bound_to="v"), True, id="its claim"),
        pytest.param(a_claim("other"), False, id="another claim"),
        pytest.param(a_class("late", allowedTopologies=[]), True, id="its class"),
        pytest.param(a_class("other"), False, id="another class"),
        pytest.param(a_volume("v", affinity=on("a")), True, id="a volume of its class"),
        pytest.param(a_volume("v", of="other"), False, id="a volume of another class"),
        pytest.param(a_volume("v", of="other", claimed_by="data"), True, id="a volume that is reserved for it"),
    ],
)
def test_a_change_concerns_a_pod_whose_claim_waits_where_it_may_mean_another_volume(change: Any, does_it: bool) -> None:
    scene = Scene(a_claim("data"), a_class("late"))
    scene.of(a_user(volumes=claims("data")))
    key = KINDS[type(change).__name__], change.metadata.namespace, change.metadata.name
    assert scene.needs.is_awaited(key, None, change) is does_it
    assert scene.show(change) == ({"web"} if does_it else set())


def test_nodes_that_come_concern_those_alone_who_depend_on_them() -> None:
    scene = Scene(a_claim("data", bound_to="v"), a_volume("v", affinity=on("c")), a_config_map("settings"))
    pod = a_user(volumes=claims("data"))
    assert scene.of(pod).allowed == frozenset()
    scene.of(config_map_user("other", "settings"))
    more = some_nodes(a={}, c={"kubernetes.io/hostname": "c"})
    assert scene.needs.stand_on(more) == {("default", "web")}
    assert scene.of(pod).allowed == frozenset({"c"})


def test_a_pod_that_is_gone_is_concerned_by_nothing() -> None:
    scene = Scene()
    scene.of(a_user(volumes=claims("data")))
    scene.needs.forget(("default", "web"))
    assert scene.show(a_claim("data")) == set()


def test_who_uses_a_claim_that_is_for_one_pod_keeps_the_others_waiting() -> None:
    scene = Scene(a_claim("data", bound_to="v", modes=["ReadWriteOncePod"]), a_volume("v"))
    first, second = a_user("first", volumes=claims("data")), a_user("second", volumes=claims("data"))
    assert scene.of(first).missing == scene.of(second).missing == ""
    scene.placed = {"second"}
    assert scene.needs.beside(("default", "second")) == {("default", "first"), ("default", "second")}
    assert "pod second uses it" in scene.of(first).missing
    assert scene.of(second).missing == ""


def test_who_uses_a_claim_that_many_may_use_is_nobodys_business() -> None:
    scene = Scene(a_claim("data", bound_to="v"), a_volume("v"))
    scene.of(a_user("first", volumes=claims("data")))
    assert scene.needs.beside(("default", "first")) == set()


def test_nodes_have_what_storage_drivers_and_devices_say() -> None:
    scene = Scene()
    concerned = scene.needs.take_in(
        {
            (Kind.NODE_DRIVERS, "", "a"): a_csi_node("a", ebs=25),
            (Kind.SLICE, "", "s"): a_slice("b", "gpu-0", "gpu-1"),
        }
    )
    assert concerned == (set(), None)
    name = "attachable-volumes-csi-ebs"
    assert scene.needs.gear("a") == Gear(0, {name: 25.0})
    assert scene.needs.gear("b") == Gear(2, {name: 1e6})
    assert scene.needs.gear("c") == Gear(0, {name: 1e6})
    more = {(Kind.NODE_DRIVERS, "", "a"): a_csi_node("a", ebs=30)}
    assert scene.needs.take_in(more) == (set(), {"a"})


def test_a_pod_attaches_volumes_of_drivers_that_have_limits() -> None:
    scene = Scene(
        a_claim("data", bound_to="v"), a_volume("v", driver="ebs"), a_claim("more", bound_to="w"), a_volume("w")
    )
    pod = a_user(volumes=claims("data", "more"))
    assert scene.of(pod).attached == ()
    assert scene.show(a_csi_node("a", ebs=25)) == {"web"}
    assert scene.of(pod).attached == (("attachable-volumes-csi-ebs", 1),)


DEVICES = (a_device_class(), a_slice("b", "gpu-0", "gpu-1"))


def test_claimed_gpus_weigh_and_lead_to_where_they_are() -> None:
    scene = Scene(*DEVICES, a_device_claim("made", count=2))
    need = scene.of(device_user("web", "made", template="two"))
    assert need == Need(allowed=frozenset({"b"}), claimed_gpus=2, taken_gpus=2)
    scene.show(a_device_claim("made", count=3))
    assert scene.of(device_user("web", "made", template="two")).allowed == frozenset()


def test_a_claim_that_has_its_devices_leads_to_where_they_are() -> None:
    where = {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["east"]}]}]}
    scene = Scene(a_device_claim("gpus", queue="team", allocation={"devices": {}, "nodeSelector": where}))
    assert scene.of(device_user("web")).allowed == frozenset({"a"})


def test_devices_that_come_concern_those_whose_claims_wait() -> None:
    scene = Scene(a_device_class(), a_device_claim("gpus", queue="team"))
    assert scene.of(device_user("web")).allowed == frozenset()
    assert scene.show(a_slice("a", "gpu-0")) == {"web"}
    assert scene.of(device_user("web")).allowed == frozenset({"a"})


def test_devices_that_every_node_reaches_are_no_constraint() -> None:
    scene = Scene(a_device_class(), a_slice("", "gpu-0"), a_device_claim("gpus", queue="team"))
    assert scene.of(device_user("web")).allowed is None


def test_a_claim_that_is_not_understood_makes_a_pod_wait_and_still_weighs() -> None:
    scene = Scene(a_device_class("gpu.x.io", "1 < 2"), a_slice("b", "gpu-0"), a_device_claim("gpus", queue="team"))
    need = scene.of(device_user("web"))
    assert "claim gpus of devices is not understood here: the selector '1 < 2'" in need.missing
    assert need.claimed_gpus == 1


def test_of_those_who_use_one_claim_only_the_first_takes_its_gpus_from_the_node() -> None:
    scene = Scene(*DEVICES, a_device_claim("gpus", queue="team", count=2))
    first, second = device_user("first"), device_user("second")
    assert scene.of(first).taken_gpus == scene.of(second).taken_gpus == 2
    scene.placed = {"first"}
    assert (scene.of(first).taken_gpus, scene.of(second).taken_gpus) == (2, 0)
    scene.placed = {"first", "second"}
    assert (scene.of(first).taken_gpus, scene.of(second).taken_gpus) == (2, 0)
    assert scene.of(second).claimed_gpus == 2
    scene.placed = {"second"}
    assert scene.of(second).taken_gpus == 2


def test_a_claim_of_gpus_belongs_to_the_queue_of_its_users() -> None:
    scene = Scene(*DEVICES, a_device_claim("gpus", queue="team"))
    pod = device_user("web")
    assert "belongs to queue team, and the pod to queue other" in scene.of(pod, "other").missing
    assert scene.of(pod, "team").missing == scene.of(pod, None).missing == ""
