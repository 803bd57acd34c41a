"""How much simulated containers use: what their pod's annotations say, or a share of what they ask for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from shoal.api.core import Container, ContainerStatus, Node, Pod
from shoal.api.meta import InvalidQuantity, Quantity, parse_quantity
from shoal.cluster.node.kubelet import ContainerUsage, NodeUsage
from shoal.cluster.node.simulated.rules import rules_of

CPU_SHARE, MEMORY_SHARE = 0.6, 0.5
"""Of its requests, what a container uses."""
LEAST_CPU, LEAST_MEMORY = 0.001, 16 << 20
"""What one uses that asks for nothing."""
NODE_CPU, NODE_MEMORY = 0.05, 512 << 20
"""What the node itself uses."""


Reading = tuple[datetime, float]
"""When the counter of a node was read, and the seconds that it showed."""


def node_usage(node: Node, pods: Iterable[Pod], *, now: datetime, before: Reading | None) -> NodeUsage:
    """What a node and the running containers on it use; its counter goes on from where it was read before."""
    containers = [one for pod in pods for one in pod_usage(pod, now=now)]
    cores = NODE_CPU + sum(one.cpu_cores for one in containers)
    created = node.metadata.creation_timestamp or now
    since, seconds = before or (created, 0.0)
    capacity = node.status.capacity.get("memory", 0)
    return NodeUsage(
        node=node.metadata.name,
        started=created.timestamp(),
        cpu_seconds=seconds + cores * max(0.0, (now - since).total_seconds()),
        cpu_cores=cores,
        memory_bytes=NODE_MEMORY + sum(one.memory_bytes for one in containers),
        memory_capacity=parse_quantity(capacity).value(),
        containers=containers,
    )


def pod_usage(pod: Pod, *, now: datetime) -> Iterator[ContainerUsage]:
    """What the running containers of a pod use; what is said of the pod is shared among them equally."""
    running = list(_running(pod))
    if not running:
        return
    rules, _ = rules_of(pod)
    metadata, count = pod.metadata, len(running)
    for container, started in running:
        requests = container.resources.requests
        cpu = float(rules.cpu) / count if rules.cpu is not None else _asked(requests.get("cpu"), CPU_SHARE, LEAST_CPU)
        memory = (
            float(rules.memory) / count
            if rules.memory is not None
            else _asked(requests.get("memory"), MEMORY_SHARE, LEAST_MEMORY)
        )
        yield ContainerUsage(
            namespace=metadata.namespace,
            pod=metadata.name,
            uid=metadata.uid,
            container=container.name,
            started=started.timestamp(),
            cpu_seconds=cpu * max(0.0, (now - started).total_seconds()),
            cpu_cores=cpu,
            memory_bytes=int(memory),
        )


def _running(pod: Pod) -> Iterator[tuple[Container, datetime]]:
    status = pod.status
    for containers, statuses in (
        (pod.spec.init_containers, status.init_container_statuses),
        (pod.spec.containers, status.container_statuses),
    ):
        known: dict[str, ContainerStatus] = {one.name: one for one in statuses}
        for container in containers:
            one = known.get(container.name)
            if one is not None and one.state.running is not None and one.state.running.started_at is not None:
                yield container, one.state.running.started_at


def _asked(amount: Quantity | str | float | None, share: float, least: float) -> float:
    if amount is None:
        return least
    try:
        asked = amount if isinstance(amount, Quantity) else parse_quantity(amount)
    except InvalidQuantity:
        return least
    return max(least, float(asked) * share)
