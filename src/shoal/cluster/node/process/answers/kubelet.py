"""The kubelet's API of this machine's own node."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable
from functools import partial
from typing import Any, Protocol

import msgspec
from aiohttp import web

from shoal.api.core import ContainerStatus
from shoal.api.core.pod_details import POD_DETAILS, PodDetails
from shoal.cluster.node.kubelet import LogOptions, NodeUsage, Refused
from shoal.cluster.node.process.answers.attach import Attaching
from shoal.cluster.node.process.answers.commands import Commands
from shoal.cluster.node.process.answers.connections import connect_to_pod
from shoal.cluster.node.process.answers.forwarding import Forwarding
from shoal.cluster.node.process.answers.logs import log_text
from shoal.cluster.node.process.answers.residents import Residents, Runtime
from shoal.cluster.node.process.answers.watches import Watches

_NO_IMAGE = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


_MOST_SHOWN = 256
"""Containers of whose logs is known how far they were read, until somebody joins them."""


class Usage(Protocol):
    """Tells what this machine and its containers use."""

    def node_usage(self) -> NodeUsage:
        """As of now."""
        ...


class LocalKubelet:
    """Answers for the pods that run on this machine; close it when it answers no more."""

    def __init__(
        self, residents: Residents, runtime: Runtime, usage: Usage, *, pods: Callable[[], Iterable[PodDetails]]
    ) -> None:
        """``pods`` gives all pods of this node."""
        self.runtime = runtime
        """Another one after the runtime was started again."""
        self._residents = residents
        self._usage = usage
        self._pods = pods
        self._watches = Watches()
        self._shown: dict[str, bytes] = {}

    def close(self) -> None:
        """Watches logs no more."""
        self._watches.close()

    def log(self, namespace: str, pod: str, container: str, options: LogOptions) -> AsyncGenerator[bytes, None]:
        """What a container has written and, where it is followed, goes on to write until it ends."""
        found = self._pod(namespace, pod, missing=f'pod "{pod}" does not exist')
        if container not in _container_names(found):
            raise Refused(404, f'container "{container}" not found in pod "{pod}"')
        uid = found.metadata.uid
        path = self._residents.log(uid, container, previous=options.previous)
        if path is None:
            raise no_log(found, container, previous=options.previous)
        running = self._residents.running(uid, container) if options.follow and not options.previous else None
        ended = partial(self._residents.ended, running) if running is not None else None
        spec = self._residents.spec(uid, container)
        if spec is None or not spec.closes_stdin or str(path) != spec.log:
            return log_text(path, options, self._watches, ended)
        return log_text(path, options, self._watches, ended, partial(self._note_shown, spec.log))

    async def connect(
        self, request: web.Request, verb: str, namespace: str, pod: str, container: str
    ) -> web.StreamResponse:
        """Runs a command, joins a container, forwards ports or connects to one."""
        found = self._pod(namespace, pod, missing="pod does not exist", uid=request.match_info.get("uid", ""))
        uid = found.metadata.uid
        if verb == "portForward":
            return await Forwarding(self.runtime, uid=uid, name=f"{namespace}/{pod}").serve(request)
        if verb == "podConnect":
            address = self._residents.address(uid)
            return await connect_to_pod(request, self.runtime, pod=f"{namespace}/{pod}", address=address)
        running, spec = self._residents.running(uid, container), self._residents.spec(uid, container)
        if running is None or spec is None:
            raise _not_running(found, container, verb)
        if verb == "attach":
            ended = partial(self._residents.ended, running)
            return await Attaching(self.runtime, self._watches, self._shown).attach(request, spec, ended)
        commands = Commands(self.runtime)
        return await (commands.run(request, spec) if verb == "run" else commands.exec(request, spec))

    def usage(self, node: str) -> NodeUsage:
        """What this machine and its containers use."""
        return self._usage.node_usage()

    def pods(self, node: str) -> list[dict[str, Any]]:
        """The pods of this node."""
        named = {"apiVersion": POD_DETAILS.api_version, "kind": POD_DETAILS.kind}
        return [{**msgspec.to_builtins(pod), **named} for pod in self._pods()]

    def _note_shown(self, log: str, time: bytes) -> None:
        self._shown.pop(log, None)
        self._shown[log] = time
        if len(self._shown) > _MOST_SHOWN:
            del self._shown[next(iter(self._shown))]

    def _pod(self, namespace: str, name: str, *, missing: str, uid: str = "") -> PodDetails:
        pod = self._residents.pod(namespace, name)
        if pod is None or (uid and pod.metadata.uid != uid):
            raise Refused(404, missing)
        return pod


def no_log(pod: PodDetails, container: str, *, previous: bool) -> Refused:
    """Why a container has no log, in a kubelet's words."""
    where = f'container "{container}" in pod "{pod.metadata.name}"'
    if previous:
        return Refused(400, f"previous terminated {where} not found")
    status = _status(pod, container)
    if status is not None and status.state.terminated is not None:
        return Refused(400, f"{where} is terminated")
    waiting = status.state.waiting if status is not None else None
    reason = waiting.reason if waiting is not None and waiting.reason else "ContainerCreating"
    return Refused(400, f"{where} is waiting to start: {_NO_IMAGE.get(reason, reason)}")


def _not_running(pod: PodDetails, container: str, verb: str) -> Refused:
    if container not in _container_names(pod) or verb != "attach":
        return Refused(500, f'container not found ("{container}")')
    return Refused(500, f"container {container} not found in pod {pod.metadata.name}_{pod.metadata.namespace}")


def _container_names(pod: PodDetails) -> list[str]:
    spec = pod.spec
    return [one.name for one in (*spec.containers, *spec.init_containers, *spec.ephemeral_containers)]


def _status(pod: PodDetails, container: str) -> ContainerStatus | None:
    status = pod.status
    known = (*status.container_statuses, *status.init_container_statuses, *status.ephemeral_container_statuses)
    return next((one for one in known if one.name == container), None)
