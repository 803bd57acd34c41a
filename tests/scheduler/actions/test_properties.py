"""What is true of every cycle, on clusters that nobody has thought of: see ``invariants``.

The quick run looks at a hundred small clusters for each property, the slow one at some hundreds that are larger: always
the same ones, so that a failure is nobody's bad luck. To look at others, and at as many as one likes:
``SHOAL_CLUSTERS=20000 pytest --timeout 0 -m slow tests/scheduler/actions/test_properties.py``
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shoal.scheduler.actions import cycle
from shoal.scheduler.model.cluster import Cluster
from shoal.scheduler.scenarios.building import cluster_of, settings_of
from shoal.scheduler.scenarios.cases import ACTIONS, Scenario
from shoal.scheduler.session.session import Session
from shoal.scheduler.session.settings import Settings
from tests.scheduler.actions.invariants import check_all
from tests.scheduler.actions.random_clusters import clusters, contested
from tests.scheduler.actions.watched_cycles import NOW, following, watched

MOST_ROUNDS = 40

LONG_SEARCH = int(os.environ.get("SHOAL_CLUSTERS", "0"))

quick = settings(max_examples=100, derandomize=True)


def thorough(clusters: int) -> settings:
    """Looks at so many clusters, unless a longer search is asked for."""
    return settings(
        max_examples=LONG_SEARCH or clusters,
        derandomize=not LONG_SEARCH,
        suppress_health_check=list(HealthCheck),
    )


def check_a_cycle(scenario: Scenario) -> None:
    check_all(watched(scenario))


def check_to_the_end(scenario: Scenario) -> None:
    """Cycle after cycle, each as it should be, until one changes nothing: then none will."""
    seen: dict[str, int] = {}
    for number in range(MOST_ROUNDS):
        session = watched(scenario)
        check_all(session)
        after = following(scenario, session)
        if after.jobs == scenario.jobs:
            assert not session.decisions, f"promised for ever: {[one.task.name for one in session.decisions]}"
            return
        state = repr(after.jobs)
        assert state not in seen, f"after round {number} everything is as after round {seen.get(state)}"
        seen[state] = number
        scenario = after
    raise AssertionError(f"still changing after {MOST_ROUNDS} rounds")


def check_order(scenario: Scenario, random: Random, *, are_of_one_age: bool, chosen: Settings) -> None:
    """What came first, in any list, decides nothing."""
    one, other = cluster_of(scenario, NOW), cluster_of(scenario, NOW)
    if are_of_one_age:
        for cluster in (one, other):
            make_of_one_age(cluster)
    shuffle_all(other, random)

    assert decided(one, chosen) == decided(other, chosen)


def make_of_one_age(cluster: Cluster) -> None:
    for job in cluster.jobs.values():
        job.created = 0.0
        for task in job.tasks.values():
            task.created = 0.0


def shuffle_all(cluster: Cluster, random: Random) -> None:
    shuffle(cluster.jobs, random)
    shuffle(cluster.queues, random)
    for job in cluster.jobs.values():
        shuffle(job.tasks, random)
        shuffle(job.pod_sets, random)
        random.shuffle(job.root.pod_sets)
        for pod_set in job.pod_sets.values():
            shuffle(pod_set.tasks, random)
    for node in cluster.nodes.nodes:
        shuffle(node.holds, random)
        shuffle(node.shared, random)


def shuffle(things: dict[Any, Any], random: Random) -> None:
    pairs = list(things.items())
    random.shuffle(pairs)
    things.clear()
    things.update(pairs)


def decided(cluster: Cluster, chosen: Settings) -> Mapping[str, object]:
    session = Session(cluster, chosen, now=NOW)
    cycle.run(session, ACTIONS)
    return {
        "decisions": sorted(
            (type(one).__name__, one.task.uid, getattr(one, "node", ""), getattr(one, "gpu_groups", ()))
            for one in session.decisions
        ),
        "waiting": sorted(session.failures),
        "stale": session.stale,
        "started": session.started,
    }


@quick
@given(clusters())
def test_a_cycle_is_as_it_should_be(scenario: Scenario) -> None:
    check_a_cycle(scenario)


@quick
@given(contested())
def test_what_others_have_is_taken_back_as_it_should_be(scenario: Scenario) -> None:
    check_to_the_end(scenario)


@settings(max_examples=60, derandomize=True)
@given(clusters())
def test_cycles_come_to_rest(scenario: Scenario) -> None:
    check_to_the_end(scenario)


@quick
@given(clusters(), st.randoms(use_true_random=False), st.booleans())
def test_the_order_of_the_input_decides_nothing(scenario: Scenario, random: Random, are_of_one_age: bool) -> None:
    check_order(scenario, random, are_of_one_age=are_of_one_age, chosen=settings_of(scenario))


@quick
@given(clusters(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_decides_nothing_with_usual_settings(scenario: Scenario, random: Random) -> None:
    """Where jobs speak for others that are alike, and few may be moved."""
    usual = Settings(staleness_grace=0.0, max_consolidation_victims=2)
    check_order(scenario, random, are_of_one_age=False, chosen=usual)


@pytest.mark.slow
@thorough(400)
@given(clusters(14))
def test_a_cycle_of_a_larger_cluster_is_as_it_should_be(scenario: Scenario) -> None:
    check_a_cycle(scenario)


@pytest.mark.slow
@thorough(200)
@given(clusters(14))
def test_cycles_of_larger_clusters_come_to_rest(scenario: Scenario) -> None:
    check_to_the_end(scenario)


@pytest.mark.slow
@thorough(400)
@given(contested())
def test_what_others_have_is_taken_back_as_it_should_be_whoever_has_it(scenario: Scenario) -> None:
    check_to_the_end(scenario)


@pytest.mark.slow
@thorough(250)
@given(clusters(14), st.randoms(use_true_random=False), st.booleans())
def test_the_order_of_the_input_decides_nothing_in_larger_clusters(
    scenario: Scenario, random: Random, are_of_one_age: bool
) -> None:
    check_order(scenario, random, are_of_one_age=are_of_one_age, chosen=settings_of(scenario))
