"""metrics.k8s.io, from agents that count."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.cluster.apiserver.nodes.conftest import Cluster
from tests.support.network.http_servers import serving
from tests.support.network.tls import Authority

GROUP = "/apis/metrics.k8s.io/v1beta1"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


class Counting:
    """An agent whose node uses half a core and whose pod "web" uses a quarter, in two containers."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.silent: set[str] = set()

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        node = request.query.get("node", "")
        self.asked.append(node)
        if node in self.silent:
            await asyncio.Event().wait()
        now = time.time()
        stamp = round(now * 1000)
        lines = [
            f"node_cpu_usage_seconds_total {now / 2} {stamp}",
            f"node_memory_working_set_bytes 1073741824 {stamp}",
        ]
        for container in ("main", "side"):
            labels = f'container="{container}",namespace="default",pod="web"'
            lines += [
                f"container_cpu_usage_seconds_total{{{labels}}} {now / 8} {stamp}",
                f"container_memory_working_set_bytes{{{labels}}} 1048576 {stamp}",
            ]
        return web.Response(text="\n".join([*lines, ""]))


@pytest.fixture
async def agent(cluster: Cluster) -> AsyncIterator[Counting]:
    """One agent on one socket for two nodes, the first of which has the pod."""
    agent = Counting()
    async with serving(agent, socket=cluster.sockets / "pool.sock") as url:
        await cluster.add_node("a", url=url, labels={"zone": "east"})
        await cluster.add_node("b", url=url, labels={"zone": "west"})
        await cluster.add_pod("web", node="a", containers=["main", "side"], labels={"app": "web"})
        yield agent


async def listed(cluster: Cluster, path: str, **options: Any) -> list[dict[str, Any]]:
    code, value = await cluster.call("GET", f"{GROUP}/{path}", **options)
    assert code == 200, value
    items: list[dict[str, Any]] = value["items"]
    return items


async def test_the_first_question_is_answered_with_rates(cluster: Cluster, agent: Counting) -> None:
    code, value = await cluster.call("GET", f"{GROUP}/nodes")
    assert code == 200
    assert (value["kind"], value["apiVersion"], value["metadata"]) == ("NodeMetricsList", "metrics.k8s.io/v1beta1", {})
    first, second = value["items"]
    assert (first["metadata"]["name"], first["metadata"]["labels"]["zone"]) == ("a", "east")
    assert second["metadata"]["name"] == "b"
    assert first["usage"]["memory"] == "1Gi"
    assert cores(first["usage"]["cpu"]) == pytest.approx(0.5, rel=0.01)
    assert sorted(set(agent.asked)) == ["a", "b"]


async def test_what_was_asked_a_moment_ago_is_not_asked_again(cluster: Cluster, agent: Counting) -> None:
    await listed(cluster, "nodes")
    before = len(agent.asked)
    for path in ("nodes", "pods", "namespaces/default/pods"):
        assert await listed(cluster, path)
    assert len(agent.asked) == before


async def test_pods_are_shown_by_their_containers(cluster: Cluster, agent: Counting) -> None:
    await cluster.add_pod("quiet", node="b", labels={"app": "quiet"})
    await cluster.add_pod("unplaced")
    await cluster.add_pod("done", node="a", phase="Succeeded")
    [pod] = await listed(cluster, "namespaces/default/pods")
    assert (pod["metadata"]["name"], pod["metadata"]["labels"]) == ("web", {"app": "web"})
    assert [container["name"] for container in pod["containers"]] == ["main", "side"]
    assert cores(pod["containers"][0]["usage"]["cpu"]) == pytest.approx(0.125, rel=0.01)
    code, one = await cluster.call("GET", f"{GROUP}/namespaces/default/pods/web")
    assert (code, one["kind"], one["containers"]) == (200, "PodMetrics", pod["containers"])


@pytest.mark.usefixtures("agent")
async def test_selectors_select(cluster: Cluster) -> None:
    west = await listed(cluster, "nodes", query={"labelSelector": "zone=west"})
    assert [node["metadata"]["name"] for node in west] == ["b"]
    assert await listed(cluster, "pods", query={"labelSelector": "app!=web"}) == []
    assert await listed(cluster, "pods", query={"fieldSelector": "metadata.name=web"})
    assert await listed(cluster, "namespaces/kube-system/pods") == []


@pytest.mark.usefixtures("agent")
async def test_what_has_no_usage_is_not_found(cluster: Cluster) -> None:
    await cluster.add_pod("quiet", node="b")
    for path, message in {
        "nodes/none": 'nodemetrics.metrics.k8s.io "none" not found',
        "namespaces/default/pods/none": 'pods "default/none" not found',
        "namespaces/default/pods/quiet": 'podmetrics.metrics.k8s.io "default/quiet" not found',
    }.items():
        assert await cluster.refusal(f"{GROUP}/{path}") == (404, "NotFound", message)


@pytest.mark.usefixtures("agent")
async def test_a_table_has_a_row_for_each(cluster: Cluster) -> None:
    code, table = await cluster.call("GET", f"{GROUP}/nodes", accept=TABLE)
    assert (code, table["kind"]) == (200, "Table")
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "cpu", "memory", "Window"]
    assert [(row["cells"][0], row["cells"][2]) for row in table["rows"]] == [("a", "1Gi"), ("b", "1Gi")]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


async def test_a_silent_node_hides_no_other_and_delays_the_others_once(cluster: Cluster, agent: Counting) -> None:
    await cluster.add_node("dead", url="https://127.0.0.1:1")
    agent.silent = {"b"}
    assert [node["metadata"]["name"] for node in await listed(cluster, "nodes")] == ["a"]
    started = time.monotonic()
    assert [node["metadata"]["name"] for node in await listed(cluster, "nodes")] == ["a"]
    assert time.monotonic() - started < 1


async def test_an_agent_over_tls_is_asked_as_well(cluster: Cluster, tmp_path: Path) -> None:
    agent = Counting()
    tls = Authority().server_context(tmp_path, hosts=("127.0.0.1",))
    async with serving(agent, tls=tls) as url:
        await cluster.add_node("a", url=url)
        [node] = await listed(cluster, "nodes")
    assert cores(node["usage"]["cpu"]) == pytest.approx(0.5, rel=0.01)
    assert set(agent.asked) == {""}


def cores(text: str) -> float:
    units = {"n": 1e-9, "u": 1e-6, "m": 1e-3}
    return float(text[:-1]) * units[text[-1]] if text[-1] in units else float(text)
