"""Why a job waits, in a sentence."""

from __future__ import annotations

import pytest

from shoal.scheduler.explaining import causes, short
from shoal.scheduler.explaining.reasons import shortage
from shoal.scheduler.gpu_requests import GpuRequest
from shoal.scheduler.model.cluster import Topology
from shoal.scheduler.model.jobs import Job, PodSet, SubGroup, TopologyWish
from shoal.scheduler.model.nodes import Node
from shoal.scheduler.model.queues import Queue
from shoal.scheduler.model.tasks import Constraints
from shoal.scheduler.session.failures import NoRoom, Refused
from shoal.scheduler.session.settings import Settings
from tests.scheduler.builders import a_model_gpu_queue, a_model_node
from tests.scheduler.explaining.stage import a_cluster, a_job, a_request, after_a_cycle

TWO = [a_model_node("n1"), a_model_node("n2")]
QUEUES = [a_model_gpu_queue("a")]


def told(job: Job, *others: Job, nodes: list[Node] = TWO, queues: list[Queue] = QUEUES) -> str:
    with after_a_cycle(a_cluster(nodes, queues, [job, *others])) as session:
        return short(session, job)


def test_of_a_job_that_runs_there_is_nothing_to_say() -> None:
    assert told(a_job("runs", on="n1")) == ""


def test_of_a_job_that_got_its_place_there_is_nothing_to_say() -> None:
    assert told(a_job("starts")) == ""


def test_a_pod_that_fits_nowhere_is_told_which_resource_is_short_on_how_many_nodes() -> None:
    full = a_job("full", pods=2, on=["n1", "n2"], request=a_request(6), preemptible=False)
    queues = [a_model_gpu_queue("a", quota=12)]
    said = told(a_job("large", request=a_request(4)), full, queues=queues)
    assert said == "no node has room for pod team/large-0: not enough GPUs (2 nodes)"


def test_a_node_may_be_short_of_several_things_and_others_may_be_unfit() -> None:
    nodes = [a_model_node("n1", 1), a_model_node("n2", is_ready=False), a_model_node("n3", 0)]
    said = told(a_job("large", request=a_request(4, cpu=40)), nodes=nodes)
    assert said.endswith("not enough CPU cores (2 nodes); not enough GPUs (2 nodes); is not ready (1 node)")


def test_a_gang_is_told_how_many_of_its_pods_found_room() -> None:
    said = told(a_job("gang", pods=5, request=a_request(4)))
    assert said == (
        "room was found for 4 pods while 5 are required; pod team/gang-4 finds none: not enough GPUs (2 nodes)"
    )


def test_a_gang_that_runs_and_could_grow_is_told_of_the_next_pod_alone() -> None:
    said = told(a_job("grows", pods=3, needs=2, on=["n1", "n2"], request=a_request(8)))
    assert said == "no node has room for pod team/grows-2: not enough GPUs (2 nodes)"


def test_a_subgroup_is_named() -> None:
    root = SubGroup("", pod_sets=[PodSet("leader", 1), PodSet("workers", 3)])
    parts = ["leader", "workers", "workers", "workers"]
    said = told(a_job("gang", pods=4, root=root, subgroups=parts, request=a_request(8)))
    assert said.startswith("room was found for 1 pod in subgroup workers while 3 are required; ")


def test_pods_that_nothing_selects_are_told_so() -> None:
    nowhere = Constraints(node_selector={"pool": "gold"})
    said = told(a_job("picky", constraints=nowhere))
    assert said == "no node has room for pod team/picky-0: does not match the pod's node selector (2 nodes)"


def test_a_pod_that_shares_is_told_of_gpus_and_of_gpu_memory() -> None:
    nodes = [a_model_node("n1", 1, gpu_memory=40_000), a_model_node("n2", 1, gpu_memory=80_000)]
    full = a_job("full", on="n2", request=a_request(1), preemptible=False)
    wish = a_request(0, gpu=GpuRequest(memory=60_000, devices=1))
    said = told(a_job("shares", request=wish), full, nodes=nodes, queues=[a_model_gpu_queue("a", quota=1)])
    assert said == "no node has room for pod team/shares-0: not enough GPU memory (1 node); not enough GPUs (1 node)"


def test_what_a_pod_refers_to_and_is_not_there_is_named() -> None:
    said = told(a_job("lost", constraints=Constraints(missing="ConfigMap settings does not exist")))
    assert said == "pod team/lost-0 can be placed nowhere: ConfigMap settings does not exist"


def test_a_gang_that_is_not_complete_is_told_what_it_lacks() -> None:
    said = told(a_job("young", pods=3, needs=4, gated=1))
    assert said == (
        "not all pods that must start together can start: 4 pods needed, 3 there, 1 of them held back by gates"
    )


@pytest.mark.parametrize(
    ("queue", "said"),
    [
        pytest.param("b", "queue b does not exist: create it, or name another", id="unknown"),
        pytest.param("", "it names no queue: set spec.queue of its PodGroup", id="none"),
        pytest.param("lost", "queue lost hangs in the air: a queue above it does not exist", id="orphan"),
        pytest.param("top", "queue top has queues below it, and jobs run in queues without any", id="no leaf"),
    ],
)
def test_a_queue_that_will_not_do_is_named(queue: str, said: str) -> None:
    queues = [a_model_gpu_queue("top"), a_model_gpu_queue("a", "top"), a_model_gpu_queue("lost", "nobody")]
    assert told(a_job("job", queue), queues=queues).startswith(said)


def test_a_limit_is_told_with_what_is_held_and_asked_for() -> None:
    said = told(a_job("more", request=a_request(4)), a_job("has", on="n1", request=a_request(6)), queues=[LIMITED])
    assert said == "queue a is at its limit: it may hold 8 GPUs, holds 6, and the workload asks for 4"


LIMITED = a_model_gpu_queue("a", limit=8)


def test_a_non_preemptible_job_is_told_of_the_quota() -> None:
    with after_a_cycle(
        a_cluster(TWO, [a_model_gpu_queue("a", quota=2)], [a_job("b", pods=3, preemptible=False)])
    ) as session:
        (cause,) = causes(session, session.cluster.jobs["team", "b"])
    assert cause.reason == "NonPreemptibleOverQuota"
    assert cause.details is not None
    assert cause.details.queue_deserved_resources == {"nvidia.com/gpu": "2"}
    assert cause.details.pod_group_requested_non_preemptible_resources["nvidia.com/gpu"] == "3"


def test_a_job_that_evicts_nobody_yet_is_told_from_when_on_it_may() -> None:
    job = a_job("patient", request=a_request(8), delay=600, age=100)
    full = a_job("full", pods=2, on=["n1", "n2"], request=a_request(1))
    with after_a_cycle(a_cluster(TWO, QUEUES, [job, full])) as session:
        assert short(session, job).endswith("it evicts nobody before 2027-01-15T08:08:20Z")
        assert [cause.reason for cause in causes(session, job)] == ["PodSchedulingErrors", "PreemptionDelayNotElapsed"]


def test_a_required_level_is_told_by_its_topology() -> None:
    nodes = [a_model_node(f"n{i}", labels={"rack": f"r{i}"}) for i in (1, 2)]
    job = a_job("near", pods=2, request=a_request(8), wish=TopologyWish("net", required="rack"))
    with after_a_cycle(a_cluster(nodes, QUEUES, [job], [Topology("net", ("rack",))])) as session:
        assert short(session, job) == "topology net: no domain of level rack has room for 2 pods together"


def test_a_job_beyond_the_depth_of_its_queue_is_told_that_it_was_not_tried() -> None:
    full = a_job("full", pods=2, on=["n1", "n2"], request=a_request(8), preemptible=False)
    first, second = a_job("first", age=20), a_job("second", age=10)
    settings = Settings(queue_depths={"allocate": 1})
    with after_a_cycle(a_cluster(TWO, [a_model_gpu_queue("a", quota=16)], [full, first, second]), settings) as session:
        assert short(session, first).startswith("no node has room")
        assert short(session, second) == "it was not tried in the last cycle: of each queue only the first 1 are"


def test_a_job_that_was_promised_a_place_waits_for_others_to_end() -> None:
    low = a_job("low", pods=2, needs=1, on=["n1", "n2"], request=a_request(8))
    high = a_job("high", request=a_request(8), priority=75)
    assert told(high, low) == "it has its places, and waits for the pods there to end"


def test_a_job_that_rests_is_told_so() -> None:
    job = a_job("tired")
    job.is_backed_off = True
    assert told(job).startswith("it is left alone for now")


def test_jobs_that_are_alike_are_counted_once() -> None:
    jobs = [a_job(f"large-{i}", request=a_request(16)) for i in range(50)]
    with after_a_cycle(a_cluster(TWO, QUEUES, jobs)) as session:
        said = {short(session, job).partition(": ")[2] for job in jobs}
        counted = {id(shortage(session, task)) for job in jobs for task in job.tasks.values()}
    assert said == {"not enough GPUs (2 nodes)"}
    assert len(counted) == 1


def test_what_was_counted_is_counted_again_once_a_node_has_changed() -> None:
    job = a_job("gang", pods=3, request=a_request(8))
    with after_a_cycle(a_cluster(TWO, QUEUES, [job])) as session:
        before = short(session, job)
        statement = session.statement()
        statement.allocate(next(iter(a_job("other").tasks.values())), 0)
        task = next(iter(job.tasks.values()))
        assert shortage(session, task).room == 1
        statement.roll_back()
        assert shortage(session, task).room == 2
        assert short(session, job) == before


def test_a_plugin_that_lets_a_job_wait_is_named() -> None:
    job = a_job("late", request=a_request(16))
    with after_a_cycle(a_cluster(TWO, QUEUES, [job])) as session:
        session.failures[job.key] = Refused("curfew", "nothing starts after ten")
        assert short(session, job) == "plugin curfew does not let it start: nothing starts after ten"
        assert [cause.reason for cause in causes(session, job)] == ["PodSchedulingErrors"]


def test_nodes_that_are_kept_for_another_are_told() -> None:
    job = a_job("small")
    with after_a_cycle(a_cluster(TWO, QUEUES, [job]), actions=()) as session:
        session.failures[job.key] = NoRoom(next(iter(job.tasks.values())), 0, kept_for=("team", "large"))
        assert short(session, job).endswith("; some nodes that have room are kept for team/large")
