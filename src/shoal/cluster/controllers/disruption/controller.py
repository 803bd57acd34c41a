"""The reconcile of a PodDisruptionBudget."""

from __future__ import annotations

from shoal.api.core import PODS, Pod, is_ready
from shoal.api.meta import SELECT_NOTHING, InvalidPercentage, InvalidSelector, Selector, now
from shoal.api.policy import POD_DISRUPTION_BUDGETS, PodDisruptionBudget, PodDisruptionBudgetStatus
from shoal.cluster.controllers.disruption.budget import (
    Disrupted,
    budget_status,
    disrupted,
    expected,
    failed_status,
    needs_scale,
)
from shoal.cluster.controllers.disruption.expected_scale import CannotCount, ExpectedScale
from shoal.cluster.controllers.rests import Rests
from shoal.cluster.controllers.selections import Selections, shown
from shoal.cluster.indexes import all_pods
from shoal.kube import About, ApiError, Change, Controller, Key, Manager, Requeue, Watch
from shoal.kube.changes import field_changed
from shoal.kube.store import key_of


def add_budgets(manager: Manager) -> None:
    """Adds the controller that keeps the status of budgets."""
    budgets = Budgets(manager)
    watch = Watch(resource=PODS, keys=budgets.selections.owners_of, when=field_changed(_what_counts))
    manager.add(Controller("disruption", POD_DISRUPTION_BUDGETS, budgets.reconcile, watches=[watch]))


class Budgets:
    """Counts the pods of a budget, and says how many may be evicted."""

    def __init__(self, manager: Manager) -> None:
        self._budgets = manager.cache.informer(POD_DISRUPTION_BUDGETS)
        self._expected_scale = ExpectedScale(manager)
        self._writer = manager.writer("disruption-controller")
        self._events = manager.events
        self.selections = Selections(all_pods(manager))
        self._rests = Rests()
        self._budgets.subscribe(self._on_budget)

    async def reconcile(self, key: Key) -> Requeue | None:
        """Brings the status of one budget up to date."""
        budget = self._budgets.store.get(key)
        if budget is None:
            self._rests.forget(key)
            return None
        if (rest := self._rests.left(budget)) > 0:
            return Requeue(after=rest)
        pods = self.selections.pods_of(key)
        moment = now()
        going = disrupted(budget.status.disrupted_pods, pods, now=moment)
        try:
            scale = await self._expected_scale.of(pods) if needs_scale(budget.spec) else 0
            asked = expected(budget.spec, pods=len(pods), scale=scale)
        except (CannotCount, InvalidPercentage) as error:
            if await self._write(budget, failed_status(budget, str(error), now=moment)):
                words = f"Failed to calculate the number of expected pods: {error}"
                self._warn(budget, "CalculateExpectedPodCountFailed", words)
            return None
        except ApiError as error:
            # Nobody may be evicted on a count that could not be made; it is made again soon.
            await self._write(budget, failed_status(budget, error.message, now=moment))
            raise
        status = budget_status(budget, asked, pods, going.pods, now=moment)
        if await self._write(budget, status):
            self._tell(budget, pods, going)
        self._rests.begin(budget, children=len(pods))
        if going.look_again is None:
            return None
        # A moment later than that, since until then the pod may still go.
        return Requeue(after=max(1.0, (going.look_again - moment).total_seconds() + 1))

    def _on_budget(self, change: Change[PodDisruptionBudget]) -> None:
        key = key_of(change.latest)
        if change.after is None:
            self.selections.drop(key)
        else:
            self.selections.put(key, _selector(change.after))

    async def _write(self, budget: PodDisruptionBudget, status: PodDisruptionBudgetStatus) -> bool:
        return await self._writer.patch_status(POD_DISRUPTION_BUDGETS, budget, before=budget.status, after=status)

    def _tell(self, budget: PodDisruptionBudget, pods: list[Pod], going: Disrupted) -> None:
        """What is worth an event is so when it comes about, not at every look."""
        for pod in going.stayed:
            namespace = budget.metadata.namespace
            # Kubernetes names the namespace twice, and not the budget.
            words = f"Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't"
            self._events.warning(About.of(PODS, pod), "NotDeleted", words)
        if not pods:
            self._events.normal(About.of(POD_DISRUPTION_BUDGETS, budget), "NoPods", "No matching pods found")
        elif needs_scale(budget.spec) and any(pod.metadata.controller is None for pod in pods):
            self._warn(
                budget,
                "UnmanagedPods",
                f"Pods selected by this PodDisruptionBudget (selector: {shown(budget.spec.selector)}) were found "
                "to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result "
                'in undefined behavior. To account for these pods please set ".spec.minAvailable" '
                "field of the PDB to an integer value.",
            )

    def _warn(self, budget: PodDisruptionBudget, reason: str, words: str) -> None:
        self._events.warning(About.of(POD_DISRUPTION_BUDGETS, budget), reason, words)


def _selector(budget: PodDisruptionBudget) -> Selector:
    try:
        return Selector.of(budget.spec.selector)
    except InvalidSelector:
        return SELECT_NOTHING


def _what_counts(pod: Pod) -> object:
    controller = pod.metadata.controller
    return (is_ready(pod), pod.metadata.is_deleting, pod.metadata.labels, controller.uid if controller else "")
