"""An explanation in full: place in line, figures, who holds what, and what would help."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from shoal.scheduler.actions.pools import Pools
from shoal.scheduler.explaining import Explanation, State, explain
from shoal.scheduler.explaining.explanation import Figures, NodeReason, Position, WhyKept
from shoal.scheduler.explaining.places import places_of, position_of
from shoal.scheduler.model.cluster import Cluster, Topology
from shoal.scheduler.model.jobs import TopologyWish
from shoal.scheduler.model.tasks import Constraints
from shoal.scheduler.session.settings import Settings
from tests.scheduler.builders import a_model_gpu_queue, a_model_node
from tests.scheduler.explaining.stage import NOW, a_cluster, a_job, a_request, after_a_cycle

TWO = [a_model_node("n1"), a_model_node("n2")]


def explained(cluster: Cluster, name: str) -> Explanation:
    with after_a_cycle(cluster) as session:
        return explain(session, session.cluster.jobs["team", name])


def remedies(found: Explanation) -> list[str]:
    return [one.message for one in found.remedies]


def test_a_running_job_says_how_many_of_its_pods_run() -> None:
    found = explained(a_cluster(TWO, [a_model_gpu_queue("a")], [a_job("runs", pods=2, on="n1")]), "runs")
    assert (found.state, found.reason, found.message) == (State.RUNNING, "", "2 of its 2 pods run")
    assert (found.position, found.remedies, found.holders) == (None, [], [])


def test_a_job_knows_its_place_in_its_queue_and_among_all() -> None:
    full = a_job("full", "b", pods=2, on=["n1", "n2"], request=a_request(8), preemptible=False)
    waiting = [a_job(f"a{i}", "a", age=100 - i, request=a_request(1)) for i in range(3)]
    late = a_job("urgent", "a", age=1, priority=75)
    other = a_job("b1", "b", request=a_request(1))
    queues = [a_model_gpu_queue("a", quota=4), a_model_gpu_queue("b", quota=16)]
    cluster = a_cluster(TWO, queues, [full, *waiting, late, other])
    assert explained(cluster, "urgent").position == Position(in_queue=1, of_queue=4, overall=1, of_all=5)
    assert explained(cluster, "a2").position == Position(in_queue=4, of_queue=4, overall=4, of_all=5)
    assert explained(cluster, "b1").position == Position(in_queue=1, of_queue=1, overall=5, of_all=5)


def test_the_places_of_all_are_those_that_each_is_told() -> None:
    full = a_job("full", "b", pods=2, on=["n1", "n2"], request=a_request(8), preemptible=False)
    waiting = [a_job(f"{queue}{i}", queue, age=100 - i, priority=50 + 25 * (i % 2)) for i in range(4) for queue in "ab"]
    lost = a_job("lost", "nowhere")
    cluster = a_cluster(
        TWO, [a_model_gpu_queue("a", quota=4), a_model_gpu_queue("b", quota=16)], [full, *waiting, lost]
    )
    with after_a_cycle(cluster) as session:
        pools = Pools(cluster.jobs.values())
        found = places_of(session, pools, most=1000)
        told = {job.key: position_of(session, job) for job in waiting}
        assert found == {key: (one.in_queue, one.overall) for key, one in told.items() if one is not None}
        assert len(found) == 8
        some = places_of(session, pools, most=3)
    assert sorted(place.overall for place in some.values() if place.overall) == [1, 2, 3]
    assert {key: place.in_queue for key, place in some.items()} == {key: place.in_queue for key, place in found.items()}


KEEPS = Settings(reserves_for_large_gangs=True)


def test_a_job_that_room_is_kept_for_is_told_where_and_until_when() -> None:
    old = a_job("old", on="n1", request=a_request(6), preemptible=False)
    for task in old.tasks.values():
        task.started, task.longest_run = NOW - 100, 400.0
    endless = a_job("endless", on="n2", request=a_request(6), preemptible=False)
    jobs = [old, endless, a_job("gang", request=a_request(8), age=50), a_job("small", age=10)]
    cluster = a_cluster(TWO, [a_model_gpu_queue("a", quota=32)], [*jobs, a_job("more", age=5, pods=3)])
    with after_a_cycle(cluster, KEEPS) as session:
        gang, more, small = (explain(session, cluster.jobs["team", name]) for name in ("gang", "more", "small"))
    until = datetime.fromtimestamp(NOW + 300, UTC)
    assert gang.kept is not None
    assert (gang.kept.job, gang.kept.own, gang.kept.nodes, gang.kept.node_count) == ("team/gang", True, ["n1"], 1)
    assert (gang.kept.free.gpus, gang.kept.until) == (2, until)
    first = gang.remedies[0]
    assert (first.what, first.until) == ("Reservation", until)
    assert (
        first.message
        == f"wait until {until:%Y-%m-%dT%H:%M:%SZ}, when it can start at the latest: 1 node (n1) is kept for it"
    )
    assert more.kept is not None
    assert (more.kept.job, more.kept.own) == ("team/gang", False)
    assert remedies(more)[0] == "wait until team/gang has started, for which nodes are kept"
    assert (small.state, small.kept) == (State.STARTING, None), "on the other node it is free to start"


def test_where_nobody_knows_when_nodes_are_free_that_is_said() -> None:
    full = [a_job(f"old-{node}", on=node, request=a_request(5), preemptible=False) for node in ("n1", "n2")]
    jobs = [*full, a_job("gang", pods=2, request=a_request(8))]
    with after_a_cycle(a_cluster(TWO, [a_model_gpu_queue("a", quota=32)], jobs), KEEPS) as session:
        gang = explain(session, session.cluster.jobs["team", "gang"])
    assert gang.kept is not None
    assert (gang.kept.until, gang.kept.node_count, gang.kept.free.gpus) == (None, 2, 6)
    assert (
        remedies(gang)[0] == "wait until enough has ended on 2 nodes (n1, n2): what becomes free there is kept for it"
    )


def test_without_the_setting_nothing_is_said_of_kept_room() -> None:
    jobs = [a_job("old", on="n1", request=a_request(5)), a_job("gang", pods=2, request=a_request(8))]
    found = explained(a_cluster(TWO, [a_model_gpu_queue("a", quota=32)], jobs), "gang")
    assert found.kept is None
    assert all(one.what != "Reservation" for one in found.remedies)


def test_the_queues_above_a_job_are_told_with_their_figures() -> None:
    queues = [a_model_gpu_queue("top", quota=16), a_model_gpu_queue("a", "top", quota=4, limit=8)]
    jobs = [a_job("has", on="n1", request=a_request(6)), a_job("wants", request=a_request(4))]
    found = explained(a_cluster(TWO, queues, jobs), "wants")
    assert [queue.name for queue in found.queues] == ["a", "top"]
    leaf = found.queues[0]
    assert (leaf.quota.gpus, leaf.limit.gpus, leaf.allocated.gpus, leaf.requested.gpus) == (4, 8, 6, 10)
    assert leaf.limit.cpu_cores is None
    assert found.reason == "OverLimit"
    assert remedies(found) == [
        "raise the limit of queue a to 10 GPUs",
        "wait until jobs of queue a free 2 GPUs",
    ]


def test_a_non_preemptible_job_beyond_the_quota_is_told_both_ways_out() -> None:
    job = a_job("build", pods=3, preemptible=False)
    found = explained(a_cluster(TWO, [a_model_gpu_queue("a", quota=2)], [job]), "build")
    assert found.reason == "NonPreemptibleOverQuota"
    assert remedies(found) == [
        "raise the quota of queue a to 3 GPUs",
        "make the job preemptible: it may then go beyond the quota",
    ]


def test_what_is_short_is_told_with_the_node_that_lacks_least() -> None:
    full = [
        a_job("one", on="n1", request=a_request(6), preemptible=False),
        a_job("two", on="n2", request=a_request(5), preemptible=False),
    ]
    found = explained(
        a_cluster(TWO, [a_model_gpu_queue("a", quota=11)], [*full, a_job("large", request=a_request(4))]), "large"
    )
    (short,) = found.shortages
    assert short.reasons == [NodeReason(reason="not enough GPUs", nodes=2)]
    assert short.requests == {"CPU cores": 1, "GPUs": 4}
    assert short.nearest is not None
    assert (short.nearest.node, short.nearest.lacks) == ("n2", {"GPUs": 1})
    assert remedies(found) == ["1 GPU more free on node n2, which lacks least"]


def test_a_gang_is_told_for_how_many_more_pods_room_is_needed() -> None:
    found = explained(a_cluster(TWO, [a_model_gpu_queue("a")], [a_job("gang", pods=5, request=a_request(4))]), "gang")
    (short,) = found.shortages
    assert (short.pods, short.room) == (5, 4)
    assert remedies(found) == ["room for 1 more pod, each with 4 GPUs, 1 CPU core (there is room for 4 of 5)"]


def test_a_pod_that_is_larger_than_every_node_is_told_so() -> None:
    found = explained(a_cluster(TWO, [a_model_gpu_queue("a")], [a_job("huge", request=a_request(16))]), "huge")
    assert remedies(found) == ["ask for less per pod, or add larger nodes: the largest has 8 GPUs"]


def test_a_pod_that_no_node_matches_is_told_to_look_at_the_reasons() -> None:
    job = a_job("picky", constraints=Constraints(node_selector={"pool": "gold"}))
    found = explained(a_cluster(TWO, [a_model_gpu_queue("a")], [job]), "picky")
    assert remedies(found) == ["add nodes that its pods may go to, or ask less of them (see the reasons)"]


def test_pods_that_keep_each_other_apart_are_told_so() -> None:
    apart = Constraints(
        pod_anti_affinity=({"labelSelector": {"matchLabels": {}}, "topologyKey": "host"},),
    )
    nodes = [a_model_node("n1", labels={"host": "n1"})]
    jobs = [a_job("first", on="n1", constraints=apart), a_job("second", constraints=apart)]
    (short,) = explained(a_cluster(nodes, [a_model_gpu_queue("a")], jobs), "second").shortages
    assert [one.nodes for one in short.reasons] == [1]
    assert short.reasons[0].reason == "is near pods that the pod must be apart from"


def test_a_gang_without_all_its_pods_is_told_what_to_do() -> None:
    found = explained(a_cluster(TWO, [a_model_gpu_queue("a")], [a_job("young", pods=3, needs=5, gated=1)]), "young")
    assert (found.state, found.pods.needed, found.pods.existing, found.pods.gated) == (State.NOT_READY, 5, 3, 1)
    assert remedies(found) == ["create 2 more pods", "lift the gates of 1 pod"]


def test_a_domain_with_too_little_room_is_named() -> None:
    nodes = [a_model_node(f"n{i}", labels={"rack": f"r{i}"}) for i in (1, 2)]
    job = a_job("near", pods=2, request=a_request(8), wish=TopologyWish("net", required="rack"))
    found = explained(a_cluster(nodes, [a_model_gpu_queue("a")], [job], [Topology("net", ("rack",))]), "near")
    assert found.topology[0].domains[0].startswith("r1 has room for 1 of 2 pods")
    assert remedies(found)[0].startswith("more room in one domain: r1 has room for 1 of 2 pods")


def test_an_unknown_topology_is_a_thing_to_correct() -> None:
    job = a_job("near", wish=TopologyWish("net", required="rack"))
    found = explained(a_cluster(TWO, [a_model_gpu_queue("a")], [job]), "near")
    assert remedies(found) == ["correct the topology: topology net does not exist"]


def test_those_who_hold_what_a_queue_is_entitled_to_are_told_with_why_they_keep_it() -> None:
    queues = [a_model_gpu_queue("a", quota=8), a_model_gpu_queue("b", quota=8, reclaim_min_runtime=3600)]
    protected = a_job("young", "b", on="n1", request=a_request(8), started=600)
    core = a_job("core", "b", on="n2", request=a_request(8), preemptible=False)
    found = explained(a_cluster(TWO, queues, [protected, core, a_job("mine", request=a_request(8))]), "mine")
    assert found.entitled
    (holder,) = found.holders
    assert (holder.queue, holder.beyond.gpus, holder.entitled.gpus) == ("b", 8, 8)
    assert {one.why for one in holder.jobs} == {WhyKept.MIN_RUNTIME, WhyKept.NON_PREEMPTIBLE}
    kept = next(one for one in holder.jobs if one.why is WhyKept.MIN_RUNTIME)
    assert (kept.jobs, kept.pods, kept.holds, kept.examples) == (
        1,
        1,
        Figures(cpu_cores=1, memory_bytes=0, gpus=8),
        ["team/young"],
    )
    assert kept.until is not None
    assert kept.until.timestamp() == NOW + 3000
    assert found.remedies[-1].what == "MinRuntime"
    assert found.remedies[-1].until == kept.until


def test_a_queue_that_has_its_share_is_entitled_to_nothing_of_others() -> None:
    queues = [a_model_gpu_queue("a", quota=0, weight=0), a_model_gpu_queue("b", quota=16)]
    full = a_job("full", "b", pods=2, on=["n1", "n2"], request=a_request(8))
    found = explained(a_cluster(TWO, queues, [full, a_job("mine", request=a_request(8))]), "mine")
    assert not found.entitled
    assert found.holders == []


def test_jobs_of_the_same_queue_that_are_as_important_are_told() -> None:
    full = a_job("full", pods=2, on=["n1", "n2"], request=a_request(8))
    found = explained(a_cluster(TWO, [a_model_gpu_queue("a")], [full, a_job("equal", request=a_request(8))]), "equal")
    (holder,) = found.holders
    assert [(one.why, one.jobs) for one in holder.jobs] == [(WhyKept.PRIORITY, 1)]


def test_the_preemption_delay_is_a_moment_to_wait_for() -> None:
    full = a_job("full", pods=2, on=["n1", "n2"], request=a_request(8))
    patient = a_job("patient", request=a_request(8), priority=75, delay=600, age=100)
    found = explained(a_cluster(TWO, [a_model_gpu_queue("a")], [full, patient]), "patient")
    delay = next(one for one in found.remedies if one.what == "PreemptionDelay")
    assert delay.until is not None
    assert delay.until.timestamp() == NOW + 500


def test_an_explanation_survives_the_wire() -> None:
    found = explained(a_cluster(TWO, [a_model_gpu_queue("a")], [a_job("gang", pods=5, request=a_request(4))]), "gang")
    assert msgspec.json.decode(msgspec.json.encode(found), type=Explanation) == found
    assert msgspec.to_builtins(found)["state"] == "Waiting"


def test_explaining_changes_nothing() -> None:
    jobs = [a_job("full", pods=2, on=["n1", "n2"], request=a_request(8)), a_job("equal", request=a_request(8))]
    with after_a_cycle(a_cluster(TWO, [a_model_gpu_queue("a")], jobs)) as session:
        before = session.nodes.idle.copy(), session.shares.copy_of_amounts(), list(session.decisions)
        first = explain(session, jobs[1])
        assert explain(session, jobs[1]) == first
        assert (session.nodes.idle == before[0]).all()
        assert (session.shares.copy_of_amounts(), session.decisions) == before[1:]
