"""The reconcile of a TrainJob: the objects that its runtime asks for, and a status that says what came of them.

What is there is read first, then the status is worked out, then objects are made, then the status is written; what ends
a TrainJob is written before anything is deleted for it. So whoever is stopped between two writes finds, when he comes
back, what is left to do.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import structlog

from shoal.api.core import CONFIG_MAPS
from shoal.api.meta import Document, PartialObject, Resource, now
from shoal.api.trainer import TRAIN_JOBS, TrainingRuntimeSpec, TrainJob, TrainJobStatus, names
from shoal.kube import (
    About,
    ApiError,
    Conflict,
    Controller,
    Informer,
    Key,
    Manager,
    ReconcileError,
    Recorder,
    Requeue,
    Watch,
)
from shoal.kube.backoff import Backoff
from shoal.kube.patience import Patience
from shoal.kube.queue import RetryLimits
from shoal.kube.store import key_of
from shoal.training.children import LOOK_AGAIN, Children, OnItsWayOut, Waiting
from shoal.training.deadline import deadline, removal, seconds_until
from shoal.training.framework import Framework, Outcome, Unbuildable, Wanted
from shoal.training.framework.resources import pod_spec_of
from shoal.training.metrics import TrainJobMetrics
from shoal.training.runtime_kinds import RuntimeKinds, Runtimes
from shoal.training.settings import TrainingSettings
from shoal.training.snapshot import read_snapshot, snapshot_text
from shoal.training.status import (
    has_ended,
    has_failed_by,
    observed_status,
    patience_with,
    with_deadline_exceeded,
    with_error,
)

log = structlog.get_logger("shoal.training")

RETRIES = RetryLimits(backoff=Backoff(initial=0.005, cap=30.0))
"""What stands in the way may go away without a word: a quota, a missing runtime, a webhook that is down."""

PATIENCE = 10.0
"""Seconds for which a TrainJob waits for another controller before it says so."""

LIMIT_RANGES = Resource(type=PartialObject, group="", version="v1", kind="LimitRange", plural="limitranges")
RUNTIME_CLASSES = Resource(
    type=PartialObject, group="node.k8s.io", version="v1", kind="RuntimeClass", plural="runtimeclasses",
    namespaced=False,
)  # fmt: skip


def add_train_jobs(
    manager: Manager, settings: TrainingSettings, framework: Framework, kinds: RuntimeKinds | None = None
) -> None:
    """Adds the controller of TrainJobs."""
    train_jobs = TrainJobs(manager, framework, kinds or RuntimeKinds())
    watches = [
        *train_jobs.children.watches(),
        Watch(resource=LIMIT_RANGES, keys=train_jobs.suspended_in),
        Watch(resource=RUNTIME_CLASSES, keys=train_jobs.suspended_with),
    ]
    manager.add_leader_task(train_jobs.events.run)
    manager.add(
        Controller(
            names.TRAIN_JOB_CONTROLLER,
            TRAIN_JOBS,
            train_jobs.reconcile,
            watches=watches,
            workers=settings.workers.train_jobs,
            retries=RETRIES,
            # What goes wrong is told by the reconcile itself, in the words that clients look for.
            subject=lambda key: Key("", ""),
        )
    )


class TrainJobs:
    """Keeps the objects of TrainJobs, and tells how these are."""

    def __init__(self, manager: Manager, framework: Framework, kinds: RuntimeKinds) -> None:
        self._live_runtimes = Runtimes(manager.client)
        self._writer = manager.writer(names.FIELD_MANAGER)
        self._framework = framework
        self._kinds = kinds
        self._jobs: Informer[TrainJob] = manager.cache.informer(TRAIN_JOBS)
        self._metrics = TrainJobMetrics(manager.metrics.registry, self._jobs.items)
        self._runtimes: dict[Key, TrainingRuntimeSpec] = {}
        self._unsaid = Patience(scale=manager.debounce)
        self._waiting: dict[Key, float] = {}
        """Until when it is not told that a TrainJob waits for others."""
        self.children = Children(manager, framework)
        self.events = Recorder(manager.client, names.EVENT_SOURCE, calm=manager.calm)

    async def reconcile(self, key: Key) -> Requeue | None:
        """Makes what one TrainJob needs, and tells how it is, also where that failed."""
        train_job = self._jobs.store.get(key)
        if train_job is None or train_job.metadata.is_deleting:
            self._runtimes.pop(key, None)
            self._unsaid.forget(key)
            self._waiting.pop(key, None)
            return None
        if train_job.spec.managed_by != names.MANAGED_BY:
            return None
        moment = now()
        kind, seen = self._kinds.of(train_job), self.children.running(train_job)
        outcome = Outcome() if seen is None else self._framework.outcome(seen)
        status = observed_status(train_job, is_supported=kind is not None, seen=seen, outcome=outcome, now=moment)
        due = deadline(train_job, status)
        if due is not None and moment > due:
            status = with_deadline_exceeded(train_job, status, moment)
        problem: Exception | None = None
        awaited: float | None = None
        if kind is not None and not has_ended(status):
            try:
                await self._make(train_job, kind)
            except Conflict:
                raise  # a lost race is tried again at once, and nobody is told
            except OnItsWayOut:
                awaited = LOOK_AGAIN
            except Waiting as error:
                awaited, problem = self._waited(key, error)
            except (ApiError, ReconcileError) as error:
                problem = error
        later = await self._tell(train_job, with_error(status, _said(problem), moment), problem)
        if awaited is not None:
            return Requeue(after=awaited) if awaited else None
        self._waiting.pop(key, None)
        if problem is not None:
            raise problem
        again = await self._end(train_job, status, seen, moment)
        return again if not later or (again is not None and again.after <= later) else Requeue(after=later)

    def _waited(self, key: Key, error: Waiting) -> tuple[float, Exception | None]:
        """The seconds for which it is nobody's fault that a TrainJob waits; after them, what it waits for."""
        left = self._waiting.setdefault(key, time.monotonic() + PATIENCE) - time.monotonic()
        return (left, None) if left > 0 else (0.0, error)

    async def _make(self, train_job: TrainJob, kind: Resource[Any]) -> None:
        """All objects, one after the other; the first that fails stops it."""
        runtime = await self._runtime(train_job, kind)
        for wanted in self._wanted(train_job, runtime):
            await self.children.keep(train_job, wanted)

    def _wanted(self, train_job: TrainJob, runtime: TrainingRuntimeSpec) -> list[Wanted]:
        """What plugins want; a fault of one of them is told like anything else that keeps the TrainJob from running."""
        try:
            return self._framework.objects(train_job, runtime, self.children.seen(train_job))
        except Unbuildable:
            raise
        except Exception as error:
            # Some plugins are other people's code, which may fail in any way.
            log.exception("a plugin failed", train_job=str(key_of(train_job)))
            raise Unbuildable(f"a plugin failed ({error!r}): see the operator's log, and mend or remove it") from error

    async def _runtime(self, train_job: TrainJob, kind: Resource[Any]) -> TrainingRuntimeSpec:
        """The runtime as it was when the TrainJob began; it is written down where that has not been done."""
        name = names.runtime_snapshot(train_job.metadata.name)
        found = await self.children.find(CONFIG_MAPS, train_job, name)
        if found is None:
            live = await self._live_runtimes.of(train_job, kind)
            text = snapshot_text(live.content, api_version=kind.api_version, kind=kind.kind)
            found = await self.children.make(CONFIG_MAPS, train_job, name, {"data": {names.SNAPSHOT_KEY: text}})
            self._warn_of_deprecation(train_job, live)
        runtime = read_snapshot(found, train_job)
        self._runtimes[key_of(train_job)] = runtime
        return runtime

    async def _tell(self, train_job: TrainJob, status: TrainJobStatus, problem: Exception | None) -> float:
        """Writes the status where it changed, and says aloud what went wrong or came to its end.

        Gives the seconds for which a change waits that nobody waits for.
        """
        if problem is not None:
            said = _said(problem)
            cut = names.CREATION_FAILED_LENGTH
            shown = said if len(said) <= cut else said[:cut] + names.CUT
            about = About.of(TRAIN_JOBS, train_job)
            self.events.warning(about, names.CREATION_FAILED_EVENT, names.CREATION_FAILED_MESSAGE + shown)
        before, key = train_job.status, key_of(train_job)
        if (patience := patience_with(before, status)) and (left := self._unsaid.left(key, patience)):
            return left
        self._unsaid.forget(key)
        # A status that is there may not be empty: one that has nothing to say says that it has no conditions.
        after: Any = {"conditions": []} if status == TrainJobStatus() != before else status
        await self._writer.patch_status(TRAIN_JOBS, train_job, before=before, after=after)
        if has_ended(status) and not has_ended(before):
            self._metrics.count_end(train_job, status)
        return 0.0

    async def _end(
        self, train_job: TrainJob, status: TrainJobStatus, seen: Document | None, moment: datetime
    ) -> Requeue | None:
        """What follows from time: pods that ran too long are stopped, and what is over for long enough is deleted."""
        if seen is not None and has_failed_by(status, names.DEADLINE_REASON):
            await self.children.stop(seen)
        gone = removal(train_job, status)
        if gone is not None and moment >= gone:
            await self._writer.delete(TRAIN_JOBS, train_job)
            return None
        due = gone or deadline(train_job, status)
        return None if due is None else Requeue(after=seconds_until(due, moment))

    def _warn_of_deprecation(self, train_job: TrainJob, runtime: Document) -> None:
        if runtime.metadata.labels.get(names.SUPPORT_LABEL) == names.DEPRECATED:
            named = f"{train_job.spec.runtime_ref.kind} {runtime.metadata.name}"
            words = f"{named} is deprecated: see {names.DEPRECATION_POLICY}"
            self.events.warning(About.of(TRAIN_JOBS, train_job), names.DEPRECATED_EVENT, words)

    def suspended_in(self, limit_range: PartialObject) -> Iterable[Key]:
        """The TrainJobs of a namespace that wait, whose pods may be given other requests now."""
        return [key_of(one) for one in self._jobs.items(limit_range.metadata.namespace) if one.spec.suspend]

    def suspended_with(self, runtime_class: PartialObject) -> Iterable[Key]:
        """The TrainJobs that wait and whose pods are run by a RuntimeClass."""
        return [
            key_of(one)
            for one in self._jobs.items()
            if one.spec.suspend and runtime_class.metadata.name in _runtime_classes(self._runtimes.get(key_of(one)))
        ]


def _runtime_classes(runtime: TrainingRuntimeSpec | None) -> set[str]:
    """The RuntimeClasses that run the pods of a runtime."""
    jobs = (runtime.template.spec.get("replicatedJobs") or ()) if runtime else ()
    return {pod_spec_of(one.get("template") or {}).get("runtimeClassName", "") for one in jobs}


def _said(problem: Exception | None) -> str:
    if problem is None:
        return ""
    return problem.message if isinstance(problem, ApiError) and problem.message else str(problem)
