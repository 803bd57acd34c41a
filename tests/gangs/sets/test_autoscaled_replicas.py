"""Whatever an autoscaler writes stays: the replicas of cliques and scaling groups, whatever else happens to the set."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shoal.api.grove import DEFINITIONS, POD_CLIQUES, SCALING_GROUPS
from shoal.api.scheduler_grove_io import DEFINITIONS as GANG_DEFINITIONS
from tests.gangs.builders import a_clique_template, a_scaling_group_template, a_set
from tests.gangs.sets.running_sets import Running
from tests.support.clusters.client import until
from tests.support.clusters.in_process import in_process_cluster

FRONT, MODEL = (POD_CLIQUES, "web-0-front"), (SCALING_GROUPS, "web-0-model")
COUNT = st.integers(1, 9)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("autoscale clique"), COUNT),
        st.tuples(st.just("autoscale group"), COUNT),
        st.tuples(st.just("another image"), COUNT),
        st.tuples(st.just("other replicas in the template"), COUNT),
        st.tuples(st.just("someone bends a label"), COUNT),
    ),
    min_size=3,
    max_size=8,
)


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS)
def test_replicas_that_an_autoscaler_wrote_are_never_reverted(steps: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_happens(Path(folder), steps))


async def _happens(folder: Path, steps: list[tuple[str, int]]) -> None:
    body = a_set(
        "web",
        a_clique_template("front", 2),
        a_clique_template("worker", 1),
        groups=[a_scaling_group_template("model", ["worker"], 2)],
    )
    async with in_process_cluster(folder / "server", (*DEFINITIONS, *GANG_DEFINITIONS)) as cluster:
        running = Running(cluster, folder)
        async with running.surroundings():
            async with running.sets():
                await running.make(body)
                await running.names(SCALING_GROUPS, 1)
            expected = {FRONT: 2, MODEL: 2}
            # Every two steps the controllers are started anew.
            for start in range(0, len(steps), 2):
                async with running.sets() as manager:
                    for step, number in steps[start : start + 2]:
                        await _take(running, body, step, number, expected)
                        await running.settled(manager)
                        assert {at: await _replicas(running, at) for at in expected} == expected


async def _take(running: Running, body: dict[str, Any], step: str, number: int, expected: dict[Any, int]) -> None:
    client, template = running.cluster.client, body["spec"]["template"]
    match step:
        case "autoscale clique" | "autoscale group":
            at = FRONT if step == "autoscale clique" else MODEL
            await client.scale(at[0], at[1], number, "default")
            expected[at] = number
        case "another image":
            template["cliques"][0]["spec"]["podSpec"]["containers"][0]["image"] = f"busybox:{number}"
            await running.change({"spec": body["spec"]})
            await until(lambda: _has(running, "spec", "podSpec", template["cliques"][0]["spec"]["podSpec"]), within=30)
        case "other replicas in the template":
            template["cliques"][0]["spec"]["replicas"] = number
            template["podCliqueScalingGroups"][0]["replicas"] = number
            await running.change({"spec": body["spec"]})
        case "someone bends a label":
            label = "app.kubernetes.io/component"
            await running.change({"metadata": {"labels": {label: f"bent-{number}"}}}, FRONT[1], POD_CLIQUES)

            async def is_straight() -> bool:
                found = await running.cluster.read(*FRONT)
                return bool(found and found["metadata"]["labels"][label] == "pcs-podclique")

            await until(is_straight, within=30)


async def _has(running: Running, part: str, field: str, value: Any) -> bool:
    found = await running.cluster.read(*FRONT)
    return bool(found and found[part][field]["containers"] == value["containers"])


async def _replicas(running: Running, at: tuple[Any, str]) -> int:
    found = await running.cluster.read(*at)
    assert found is not None
    count: int = found["spec"]["replicas"]
    return count
