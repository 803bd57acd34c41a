"""The kubelet's API of simulated nodes, all on one socket: logs and usage that are made up, and no commands."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

import msgspec
from aiohttp import web

from shoal.api.core import PODS, ContainerStatus, Node, Pod
from shoal.cluster.indexes import BY_NODE
from shoal.cluster.node.kubelet import Line, LogOptions, NodeUsage, Refused
from shoal.cluster.node.simulated.logs import EVERY, last_line, lines_until, log_so_far
from shoal.cluster.node.simulated.nodes import is_down, is_ours
from shoal.cluster.node.simulated.usage import Reading, node_usage
from shoal.kube import Change, Informer

_REFUSALS = {
    "exec": "no command can be run in it",
    "run": "no command can be run in it",
    "attach": "there is no process to attach to",
    "portForward": "nothing listens on its ports",
    "podConnect": "nothing listens on its ports",
}


class SimulatedKubelet:
    """Answers for all simulated nodes from the shared picture of nodes and pods."""

    def __init__(self, nodes: Informer[Node], pods: Informer[Pod]) -> None:
        self._nodes = nodes
        self._pods = pods
        self._readings: dict[str, Reading] = {}
        self._followers: dict[str, list[asyncio.Event]] = {}
        pods.subscribe(self._wake)
        nodes.subscribe(self._forget)

    async def log(self, namespace: str, pod: str, container: str, options: LogOptions) -> AsyncIterator[Line]:
        """What a container has said and, where it is followed, goes on to say until it ends."""
        found, status = self._container(namespace, pod, container)
        moment = datetime.now(UTC)
        for line in options.selected(log_so_far(found, status, previous=options.previous, now=moment)):
            yield line
        running = status.state.running
        if options.follow and not options.previous and running is not None and running.started_at is not None:
            async for line in self._followed(found, container, running.started_at, moment):
                yield line

    async def connect(
        self, request: web.Request, verb: str, namespace: str, pod: str, container: str
    ) -> web.StreamResponse:
        """Refuses: nothing runs here."""
        found = self._pod(namespace, pod)
        code = 503 if verb == "podConnect" else 501
        raise Refused(code, f"pod {namespace}/{pod} is on the simulated node {found.spec.node_name}: {_REFUSALS[verb]}")

    def usage(self, node: str) -> NodeUsage:
        """What a node and its containers are taken to use."""
        found = self._node(node)
        pods = sorted(self._pods.find(BY_NODE, node), key=lambda pod: (pod.metadata.namespace, pod.metadata.name))
        moment = datetime.now(UTC)
        usage = node_usage(found, pods, now=moment, before=self._readings.get(node))
        self._readings[node] = (moment, usage.cpu_seconds)
        return usage

    def pods(self, node: str) -> list[dict[str, Any]]:
        """The pods of a node, or of all simulated nodes, as far as their fields are read here."""
        if node:
            found = self._pods.find(BY_NODE, self._node(node).metadata.name)
        else:
            found = [pod for pod in self._pods.items() if is_ours(self._nodes.get(pod.spec.node_name))]
        return [{**msgspec.to_builtins(pod), "apiVersion": PODS.api_version, "kind": PODS.kind} for pod in found]

    async def _followed(self, pod: Pod, container: str, started: datetime, since: datetime) -> AsyncIterator[Line]:
        changed = asyncio.Event()
        followers = self._followers.setdefault(pod.metadata.uid, [])
        followers.append(changed)
        try:
            while True:
                changed.clear()
                now = datetime.now(UTC)
                current = self._pods.get(pod.metadata.name, pod.metadata.namespace)
                status = _status(current, container) if current and current.metadata.uid == pod.metadata.uid else None
                if status is None:
                    return
                for line in lines_until(pod, container, started, now):
                    if line.at > since:
                        yield line
                since = now
                if status.state.running is None or status.state.running.started_at != started:
                    ended = status.state.terminated or status.last_state.terminated
                    end = last_line(ended) if ended is not None else None
                    if end is not None:
                        yield end
                    return
                beats = int((now - started).total_seconds()) // EVERY + 1
                wait = (started + timedelta(seconds=EVERY * beats) - now).total_seconds()
                try:
                    async with asyncio.timeout(max(0.01, wait)):
                        await changed.wait()
                except TimeoutError:
                    continue
        finally:
            followers.remove(changed)
            if not followers:
                self._followers.pop(pod.metadata.uid, None)

    def _wake(self, change: Change[Pod]) -> None:
        for follower in self._followers.get(change.latest.metadata.uid, ()):
            follower.set()

    def _forget(self, change: Change[Node]) -> None:
        if change.after is None:
            self._readings.pop(change.latest.metadata.name, None)

    def _node(self, name: str) -> Node:
        if not name:
            raise Refused(400, "one agent serves all simulated nodes: say which one by ?node=NAME")
        node = self._nodes.get(name)
        if node is None or not is_ours(node):
            raise Refused(404, f'simulated node "{name}" not found')
        if is_down(node):
            _refuse_down(name)
        return node

    def _pod(self, namespace: str, name: str) -> Pod:
        pod = self._pods.get(name, namespace)
        if pod is None or not pod.spec.node_name:
            raise Refused(404, f'pod "{name}" not found')
        self._node(pod.spec.node_name)
        return pod

    def _container(self, namespace: str, name: str, container: str) -> tuple[Pod, ContainerStatus]:
        pod = self._pod(namespace, name)
        known = [one.name for one in (*pod.spec.containers, *pod.spec.init_containers)]
        if container not in known:
            raise Refused(404, f'container "{container}" not found in pod "{name}"')
        return pod, _status(pod, container) or ContainerStatus(name=container)


def _status(pod: Pod, container: str) -> ContainerStatus | None:
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    return next((status for status in statuses if status.name == container), None)


def _refuse_down(node: str) -> NoReturn:
    raise Refused(503, f"node {node} is down: its annotation shoal.dev/sim-down says so")
