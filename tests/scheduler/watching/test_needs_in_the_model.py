"""What pods need of other objects, as the engine's model has it, whatever comes first and however it changes."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.api import kai_names as names
from shoal.api.core.nodes import Node
from shoal.api.core.pods import Pod
from shoal.scheduler.model.statuses import Status
from shoal.scheduler.model.tasks import Constraints, Task
from shoal.scheduler.watching.mirror import Mirror
from shoal.scheduler.watching.needs import Kind, ObjectKey
from tests.scheduler.needed_objects import (
    a_claim,
    a_class,
    a_config_map,
    a_csi_node,
    a_device_claim,
    a_device_class,
    a_namespace,
    a_slice,
    a_volume,
    claims,
    on,
)
from tests.scheduler.watching.worlds import (
    MOMENT,
    SETTINGS,
    World,
    a_gpu_node,
    a_group,
    a_mirrored_pod,
    a_request,
    model,
)
from tests.support.builders.queues import a_queue

KINDS = {
    "Existence": Kind.CONFIG_MAP,
    "PersistentVolumeClaim": Kind.CLAIM,
    "PersistentVolume": Kind.VOLUME,
    "StorageClass": Kind.STORAGE_CLASS,
    "CSINode": Kind.NODE_DRIVERS,
    "DeviceClaim": Kind.DEVICE_CLAIM,
    "DeviceClass": Kind.DEVICE_CLASS,
    "ResourceSlice": Kind.SLICE,
    "Namespace": Kind.NAMESPACE,
}
PLACES = {"Pod": "pods", "Node": "nodes", "PodGroup": "groups", "Queue": "queues", "BindRequest": "requests"}
GPUS: dict[str, Any] = {"resourceClaims": [{"name": "own", "resourceClaimName": "gpus"}]}
SINGLE = "ReadWriteOncePod"


def key_of(thing: Any) -> ObjectKey:
    return KINDS[type(thing).__name__], thing.metadata.namespace, thing.metadata.name


def show(world: World, mirror: Mirror, *things: Any) -> None:
    """Makes things so, and tells of them."""
    for thing in things:
        place = PLACES.get(type(thing).__name__)
        if place is None:
            world.objects[key_of(thing)] = thing
            world.tell(mirror, "objects", key_of(thing))
        else:
            getattr(world, place)[thing.metadata.name] = thing
            world.tell(mirror, place, thing.metadata.name)


def hide(world: World, mirror: Mirror, thing: Any) -> None:
    """Takes a thing away, and tells of it."""
    place = PLACES.get(type(thing).__name__)
    if place is None:
        world.objects.pop(key_of(thing), None)
        world.tell(mirror, "objects", key_of(thing))
    else:
        getattr(world, place).pop(thing.metadata.name, None)
        world.tell(mirror, place, thing.metadata.name)


def labelled(name: str, **labels: str) -> Node:
    node = a_gpu_node(name)
    node.metadata.labels.update(labels)
    return node


@st.composite
def users(draw: st.DrawFn) -> Pod:
    name = draw(st.sampled_from(["p0", "p1"]))
    spec: dict[str, Any] = {}
    if used := draw(st.sets(st.sampled_from(["c0", "c1"]))):
        spec["volumes"] = claims(*sorted(used))
    if draw(st.booleans()):
        spec["resourceClaims"] = [{"name": "own", "resourceClaimName": "gpus"}]
    if draw(st.booleans()):
        spec["containers"] = [{"name": "main", "envFrom": [{"configMapRef": {"name": "settings"}}]}]
    node = draw(st.sampled_from(["", "", "n0", "n1"]))
    phase = draw(st.sampled_from(["Running", "Succeeded", "Failed"])) if node else "Pending"
    uid = f"uid-{name}-{draw(st.sampled_from([0, 0, 1]))}"
    return a_mirrored_pod(name, uid=uid, group=draw(st.sampled_from(["", "g0"])), phase=phase, node=node, **spec)


claims_of_volumes = st.builds(
    lambda name, volume, mode: a_claim(name, bound_to=volume, modes=[mode]),
    st.sampled_from(["c0", "c1"]),
    st.sampled_from(["", "v0"]),
    st.sampled_from(["ReadWriteOnce", SINGLE]),
)
volumes = st.builds(
    lambda name, node, driver: a_volume(name, affinity=on(node), driver=driver),
    st.sampled_from(["v0", "v1"]),
    st.sampled_from(["n0", "n1"]),
    st.sampled_from(["", "ebs"]),
)
others = st.one_of(
    st.sampled_from(["", "no-such"]).map(lambda more: a_class("late", provisioner="ebs" if more else "")),
    st.sampled_from([1, 5]).map(lambda count: a_csi_node("n0", ebs=count)),
    st.sampled_from(["team", "other"]).map(lambda queue: a_device_claim("gpus", queue=queue)),
    st.just(a_device_class()),
    st.sampled_from(["n0", "n1"]).map(lambda node: a_slice(node, "gpu-0", name="slice")),
    st.just(a_config_map("settings")),
    st.sampled_from(["n0", "n1"]).map(labelled),
    st.sampled_from(["team", "other"]).map(lambda queue: a_group("g0", queue=queue)),
    st.sampled_from(["p0", "p1"]).map(lambda pod: a_request(pod, "n1")),
)
things = st.one_of(users(), users(), claims_of_volumes, volumes, others)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(things, st.booleans(), st.booleans()), min_size=8, max_size=30))
def test_whatever_happens_the_model_is_as_if_only_the_end_had_been_seen(steps: list[tuple[Any, bool, bool]]) -> None:
    world, mirror = World(), Mirror(SETTINGS)
    show(world, mirror, labelled("n0"), a_queue("team", quota=4), a_queue("other", quota=4))
    for thing, stays, catches_up in steps:
        (show if stays else hide)(world, mirror, thing)
        if catches_up:
            mirror.catch_up(MOMENT)
    mirror.catch_up(MOMENT)
    assert model(mirror) == model(world.mirror(MOMENT))


def seen(*things: Any) -> tuple[World, Mirror]:
    world, mirror = World(), Mirror(SETTINGS)
    show(world, mirror, labelled("n0"), labelled("n1"), a_queue("team", quota=4), a_group("g0"), *things)
    mirror.catch_up(MOMENT)
    return world, mirror


def task(mirror: Mirror, pod: str) -> Task:
    found = mirror.task(("default", pod))
    assert found is not None
    return found


def where(mirror: Mirror, pod: str = "p0") -> Constraints:
    return task(mirror, pod).constraints


def test_a_pod_waits_until_its_claim_is_there_and_then_goes_where_its_volume_is() -> None:
    world, mirror = seen(a_mirrored_pod("p0", group="g0", volumes=claims("data")))
    assert "claim data does not exist" in where(mirror).missing
    show(world, mirror, a_claim("data", bound_to="v"), a_volume("v", affinity=on("n1")))
    mirror.catch_up(MOMENT)
    assert (where(mirror).missing, where(mirror).allowed_nodes) == ("", frozenset({"n1"}))
    assert mirror.changed_jobs == {("default", "g0")}


def test_pods_that_may_go_to_the_same_nodes_share_what_is_said_of_them() -> None:
    _, mirror = seen(
        a_class("late"),
        *(a_claim(f"c{each}", bound_to=f"v{each}") for each in range(2)),
        *(a_volume(f"v{each}", affinity=on("n1")) for each in range(2)),
        *(a_mirrored_pod(f"p{each}", group="g0", volumes=claims(f"c{each}")) for each in range(2)),
    )
    assert where(mirror, "p0") is where(mirror, "p1")


def test_a_node_that_comes_later_is_where_the_volume_is() -> None:
    world, mirror = seen(
        a_claim("data", bound_to="v"),
        a_volume("v", affinity=on("n2")),
        a_mirrored_pod("p0", group="g0", volumes=claims("data")),
    )
    assert where(mirror).allowed_nodes == frozenset()
    show(world, mirror, labelled("n2"))
    mirror.catch_up(MOMENT)
    assert where(mirror).allowed_nodes == frozenset({"n2"})


def test_who_got_a_place_with_a_claim_for_one_pod_keeps_it_from_the_next() -> None:
    single = a_claim("data", bound_to="v", modes=[SINGLE])
    world, mirror = seen(
        single, a_volume("v"), *(a_mirrored_pod(f"p{each}", group="g0", volumes=claims("data")) for each in range(2))
    )
    assert where(mirror, "p0").missing == where(mirror, "p1").missing == ""
    mirror.assume(task(mirror, "p0"), "n0", (), until=MOMENT + 100)
    mirror.catch_up(MOMENT + 1)
    assert "pod p0 uses it" in where(mirror, "p1").missing
    assert where(mirror, "p0").missing == ""
    assert task(mirror, "p0").status is Status.BINDING
    hide(world, mirror, world.pods["p0"])
    mirror.catch_up(MOMENT + 2)
    assert where(mirror, "p1").missing == ""


def test_gpus_that_are_claimed_weigh_upon_the_queue_and_take_what_the_node_hands_out() -> None:
    world, mirror = seen(
        a_device_class(),
        a_slice("n1", "gpu-0", "gpu-1"),
        a_device_claim("gpus", queue="team", count=2),
        a_mirrored_pod("p0", group="g0", **GPUS),
    )
    assert mirror.shares["team"].asked.gpu == 2
    assert where(mirror).allowed_nodes == frozenset({"n1"})
    free = dict(zip(mirror.cluster.nodes.index, mirror.cluster.nodes.free_gpus().tolist(), strict=True))
    assert free == {"n0": 4, "n1": 6}
    assert mirror.cluster.nodes["n1"].has_claimed_gpus
    show(world, mirror, a_mirrored_pod("p0", group="g0", phase="Running", node="n1", **GPUS))
    mirror.catch_up(MOMENT)
    assert mirror.shares["team"].allocated.gpu == 2
    assert float(mirror.cluster.nodes.free_gpus()[1]) == 4


def test_a_claim_of_gpus_is_for_those_of_its_queue_also_when_the_gang_changes_it() -> None:
    world, mirror = seen(
        a_queue("other", quota=4),
        a_device_class(),
        a_slice("n1", "gpu-0"),
        a_device_claim("gpus", queue="team"),
        a_mirrored_pod("p0", group="g0", **GPUS),
    )
    assert where(mirror).missing == ""
    show(world, mirror, a_group("g0", queue="other"))
    mirror.catch_up(MOMENT)
    assert "belongs to queue team" in where(mirror).missing
    assert mirror.shares["other"].asked.gpu == 1


def test_a_node_takes_as_many_volumes_as_its_driver_can_attach() -> None:
    _, mirror = seen(
        a_csi_node("n0", ebs=1),
        a_claim("c0", bound_to="v0"),
        a_volume("v0", driver="ebs"),
        a_claim("c1", bound_to="v1"),
        a_volume("v1", driver="ebs"),
        a_mirrored_pod("p0", group="g0", phase="Running", node="n0", volumes=claims("c0")),
        a_mirrored_pod("p1", group="g0", volumes=claims("c1")),
    )
    place = mirror.resources.known()["attachable-volumes-csi-ebs"]
    assert mirror.cluster.nodes.idle[:, place].tolist() == [0, 1e6]
    assert task(mirror, "p1").request.vector[place] == 1


def test_labels_of_namespaces_count_for_pods_that_want_to_be_near_others() -> None:
    term = {
        "labelSelector": {"matchLabels": {"app": "db"}},
        "namespaceSelector": {"matchLabels": {"team": "red"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    near = a_mirrored_pod("near", namespace="shop", labels={"app": "db"}, phase="Running", node="n1")
    world, mirror = seen(a_mirrored_pod("p0", group="g0", affinity=affinity), a_namespace("shop"))
    mirror.noted.pods["shop", "near"] = near

    def places() -> list[bool]:
        mirror.catch_up(MOMENT)
        mask = mirror.pods.mask(task(mirror, "p0"))
        assert mask is not None
        found: list[bool] = mask.tolist()
        return found

    assert places() == [False, False]
    show(world, mirror, a_namespace("shop", team="red"))
    assert places() == [False, True]
    show(world, mirror, a_namespace("shop", team="blue"))
    assert places() == [False, False]


def test_a_pod_of_old_that_asks_for_mig_by_annotation_waits_and_is_told_what_to_do() -> None:
    world, mirror = seen(a_mirrored_pod("p0", group="g0", annotations={"nvidia.com/mig-1g.5gb": "1"}))
    assert where(mirror).missing.startswith("annotation nvidia.com/mig-1g.5gb asks for MIG instances")
    show(world, mirror, a_mirrored_pod("p0", group="g0", annotations={"nvidia.com/mig-1g.5gb": "some"}))
    mirror.catch_up(MOMENT)
    assert where(mirror).missing == ""


def test_what_a_pod_that_needs_nothing_asks_for_is_as_before() -> None:
    _, mirror = seen(a_mirrored_pod("p0", group="g0", requests={names.NVIDIA_GPU: "1"}))
    assert where(mirror).allowed_nodes is None
    assert task(mirror, "p0").request.claimed_gpus == 0
