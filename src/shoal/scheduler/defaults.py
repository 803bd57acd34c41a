"""What a cluster has from the start: two queues, four priorities, and two namespaces that the scheduler's parts use.

They are made where they are absent when the scheduler begins to work, and belong to people from then on: nothing here
is looked at again, so what somebody changes stays as they want it, and what somebody deletes stays away until the next
start. A kind that the server does not serve yet is tried again until it does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import structlog

from shoal.api import kai_names as names
from shoal.api.core import NAMESPACES
from shoal.api.meta import Document, Resource
from shoal.api.scheduling_k8s_io import PRIORITY_CLASSES
from shoal.api.scheduling_run_ai import QUEUES
from shoal.kube import AlreadyExists, ApiError, Client, ConnectionFault, Manager, NotFound
from shoal.kube.backoff import Backoff

log = structlog.get_logger("shoal.scheduler.defaults")

FIELD_MANAGER: Final = "kai-defaults"
PATIENCE: Final = Backoff(initial=0.2, cap=30.0, jitter=0.2)

_ALL_OF_THE_SURPLUS: Final = {"quota": 0, "limit": -1, "overQuotaWeight": 1}
_DESCRIPTIONS: Final = {
    "train": "Training: may be evicted for others.",
    "build-preemptible": "Interactive work that may be evicted for others.",
    "build": "Interactive work that is not evicted, within its queue's quota.",
    "inference": "Serving: not evicted, and before everything else, within its queue's quota.",
}


@dataclass(frozen=True)
class DefaultObject:
    """An object that is made where it is absent."""

    resource: Resource[Document]
    body: dict[str, Any]

    @property
    def name(self) -> str:
        """The object's name."""
        name: str = self.body["metadata"]["name"]
        return name


def default_objects(
    *,
    reservation_namespace: str = names.RESERVATION_NAMESPACE,
    scale_adjust_namespace: str = names.SCALE_ADJUST_NAMESPACE,
) -> list[DefaultObject]:
    """All of them, each after those that it refers to."""
    namespaces = (reservation_namespace, scale_adjust_namespace)
    return [
        *(DefaultObject(NAMESPACES.documents(), {"metadata": {"name": name}}) for name in namespaces),
        *(DefaultObject(PRIORITY_CLASSES.documents(), _priority(name)) for name in names.PRIORITIES),
        DefaultObject(QUEUES.documents(), _queue(names.DEFAULT_PARENT_QUEUE)),
        DefaultObject(QUEUES.documents(), _queue(names.DEFAULT_QUEUE, parent=names.DEFAULT_PARENT_QUEUE)),
    ]


def add_defaults(manager: Manager, objects: Sequence[DefaultObject] | None = None) -> None:
    """Has them made once this process leads."""
    wanted = list(default_objects() if objects is None else objects)

    async def make() -> None:
        await make_absent(manager.client, wanted)

    manager.add_leader_task(make)


async def make_absent(client: Client, objects: Sequence[DefaultObject], *, patience: Backoff = PATIENCE) -> None:
    """Makes the objects that are not there; returns once each is there, or was."""
    attempts = 0
    left = list(objects)
    told: set[str] = set()
    while left:
        refused = []
        for wanted in left:
            if problem := await _made(client, wanted):
                refused.append(wanted)
                if problem not in told:
                    log.warning("default object not made yet", kind=wanted.resource.kind, name=wanted.name, why=problem)
                    told.add(problem)
        left = refused
        if left:
            attempts += 1
            await asyncio.sleep(patience.delay(attempts))


async def _made(client: Client, wanted: DefaultObject) -> str:
    """Makes one object where it is absent; what kept us from it, in words."""
    try:
        await client.get(wanted.resource, wanted.name)
    except NotFound:
        pass
    except (ApiError, ConnectionFault) as error:
        return str(error)
    else:
        return ""
    try:
        await client.create(wanted.resource, wanted.body, field_manager=FIELD_MANAGER)
    except AlreadyExists:
        return ""
    except (ApiError, ConnectionFault) as error:
        return str(error)
    log.info("default object made", kind=wanted.resource.kind, name=wanted.name)
    return ""


def _queue(name: str, *, parent: str = "") -> dict[str, Any]:
    resources = {resource: dict(_ALL_OF_THE_SURPLUS) for resource in ("cpu", "gpu", "memory")}
    return {"metadata": {"name": name}, "spec": {**({"parentQueue": parent} if parent else {}), "resources": resources}}


def _priority(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "value": names.PRIORITIES[name], "description": _DESCRIPTIONS[name]}
