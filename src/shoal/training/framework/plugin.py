"""What a plugin is: it says one part of what should be there for a TrainJob.

A plugin is a class with ``Plugin`` as its base; it says as much as it has to say, and the rest is said here. All its
methods are pure: they get values and give values. The phases come in this order, and in each the plugins in theirs:

1. ``enforce_ml_policy``: how many nodes train, and what they must know of each other;
2. ``enforce_pod_group_policy``: what pods carry for their scheduler;
3. ``enforce_pod_spec``: anything else about pods;
4. ``pre_build_sync``: what can be known only now, such as addresses;
5. ``build``: the objects.

``problems`` is asked at admission, and ``outcome`` while the TrainJob runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from shoal.api.meta import Condition, Document, Resource
from shoal.api.trainer import JobStatus, TrainJob
from shoal.kube import ReconcileError
from shoal.kube.admission import FieldProblem
from shoal.training.framework.info import Info


class Unbuildable(ReconcileError):
    """What a TrainJob asks for cannot be made; says why, and what to do."""


def never(seen: Document) -> bool:
    """An object that is there is made so again."""
    return False


def always(seen: Document) -> bool:
    """An object that is there stays as it is."""
    return True


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """An object that should be there for a TrainJob, which owns it."""

    resource: Resource[Document]
    name: str
    make: Callable[[], Mapping[str, Any]]
    """Its fields, less name, namespace and owner; called only where they are needed."""
    is_kept: Callable[[Document], bool] = never
    """Whether an object that is there already is left as it is."""
    initial: Mapping[str, Any] | None = None
    """Fields that are set when it is made and belong to others from then on."""
    waits_for: str = ""
    """What must come about before it can be made or changed, for people."""
    unserved: str = ""
    """What to do where the cluster does not serve the kind."""


def wanted(resource: Resource[Any], name: str, body: Mapping[str, Any]) -> Wanted:
    """An object that is always made so."""
    return Wanted(resource=resource.documents(), name=name, make=lambda: body)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What has come of a TrainJob, as the object says that runs it."""

    end: Condition | None = None
    """Complete or Failed, once it is over."""
    jobs: tuple[JobStatus, ...] = ()
    is_suspended: bool = False


class Plugin:
    """The base of all plugins: it has nothing to say."""

    name: str = ""
    """By which it is known in logs and among entry points."""
    kinds: tuple[Resource[Document], ...] = ()
    """The kinds that it builds. A change of an object that a TrainJob owns wakes that TrainJob."""
    runs: Resource[Document] | None = None
    """The kind of the object that runs a TrainJob's pods and has its name. Exactly one plugin has one."""

    def problems(self, info: Info, old: TrainJob | None, new: TrainJob) -> Iterable[FieldProblem]:
        """Why a TrainJob cannot be accepted; ``old`` is what it was before a change."""
        return ()

    def enforce_ml_policy(self, info: Info, train_job: TrainJob) -> Info:
        """How many nodes train, and what they must know of each other."""
        return info

    def enforce_pod_group_policy(self, info: Info, train_job: TrainJob) -> Info:
        """What pods carry for their scheduler."""
        return info

    def enforce_pod_spec(self, info: Info, train_job: TrainJob) -> Info:
        """Anything else about pods."""
        return info

    def pre_build_sync(self, info: Info, train_job: TrainJob) -> Info:
        """What can be known only when all pods are."""
        return info

    def build(self, info: Info, train_job: TrainJob) -> Iterable[Wanted]:
        """The objects that should be there, in the order in which they are made. Raises Unbuildable."""
        return ()

    def outcome(self, seen: Document) -> Outcome:
        """What has come of the TrainJob; asked of the plugin that has ``runs``."""
        return Outcome()
