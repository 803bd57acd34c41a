"""All pods of this node: a worker for each, for as long as the runtime is there, and answers about them.

When the connection to the runtime is lost, whatever it kept may be gone. All workers are ended then, and begin again
with the next connection from what the runtime says and what the pods' status does, as after a restart of the agent.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import structlog

from shoal.api.core import Node, is_finished
from shoal.api.core.pod_details import ContainerDetails, PodDetails
from shoal.cluster.node.addresses import Addresses
from shoal.cluster.node.process.client import Runtime, RuntimeFault
from shoal.cluster.node.process.contents import Contents
from shoal.cluster.node.process.layout import NODE_ADDRESS, POD_NETWORK, Layout
from shoal.cluster.node.process.machine.gpus import Gpus
from shoal.cluster.node.process.pods.admission import Refusal, refusal_of
from shoal.cluster.node.process.pods.collaborators import Collaborators
from shoal.cluster.node.process.pods.launch import logged_attempts, words_of_run
from shoal.cluster.node.process.pods.reach import dialing, machine_socket
from shoal.cluster.node.process.pods.recovery import recovered
from shoal.cluster.node.process.pods.worker import PodWorker
from shoal.cluster.node.process.runtime.protocol import ContainerSpec, ContainerState, SandboxState, SocketSpec
from shoal.kube import Change, Client, Informer, Recorder

log = structlog.get_logger("shoal.cluster.node.process")

_PODS = ipaddress.ip_network(POD_NETWORK)


class PodKeeper:
    """Leads all pods of this node through their lives, and knows where each container is."""

    def __init__(
        self,
        client: Client,
        events: Recorder,
        pods: Informer[PodDetails],
        *,
        connect: Callable[[], Awaitable[Runtime]],
        contents: Contents,
        gpus: Gpus,
        layout: Layout,
        node: Callable[[], Node | None],
        machine_address: str,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """``pods`` are those of this node alone; ``machine_address`` is theirs where they have none of their own."""
        self._client = client
        self._events = events
        self._pods = pods
        self._connect = connect
        self._contents = contents
        self._gpus = gpus
        self._layout = layout
        self._node = node
        self._machine_address = machine_address
        self._now = now
        self._means: Collaborators | None = None
        self._workers: dict[str, PodWorker] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._early: dict[str, list[ContainerState]] = {}

    async def run(self) -> None:
        """Works until cancelled, with one connection to the runtime after the other."""
        self._pods.subscribe(self._follow)
        self._contents.on_change(self._refresh)
        try:
            while True:
                runtime = await self._connect()
                try:
                    await self._work(runtime)
                except RuntimeFault as fault:
                    log.warning("the runtime is lost", error=str(fault))
                finally:
                    await runtime.aclose()
                log.warning("the connection to the runtime is lost: connecting again")
        finally:
            self._pods.unsubscribe(self._follow)

    # Answers

    def pod(self, namespace: str, name: str) -> PodDetails | None:
        """A pod by its name."""
        found = self._pods.get(name, namespace)
        worker = self._workers.get(found.metadata.uid) if found is not None else None
        return worker.pod if worker is not None else found

    def address(self, uid: str) -> str | None:
        """A pod's address in the network of the pods; None where it does not run, empty where it has none there."""
        worker, means = self._workers.get(uid), self._means
        if worker is None or means is None or worker.address is None:
            return None
        return worker.address if means.has_pod_network else ""

    def running(self, uid: str, container: str) -> str | None:
        """The id of a container of a pod, where it runs."""
        worker = self._workers.get(uid)
        course = worker.containers.courses.get(container) if worker is not None else None
        return worker.containers.id_of(container) if worker is not None and course and course.is_running else None

    def log(self, uid: str, container: str, *, previous: bool) -> Path | None:
        """The log of a container's last life, or of the one before it; None where it had none."""
        worker = self._workers.get(uid)
        return worker.containers.log(container, previous=previous) if worker is not None else None

    def spec(self, uid: str, container: str) -> ContainerSpec | None:
        """How a container was started last."""
        worker = self._workers.get(uid)
        return worker.containers.spec(container) if worker is not None else None

    async def ended(self, container_id: str) -> None:
        """Returns once a container has ended, and its log is whole."""
        for worker in self._workers.values():
            event = worker.containers.end_event(container_id)
            if event is not None:
                await event.wait()
                return

    # One connection

    async def _work(self, runtime: Runtime) -> None:
        runtime.on_end(self._ended)
        found = {sandbox.uid: sandbox for sandbox in await runtime.sandboxes()}
        try:
            self._begin(runtime, found)
            await runtime.closed.wait()
        finally:
            self._means = None
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._workers.clear()
            self._early.clear()

    def _begin(self, runtime: Runtime, found: dict[str, SandboxState]) -> None:
        """Takes over what is there, without a pause in which something could happen that we would miss."""
        facts = runtime.facts
        pods = {pod.metadata.uid: pod for pod in self._pods.items()}
        addresses = Addresses(POD_NETWORK)
        addresses.shown("", NODE_ADDRESS)
        self._means = Collaborators(
            client=self._client,
            events=self._events,
            runtime=runtime,
            contents=self._contents,
            gpus=self._gpus,
            layout=self._layout,
            addresses=addresses,
            node_address=NODE_ADDRESS if facts.has_network else self._machine_address,
            has_pod_network=facts.has_network,
            dial=dialing((lambda: runtime.socket(SocketSpec())) if facts.has_network else machine_socket),
            refusal=self._refusal,
            now=self._now,
        )
        self._gpus.keep(set(pods))
        for uid in (found.keys() | self._folders()) - pods.keys():
            self._spawn(self._evict(runtime, uid))
        # The oldest first: who was here before is asked before. All addresses in use are known before one is given.
        for pod in pods.values():
            if address := _address(pod, found.get(pod.metadata.uid), self._means):
                addresses.shown(pod.metadata.uid, address)
        for pod in sorted(pods.values(), key=lambda one: one.metadata.creation_timestamp or self._now()):
            self._take_in(pod, found.get(pod.metadata.uid))

    def _take_in(self, pod: PodDetails, sandbox: SandboxState | None) -> None:
        means, uid = self._means, pod.metadata.uid
        assert means is not None
        spec = pod.spec
        names = [one.name for one in (*spec.init_containers, *spec.containers, *spec.ephemeral_containers)]
        # A pod that nobody has seen yet has nothing on disk, and is not kept waiting for that to be found out.
        is_new = sandbox is None and pod.status.start_time is None
        logged = {} if is_new else {name: logged_attempts(self._layout, uid, name) for name in names}
        states = sandbox.containers if sandbox is not None else ()

        def words(container: ContainerDetails, state: ContainerState) -> str:
            return words_of_run(self._layout, uid, container, state)

        worker = self._workers[uid] = PodWorker(
            pod,
            means,
            recovered(pod, states, logged, words=words, now=self._now()),
            address=_address(pod, sandbox, means),
            has_sandbox=sandbox is not None,
            is_admitted=not is_new,
        )
        self._spawn(self._lead(uid, worker))
        for state in self._early.pop(uid, ()):
            worker.ended(state)

    async def _lead(self, uid: str, worker: PodWorker) -> None:
        try:
            await worker.run()
        finally:
            if self._workers.get(uid) is worker:
                del self._workers[uid]

    async def _evict(self, runtime: Runtime, uid: str) -> None:
        """Ends what is left of a pod that nobody knows any more."""
        await runtime.close_sandbox(uid)
        await self._contents.forget(uid)

    # What happens

    def _follow(self, change: Change[PodDetails]) -> None:
        if self._means is None:
            return  # all pods are looked at when there is a runtime again
        uid = change.latest.metadata.uid
        worker = self._workers.get(uid)
        if change.after is None:
            if worker is not None:
                worker.leave(change.latest)
        elif worker is not None:
            worker.see(change.after)
        else:
            self._take_in(change.after, None)

    def _ended(self, state: ContainerState) -> None:
        worker = self._workers.get(state.sandbox)
        if worker is not None:
            worker.ended(state)
        elif self._means is None:
            self._early.setdefault(state.sandbox, []).append(state)

    def _refresh(self, uid: str) -> None:
        worker = self._workers.get(uid)
        if worker is not None:
            worker.refresh()

    def _refusal(self, pod: PodDetails) -> Refusal | None:
        others = [worker.pod for worker in self._workers.values() if worker.holds_resources and worker.pod is not pod]
        return refusal_of(pod, self._node(), others)

    def _folders(self) -> set[str]:
        try:
            return {folder.name for folder in self._layout.pods.iterdir()}
        except FileNotFoundError:
            return set()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a pod is left alone", exc_info=error)


def _address(pod: PodDetails, sandbox: SandboxState | None, means: Collaborators) -> str:
    """The address that a pod has already; none that belongs to another network than there is now."""
    if sandbox is not None and sandbox.address:
        return sandbox.address
    shown = pod.status.pod_ip
    if is_finished(pod) or not shown:
        return ""
    if means.has_pod_network and not pod.spec.host_network:
        return shown if shown != NODE_ADDRESS and ipaddress.ip_address(shown) in _PODS else ""
    return shown if shown == means.node_address else ""
