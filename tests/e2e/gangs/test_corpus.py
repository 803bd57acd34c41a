"""Upstream's own end-to-end workloads, as they are, on nodes as upstream has them: one pod on each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from shoal.api.core import is_ready
from shoal.api.grove import POD_CLIQUE_SETS, names
from tests.support.gangs.stage import Stage, of_gang, placed, uids
from tests.support.schemas.corpus import needs_corpus, upstream_samples

pytestmark = needs_corpus

AGENT = {"node_role.e2e.grove.nvidia.com": "agent", "type": "kwok"}
IN_ORDER = [("pc-a", "pc-b"), ("pc-b", "pc-c")]


def a_sample(name: str) -> dict[str, Any]:
    return next(body for title, body in upstream_samples("grove") if title.startswith(f"e2e__{name}:"))


@pytest.mark.parametrize(
    ("name", "minimum", "scaled"),
    [
        pytest.param("workload1-gt", 10, 0, id="workload1-gt: every pod is needed"),
        pytest.param(
            "workload2-gt", 3, 4, id="workload2-gt: one of each clique is needed, half of it is a scaled gang"
        ),
        pytest.param("workload3", 10, 0, id="workload3: every pod is needed, in order"),
        pytest.param("workload5-gt", 5, 4, id="workload5-gt: all of one clique are needed"),
        pytest.param("workload6", 3, 4, id="workload6: one of each clique is needed, in order"),
        pytest.param("workload-ondelete", 9, 0, id="workload-ondelete: all but one pod are needed"),
    ],
)
async def test_a_workload_starts_with_its_minimum_and_becomes_whole(
    stage: Stage, name: str, minimum: int, scaled: int
) -> None:
    await stage.add_nodes(minimum - 1, memory="150Mi", labels=AGENT)
    await stage.make(a_sample(name))
    await stage.until_waiting_beside_gated(name, waiting=10 - scaled, gated=scaled)
    assert not placed(await stage.pods(name))

    await stage.add_nodes(1, memory="150Mi", labels=AGENT)

    async def has_started() -> bool:
        pods = await stage.pods(name)
        return len(placed(pods)) == minimum == sum(map(is_ready, pods))

    await stage.until(has_started, f"{minimum} pods to run")
    assert len(placed(of_gang(await stage.pods(name), f"{name}-0"))) == minimum

    await stage.add_nodes(10 - minimum, memory="150Mi", labels=AGENT)
    pods = await stage.until_ready(name, 10)
    assert len({pod.spec.node_name for pod in pods}) == 10
    assert len(of_gang(pods, f"{name}-0-sg-x-0")) == scaled


@pytest.mark.parametrize(
    ("name", "enough"),
    [
        pytest.param("workload3", max, id="workload3: all pods of a clique are waited for"),
        pytest.param("workload6", min, id="workload6: one pod of a clique is enough"),
    ],
)
async def test_a_workload_starts_in_its_order(stage: Stage, name: str, enough: Callable[[list[int]], int]) -> None:
    await stage.add_nodes(10, memory="150Mi", labels=AGENT)
    await stage.make(a_sample(name))
    pods = await stage.until_ready(name, 10)
    ready = stage.history.first(is_ready)
    gangs = {pod.metadata.labels[names.GANG_LABEL] for pod in pods}
    for gang in gangs:
        for before, after in IN_ORDER:
            parents = [ready[uid] for uid in uids(of_role(of_gang(pods, gang), before))]
            children = [ready[uid] for uid in uids(of_role(of_gang(pods, gang), after))]
            assert not parents or enough(parents) < min(children)


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        pytest.param("scale-up-from-zero", 0, 20, id="scale-up-from-zero"),
        pytest.param("scale-up", 10, 20, id="scale-up"),
        pytest.param("scale-down-to-zero", 20, 0, id="scale-down-to-zero"),
        pytest.param("scale-test-1000-moe", 20, 10, id="scale-test-1000-moe"),
    ],
)
async def test_a_scale_test_in_small_keeps_the_pods_that_stay(stage: Stage, name: str, before: int, after: int) -> None:
    """Upstream has up to 500 replicas of these; what that costs is measured by bench/gangs.py."""
    await stage.add_nodes(1, cpu=1, memory="64Gi", labels=AGENT)
    body = a_sample(name)
    body["spec"]["replicas"] = before
    await stage.make(body)
    first = await stage.until_ready(name, 2 * before)
    await stage.scale(POD_CLIQUE_SETS, name, after)
    second = await stage.until_ready(name, 2 * after)
    assert len(uids(first) & uids(second)) == 2 * min(before, after)


def of_role(pods: list[Any], clique: str) -> list[Any]:
    return [pod for pod in pods if pod.metadata.labels[names.CLIQUE_LABEL].endswith(f"-{clique}")]
