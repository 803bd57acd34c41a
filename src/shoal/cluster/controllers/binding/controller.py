"""One loop that gives every pod a node, over a picture that watch events keep up to date.

Events change the picture and wake the lines of pods that they can help; the loop then tries the first pod of each line
that is awake. A pod that gets a node is assumed to be there at once, and bound by one of a few workers; where that
fails it is given back. One whose claims are bound only for a node that is chosen holds its place until they are. A pod
that fits nowhere says so, once, and sleeps until something happens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Mapping
from functools import partial

import structlog

from shoal.api.core import (
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    is_finished,
    pod_condition,
)
from shoal.api.storage import STORAGE_CLASSES, WAIT_FOR_FIRST_CONSUMER, StorageClass
from shoal.cluster.controllers.binding.candidates import Candidates
from shoal.cluster.controllers.binding.demand import Load, Shapes
from shoal.cluster.controllers.binding.filters import has_room, reason_of_standing, story_of
from shoal.cluster.controllers.binding.picture import Picture
from shoal.cluster.controllers.binding.preparing import Preparing
from shoal.cluster.controllers.binding.volumes import (
    NO_NEEDS,
    SELECTED_NODE,
    UNBOUND,
    VolumeNeeds,
    claim_names,
    volume_needs,
)
from shoal.cluster.controllers.binding.waiting import Entry, Waiting
from shoal.cluster.controllers.binding.words import Words
from shoal.cluster.indexes import all_pods
from shoal.kube import About, ApiError, Change, ConnectionFault, Key, Manager, NotFound, NotLeading
from shoal.kube.backoff import Backoff
from shoal.kube.store import key_of

log = structlog.get_logger("shoal.cluster.binding")

IN_FLIGHT = 64
"""Binds, and words to pods that wait, that are sent at once."""
_AT_A_TIME = 0.01
"""Seconds of deciding between two turns of the event loop."""
_RETRY = Backoff(initial=0.1, cap=10.0, jitter=0.2)

BY_VOLUME = "binding-volume"

Errand = Callable[[], Awaitable[None]]


class Binding:
    """Places the pods of some schedulers."""

    def __init__(self, manager: Manager, schedulers: Collection[str], *, takes_gangs: bool = True) -> None:
        self._schedulers = frozenset(schedulers)
        self._takes_gangs = takes_gangs
        self._client = manager.client
        self._events = manager.events
        self._pods = all_pods(manager)
        self._claims = manager.cache.informer(PERSISTENT_VOLUME_CLAIMS, indexes={BY_VOLUME: by_volume})
        self._volumes = manager.cache.informer(PERSISTENT_VOLUMES)
        self._namespaces = manager.cache.informer(NAMESPACES)
        self._classes = manager.cache.informer(STORAGE_CLASSES)
        self._shapes = Shapes()
        self._picture = Picture(self._namespace_labels)
        self._candidates = Candidates(self._picture)
        self._waiting = Waiting()
        self._assumed: dict[str, str] = {}
        """The nodes that pods are taken to be on until the watch shows them there, by uid."""
        self._preparing = Preparing()
        self._prepared: list[tuple[Pod, str]] = []
        """Pods whose claims are bound now, and their nodes."""
        self._failures: dict[str, int] = {}
        self._something = asyncio.Event()
        self._errands: asyncio.Queue[Errand] = asyncio.Queue(4 * IN_FLIGHT)
        self._words = Words(
            manager.client,
            manager.events,
            self._picture,
            self._waiting,
            needs_of=self._needs_of,
            send=self._errands.put,
            wake=self._something.set,
        )
        self._pods.subscribe(self._on_pod)
        manager.cache.informer(NODES).subscribe(self._on_node)
        self._claims.subscribe(self._on_claim)
        self._volumes.subscribe(self._on_volume)
        self._namespaces.subscribe(self._on_namespace)
        self._classes.subscribe(self._on_class)

    async def run(self) -> None:
        """Works until cancelled."""
        async with asyncio.TaskGroup() as workers:
            for number in range(IN_FLIGHT):
                workers.create_task(self._work(), name=f"binding worker {number}")
            workers.create_task(self._words.run(), name="binding words")
            while True:
                await self._something.wait()
                self._something.clear()
                await self._place_all()

    # What events tell

    def _on_pod(self, change: Change[Pod]) -> None:
        pod, uid = change.latest, change.latest.metadata.uid
        if change.after is None or is_finished(pod):
            self._forget(uid)
        elif pod.spec.node_name:
            if change.before is not None and _is_settled(change.before, pod):
                return
            self._waiting.remove(uid)
            self._assumed.pop(uid, None)
            self._preparing.remove(uid)
            self._failures.pop(uid, None)
            self._is_on_node(pod)
        elif self._is_ours(pod):
            if uid not in self._assumed:
                self._wait_with(pod)
        else:
            self._waiting.remove(uid)

    def _on_node(self, change: Change[Node]) -> None:
        name = change.latest.metadata.name
        if change.after is None:
            self._picture.remove_node(name)
            self._wake_for_node(name)
            self._words.review()
            for pod in self._preparing.on_node(name):
                self._choose_again(pod)
        elif self._picture.put_node(change.after):
            self._wake_for_node(name)
            self._words.review()
        self._something.set()

    def _on_claim(self, change: Change[PersistentVolumeClaim]) -> None:
        key = key_of(change.latest)
        self._wake_for_claim(key)
        for pod, node in self._preparing.for_claim(key):
            needs = self._needs(pod)
            if needs.problem == UNBOUND:
                continue  # in the midst of it: the volume is known, and the claim not yet its own
            # Whoever provides volumes takes the node back where there can be none for it.
            is_refused = bool(_selected(change.before)) and _selected(change.after) != node
            if is_refused or needs.problem or self._is_against(needs, node):
                self._choose_again(pod)
            elif not needs.delayed:
                self._preparing.remove(pod.metadata.uid)
                self._prepared.append((pod, node))

    def _on_volume(self, change: Change[PersistentVolume]) -> None:
        for claim in self._claims.find(BY_VOLUME, change.latest.metadata.name):
            self._wake_for_claim(key_of(claim))

    def _on_namespace(self, change: Change[Namespace]) -> None:
        before = change.before.metadata.labels if change.before is not None else {}
        if before != change.latest.metadata.labels:
            self._picture.neighbours.forget_counts()
            self._waiting.wake_all()
            self._something.set()

    def _on_class(self, change: Change[StorageClass]) -> None:
        # Whether claims are bound at once is said by their class, which may come after them.
        self._waiting.wake_for_claims()
        self._something.set()

    def _forget(self, uid: str) -> None:
        self._waiting.remove(uid)
        self._failures.pop(uid, None)
        self._give_back(uid)

    def _give_back(self, uid: str) -> None:
        """A pod is not, or is no longer, where it was taken to be."""
        self._assumed.pop(uid, None)
        self._preparing.remove(uid)
        left = self._picture.remove(uid)
        if left is not None:
            self._wake_for_node(left.name)
            self._something.set()

    def _wake_for_node(self, name: str) -> None:
        state = self._picture.node(name)

        def helps(load: Load) -> bool:
            return state is not None and not reason_of_standing(load.shape, state) and has_room(load.shape, state)

        self._waiting.wake_for_node(name, helps)

    def _choose_again(self, pod: Pod) -> None:
        self._give_back(pod.metadata.uid)
        self._try_again(key_of(pod))

    def _is_on_node(self, pod: Pod) -> None:
        uid, load = pod.metadata.uid, self._load_of(pod)
        before = self._picture.load_of(uid)
        if load is None or not self._picture.place(uid, load, pod.spec.node_name):
            return
        self._waiting.wake_for_company(load, self._namespace_labels)
        if before is not None:
            # It is smaller now, or has other labels, or is not where it was taken to be.
            self._wake_for_node(before[1])
        self._something.set()

    def _wait_with(self, pod: Pod) -> None:
        load = self._load_of(pod)
        if load is not None:
            self._waiting.put(pod, load, claim_names(pod), told=_told(pod))
            self._something.set()

    def _load_of(self, pod: Pod) -> Load | None:
        try:
            return self._shapes.load_of(pod)
        except (ValueError, KeyError, TypeError) as error:
            log.error("pod cannot be read, and is passed over", pod=_name(pod), problem=str(error))
            return None

    def _is_ours(self, pod: Pod) -> bool:
        spec = pod.spec
        if not self._takes_gangs and (spec.workload_ref is not None or spec.scheduling_group is not None):
            return False
        return spec.scheduler_name in self._schedulers and not spec.scheduling_gates and not pod.metadata.is_deleting

    def _namespace_labels(self, namespace: str) -> Mapping[str, str]:
        found = self._namespaces.get(namespace)
        return found.metadata.labels if found is not None else {}

    # Deciding

    async def _place_all(self) -> None:
        """Tries every pod that something can have helped, the most important first."""
        while self._prepared:
            await self._errands.put(partial(self._bind, *self._prepared.pop()))
        since = asyncio.get_running_loop().time()
        while (entry := self._waiting.first()) is not None:
            try:
                await self._place(entry)
            except Exception:
                # One pod that cannot be understood must not keep the others waiting.
                log.exception("pod not placed by a fault of the program", pod=_name(entry.pod))
                if self._waiting.get(entry.pod.metadata.uid) is entry:
                    self._waiting.set_apart(entry)
            if asyncio.get_running_loop().time() - since > _AT_A_TIME:
                await asyncio.sleep(0)
                since = asyncio.get_running_loop().time()

    async def _place(self, entry: Entry) -> None:
        needs = self._needs_of(entry)
        if needs.problem:
            self._waiting.sleep(entry.line)
            self._words.owe(entry.line)
            return
        only = needs.selected or None
        if needs.hostnames is not None:
            named = frozenset().union(*(self._picture.nodes_of_host(name) for name in needs.hostnames))
            only = named if only is None else only & named
        judge = needs.reason_against if needs.are_choosy else None
        choice = self._candidates.choose(entry.load, only=only, by_volumes=judge)
        if choice.node is None:
            line = entry.line
            if choice.is_personal:
                line = self._waiting.set_apart(entry)
            else:
                self._waiting.sleep(line)
            self._words.owe(line)
            return
        uid, node = entry.pod.metadata.uid, choice.node.name
        self._waiting.remove(uid)
        self._assumed[uid] = node
        self._picture.place(uid, entry.load, node)
        self._waiting.wake_for_company(entry.load, self._namespace_labels)
        if needs.delayed:
            # The claims are bound for this node first; their change brings the pod further.
            self._preparing.put(entry.pod, node, entry.claims)
            await self._errands.put(partial(self._select_node, entry.pod, node, needs.delayed))
        else:
            await self._errands.put(partial(self._bind, entry.pod, node))

    def _needs_of(self, entry: Entry) -> VolumeNeeds:
        return self._needs(entry.pod) if entry.claims else NO_NEEDS

    def _needs(self, pod: Pod) -> VolumeNeeds:
        namespace = pod.metadata.namespace
        return volume_needs(
            pod,
            claim=lambda name: self._claims.get(name, namespace),
            volume=self._volumes.get,
            is_delayed=self._is_delayed,
            node_for=self._node_for,
        )

    def _node_for(self, claim: PersistentVolumeClaim) -> str:
        """The node that was chosen for a claim: a moment ago, or before; none where that is gone."""
        chosen = next((node for _, node in self._preparing.for_claim(key_of(claim))), "") or _selected(claim)
        return chosen if self._picture.node(chosen) is not None else ""

    def _is_delayed(self, claim: PersistentVolumeClaim) -> bool:
        found = self._classes.get(claim.spec.storage_class_name or "")
        return found is not None and found.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER

    def _is_against(self, needs: VolumeNeeds, node: str) -> bool:
        state = self._picture.node(node)
        return state is None or bool(needs.reason_against(state))

    # Writing

    async def _work(self) -> None:
        while True:
            errand = await self._errands.get()
            try:
                await errand()
            except NotLeading:
                return
            except Exception:
                log.exception("binding failed by a fault of the program")

    async def _bind(self, pod: Pod, node: str) -> None:
        metadata = pod.metadata
        if self._assumed.get(metadata.uid) != node:
            return  # it went, or was bound by somebody else, before its turn came
        try:
            await self._client.bind(PODS, metadata.name, metadata.namespace, node=node, uid=metadata.uid)
        except (ApiError, ConnectionFault) as error:
            await self._look_again(pod, node, error)
        else:
            words = f"Successfully assigned {metadata.namespace}/{metadata.name} to {node}"
            self._events.normal(About.of(PODS, pod), "Scheduled", words)

    async def _look_again(self, pod: Pod, node: str, error: Exception) -> None:
        """A bind failed, or its answer was lost: what the server has decides, not what we think."""
        metadata = pod.metadata
        try:
            live = await self._client.get(PODS, metadata.name, metadata.namespace)
        except NotFound:
            live = None
        except (ApiError, ConnectionFault):
            live = pod
        if self._assumed.get(metadata.uid) != node:
            return
        if live is not None and live.metadata.uid == metadata.uid and live.spec.node_name == node:
            return
        if live is None or live.metadata.uid != metadata.uid:
            self._give_back(metadata.uid)
        else:
            self._try_later(pod, node, error)

    def _try_later(self, pod: Pod, node: str, error: Exception) -> None:
        uid = pod.metadata.uid
        self._give_back(uid)
        failures = self._failures[uid] = self._failures.get(uid, 0) + 1
        delay = _RETRY.delay(failures)
        log.warning("bind failed", pod=_name(pod), node=node, error=str(error), retry_in=round(delay, 3))
        asyncio.get_running_loop().call_later(delay, self._try_again, key_of(pod))

    def _try_again(self, key: Key) -> None:
        pod = self._pods.store.get(key)
        if pod is None or pod.spec.node_name or is_finished(pod) or pod.metadata.uid in self._assumed:
            return
        if self._is_ours(pod):
            self._wait_with(pod)

    async def _select_node(self, pod: Pod, node: str, claims: Iterable[PersistentVolumeClaim]) -> None:
        """Tells whoever provides volumes for which node a pod's claims are."""
        for claim in claims:
            metadata = claim.metadata
            if self._assumed.get(pod.metadata.uid) != node:
                return  # it went before its turn came
            if _selected(claim) == node:
                continue
            annotations = {"annotations": {SELECTED_NODE: node}, "uid": metadata.uid}
            try:
                await self._client.merge_patch(
                    PERSISTENT_VOLUME_CLAIMS, metadata.name, {"metadata": annotations}, metadata.namespace
                )
            except (ApiError, ConnectionFault) as error:
                if self._assumed.get(pod.metadata.uid) == node:
                    self._try_later(pod, node, error)
                return

    def _wake_for_claim(self, claim: Key) -> None:
        self._waiting.wake_for_claim(claim.namespace, claim.name)
        self._something.set()


def by_volume(claim: PersistentVolumeClaim) -> Iterable[Hashable]:
    """Finds claims by the volume they are bound to."""
    return (claim.spec.volume_name,) if claim.spec.volume_name else ()


def _selected(claim: PersistentVolumeClaim | None) -> str:
    return claim.metadata.annotations.get(SELECTED_NODE, "") if claim is not None else ""


def _name(pod: Pod) -> str:
    return str(key_of(pod))


def _is_settled(before: Pod, after: Pod) -> bool:
    """Whether a pod on a node weighs on it as it did before: most news of a pod is about how it is doing."""
    return (
        before.spec == after.spec
        and before.metadata.labels == after.metadata.labels
        and not is_finished(before)
        and _given(before) == _given(after)
    )


def _given(pod: Pod) -> list[object]:
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    return [(held.resources, held.allocated_resources) for held in statuses if held.resources is not None]


def _told(pod: Pod) -> str:
    """What a pod says already of why it waits."""
    condition = pod_condition(pod, "PodScheduled")
    if condition is None or condition.status != "False" or condition.reason != "Unschedulable":
        return ""
    return story_of(condition.message)
