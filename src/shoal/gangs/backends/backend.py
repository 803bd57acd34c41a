"""What a scheduler backend is: it says in its scheduler's words what a PodGang says.

A backend is chosen by a PodGang's label ``grove.io/scheduler-backend``. It translates (pure functions; the controller
in ``controller`` does the writing), prepares pods for its scheduler, and may refuse sets that it cannot serve.

A backend of a third party is a class that names ``Backend`` as its base: what it does not say itself is then said here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from shoal.api.grove import PodCliqueSet
from shoal.api.meta import Document, Resource
from shoal.api.scheduler_grove_io import PodGang
from shoal.kube.admission import FieldProblem

NOT_SERVED = "KindNotServed"
"""The reason of a condition: the cluster serves no kind in which the scheduler could be told of the gang."""


@dataclass(frozen=True, kw_only=True)
class Marks:
    """Labels and annotations by which a scheduler knows a pod's gang: there when its gate is lifted, and kept true."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


def _nothing(body: Mapping[str, Any]) -> Any:
    return None


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """An object of a scheduler that should be there for a gang; it is owned by the PodGang."""

    resource: Resource[Any]
    body: Mapping[str, Any]
    initial: Mapping[str, Any] | None = None
    """Fields that are set when it is made and belong to others from then on."""
    fixed: Callable[[Mapping[str, Any]], Any] = _nothing
    """What of an object its server lets nobody change: where that differs, the object is deleted and made anew."""
    dropped: str = "BackendFieldsDropped"
    """The reason told where the server keeps not all fields of the spec, being too old or set up without them."""


class Untranslatable(Exception):
    """A gang that the scheduler has no words for: the event's reason, and what to do, for people."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        self.event = reason
        super().__init__(message)


class NotServed(Untranslatable):
    """The cluster serves no kind in which the scheduler could be told; this passes when it does."""

    def __init__(self, message: str, *, event: str = "BackendKindNotServed") -> None:
        super().__init__(NOT_SERVED, message)
        self.event = event


class FieldsDropped(Untranslatable):
    """The cluster serves the kind, and does not keep all that a scheduler must be told."""

    def __init__(self, wanted: Wanted, what: str) -> None:
        kind = f"{wanted.resource.kind} of {wanted.resource.api_version}"
        super().__init__(
            wanted.dropped,
            f"the cluster does not keep all fields of {kind} ({what}): install a version of the scheduler that knows "
            "them, or switch them on",
        )


@runtime_checkable
class Backend(Protocol):
    """One scheduler. ``name`` is the value of the label; all methods are pure."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The value of the label ``grove.io/scheduler-backend``."""

    @property
    @abstractmethod
    def scheduler_names(self) -> frozenset[str]:
        """The ``schedulerName``s of pods that mean this scheduler."""

    @property
    @abstractmethod
    def kinds(self) -> tuple[Resource[Document], ...]:
        """All kinds that it may write, of which the cluster may serve some."""

    @abstractmethod
    def translate(
        self, gang: PodGang, owner: PodCliqueSet | None, served: frozenset[Resource[Document]]
    ) -> Iterable[Wanted]:
        """What should be there for a gang, in kinds that are served, in the order in which it is made.

        A gang that somebody else made than a set has no ``owner``; what there is to know is on the gang itself.
        Raises Untranslatable. What is wanted in a kind that is not served raises NotServed by itself.
        """

    def marks(self, gang: PodGang, clique: str) -> Marks:
        """What the pods of a clique of the gang carry."""
        return Marks()

    def gang_marks(self, gang: PodGang) -> Marks:
        """What the PodGang itself carries for the scheduler, as long as the gang is this backend's."""
        return Marks()

    def pod_spec(
        self, spec: Mapping[str, Any], gang: PodGang, clique: str, served: frozenset[Resource[Document]]
    ) -> Mapping[str, Any]:
        """The spec of a pod of the clique, made ready for the scheduler."""
        return spec

    def problems(self, pcs: PodCliqueSet) -> Iterable[FieldProblem]:
        """Why the scheduler could not serve a set, told at admission."""
        return ()


def with_scheduler(spec: Mapping[str, Any], scheduler_name: str) -> Mapping[str, Any]:
    """A pod's spec with a scheduler: its own where it names one."""
    return spec if spec.get("schedulerName") else {**spec, "schedulerName": scheduler_name}


def require_served(resource: Resource[Any], served: frozenset[Resource[Document]]) -> None:
    """Raises NotServed where the cluster does not serve a kind that a scheduler needs."""
    if resource.documents() not in served:
        raise NotServed(
            f"the cluster does not serve {resource.kind} of {resource.api_version}: install the scheduler's "
            "CustomResourceDefinitions, or name another scheduler in the cliques' schedulerName"
        )
