"""Objects of other dialects, pods that name them, and what was made of them, in few words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from shoal.api.core.pods import Pod
from shoal.gangs.backends.backend import Backend, Wanted
from shoal.scheduler.model.jobs import Job, SubGroup
from shoal.scheduler.model.resources import ResourceNames
from shoal.scheduler.watching.dialects.plans import Facts, Plan
from shoal.scheduler.watching.groups import Seat
from shoal.scheduler.watching.kinds import Kinds, task_of
from tests.scheduler.watching.worlds import a_mirrored_pod

T = TypeVar("T")

FACTS = Facts(
    priority=lambda name: {"high": 90, "build": 100}.get(name, 50),
    has_queue=lambda name: name in ("team", "default"),
    level=lambda name: ("datacenter", "example.com/rack") if name in ("rack", "example.com/rack") else None,
)


def typed(kind: type[T], name: str, *, namespace: str = "default", spec: Mapping[str, Any], **metadata: Any) -> T:
    """An object as it is read."""
    made = {"name": name, "namespace": namespace, "uid": f"uid-{name}", **metadata}
    return msgspec.convert({"metadata": made, "spec": dict(spec)}, kind)


def read(wanted: Iterable[Wanted], kinds: Mapping[str, type[Any]]) -> list[Any]:
    """What a backend writes, as it is read here; what is not read is left out."""
    bodies = [(one.resource.kind, one.body) for one in wanted]
    return [msgspec.convert(dict(body), kinds[kind]) for kind, body in bodies if kind in kinds]


def pods_of(backend: Backend, gang: Any, clique: str, count: int, served: frozenset[Any] = frozenset()) -> list[Pod]:
    """Pods of a clique as a backend makes them ready."""
    marks = backend.marks(gang, clique)
    spec = backend.pod_spec({}, gang, clique, served)
    fields = {key: value for key, value in spec.items() if key != "schedulerName"}
    labels = {"grove.io/podclique": clique, **marks.labels}
    return [
        a_mirrored_pod(
            f"{clique}-{number}",
            scheduler=spec["schedulerName"],
            labels=labels,
            annotations=marks.annotations,
            **fields,
        )
        for number in range(count)
    ]


def with_pods(plan: Plan, seats: Mapping[Any, Seat], pods: Iterable[tuple[Any, Pod]]) -> Job:
    """The model's job with pods in their seats. ``pods``: each with the key that it names."""
    job, kinds = plan.job(), Kinds(ResourceNames())
    for named, pod in pods:
        task = task_of(pod, kinds)
        task.subgroup = seats[named].pod_set_of(pod)
        job.add(task)
    return job


def tree(place: SubGroup) -> Any:
    """A tree as text: how many of what."""
    parts = {group.name: tree(group) for group in place.groups}
    parts |= {leaf.name: leaf.min_member for leaf in place.pod_sets}
    return parts if place.min_children is None else (place.min_children, parts)
