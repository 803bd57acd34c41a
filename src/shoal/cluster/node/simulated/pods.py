"""Leads the pods on simulated nodes through their lives: one status patch for each step, and a timer for the next."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from functools import lru_cache

from shoal.api import kai_names
from shoal.api.core import FAILED, PODS, Container, Node, Pod, is_finished
from shoal.api.meta import PartialObject
from shoal.cluster.indexes import BY_CONTROLLER, BY_NODE
from shoal.cluster.node.addresses import Addresses, NoAddress
from shoal.cluster.node.pod_status import Identify, Identity, Report, status_patch
from shoal.cluster.node.simulated.devices import Devices, awaits_device
from shoal.cluster.node.simulated.life import Place, ended_from_outside, next_step, stops_at
from shoal.cluster.node.simulated.node_status import internal_ip
from shoal.cluster.node.simulated.nodes import is_live, is_ours
from shoal.cluster.node.simulated.rules import Rules, rules_of
from shoal.cluster.node.simulated.start_order import StartOrder, waits_in
from shoal.kube import About, Change, Client, Conflict, Informer, Key, NotFound, ReconcileError, Recorder, Requeue

COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"

_PODS = PODS.view(PartialObject)


class PodKeeper:
    """The agent of all simulated nodes, as far as it concerns their pods.

    Beside the shared picture of pods it holds what no status has room for: the addresses in use, and the fraction of
    the second in which a pod with a timer began its present state.
    """

    def __init__(
        self, client: Client, events: Recorder, pods: Informer[Pod], nodes: Informer[Node], addresses: Addresses
    ) -> None:
        self._client = client
        self._events = events
        self._pods = pods
        self._nodes = nodes
        self._addresses = addresses
        self._devices = Devices()
        self._moments: dict[str, datetime] = {}
        self._to_be_told: set[str] = set()
        self.start_order = StartOrder()
        """Who waits for others to be ready."""
        pods.subscribe(self._follow)

    def concerns(self, change: Change[Pod]) -> bool:
        """Whether there may be something to do for a pod; one whose node is not known yet comes with its node."""
        pod = change.after
        if pod is None or not is_ours(self._nodes.get(pod.spec.node_name)):
            return False
        return pod.metadata.is_deleting or not is_finished(pod)

    def on_node(self, node: Node) -> list[Key]:
        """The pods of a node."""
        pods = self._pods.find(BY_NODE, node.metadata.name) if is_ours(node) else []
        return [Key(pod.metadata.namespace, pod.metadata.name) for pod in pods]

    async def reconcile(self, key: Key) -> Requeue | None:
        """Takes the step that is due, and says when the next one is."""
        pod = self._pods.store.get(key)
        node = self._nodes.get(pod.spec.node_name) if pod is not None and pod.spec.node_name else None
        if pod is None or node is None or not is_live(node):
            return None
        rules, problems = rules_of(pod)
        moment = datetime.now(UTC)
        if pod.metadata.is_deleting:
            return await self._end(pod, node, rules, moment)
        if is_finished(pod):
            return None
        self._tell(pod, problems)
        place = self._place(pod, node)
        failed = self._failed_before(pod) if rules.fail_first else 0
        holder = waits_in(pod)
        step = next_step(
            pod,
            rules,
            place,
            now=moment,
            exactly=lambda second: self._exactly(pod, second),
            failed_before=failed,
            held_in=holder if holder and self.start_order.must_wait(pod) else "",
        )
        if step.begins and step.wake is not None:
            self._moments[pod.metadata.uid] = moment
        await self._write(pod, step.report, moment)
        if awaits_device(pod):
            await self._note_device(pod, node)
        return None if step.wake is None else Requeue(after=max(0.0, (step.wake - moment).total_seconds()))

    async def _end(self, pod: Pod, node: Node, rules: Rules, moment: datetime) -> Requeue | None:
        """Stops a pod that is being deleted, and lets it go."""
        metadata = pod.metadata
        if not is_finished(pod):
            stops = stops_at(pod, rules)
            if moment < stops:
                return Requeue(after=(stops - moment).total_seconds())
            # Nobody would see the last words of a pod that is gone a moment later, but who holds it by a finalizer
            # waits for them.
            if metadata.finalizers:
                second = moment.replace(microsecond=0)
                place = Place(host_ip=internal_ip(node.status), pod_ip=pod.status.pod_ip)
                report = ended_from_outside(pod, pod.status.start_time or second, place, second)
                await self._write(pod, report, moment)
        if metadata.deletion_grace_period_seconds != 0:
            try:
                await self._client.delete(PODS, metadata.name, metadata.namespace, uid=metadata.uid, grace_seconds=0)
            except (NotFound, Conflict):
                return None  # gone, or another pod of the same name by now
        return None

    async def _write(self, pod: Pod, report: Report, moment: datetime) -> None:
        metadata = pod.metadata
        patch = status_patch(pod, report, now=moment, identify=_identify(metadata.uid))
        if not patch:
            return
        body = {"metadata": {"uid": metadata.uid}, "status": patch}
        try:
            await self._client.strategic_patch(_PODS, metadata.name, body, metadata.namespace, subresource="status")
        except NotFound:
            return

    async def _note_device(self, pod: Pod, node: Node) -> None:
        """Says which GPU a reservation holds, as the program in its container would."""
        device = self._devices.give(pod, node, self._pods.find(BY_NODE, node.metadata.name))
        if device is None:
            return
        metadata = {"uid": pod.metadata.uid, "annotations": {kai_names.RESERVED_GPU_INDEX: device}}
        try:
            await self._client.merge_patch(_PODS, pod.metadata.name, {"metadata": metadata}, pod.metadata.namespace)
        except NotFound:
            return

    def _place(self, pod: Pod, node: Node) -> Place:
        host = internal_ip(node.status)
        if pod.spec.host_network:
            return Place(host_ip=host, pod_ip=host)
        try:
            return Place(host_ip=host, pod_ip=pod.status.pod_ip or self._addresses.take(pod.metadata.uid))
        except NoAddress as error:
            raise ReconcileError(f"pod {pod.metadata.namespace}/{pod.metadata.name} gets no address: {error}") from None

    def _failed_before(self, pod: Pod) -> int:
        """How many pods of the same controller, and for the same index where they have one, have failed."""
        controller = pod.metadata.controller
        if controller is None:
            return 0
        index = pod.metadata.annotations.get(COMPLETION_INDEX)
        return sum(
            sibling.status.phase == FAILED and sibling.metadata.annotations.get(COMPLETION_INDEX) == index
            for sibling in self._pods.find(BY_CONTROLLER, controller.uid)
        )

    def _exactly(self, pod: Pod, second: datetime) -> datetime:
        moment = self._moments.get(pod.metadata.uid)
        return moment if moment is not None and moment.replace(microsecond=0) == second else second

    def _tell(self, pod: Pod, problems: list[str]) -> None:
        """Says what is wrong with a pod's annotations when it starts, and when somebody has changed them."""
        if problems and (pod.status.start_time is None or pod.metadata.uid in self._to_be_told):
            for problem in problems:
                self._events.warning(About.of(PODS, pod), "InvalidAnnotation", problem)
        self._to_be_told.discard(pod.metadata.uid)

    def _follow(self, change: Change[Pod]) -> None:
        """Keeps account of the addresses in use, and forgets what is gone."""
        self.start_order.follow(change)
        before, after = change.before, change.after
        uid = change.latest.metadata.uid
        if after is None:
            self._moments.pop(uid, None)
            self._to_be_told.discard(uid)
            self._addresses.release(uid)
            self._devices.release(uid)
        elif before is not None and before.metadata.annotations != after.metadata.annotations:
            self._to_be_told.add(uid)
        held, holds = _address(before), _address(after)
        if held and not holds:
            self._moments.pop(uid, None)
            self._addresses.release(uid, held)
        elif holds and holds != held:
            self._addresses.shown(uid, holds)


def _address(pod: Pod | None) -> str:
    """The address that a pod keeps from others: none once it has finished, and none that is its node's."""
    return "" if pod is None or is_finished(pod) or pod.spec.host_network else pod.status.pod_ip


def _identify(uid: str) -> Identify:
    def identify(container: Container, restarts: int) -> Identity:
        digest = hashlib.sha256(f"{uid}/{container.name}/{restarts}".encode()).hexdigest()
        return Identity(f"simulated://{digest}", _image_id(container.image))

    return identify


@lru_cache(maxsize=1024)
def _image_id(image: str) -> str:
    name = image.partition("@")[0]
    head, slash, last = name.rpartition("/")
    return f"{head}{slash}{last.partition(':')[0]}@sha256:{hashlib.sha256(image.encode()).hexdigest()}"
