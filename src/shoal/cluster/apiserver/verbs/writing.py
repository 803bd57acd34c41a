"""The steps that every write of an object shares: metadata, managed fields, admission, validation, the store."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shoal.cluster.apiserver.access.authorization import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    ROLE_BINDINGS,
    ROLES,
    Authorizer,
    Query,
)
from shoal.cluster.apiserver.access.escalation import check_binding, check_role
from shoal.cluster.apiserver.admission import Chain
from shoal.cluster.apiserver.admission.attributes import Attributes
from shoal.cluster.apiserver.kinds.kind import Kind, Object
from shoal.cluster.apiserver.offload import Offload
from shoal.cluster.apiserver.refusals import unavailable
from shoal.cluster.apiserver.state import State, decoded
from shoal.cluster.apiserver.storage import Record
from shoal.cluster.apiserver.verbs.asked import Asked
from shoal.cluster.apiserver.verbs.service_addresses import ServiceAddresses
from shoal.kube.admission.wire import Operation

_COMMIT_WITHIN = 10.0


@dataclass(kw_only=True, slots=True)
class Workshop:
    """What the writing verbs work with."""

    state: State
    admission: Chain
    addresses: ServiceAddresses
    authorizer: Authorizer
    offload: Offload
    now: Callable[[], str]
    """The time as objects carry it, in whole seconds."""


def attributes(
    asked: Asked, operation: Operation, *, new: Object | None, old: Object | None, name: str = ""
) -> Attributes:
    """What admission is told."""
    return Attributes(
        kind=asked.kind,
        subresource=asked.subresource,
        operation=operation,
        namespace=asked.namespace,
        name=name or asked.name,
        object=new,
        old=old,
        options=_options(asked, operation),
        user=asked.user,
        dry_run=asked.options.dry_run,
        warnings=asked.warnings,
    )


def check_escalation(authorizer: Authorizer, asked: Asked, new: Object, old: Object | None) -> None:
    """Refuses a role, or a binding to one, by which its writer would give away more than they have."""
    kind = asked.kind
    if kind.storage in (ROLES, CLUSTER_ROLES):
        check_role(
            authorizer, asked.user, new, old, resource=kind.resource, namespace=asked.namespace, request_name=asked.name
        )
    elif kind.storage in (ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS):
        check_binding(authorizer, asked.user, new, old, resource=kind.resource, namespace=asked.namespace)


def check_creation(authorizer: Authorizer, asked: Asked) -> None:
    """Refuses an update or an apply of what is not there to a user who may only change what is."""
    kind = asked.kind
    query = Query(
        user=asked.user,
        verb="create",
        group=kind.group,
        version=kind.version,
        resource=kind.resource,
        namespace=asked.namespace,
        name=asked.name,
    )
    if not authorizer.allowed(query):
        raise authorizer.refusal(query)


def live_object(kind: Kind, state: State, record: Record) -> Object:
    """A stored object in the version that is asked for, as values of the caller's own."""
    stored = state.registry.stored(kind.storage)
    assert stored is not None, kind.storage
    value = decoded(stored, record)
    if kind.from_storage is not None:
        value = kind.from_storage(value)
    value["apiVersion"], value["kind"] = kind.api_version, kind.kind
    return value


def is_under_way(asked: Asked, problem: BaseException) -> bool:
    """Whether a write goes on although nobody waits for it any more: its client left after it was staged."""
    return asked.is_staged and isinstance(problem, asyncio.CancelledError)


async def committed(state: State, record: Record) -> None:
    """Waits until a state that another write left is durable, before anyone is told of it."""
    if record.revision > state.store.revision and not await state.store.reached(record.revision, _COMMIT_WITHIN):
        raise unavailable("the storage did not take a write in time")


def stored_form(kind: Kind, value: Object) -> Object:
    """An object in the version that is kept."""
    return value if kind.to_storage is None else kind.to_storage(value)


def new_uid() -> str:
    """An identity that no object had before."""
    return str(uuid.uuid4())


def same_content(left: Object, right: Object) -> bool:
    """Whether two objects differ in nothing but their resourceVersion."""
    if left.keys() != right.keys():
        return False
    for key, value in left.items():
        if key == "metadata":
            mine = {name: item for name, item in value.items() if name != "resourceVersion"}
            other = {name: item for name, item in right[key].items() if name != "resourceVersion"}
            if not is_same(mine, other):
                return False
        elif not is_same(value, right[key]):
            return False
    return True


def is_same(left: Any, right: Any) -> bool:
    """Whether two values are the same JSON.

    Python's ``==`` is quick and right but for true being 1; only where it finds them equal is that looked at.
    """
    return bool(left == right) and (repr(left) == repr(right) or _is_exactly(left, right))


def _is_exactly(left: Any, right: Any) -> bool:
    if isinstance(left, dict):
        return isinstance(right, dict) and all(_is_exactly(value, right[key]) for key, value in left.items())
    if isinstance(left, list):
        return isinstance(right, list) and all(map(_is_exactly, left, right))
    return isinstance(left, bool) == isinstance(right, bool)


def _options(asked: Asked, operation: Operation) -> dict[str, Any]:
    kind = {Operation.CREATE: "CreateOptions", Operation.UPDATE: "UpdateOptions", Operation.DELETE: "DeleteOptions"}
    options: dict[str, Any] = {"apiVersion": "meta.k8s.io/v1", "kind": kind.get(operation, "PatchOptions")}
    if asked.options.dry_run:
        options["dryRun"] = ["All"]
    if asked.options.manager and operation is not Operation.DELETE:
        options["fieldManager"] = asked.options.manager
    return options
