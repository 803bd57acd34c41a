"""The reconcile of a DaemonSet: its revision, then the pods that nodes lack or have too many of, then its status."""

from __future__ import annotations

from datetime import UTC, datetime

from shoal.api.apps import CONTROLLER_REVISIONS, DAEMON_SETS, REVISION_HASH, DaemonSet
from shoal.api.core import NODES, PODS, Node
from shoal.api.meta import LabelSelector, owner_reference
from shoal.cluster.controllers.availability import seconds_until_available
from shoal.cluster.controllers.claims import (
    Claims,
    concerns_claimants,
    keys_of_claimants,
    selector_of_spec,
    selector_or_give_up,
)
from shoal.cluster.controllers.daemon_sets.eligibility import Eligibility, Verdict
from shoal.cluster.controllers.daemon_sets.failures import FailedPods
from shoal.cluster.controllers.daemon_sets.history import DaemonHistory
from shoal.cluster.controllers.daemon_sets.objects import by_node, template_generation, wanted_pod
from shoal.cluster.controllers.daemon_sets.plan import ROLLING_UPDATE, Observed, Work, wanted_work
from shoal.cluster.controllers.daemon_sets.rollout import next_replacements
from shoal.cluster.controllers.daemon_sets.status import status_of
from shoal.cluster.controllers.pod_crew import delete_pods, make_pods
from shoal.cluster.controllers.rests import Rests
from shoal.cluster.indexes import BY_NODE, CHILD_INDEXES, POD_INDEXES, all_pods
from shoal.kube import (
    About,
    Change,
    Controller,
    Key,
    Manager,
    Requeue,
    Watch,
)
from shoal.kube.store import key_of


def add_daemon_sets(manager: Manager, *, workers: int = 2, burst: int = 250) -> None:
    """Adds the controller of DaemonSets; ``burst`` limits the pods that one reconcile makes, and deletes."""
    sets = DaemonSets(manager, burst=burst)
    claimants = keys_of_claimants(DAEMON_SETS, sets.sets, selector_of_spec)
    watches = [
        Watch(resource=PODS, keys=claimants, when=concerns_claimants, indexes=POD_INDEXES),
        Watch(resource=CONTROLLER_REVISIONS, keys=claimants, when=concerns_claimants, indexes=CHILD_INDEXES),
    ]
    controller = Controller("daemonset", DAEMON_SETS, sets.reconcile, watches=watches, workers=workers)
    manager.add(controller)

    def on_node(change: Change[Node]) -> None:
        for daemon_set in sets.concerned_by(change):
            controller.enqueue(key_of(daemon_set))

    manager.cache.informer(NODES).subscribe(on_node)


class DaemonSets:
    """Keeps the pods of each DaemonSet on the nodes that it is for."""

    def __init__(self, manager: Manager, *, burst: int) -> None:
        self.sets = manager.cache.informer(DAEMON_SETS, indexes=CHILD_INDEXES)
        self._nodes = manager.cache.informer(NODES)
        self._pods = all_pods(manager)
        self._claims = Claims(manager.client, DAEMON_SETS, PODS)
        self._client = manager.client
        self._writer = manager.writer("daemonset-controller")
        self._events = manager.events
        self._history = DaemonHistory(manager, self._writer)
        self._failures = FailedPods()
        self._rests = Rests()
        self._burst = burst
        self._eligibility: dict[Key, tuple[str, int, Eligibility]] = {}

    async def reconcile(self, key: Key) -> Requeue | None:
        """Takes the next steps for one DaemonSet, and tells how it is."""
        daemon_set = self.sets.store.get(key)
        if daemon_set is None:
            self._eligibility.pop(key, None)
            self._rests.forget(key)
            return None
        if daemon_set.spec.selector == LabelSelector():
            told = "This daemon set is selecting all pods. A non-empty selector is required."
            self._events.warning(About.of(DAEMON_SETS, daemon_set), "SelectingAll", told)
            return None
        if daemon_set.metadata.is_deleting:
            return None
        if (rest := self._rests.left(daemon_set)) > 0:
            return Requeue(after=rest)
        selector = selector_or_give_up(daemon_set)
        pods = await self._claims.claim(daemon_set, selector, self._pods)
        current, old, collisions = await self._history.of(daemon_set, selector, pods)

        verdict = self._eligible(daemon_set).verdict
        seen = Observed(
            daemon_set=daemon_set,
            verdicts={node.metadata.name: verdict(node) for node in self._nodes.items()},
            pods=by_node(pods),
            hash=current.metadata.labels[REVISION_HASH],
            generation=template_generation(daemon_set),
            now=datetime.now(UTC),
        )
        work = wanted_work(seen, lambda node: self._failures.delay(_patience_key(daemon_set, node)))
        if not work and daemon_set.spec.update_strategy.type == ROLLING_UPDATE:
            replacing = next_replacements(seen)
            replacing.look_again_after = work.look_again_after
            work = replacing
        failure = await self._carry_out(daemon_set, work, seen.hash)
        if failure is None:
            await self._history.truncate(daemon_set, old, pods)
        status = status_of(seen, collisions=collisions)
        await self._writer.patch_status(DAEMON_SETS, daemon_set, before=daemon_set.status, after=status)
        if failure is not None:
            raise failure
        if not work:
            self._rests.begin(daemon_set, children=len(pods))
        available = seconds_until_available(pods, min_ready_seconds=daemon_set.spec.min_ready_seconds, now=seen.now)
        after = min((wait for wait in (available, work.look_again_after) if wait is not None), default=None)
        return Requeue(after=after) if after is not None else None

    def concerned_by(self, change: Change[Node]) -> list[DaemonSet]:
        """The DaemonSets to which a node's change makes a difference."""
        before, after = change.before, change.after
        if before is not None and after is not None and _placement_facts(before) == _placement_facts(after):
            return []
        node = change.latest
        on_node = self._pods.find(BY_NODE, node.metadata.name)
        owners = {owner.uid for pod in on_node if (owner := pod.metadata.controller) is not None}
        concerned = []
        for daemon_set in self.sets.items():
            eligibility = self._eligible(daemon_set)
            verdict = eligibility.verdict(node)
            if before is not None and after is not None and eligibility.verdict(before) is not verdict:
                concerned.append(daemon_set)
            elif after is None:
                if verdict is Verdict.RUN or daemon_set.metadata.uid in owners:
                    concerned.append(daemon_set)
            elif daemon_set.metadata.uid in owners:
                if verdict is Verdict.LEAVE or daemon_set.status.number_misscheduled > 0:
                    concerned.append(daemon_set)
            elif verdict is Verdict.RUN:
                concerned.append(daemon_set)
        return concerned

    def _eligible(self, daemon_set: DaemonSet) -> Eligibility:
        """The compiled form of what a DaemonSet asks of nodes, kept as long as it asks the same."""
        key, metadata = key_of(daemon_set), daemon_set.metadata
        known = self._eligibility.get(key)
        if known is None or known[:2] != (metadata.uid, metadata.generation):
            known = self._eligibility[key] = (metadata.uid, metadata.generation, Eligibility(daemon_set))
        return known[2]

    async def _carry_out(self, daemon_set: DaemonSet, work: Work, short_hash: str) -> Exception | None:
        """Makes and deletes pods, up to the burst of each; the first failure, if any."""
        about = About.of(DAEMON_SETS, daemon_set)
        for node, pod in work.failed:
            self._failures.deleted(_patience_key(daemon_set, node))
            told = f"Found failed daemon pod {key_of(pod)} on node {node}, will try to kill it"
            self._events.warning(about, "FailedDaemonPod", told)
        for node, pod in work.succeeded:
            told = f"Found succeeded daemon pod {key_of(pod)} on node {node}, will try to delete it"
            self._events.normal(about, "SucceededDaemonPod", told)
        nodes = work.create_on[: self._burst]
        _, not_made = await make_pods(
            len(nodes),
            lambda number: wanted_pod(daemon_set, nodes[number], short_hash),
            owner=owner_reference(daemon_set, DAEMON_SETS),
            about=about,
            writer=self._writer,
            events=self._events,
        )
        leaving = work.delete[: self._burst]
        not_deleted = await delete_pods(leaving, about=about, client=self._client, events=self._events)
        return not_made or not_deleted


def _placement_facts(node: Node) -> object:
    """What of a node decides about placement."""
    return node.metadata.labels, node.spec.taints


def _patience_key(daemon_set: DaemonSet, node: str) -> tuple[str, int, str]:
    """Under what failures on a node are counted; a new template begins anew."""
    return daemon_set.metadata.uid, daemon_set.status.observed_generation, node
