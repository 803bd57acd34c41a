"""Start-up order: pods of a gang get their nodes together, and begin their work one clique after the other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from shoal.api.core import Pod, is_ready
from shoal.api.grove import SCALING_GROUPS, names
from tests.e2e.gangs.conftest import on_both_engines
from tests.gangs.builders import a_clique_template, a_scaling_group_template, a_set
from tests.support.gangs.stage import Stage, of_cliques, one_cpu, placed, uids

pytestmark = on_both_engines

IN_ORDER, EXPLICIT = "CliqueStartupTypeInOrder", "CliqueStartupTypeExplicit"


async def test_in_any_order_nobody_waits(stage: Stage) -> None:
    await stage.add_nodes(1, cpu=4)
    await stage.make(a_set("web", a_slow_clique("first", 2, "1s"), a_slow_clique("second", 2, "0s")))
    pods = await stage.until_ready("web", 4)
    assert not any(pod.spec.init_containers for pod in pods)
    assert latest_ready(stage, pods, "web-0-second") < earliest_ready(stage, pods, "web-0-first")


async def test_in_order_each_clique_starts_after_the_one_before_it(stage: Stage) -> None:
    await stage.add_nodes(1, cpu=6)
    cliques = [a_slow_clique(name, 2, "300ms") for name in ("first", "second", "third")]
    await stage.make(a_set("web", *cliques, cliqueStartupType=IN_ORDER))
    pods = await stage.until_ready("web", 6)
    for before, after in (("first", "second"), ("second", "third")):
        assert latest_ready(stage, pods, f"web-0-{before}") < earliest_start(stage, pods, f"web-0-{after}")
    # All of the gang had its nodes long before.
    bound = stage.history.first(lambda pod: bool(pod.spec.node_name))
    assert max(bound.values()) < earliest_ready(stage, pods, "web-0-first")


async def test_an_explicit_order_holds_for_those_that_name_each_other_alone(stage: Stage) -> None:
    await stage.add_nodes(1, cpu=4)
    cliques = [
        a_slow_clique("last", 1, "0s", starts_after=["first", "other"]),
        a_slow_clique("first", 1, "300ms"),
        a_slow_clique("other", 1, "1s"),
        a_slow_clique("free", 1, "0s"),
    ]
    await stage.make(a_set("web", *cliques, cliqueStartupType=EXPLICIT))
    pods = await stage.until_ready("web", 4)
    assert latest_ready(stage, pods, "web-0-first", "web-0-other") < earliest_start(stage, pods, "web-0-last")
    assert latest_ready(stage, pods, "web-0-free") < earliest_ready(stage, pods, "web-0-first")


async def test_the_minimum_of_a_clique_is_enough_for_those_that_start_after_it(stage: Stage) -> None:
    await stage.add_nodes(3)
    cliques = [
        a_clique_template("first", 3, min_available=2, pod_spec=one_cpu()),
        a_clique_template("second", 1, pod_spec=one_cpu()),
    ]
    await stage.make(a_set("web", *cliques, cliqueStartupType=IN_ORDER))
    [waiting] = await stage.until_waiting("web", 1)

    async def are_running() -> list[Pod] | None:
        ready = [pod for pod in await stage.pods("web") if is_ready(pod)]
        return ready if len(ready) == 3 else None

    ready = await stage.until(are_running, "three ready pods")
    assert len(of_cliques(ready, "web-0-second")) == 1
    assert waiting.metadata.labels[names.CLIQUE_LABEL] == "web-0-first"


async def test_all_replicas_of_a_scaling_group_in_the_base_gang_are_waited_for(stage: Stage) -> None:
    await stage.add_nodes(1, cpu=8)
    cliques = [a_slow_clique("worker", 1, "500ms"), a_slow_clique("router", 1, "0s")]
    group = a_scaling_group_template("g", ["worker"], 3, min_available=2)
    await stage.make(a_set("web", *cliques, groups=[group], cliqueStartupType=IN_ORDER))
    pods = await stage.until_ready("web", 4)
    [router] = of_cliques(pods, "web-0-router")
    waits_for = router.spec.init_containers[-1].args
    assert [text.removeprefix("--podcliques=") for text in waits_for] == ["web-0-g-0-worker:1", "web-0-g-1-worker:1"]
    assert latest_ready(stage, pods, "web-0-g-0-worker", "web-0-g-1-worker") < earliest_start(
        stage, pods, "web-0-router"
    )


async def test_a_scaled_gang_waits_for_its_own_cliques_alone(stage: Stage) -> None:
    await stage.add_nodes(1, cpu=9)
    cliques = [
        a_slow_clique("front", 1, "300ms"),
        a_slow_clique("leader", 1, "300ms"),
        a_slow_clique("worker", 2, "0s"),
    ]
    group = a_scaling_group_template("g", ["leader", "worker"])
    await stage.make(a_set("web", *cliques, groups=[group], cliqueStartupType=IN_ORDER))
    before = await stage.until_ready("web", 4)
    assert latest_ready(stage, before, "web-0-front") < earliest_start(stage, before, "web-0-g-0-leader")

    await stage.lose(*of_cliques(before, "web-0-front"))  # and its next pod takes 300 ms to be ready
    await stage.scale(SCALING_GROUPS, "web-0-g", 2)
    pods = await stage.until_ready("web", 7, without=uids(of_cliques(before, "web-0-front")))
    [leader] = of_cliques(pods, "web-0-g-1-leader")
    assert not leader.spec.init_containers
    assert latest_ready(stage, pods, "web-0-g-1-leader") < earliest_start(stage, pods, "web-0-g-1-worker")


async def test_a_pod_that_is_replaced_later_waits_for_nobody_who_is_ready(stage: Stage) -> None:
    await stage.add_nodes(1, cpu=4)
    cliques = [a_slow_clique("first", 1, "200ms"), a_slow_clique("second", 1, "0s")]
    await stage.make(a_set("web", *cliques, cliqueStartupType=IN_ORDER))
    before = await stage.until_ready("web", 2)
    await stage.lose(*of_cliques(before, "web-0-second"))
    after = await stage.until_ready("web", 2, without=uids(of_cliques(before, "web-0-second")))
    assert uids(of_cliques(after, "web-0-first")) == uids(of_cliques(before, "web-0-first"))
    assert len(placed(after)) == 2


def a_slow_clique(name: str, replicas: int, ready_after: str, **more: Any) -> dict[str, Any]:
    annotations = {"shoal.dev/sim-ready-delay": ready_after}
    return a_clique_template(name, replicas, pod_spec=one_cpu(), annotations=annotations, **more)


def latest_ready(stage: Stage, pods: Iterable[Pod], *cliques: str) -> int:
    ready = stage.history.first(is_ready)
    return max(ready[pod.metadata.uid] for pod in of_cliques(pods, *cliques))


def earliest_ready(stage: Stage, pods: Iterable[Pod], *cliques: str) -> int:
    ready = stage.history.first(is_ready)
    return min(ready[pod.metadata.uid] for pod in of_cliques(pods, *cliques))


def earliest_start(stage: Stage, pods: Iterable[Pod], *cliques: str) -> int:
    started = stage.history.first(has_started)
    return min(started[pod.metadata.uid] for pod in of_cliques(pods, *cliques))


def has_started(pod: Pod) -> bool:
    return any(one.state.running is not None for one in pod.status.container_statuses)
