"""The model that is kept up to date is the model that would be made anew."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.api import kai_names as names
from shoal.api.core.pods import Pod
from shoal.scheduler.model.statuses import Status
from shoal.scheduler.watching.groups import COSCHEDULING_LABELS, Dialect, GangKey, Seat, gang_of
from shoal.scheduler.watching.mirror import Mirror, MirrorSettings
from tests.scheduler.watching.worlds import (
    MOMENT,
    SETTINGS,
    World,
    a_gpu_node,
    a_group,
    a_job,
    a_mirrored_pod,
    a_request,
    model,
    stamp,
    volcano,
)
from tests.support.builders.queues import a_queue

EXTENDED = "example.com/link"
VOLCANO = "scheduling.k8s.io/group-name"
LISTENING: Any = {"name": "main", "ports": [{"containerPort": 80, "hostPort": 80}]}


def by_role(pod: Pod) -> str:
    """A rule that puts pods of one name into several pod sets."""
    return pod.metadata.labels.get("role", "")


pod_names = st.sampled_from(["p0", "p1"])
node_names = st.sampled_from(["n0", "n1"])
group_names = st.sampled_from(["g0", "g1"])
queue_names = st.sampled_from(["team", "other"])
other_names = st.sampled_from(["v0", "v1"])

labels_of_pods = st.fixed_dictionaries(
    {},
    optional={
        names.SUBGROUP: st.sampled_from(["a", "b"]),
        names.QUEUE: queue_names,
        names.GPU_GROUP: st.sampled_from(["x", "y"]),
        "role": st.sampled_from(["a", "b"]),
    },
)
marks_of_pods = st.fixed_dictionaries(
    {}, optional={VOLCANO: other_names, names.GPU_FRACTION: st.sampled_from(["0.5", "0.25"])}
)
asks = st.sampled_from(
    [{"cpu": "1"}, {"cpu": "500m", "memory": "1Gi"}, {names.NVIDIA_GPU: "1"}, {EXTENDED: "1"}, {EXTENDED: "2"}]
)


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    name = draw(pod_names)
    marks = draw(marks_of_pods)
    phase = draw(st.sampled_from(["Pending", "Pending", "Running", "Running", "Succeeded", "Failed"]))
    node = draw(st.sampled_from(["n0", "n1", "nowhere"])) if phase != "Pending" or draw(st.booleans()) else ""
    spec: dict[str, Any] = {}
    if not node and draw(st.booleans()):
        spec["schedulingGates"] = [{"name": "wait"}]
    if draw(st.booleans()):
        spec["tolerations"] = [{"key": "a", "operator": "Exists"}]
    return a_mirrored_pod(
        name,
        uid=f"uid-{name}-{draw(st.sampled_from([0, 0, 0, 1]))}",
        scheduler=draw(st.sampled_from([names.SCHEDULER, "default-scheduler", "default-scheduler", "somebody-else"])),
        group=draw(st.sampled_from(["", "g0", "g1"])),
        labels=draw(labels_of_pods),
        annotations=marks,
        requests={"cpu": "1"} if names.GPU_FRACTION in marks else draw(asks),
        containers=[draw(st.sampled_from(["main", LISTENING]))],
        phase=phase,
        node=node,
        deleted=draw(st.sampled_from([None, None, 0.0, 100.0])),
        started=draw(st.sampled_from([None, 1.0])),
        priority=draw(st.sampled_from([0, 200])),
        **spec,
    )


@dataclass(frozen=True)
class Step:
    """One thing that happens; ``what`` is None where something goes."""

    kind: str
    name: str
    what: Any = None


def happenings() -> st.SearchStrategy[Step]:
    return st.one_of(
        pods().map(lambda pod: Step("pods", pod.metadata.name, pod)),
        pods().map(lambda pod: Step("pods", pod.metadata.name, pod)),
        pod_names.map(lambda name: Step("pods", name)),
        st.builds(
            lambda name, gpus, ready, more: Step("nodes", name, a_gpu_node(name, gpus=gpus, ready=ready, **more)),
            node_names,
            st.integers(1, 3),
            st.booleans(),
            st.sampled_from([{}, {EXTENDED: "4"}]),
        ),
        node_names.map(lambda name: Step("nodes", name)),
        st.builds(
            lambda name, queue, members, sets: Step(
                "groups", name, a_group(name, queue=queue, members=members, sets=sets)
            ),
            group_names,
            queue_names,
            st.integers(1, 3),
            st.sampled_from([(), ("a", "b"), ("b",)]),
        ),
        group_names.map(lambda name: Step("groups", name)),
        queue_names.map(lambda name: Step("queues", name, a_queue(name, quota=4))),
        queue_names.map(lambda name: Step("queues", name)),
        st.builds(
            lambda pod, node, phase, owner: Step(
                "requests", pod, a_request(pod, node, phase=phase, owner=owner and f"uid-{pod}-{owner}", groups=("x",))
            ),
            pod_names,
            node_names,
            st.sampled_from(["Pending", "Succeeded", "Failed"]),
            st.sampled_from(["", "0", "1"]),
        ),
        pod_names.map(lambda name: Step("requests", name)),
        st.builds(
            lambda name, gang, rule: Step("seats", name, Seat(gang=volcano(gang), pod_set="b", rule=rule)),
            other_names,
            other_names,
            st.sampled_from([None, by_role]),
        ),
        other_names.map(lambda name: Step("seats", name)),
        st.builds(
            lambda name, sets: Step("others", name, sets), other_names, st.sampled_from([(), ("a", "b"), ("b",)])
        ),
        other_names.map(lambda name: Step("others", name)),
        st.integers(1, 200).map(lambda seconds: Step("time", "", seconds)),
    )


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(happenings(), st.booleans()), min_size=8, max_size=30))
def test_whatever_happens_the_model_is_as_if_only_the_end_had_been_seen(steps: list[tuple[Step, bool]]) -> None:
    now = MOMENT
    world, mirror = seen()
    for step, catches_up in steps:
        if step.kind == "time":
            now += step.what
        else:
            things = getattr(world, step.kind)
            if step.what is None:
                things.pop(step.name, None)
            else:
                things[step.name] = step.what
            world.tell(mirror, step.kind, step.name)
        if catches_up:
            mirror.catch_up(now)
    mirror.catch_up(now)
    assert model(mirror) == model(world.mirror(now))


def seen(*things: Any, now: float = MOMENT, shown_to: MirrorSettings = SETTINGS) -> tuple[World, Mirror]:
    """A mirror of a node, a queue and these pods, PodGroups and requests."""
    world, mirror = World(), Mirror(shown_to)
    kinds = {"Pod": "pods", "Node": "nodes", "PodGroup": "groups", "Queue": "queues", "BindRequest": "requests"}
    for thing in (a_gpu_node("n0"), a_queue("team", quota=4), *things):
        show(world, mirror, kinds[type(thing).__name__], thing)
    mirror.catch_up(now)
    return world, mirror


def show(world: World, mirror: Mirror, kind: str, thing: Any) -> None:
    name = thing.metadata.name
    getattr(world, kind)[name] = thing
    world.tell(mirror, kind, name)


def status(mirror: Mirror, pod: str) -> Status:
    task = mirror.task(("default", pod))
    assert task is not None
    return task.status


def idle_gpus(mirror: Mirror) -> float:
    return float(mirror.cluster.nodes.free_gpus()[0])


GPU = {names.NVIDIA_GPU: "1"}


def test_a_pod_holds_the_place_it_was_given_until_nobody_confirms_it_in_time() -> None:
    _, mirror = seen(a_group("g0"), a_mirrored_pod("p0", group="g0", requests=GPU))
    task = mirror.task(("default", "p0"))
    assert task is not None
    mirror.assume(task, "n0", (), until=MOMENT + 10)
    assert (status(mirror, "p0"), idle_gpus(mirror), mirror.shares["team"].allocated.gpu) == (Status.BINDING, 3, 1)
    mirror.catch_up(MOMENT + 10)
    assert status(mirror, "p0") is Status.BINDING
    mirror.catch_up(MOMENT + 11)
    assert (status(mirror, "p0"), idle_gpus(mirror), mirror.shares["team"].allocated.gpu) == (Status.PENDING, 4, 0)


def test_a_pod_whose_binding_failed_before_anybody_looked_waits_again() -> None:
    world, mirror = seen(a_group("g0"), a_mirrored_pod("p0", group="g0", requests=GPU))
    task = mirror.task(("default", "p0"))
    assert task is not None
    mirror.assume(task, "n0", (), until=MOMENT + 100)
    show(world, mirror, "requests", a_request("p0", "n0", phase="Failed", owner="uid-p0"))
    mirror.catch_up(MOMENT + 1)
    assert (status(mirror, "p0"), idle_gpus(mirror)) == (Status.PENDING, 4)


def test_news_of_the_request_before_do_not_take_the_place_away() -> None:
    failed = a_request("p0", "n0", phase="Failed", owner="uid-p0", uid="first")
    world, mirror = seen(a_group("g0"), a_mirrored_pod("p0", group="g0", requests=GPU), failed)
    task = mirror.task(("default", "p0"))
    assert task is not None
    mirror.assume(task, "n0", (), until=MOMENT + 100)
    show(world, mirror, "requests", failed)
    mirror.catch_up(MOMENT + 1)
    assert status(mirror, "p0") is Status.BINDING
    show(world, mirror, "requests", a_request("p0", "n0", owner="uid-p0", uid="second"))
    mirror.catch_up(MOMENT + 2)
    assert (status(mirror, "p0"), idle_gpus(mirror)) == (Status.BINDING, 3)


def test_a_place_can_be_given_up_after_the_pod_has_changed() -> None:
    world, mirror = seen(a_group("g0"), a_mirrored_pod("p0", group="g0", requests=GPU))
    old = mirror.task(("default", "p0"))
    assert old is not None
    mirror.assume(old, "n0", (), until=MOMENT + 100)
    show(world, mirror, "pods", a_mirrored_pod("p0", group="g0", requests=GPU, labels={"more": "labels"}))
    mirror.catch_up(MOMENT + 1)
    assert status(mirror, "p0") is Status.BINDING
    mirror.forget(old)
    assert model(mirror) == model(world.mirror(MOMENT + 1))
    assert (status(mirror, "p0"), idle_gpus(mirror)) == (Status.PENDING, 4)


def test_a_place_that_was_given_to_a_pod_is_not_its_successors() -> None:
    world, mirror = seen(a_group("g0"), a_mirrored_pod("p0", group="g0", requests=GPU))
    old = mirror.task(("default", "p0"))
    assert old is not None
    mirror.assume(old, "n0", (), until=MOMENT + 100)
    show(world, mirror, "pods", a_mirrored_pod("p0", uid="another", group="g0", requests=GPU))
    mirror.catch_up(MOMENT + 1)
    assert model(mirror) == model(world.mirror(MOMENT + 1))
    assert (status(mirror, "p0"), idle_gpus(mirror)) == (Status.PENDING, 4)


def test_a_pod_that_does_not_end_is_stuck_after_a_while_without_any_event() -> None:
    _, mirror = seen(
        a_group("g0"),
        a_mirrored_pod("p0", group="g0", requests=GPU, phase="Running", node="n0", deleted=0.0),
        now=MOMENT + 120,
    )
    assert status(mirror, "p0") is Status.RELEASING
    mirror.catch_up(MOMENT + 121)
    assert (status(mirror, "p0"), idle_gpus(mirror)) == (Status.STUCK_IN_RELEASING, 3)
    assert mirror.cluster.nodes.releasing[0].sum() == 0


def test_pods_of_others_and_pods_that_are_not_grouped_yet_only_occupy() -> None:
    foreign = a_mirrored_pod("p0", scheduler="somebody-else", requests=GPU, phase="Running", node="n0")
    waiting = a_mirrored_pod("p1", scheduler=names.SCHEDULER, requests=GPU)
    _, mirror = seen(foreign, waiting)
    assert (mirror.cluster.jobs, mirror.cluster.foreign.gpu, idle_gpus(mirror)) == ({}, 1, 3)
    assert mirror.shares["team"].asked.gpu == 0


def test_a_pod_of_a_scheduler_without_a_grouper_is_a_gang_of_its_own() -> None:
    _, mirror = seen(a_mirrored_pod("p0", scheduler="default-scheduler", labels={names.QUEUE: "team"}, requests=GPU))
    [job] = mirror.cluster.jobs.values()
    assert (job.name, job.queue, job.pending) == ("pod/p0", "team", 1)


def test_beside_another_scheduler_only_gangs_of_its_pods_are_taken() -> None:
    beside = replace(SETTINGS, beside=frozenset({"default-scheduler"}))
    labelled = {COSCHEDULING_LABELS[0]: "gang"}
    running: dict[str, Any] = {"scheduler": "default-scheduler", "requests": GPU, "phase": "Running", "node": "n0"}
    plain = a_mirrored_pod("p0", **running)
    of_nobody = a_mirrored_pod("p1", labels=labelled, **running)
    member = a_mirrored_pod("p2", workloadRef={"name": "workload", "podGroup": "workers"}, **running)
    _, mirror = seen(plain, of_nobody, member, shown_to=beside)
    for gang in (gang_of(plain), gang_of(of_nobody), gang_of(member)):
        mirror.noted.gangs[gang] = a_job(gang.name)
    mirror.catch_up(MOMENT)
    taken = [task.name for job in mirror.cluster.jobs.values() for task in job.tasks.values()]
    assert (taken, mirror.cluster.foreign.gpu, idle_gpus(mirror)) == (["p2"], 2, 1)


def test_a_pod_group_may_come_after_its_pods() -> None:
    world, mirror = seen(*(a_mirrored_pod(f"p{each}", group="g0", requests=GPU) for each in range(2)))
    assert not mirror.cluster.jobs
    show(world, mirror, "groups", a_group("g0", members=2))
    mirror.catch_up(MOMENT)
    [job] = mirror.cluster.jobs.values()
    assert (job.is_ready, job.pending, mirror.shares["team"].asked.gpu) == (True, 2, 2)


def test_a_pod_goes_where_its_annotation_and_label_say_it_is_now() -> None:
    world, mirror = seen(
        a_group("g0"),
        a_group("g1", sets=("a", "b")),
        a_mirrored_pod("p0", group="g0", requests=GPU, phase="Running", node="n0"),
    )
    moved = a_mirrored_pod("p0", group="g1", labels={names.SUBGROUP: "b"}, requests=GPU, phase="Running", node="n0")
    show(world, mirror, "pods", moved)
    mirror.catch_up(MOMENT)
    before, after = (mirror.cluster.jobs["default", name] for name in ("g0", "g1"))
    assert (before.allocated, after.pod_sets["a"].allocated, after.pod_sets["b"].allocated) == (0, 0, 1)
    assert (idle_gpus(mirror), mirror.shares["team"].allocated.gpu) == (3, 1)


def test_those_who_look_are_told_which_jobs_and_nodes_changed() -> None:
    world, mirror = seen(a_group("g0"))
    mirror.changed_jobs.clear()
    mirror.changed_nodes.clear()
    show(world, mirror, "pods", a_mirrored_pod("p0", group="g0"))
    mirror.catch_up(MOMENT)
    assert mirror.changed_jobs == {("default", "g0")}
    mirror.noted.nodes["n0"] = None
    mirror.catch_up(MOMENT)
    assert mirror.changed_nodes == {"n0"}


def test_who_has_more_to_tell_is_asked_when_the_model_catches_up_and_only_once() -> None:
    asked = []

    def tell() -> None:
        asked.append(1)
        mirror.noted.nodes["n0"] = a_gpu_node("n0")

    mirror = Mirror(SETTINGS)
    mirror.noted.tellers["me"] = tell
    assert mirror.has_news
    mirror.catch_up(MOMENT)
    mirror.catch_up(MOMENT)
    assert (len(asked), list(mirror.cluster.nodes.index)) == (1, ["n0"])


def test_what_became_of_a_gang_that_nobody_writes_upon_is_kept_when_it_changes() -> None:
    world, mirror = seen()
    world.others["v0"] = ("a",)
    world.tell(mirror, "others", "v0")
    mirror.catch_up(MOMENT)
    job = mirror.job(volcano("v0"))
    assert job is not None
    job.last_start = job.stale_since = MOMENT
    world.others["v0"] = ("a", "b")
    world.tell(mirror, "others", "v0")
    mirror.catch_up(MOMENT)
    again = mirror.job(volcano("v0"))
    assert again is not None
    assert again is not job
    assert (again.last_start, again.stale_since, set(again.pod_sets)) == (MOMENT, MOMENT, {"a", "b"})


def test_what_becomes_of_a_job_is_kept_where_there_is_nothing_to_write_it_on() -> None:
    _, mirror = seen(a_group("g0"), a_mirrored_pod("p0", scheduler="default-scheduler"))
    marks = {names.LAST_START: stamp(5), names.STALE_SINCE: None}
    assert not mirror.remember(("default", "g0"), marks)
    assert mirror.cluster.jobs["default", "g0"].last_start is None
    assert mirror.remember(("default", "pod/p0"), marks)
    job = mirror.cluster.jobs["default", "pod/p0"]
    assert (job.last_start, job.last_eviction, job.stale_since) == (MOMENT + 5, None, None)
    assert mirror.remember(("default", "gone"), marks)


def test_a_pods_start_is_known_though_nothing_else_changed() -> None:
    world, mirror = seen(a_group("g0"), a_mirrored_pod("p0", group="g0", phase="Running", node="n0"))
    show(world, mirror, "pods", a_mirrored_pod("p0", group="g0", phase="Running", node="n0", started=7.0))
    mirror.catch_up(MOMENT)
    task = mirror.task(("default", "p0"))
    assert task is not None
    assert task.started == MOMENT + 7


def test_two_gangs_may_change_their_names_with_each_other() -> None:
    _, mirror = seen()
    first, second = (GangKey(Dialect.COSCHEDULING, "default", name) for name in ("x", "y"))
    mirror.noted.gangs.update({first: a_job("one"), second: a_job("two")})
    mirror.catch_up(MOMENT)
    mirror.noted.gangs.update({first: a_job("two"), second: a_job("one")})
    mirror.catch_up(MOMENT)
    assert {key: job.name for key, job in mirror._gangs.items()} == {first: "other/two", second: "other/one"}
    assert set(mirror.cluster.jobs) == {("default", "other/one"), ("default", "other/two")}
