"""Create: what a client sends becomes an object."""

from __future__ import annotations

import random
from functools import partial

from shoal.api.meta import generate_name
from shoal.cluster.apiserver.apply import record_update
from shoal.cluster.apiserver.builtin.certificates import sign_as
from shoal.cluster.apiserver.builtin.metadata import FOREGROUND, ORPHAN, drop_duplicate_owners, validate_metadata
from shoal.cluster.apiserver.kinds.kind import Kind, Object
from shoal.cluster.apiserver.refusals import Refused, already_exists, bad_request, forbidden, invalid, refused
from shoal.cluster.apiserver.state import encoder
from shoal.cluster.apiserver.storage import Changed
from shoal.cluster.apiserver.verbs.asked import Asked, Outcome
from shoal.cluster.apiserver.verbs.bodies import empty_status
from shoal.cluster.apiserver.verbs.service_addresses import SERVICES
from shoal.cluster.apiserver.verbs.writing import (
    Workshop,
    attributes,
    check_creation,
    check_escalation,
    committed,
    is_under_way,
    live_object,
    new_uid,
    stored_form,
)
from shoal.kube.admission.wire import Operation

_NAMES_TRIED = 8
_NOT_FOR_CLIENTS = ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation", "resourceVersion")

CERTIFICATE_REQUESTS = "certificatesigningrequests.certificates.k8s.io"


async def create(workshop: Workshop, asked: Asked, new: Object, *, has_managers: bool = False) -> Outcome:
    """Creates an object of the body ``new``; ``has_managers`` where apply has told who owns what already."""
    kind = asked.kind
    metadata = new.setdefault("metadata", {})
    _check_definition(workshop, kind, metadata.get("name", ""))
    match_namespace(asked, new)
    if metadata.get("resourceVersion"):
        raise bad_request("resourceVersion should not be set on objects to be created")
    if asked.call.method != "PATCH":
        asked.warnings.extend(drop_duplicate_owners(new, is_admitted=False))
    if kind.storage == CERTIFICATE_REQUESTS:
        user = asked.user
        sign_as(new, user.name, user.uid, user.groups, user.extra)
    for name in _NOT_FOR_CLIENTS:
        metadata.pop(name, None)
    if not has_managers:
        await asked.computed(
            lambda: record_update(
                kind.schema,
                None,
                new,
                manager=asked.options.manager,
                subresource="",
                now=workshop.now(),
                resets=kind.rules.resets.get("", ()),
            )
        )
    request = attributes(asked, Operation.CREATE, new=new, old=None, name=metadata.get("name", ""))
    await workshop.admission.mutate(request)
    assert request.object is not None
    new = request.object
    asked.warnings.extend(drop_duplicate_owners(new, is_admitted=True))
    check_escalation(workshop.authorizer, asked, new, None)
    is_named = bool(new["metadata"].get("name"))
    try:
        _complete(workshop, asked, new)
        await asked.computed(partial(_validate, asked, new), evaluates=kind.is_custom)
        if asked.name:
            check_creation(workshop.authorizer, asked)
        request.object, request.name = new, new["metadata"]["name"]
        await workshop.admission.validate(request)
        await workshop.admission.check_namespace(request)
        return await _named_and_stored(workshop, asked, new, is_named=is_named)
    except BaseException as problem:
        if not is_under_way(asked, problem):
            await workshop.admission.refund(request)
        raise
    finally:
        workshop.addresses.release(new)


def _check_definition(workshop: Workshop, kind: Kind, name: str) -> None:
    """Refuses an object of a kind that goes or is gone: nobody would ever delete it."""
    if kind.definition is None:
        return
    current = workshop.state.registry.stored(kind.storage)
    if current is None or current.definition is None or "deletionTimestamp" in current.definition["metadata"]:
        why = "create not allowed while custom resource definition is terminating"
        raise forbidden(kind.resource, kind.group, name, why)


async def _named_and_stored(workshop: Workshop, asked: Asked, new: Object, *, is_named: bool) -> Outcome:
    for _ in range(1 if is_named else _NAMES_TRIED):
        outcome = await _stored(workshop, asked, new)
        if outcome is not None:
            return outcome
        taken = new["metadata"]["name"]
        if not is_named:
            new["metadata"]["name"] = generate_name(new["metadata"]["generateName"], random)
    raise await _taken(workshop, asked, taken)


async def _taken(workshop: Workshop, asked: Asked, name: str) -> Refused:
    kind = asked.kind
    refusal = already_exists(kind.resource, kind.group, name)
    holder = workshop.state.store.latest(kind.storage, asked.namespace, name)
    if holder is None:
        return refusal
    await committed(workshop.state, holder)
    if b'"deletionTimestamp"' not in holder.data:
        return refusal
    if "deletionTimestamp" not in live_object(kind, workshop.state, holder)["metadata"]:
        return refusal
    message = f"object is being deleted: {refusal.status.message}"
    return refused(409, "AlreadyExists", message, name=name, group=kind.group, kind=kind.resource)


def match_namespace(asked: Asked, new: Object) -> None:
    """The object's namespace is the URL's; one that it names itself must agree."""
    given = new["metadata"].get("namespace", "")
    if not asked.kind.namespaced:
        new["metadata"].pop("namespace", None)
    elif given and given != asked.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if asked.namespace:
        new["metadata"]["namespace"] = asked.namespace


def finalizer_warnings(kind: Kind, new: Object, old: Object | None) -> list[str]:
    """Custom kinds may have finalizers of any name; those that others might choose too are advised against."""
    if not kind.is_custom:
        return []
    known = (old or {"metadata": {}})["metadata"].get("finalizers") or ()
    advice = "prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"
    return [
        f'metadata.finalizers: "{name}": {advice}'
        for name in new["metadata"].get("finalizers") or ()
        if "/" not in name and name not in known and name not in (ORPHAN, FOREGROUND)
    ]


def _complete(workshop: Workshop, asked: Asked, new: Object) -> None:
    """What the server decides: identity, birth, generation, and a status that nobody has written yet."""
    metadata = new["metadata"]
    for name in _NOT_FOR_CLIENTS:
        metadata.pop(name, None)
    if asked.kind.has_status and not asked.kind.rules.keeps_status:
        empty_status(asked.kind, new)
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = generate_name(metadata["generateName"], random)
    metadata["uid"] = new_uid()
    metadata["creationTimestamp"] = workshop.now()
    if asked.kind.rules.has_generation:
        metadata["generation"] = 1
    asked.kind.rules.prepare_create(new)
    if asked.kind.storage == SERVICES:
        workshop.addresses.allocate(new, None, is_trial=asked.options.dry_run)


def _validate(asked: Asked, new: Object) -> None:
    kind = asked.kind
    rules, is_strict = kind.rules, kind.rules.checks_metadata
    problems = [] if is_strict else rules.validate_create(new)
    if not problems:
        problems = validate_metadata(
            new,
            namespaced=kind.namespaced,
            name_problems=rules.name_problems,
            is_custom=kind.is_custom or not is_strict,
        )
    if is_strict:
        problems += rules.validate_create(new)
    if problems:
        raise invalid(kind.kind, kind.storage.partition(".")[2], new["metadata"].get("name", ""), problems)
    asked.warnings.extend(kind.rules.warnings(new))
    asked.warnings.extend(finalizer_warnings(kind, new, None))


async def _stored(workshop: Workshop, asked: Asked, new: Object) -> Outcome | None:
    """Puts the object into the store; None where the name is taken."""
    kind, store = asked.kind, workshop.state.store
    name = new["metadata"]["name"]
    if store.latest(kind.storage, asked.namespace, name) is not None:
        return None
    if asked.options.dry_run:
        return Outcome(kind=kind, object=new, status=201)
    _check_definition(workshop, kind, name)
    encode = encoder(workshop.state.stored_kind(kind), stored_form(kind, new))
    try:
        written = store.put(kind.storage, asked.namespace, name, encode, previous=None)
    except Changed:
        return None
    asked.is_staged = True
    return Outcome(kind=kind, record=await written, status=201)
