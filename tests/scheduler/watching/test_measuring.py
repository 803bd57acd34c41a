"""The scheduler's metrics: KAI's names and labels, and what they say after a cycle."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from shoal.api import kai_names as names
from shoal.api.core import PODS
from shoal.api.scheduling_run_ai import QUEUES
from shoal.cluster.controllers.node_lifecycle import add_node_lifecycle
from shoal.cluster.node.simulated import Pool, add_simulated_nodes
from shoal.kube import Manager
from shoal.scheduler.actions import cycle
from shoal.scheduler.everything import SchedulerSettings, add_everything
from shoal.scheduler.model.cluster import Cluster as Model
from shoal.scheduler.queues import QueueSettings
from shoal.scheduler.session.session import Bind, Eviction, Session
from shoal.scheduler.session.settings import ACTIONS, Settings
from shoal.scheduler.watching.counting import Counts
from shoal.scheduler.watching.cycles import Outcome
from shoal.scheduler.watching.measuring import Measuring
from tests.scheduler.builders import a_model_gpu_queue, a_model_node, gpu_queue_manifest, kai_pod_manifest
from tests.scheduler.explaining.stage import NOW, a_cluster, a_job, a_request
from tests.scheduler.test_everything import places
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster

SEARCH = ("action", "generator")
QUEUE = ("queue_name", "queue_metadata_name", "queue_display_name")
BUCKET = "le"

NAMES = {
    "e2e_scheduling_latency_milliseconds": ("gauge", ()),
    "open_session_latency_milliseconds": ("gauge", ()),
    "close_session_latency_milliseconds": ("gauge", ()),
    "plugin_scheduling_latency_milliseconds": ("gauge", ("plugin", "OnSession")),
    "action_scheduling_latency_milliseconds": ("gauge", ("action",)),
    "task_scheduling_latency_milliseconds": ("histogram", ()),
    "task_bind_latency_milliseconds": ("histogram", ()),
    "usage_query_latency_milliseconds": ("histogram", ()),
    "podgroups_scheduled_by_action": ("unknown", ("action",)),
    "podgroups_acted_on_by_action": ("unknown", ("action",)),
    "scenarios_simulation_by_action": ("unknown", ("action",)),
    "scenarios_filtered_by_action": ("unknown", ("action",)),
    "total_preemption_attempts": ("unknown", ()),
    "pod_group_evicted_pods_total": ("counter", ("podgroup", "namespace", "uid", "nodepool", "action")),
    "scenario_search_jobs_total": ("counter", ("action", "result", "reduced_budget")),
    "scenario_search_action_budget_configured_seconds": ("gauge", ("action",)),
    "scenario_search_job_budget_configured_seconds": ("gauge", ()),
    "scenario_search_generator_budget_configured_seconds": ("gauge", ("generator",)),
    "scenario_search_action_budget_exhausted_total": ("counter", ("action",)),
    "scenario_search_duration_seconds": ("histogram", (*SEARCH, "result")),
    "scenario_search_scenarios_total": ("counter", (*SEARCH, "state")),
    "queue_fair_share_cpu_cores": ("gauge", QUEUE),
    "queue_fair_share_memory_gb": ("gauge", QUEUE),
    "queue_fair_share_gpu": ("gauge", QUEUE),
    "queue_cpu_usage": ("gauge", QUEUE),
    "queue_memory_usage": ("gauge", QUEUE),
    "queue_gpu_usage": ("gauge", QUEUE),
}


def reclaiming() -> Model:
    """One queue has two nodes, of which half is the other's; that one asks for it."""
    held = [a_job(f"old-{index}", "a", on=f"n{index // 2}", request=a_request(4)) for index in range(4)]
    wanted = [a_job(f"new-{index}", "b", request=a_request(4)) for index in range(2)]
    return a_cluster(
        [a_model_node("n0"), a_model_node("n1")],
        [a_model_gpu_queue("a", quota=8), a_model_gpu_queue("b", quota=8)],
        [*held, *wanted],
    )


def measured(model: Model, measuring: Measuring) -> Session:
    """One cycle, measured as the scheduler does it."""
    session = Session(model, Settings(), now=NOW)
    pools = cycle.run(session, ACTIONS)
    outcome = Outcome(1, NOW, 0.5, session, pools, opening=0.25, closing=0.125, whole=2.0)
    measuring.decided(outcome)
    for decision in session.decisions:
        if isinstance(decision, Eviction):
            measuring.evicted(decision)
        elif isinstance(decision, Bind):
            measuring.bound(decision, 0.007)
    session.close()
    measuring.ended(outcome)
    return session


def a_measuring(registry: CollectorRegistry, *, namespace: str = "kai", node_pool: str = "") -> Measuring:
    return Measuring(registry, Settings(), ACTIONS, namespace=namespace, node_pool=node_pool, clock=lambda: NOW + 1)


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(name, labels)


@pytest.mark.parametrize(("namespace", "prefix"), [("kai", "kai_"), ("mine", "mine_"), ("", "")])
def test_every_metric_has_its_name_its_kind_and_its_labels(namespace: str, prefix: str) -> None:
    registry = CollectorRegistry()
    measuring = a_measuring(registry, namespace=namespace)
    measured(reclaiming(), measuring)
    measuring.queried(0.02)

    page = generate_latest(registry).decode()
    shown = {}
    for family in text_string_to_metric_families(page):
        name = family.name + ("_total" if family.type == "counter" else "")
        found = {tuple(sorted(set(sample.labels) - {BUCKET})) for sample in family.samples}
        if not name.endswith("_created"):
            assert len(found) == 1, f"{name} has samples with {found}"
            shown[name] = family.type, next(iter(found))

    assert shown == {prefix + name: (kind, tuple(sorted(labels))) for name, (kind, labels) in NAMES.items()}


def test_every_metric_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "scheduler-metrics.md").read_text()
    told = set(re.findall(r"`kai_(\w+)`", page.partition("## How long")[2]))
    assert told == NAMES.keys()


def test_latencies_are_in_milliseconds_and_their_buckets_are_kais() -> None:
    registry = CollectorRegistry()
    measuring = a_measuring(registry)
    measured(a_cluster([a_model_node("n0")], [a_model_gpu_queue("a")], [a_job("one", age=3)]), measuring)
    measuring.queried(0.02)

    assert value(registry, "kai_e2e_scheduling_latency_milliseconds") == 2000
    assert value(registry, "kai_open_session_latency_milliseconds") == 250
    assert value(registry, "kai_close_session_latency_milliseconds") == 125
    assert value(registry, "kai_task_scheduling_latency_milliseconds_sum") == 4000
    assert value(registry, "kai_task_bind_latency_milliseconds_sum") == 7
    assert value(registry, "kai_usage_query_latency_milliseconds_sum") == 20
    buckets = [
        float(sample.labels[BUCKET])
        for family in registry.collect()
        for sample in family.samples
        if sample.name == "kai_task_bind_latency_milliseconds_bucket"
    ]
    assert buckets == [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, float("inf")]


def test_a_reclaim_is_counted_from_the_search_to_the_evicted_pods() -> None:
    registry = CollectorRegistry()
    session = measured(reclaiming(), a_measuring(registry, node_pool="pool"))
    evicted = [one for one in session.decisions if isinstance(one, Eviction)]
    assert len(evicted) == 2

    assert value(registry, "kai_podgroups_scheduled_by_action", action="reclaim") == 2
    assert value(registry, "kai_podgroups_acted_on_by_action", action="reclaim") == 2
    assert value(registry, "kai_podgroups_scheduled_by_action", action="allocate") == 0
    solved = {"action": "reclaim", "result": "solved", "reduced_budget": "false"}
    assert value(registry, "kai_scenario_search_jobs_total", **solved) == 2
    simulated = value(registry, "kai_scenarios_simulation_by_action", action="reclaim")
    assert simulated == session.effort["reclaim"] > 0
    emitted = {"action": "reclaim", "generator": "NodeLocalGreedy", "state": "emitted"}
    assert value(registry, "kai_scenario_search_scenarios_total", **emitted) == simulated
    attempts = {"action": "reclaim", "generator": "NodeLocalGreedy", "result": "solved"}
    assert value(registry, "kai_scenario_search_duration_seconds_count", **attempts) == 2
    for eviction in evicted:
        job = eviction.task.job
        series = {"podgroup": job.name, "namespace": "team", "uid": job.uid, "nodepool": "pool", "action": "reclaim"}
        assert value(registry, "kai_pod_group_evicted_pods_total", **series) == 1
    assert value(registry, "kai_total_preemption_attempts") == 0
    assert value(registry, "kai_action_scheduling_latency_milliseconds", action="reclaim") is not None


def test_a_preemption_is_counted_as_one() -> None:
    registry = CollectorRegistry()
    jobs = [a_job("low", on="n0", request=a_request(8)), a_job("high", request=a_request(8), priority=75)]
    measured(a_cluster([a_model_node("n0")], [a_model_gpu_queue("a", quota=8)], jobs), a_measuring(registry))

    assert value(registry, "kai_total_preemption_attempts") == 1
    assert value(registry, "kai_podgroups_scheduled_by_action", action="preempt") == 1


def test_a_scenario_that_found_room_and_is_not_allowed_is_counted_as_rejected() -> None:
    registry = CollectorRegistry()
    held = [a_job(f"old-{index}", on=f"n{index}", request=a_request(6)) for index in range(2)]
    model = a_cluster(
        [a_model_node("n0"), a_model_node("n1")], [a_model_gpu_queue("a")], [*held, a_job("new", request=a_request(4))]
    )
    session = measured(model, a_measuring(registry))

    assert not session.decisions, "whoever was moved for it would find no other place"
    search = {"action": "consolidation", "generator": "NodeLocalGreedy"}
    rejected = value(registry, "kai_scenario_search_scenarios_total", state="validator_rejected", **search)
    assert rejected == 2
    attempts = value(registry, "kai_scenario_search_duration_seconds_count", result="validator_rejected", **search)
    assert attempts == rejected
    left_off = {"action": "consolidation", "result": "generators_exhausted", "reduced_budget": "false"}
    assert value(registry, "kai_scenario_search_jobs_total", **left_off) == 1


def test_queues_are_shown_as_the_last_cycle_had_them() -> None:
    registry = CollectorRegistry()
    measuring = a_measuring(registry)
    model = a_cluster(
        [a_model_node("n0")],
        [a_model_gpu_queue("a", quota=2), a_model_gpu_queue("b")],
        [a_job("one", request=a_request(4))],
    )
    measured(model, measuring)

    a, b = ({"queue_name": one, "queue_metadata_name": one, "queue_display_name": ""} for one in "ab")
    assert value(registry, "kai_queue_fair_share_gpu", **a) == 4
    assert value(registry, "kai_queue_fair_share_cpu_cores", **a) == 1
    assert value(registry, "kai_queue_fair_share_gpu", **b) == 0
    assert value(registry, "kai_queue_gpu_usage", **b) == 0
    del model.queues["b"]
    measured(model, measuring)
    assert value(registry, "kai_queue_fair_share_gpu", **b) is None


def test_of_what_names_objects_only_the_last_are_kept() -> None:
    registry = CollectorRegistry()
    counts = Counts("evictions_total", "Evictions.", ("job",), registry=registry, most=2)
    for name in ("a", "b", "a", "c"):
        counts.add((name,))

    assert value(registry, "evictions_total", job="a") == 2
    assert value(registry, "evictions_total", job="b") is None
    assert value(registry, "evictions_total", job="c") == 1


async def test_a_running_scheduler_shows_what_it_does(cluster: Cluster, tmp_path: Path) -> None:
    def add_nodes(manager: Manager) -> None:
        add_simulated_nodes(manager, sockets=tmp_path, pools=[Pool.parse("1x4:H100")])
        add_node_lifecycle(manager)

    def add_all(manager: Manager) -> None:
        settings = SchedulerSettings(metrics_namespace="mine", queues=QueueSettings(metrics_namespace="mine"))
        add_everything(manager, settings)

    async with cluster.controllers(add_nodes), cluster.controllers(add_all) as manager:
        registry = manager.metrics.registry
        for name in ("a", "b"):
            await cluster.client.create(QUEUES, gpu_queue_manifest(name, names.DEFAULT_PARENT_QUEUE, quota=2))
        for index in range(4):
            await cluster.client.create(
                PODS, kai_pod_manifest(f"a-{index}", labels={names.QUEUE: "a"}, gpus=1), "default"
            )

        async def is_full() -> bool:
            return sum(map(bool, (await places(cluster)).values())) == 4

        await until(is_full)
        for index in range(2):
            await cluster.client.create(
                PODS, kai_pod_manifest(f"b-{index}", labels={names.QUEUE: "b"}, gpus=1), "default"
            )

        async def is_counted() -> bool:
            shared = {"queue_name": "b", "queue_metadata_name": "b", "queue_display_name": ""}
            return (
                value(registry, "mine_task_bind_latency_milliseconds_count") == 6
                and value(registry, "mine_queue_fair_share_gpu", **shared) == 2
                and value(registry, "mine_queue_allocated_gpus", **shared) == 2
            )

        await until(is_counted)
        evicted = [
            sample
            for family in registry.collect()
            for sample in family.samples
            if sample.name == "mine_pod_group_evicted_pods_total"
        ]
        assert sum(sample.value for sample in evicted) == 2
        assert {(sample.labels["action"], sample.labels["nodepool"]) for sample in evicted} == {("reclaim", "default")}
        assert value(registry, "mine_podgroups_scheduled_by_action", action="allocate") >= 4  # type: ignore[operator]
        assert value(registry, "mine_e2e_scheduling_latency_milliseconds") > 0  # type: ignore[operator]
