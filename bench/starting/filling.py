"""A cluster is filled with nodes and pods, and emptied again, while another client goes on asking it."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from bench.serving.contestants import NAMESPACE, account_of, rest
from bench.serving.load import Crew, Load, Target, drive
from bench.starting.clusters import Cluster
from bench.starting.observer import Observer, Stalled
from bench.starting.probe import Latencies, probing
from shoal.cluster.node.simulated.pools import FAKE, Pool, node_labels, node_names, node_resources
from shoal.kube import HttpTransport, load_connection
from shoal.kube.transport import Request

REPLICAS = 1_000
"""Of each Deployment."""
CONNECTIONS = 32
_NAMESPACES = [f"bench-{number}" for number in range(10)]
_NODES_WITHIN = 600.0
Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Size:
    """So many nodes, and so many pods in all."""

    nodes: int
    pods: int

    def __str__(self) -> str:
        return f"{self.nodes:,} nodes, {self.pods:,} pods"


@dataclass(kw_only=True)
class Wave:
    """Pods that came: seconds from the first request until all were created, bound (to the second), running."""

    pods: int
    created: float
    bound: float
    running: float
    cpu: dict[str, float]
    get: Answers
    create: Answers


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What another client waited meanwhile, in seconds."""

    count: int
    p50: float
    p99: float
    longest: float

    @classmethod
    def of(cls, load: Load) -> Answers:
        return cls(count=load.answers, p50=load.percentile(0.5), p99=load.percentile(0.99), longest=max(load.latencies))


@dataclass(kw_only=True)
class Fill:
    """What was measured of one cluster."""

    size: Size
    nodes_seconds: float = 0.0
    memory_of_nodes: dict[str, int] = field(default_factory=dict)
    owned: Wave | None = None
    memory: dict[str, int] = field(default_factory=dict)
    events: int = 0
    """That were written of the nodes and pods: each costs a request."""
    deleted_seconds: float = 0.0
    deleted_cpu: dict[str, float] = field(default_factory=dict)
    bare: Wave | None = None

    def raw(self) -> dict[str, Any]:
        return asdict(self)


def fill(cluster: Cluster, size: Size, say: Say, *, bare: bool = False, empties: bool = True) -> Fill:
    """Nodes, then pods of Deployments; then all of them go again and, where asked for, bare pods come."""
    bystander = account_of(cluster.kubeconfig)
    creator = account_of(cluster.kubeconfig, "trainer") if bare else None
    return asyncio.run(_fill(cluster, size, bystander, creator, say, empties=empties))


async def _fill(
    cluster: Cluster, size: Size, bystander: Target, creator: Target | None, say: Say, *, empties: bool
) -> Fill:
    result = Fill(size=size)
    api = _Api(cluster.kubeconfig)
    try:
        began = time.perf_counter()
        await _add_nodes(api, cluster, size.nodes)
        result.nodes_seconds = time.perf_counter() - began
        if cluster.makes_nodes:
            result.nodes_seconds += cluster.all_ready - cluster.api_ready
        say(f"  {size.nodes:,} nodes ready after {result.nodes_seconds:.1f} s")
        for namespace in _NAMESPACES:
            await api.send("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
            await api.account(namespace)
        await asyncio.to_thread(rest, cluster.processes.values())
        result.memory_of_nodes = cluster.memory()
        async with Observer(cluster.kubeconfig) as observer:
            came = await _wave(cluster, observer, bystander, size.pods, say, lambda: _deploy(api, size.pods))
            result.owned = came
            await asyncio.to_thread(rest, cluster.processes.values())
            result.memory = cluster.memory()
            result.events = await api.events()
            if not empties:
                return result
            before, began = cluster.cpu(), time.perf_counter()
            for namespace in _NAMESPACES:
                await api.delete_all(f"/apis/apps/v1/namespaces/{namespace}/deployments")
            await observer.wait_for(0, say)
            result.deleted_seconds = time.perf_counter() - began
            result.deleted_cpu = _since(before, cluster.cpu())
            say(f"  {size.pods:,} pods deleted after {result.deleted_seconds:.1f} s")
        if creator is not None:
            await asyncio.to_thread(rest, cluster.processes.values())
            async with Observer(cluster.kubeconfig) as observer:
                posts = _bare_pods(creator, size.pods)
                result.bare = await _wave(
                    cluster, observer, bystander, size.pods, say, lambda: asyncio.to_thread(_post, creator, posts)
                )
    finally:
        await api.close()
    return result


async def _wave(
    cluster: Cluster, observer: Observer, bystander: Target, pods: int, say: Say, ask: Callable[[], Awaitable[None]]
) -> Wave:
    """Asks for pods, and waits until all of them run."""
    before = cluster.cpu()
    with probing(cluster.kubeconfig, bystander.token, names=f"probe-{time.monotonic_ns()}") as latencies:
        began, began_at = time.perf_counter(), time.time()
        asking = asyncio.ensure_future(ask())
        await observer.wait_for(pods, say)
        running = time.perf_counter() - began
        used = _since(before, cluster.cpu())
        await asking
    created, bound = (moment + 1 - began_at for moment in await observer.last_moments())
    wave = Wave(
        pods=pods,
        # Times on the wire are whole seconds, of which no more is known than that they were over by then.
        created=min(created, running),
        bound=min(bound, running),
        running=running,
        cpu=used,
        **_answers(latencies),
    )
    say(f"  {pods:,} pods created after {wave.created:.1f} s, bound {wave.bound:.1f} s, running {wave.running:.1f} s")
    return wave


def _answers(latencies: Latencies) -> dict[str, Answers]:
    return {"get": Answers.of(latencies.get), "create": Answers.of(latencies.create)}


def _since(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    return {name: after[name] - before[name] for name in after}


async def _add_nodes(api: _Api, cluster: Cluster, count: int) -> None:
    """Makes the nodes where the cluster does not, and waits until every one is ready and takes pods."""
    if not cluster.makes_nodes:
        waiting = iter([_node(name) for name in node_names(0, _pool(count))])

        async def worker() -> None:
            for node in waiting:
                await api.send("POST", "/api/v1/nodes", node)

        await asyncio.gather(*(worker() for _ in range(CONNECTIONS)))
    deadline = time.monotonic() + _NODES_WITHIN
    while (ready := await api.usable_nodes()) < count:
        if time.monotonic() > deadline:
            raise Stalled(f"{ready} of {count} nodes are ready after {_NODES_WITHIN:.0f} s")
        await asyncio.sleep(max(0.5, count / 5_000))  # a list of all of them is dear


def _pool(count: int) -> Pool:
    return Pool(count, 8, "H100")


def _node(name: str) -> dict[str, Any]:
    resources = node_resources(_pool(1))
    return {
        "metadata": {"name": name, "labels": node_labels(name, 0, _pool(1)), "annotations": {FAKE: "fake"}},
        "status": {"capacity": resources, "allocatable": resources},
    }


async def _deploy(api: _Api, pods: int) -> None:
    """As many pods as asked for, in Deployments spread over some namespaces."""
    for number, first in enumerate(range(0, pods, REPLICAS)):
        replicas = min(REPLICAS, pods - first)
        namespace = _NAMESPACES[number % len(_NAMESPACES)]
        labels = {"app": f"app-{number:03}"}
        body = {
            "metadata": {"name": f"app-{number:03}"},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": _pod_spec()},
            },
        }
        await api.send("POST", f"/apis/apps/v1/namespaces/{namespace}/deployments", body)


def _pod_spec() -> dict[str, Any]:
    asks = {"cpu": "500m", "memory": "1Gi"}
    container = {"name": "main", "image": "registry.local/trainer:1", "resources": {"requests": asks, "limits": asks}}
    return {"containers": [container]}


def _bare_pods(target: Target, count: int) -> Iterator[bytes]:
    path = f"/api/v1/namespaces/{NAMESPACE}/pods"
    for number in itertools.islice(itertools.count(), count):
        body = {"metadata": {"name": f"bare-{number:06}"}, "spec": _pod_spec()}
        yield target.request("POST", path, msgspec.json.encode(body))


def _post(target: Target, requests: Iterator[bytes]) -> None:
    with Crew(target, requests, CONNECTIONS) as crew:
        drive(crew)


class _Condition(msgspec.Struct):
    type: str
    status: str


class _NodeStatus(msgspec.Struct):
    conditions: list[_Condition] = []


class _NodeSpec(msgspec.Struct):
    taints: list[dict[str, str]] = []


class _Node(msgspec.Struct):
    spec: _NodeSpec = msgspec.field(default_factory=_NodeSpec)
    status: _NodeStatus = msgspec.field(default_factory=_NodeStatus)

    @property
    def takes_pods(self) -> bool:
        is_ready = any((one.type, one.status) == ("Ready", "True") for one in self.status.conditions)
        return is_ready and not self.spec.taints


class _Nodes(msgspec.Struct):
    items: list[_Node]


class _Api:
    """The admin's requests."""

    def __init__(self, kubeconfig: Path) -> None:
        self._transport = HttpTransport(load_connection(kubeconfig))

    async def send(self, method: str, path: str, body: Any = None, query: dict[str, str] | None = None) -> bytes:
        encoded = None if body is None else msgspec.json.encode(body)
        asked = Request(method=method, path=path, body=encoded, query=query or {}, timeout=120)
        answer = await self._transport.send(asked)
        if answer.status >= 400 and answer.status != 409:
            raise Stalled(f"{method} {path} was answered with {answer.status}: {answer.body[:500]!r}")
        return answer.body

    async def usable_nodes(self) -> int:
        answer = await self.send("GET", "/api/v1/nodes", query={"resourceVersion": "0"})
        return sum(node.takes_pods for node in msgspec.json.decode(answer, type=_Nodes).items)

    async def events(self) -> int:
        answer = await self.send("GET", "/api/v1/events", query={"limit": "1"})
        found = msgspec.json.decode(answer)
        return len(found["items"]) + int(found["metadata"].get("remainingItemCount", 0))

    async def account(self, namespace: str) -> None:
        """Makes the account that pods want; the controllers may have been quicker."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        await self.send("POST", path, {"metadata": {"name": "default"}})

    async def delete_all(self, path: str) -> None:
        await self.send("DELETE", path, {"propagationPolicy": "Background"})

    async def close(self) -> None:
        await self._transport.close()
