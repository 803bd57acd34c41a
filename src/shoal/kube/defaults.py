"""Objects that a cluster has from the start, such as a default queue.

They are made where they are absent when a process begins to work, and belong to people from then on: nothing here is
looked at again, so what somebody changes stays as they want it, and what somebody deletes stays away until the next
start. A kind that the server does not serve yet is tried again until it does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import structlog

from shoal.api.meta import Document, Resource
from shoal.kube.backoff import Backoff
from shoal.kube.client import Client
from shoal.kube.errors import AlreadyExists, ApiError, ConnectionFault, NotFound
from shoal.kube.manager import Manager

log = structlog.get_logger("shoal.kube.defaults")

PATIENCE: Final = Backoff(initial=0.2, cap=30.0, jitter=0.2)


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

    @property
    def namespace(self) -> str:
        """Where it belongs; "" for objects of the whole cluster."""
        namespace: str = self.body["metadata"].get("namespace", "")
        return namespace


def add_default_objects(manager: Manager, objects: Sequence[DefaultObject], *, field_manager: str) -> asyncio.Event:
    """Has them made once this process leads; the event tells when all are there."""
    are_made = asyncio.Event()

    async def make() -> None:
        await make_absent(manager.client, objects, field_manager=field_manager)
        are_made.set()

    manager.add_leader_task(make)
    return are_made


async def make_absent(
    client: Client, objects: Sequence[DefaultObject], *, field_manager: str, patience: Backoff = PATIENCE
) -> None:
    """Makes the objects that are not there; returns once each is there, or was."""
    attempts = 0
    left = list(objects)
    told: set[str] = set()
    while left:
        refused = []
        for wanted in left:
            if problem := await _made(client, wanted, field_manager):
                refused.append(wanted)
                if problem not in told:
                    log.warning("default object not made yet", kind=wanted.resource.kind, name=wanted.name, why=problem)
                    told.add(problem)
        left = refused
        if left:
            attempts += 1
            await asyncio.sleep(patience.delay(attempts))


async def _made(client: Client, wanted: DefaultObject, field_manager: str) -> str:
    """Makes one object where it is absent; what kept us from it, in words."""
    try:
        await client.get(wanted.resource, wanted.name, wanted.namespace)
    except NotFound:
        pass
    except (ApiError, ConnectionFault) as error:
        return str(error)
    else:
        return ""
    try:
        await client.create(wanted.resource, wanted.body, wanted.namespace, field_manager=field_manager)
    except AlreadyExists:
        return ""
    except (ApiError, ConnectionFault) as error:
        return str(error)
    log.info("default object made", kind=wanted.resource.kind, name=wanted.name)
    return ""
