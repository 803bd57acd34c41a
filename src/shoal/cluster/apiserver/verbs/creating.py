"""Create: what a client sends becomes an object."""

from __future__ import annotations

import random

from shoal.api.meta import generate_name
from shoal.cluster.apiserver.apply import record_update
from shoal.cluster.apiserver.builtin.certificates import sign_as
from shoal.cluster.apiserver.builtin.metadata import drop_duplicate_owners, validate_metadata
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.refusals import already_exists, bad_request, invalid
from shoal.cluster.apiserver.state import encoder
from shoal.cluster.apiserver.storage import Changed
from shoal.cluster.apiserver.verbs.asked import Asked, Outcome
from shoal.cluster.apiserver.verbs.bodies import empty_status
from shoal.cluster.apiserver.verbs.service_addresses import SERVICES
from shoal.cluster.apiserver.verbs.writing import Workshop, attributes, check_escalation, new_uid, stored_form
from shoal.kube.admission.wire import Operation

_NAMES_TRIED = 8
_NOT_FOR_CLIENTS = ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation", "resourceVersion")

CERTIFICATE_REQUESTS = "certificatesigningrequests.certificates.k8s.io"

_random = random.SystemRandom()


async def create(workshop: Workshop, asked: Asked, new: Object, *, has_managers: bool = False) -> Outcome:
    """Creates an object of the body ``new``; ``has_managers`` where apply has told who owns what already."""
    kind = asked.kind
    metadata = new.setdefault("metadata", {})
    match_namespace(asked, new)
    if metadata.get("resourceVersion"):
        raise bad_request("resourceVersion should not be set on objects to be created")
    asked.warnings.extend(drop_duplicate_owners(new))
    if kind.storage == CERTIFICATE_REQUESTS:
        user = asked.user
        sign_as(new, user.name, user.uid, user.groups, user.extra)
    if not has_managers:
        record_update(
            kind.schema,
            None,
            new,
            manager=asked.options.manager,
            subresource="",
            now=workshop.now(),
            resets=kind.rules.resets.get("", ()),
        )
    check_escalation(workshop.authorizer, asked, new, None)
    request = attributes(asked, Operation.CREATE, new=new, old=None, name=metadata.get("name", ""))
    await workshop.admission.mutate(request)
    assert request.object is not None
    new = request.object
    _complete(workshop, asked, new)
    is_named = bool(new["metadata"].get("name"))
    if not is_named and new["metadata"].get("generateName"):
        new["metadata"]["name"] = generate_name(new["metadata"]["generateName"], _random)
    _validate(asked, new)
    request.object, request.name = new, new["metadata"]["name"]
    await workshop.admission.validate(request)
    try:
        return await _named_and_stored(workshop, asked, new, is_named=is_named)
    except BaseException:
        await workshop.admission.refund(request)
        raise


async def _named_and_stored(workshop: Workshop, asked: Asked, new: Object, *, is_named: bool) -> Outcome:
    for _ in range(1 if is_named else _NAMES_TRIED):
        outcome = await _stored(workshop, asked, new)
        if outcome is not None:
            return outcome
        taken = new["metadata"]["name"]
        if not is_named:
            new["metadata"]["name"] = generate_name(new["metadata"]["generateName"], _random)
    raise already_exists(asked.kind.resource, asked.kind.group, taken)


def match_namespace(asked: Asked, new: Object) -> None:
    """The object's namespace is the URL's; one that it names itself must agree."""
    given = new["metadata"].get("namespace", "")
    if given and given != asked.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if asked.namespace:
        new["metadata"]["namespace"] = asked.namespace


def _complete(workshop: Workshop, asked: Asked, new: Object) -> None:
    """What the server decides: identity, birth, generation, and a status that nobody has written yet."""
    metadata = new["metadata"]
    for name in _NOT_FOR_CLIENTS:
        metadata.pop(name, None)
    if asked.kind.has_status and not asked.kind.rules.keeps_status:
        empty_status(asked.kind, new)
    metadata["uid"] = new_uid()
    metadata["creationTimestamp"] = workshop.now()
    if asked.kind.rules.has_generation:
        metadata["generation"] = 1
    asked.kind.rules.prepare_create(new)
    if asked.kind.storage == SERVICES:
        workshop.addresses.allocate(new, None)


def _validate(asked: Asked, new: Object) -> None:
    kind = asked.kind
    problems = validate_metadata(
        new, namespaced=kind.namespaced, name_problems=kind.rules.name_problems, is_custom=kind.is_custom
    )
    problems += kind.rules.validate_create(new)
    if problems:
        raise invalid(kind.kind, kind.group, new["metadata"].get("name", ""), problems)
    asked.warnings.extend(kind.rules.warnings(new))


async def _stored(workshop: Workshop, asked: Asked, new: Object) -> Outcome | None:
    """Puts the object into the store; None where the name is taken."""
    kind, store = asked.kind, workshop.state.store
    name = new["metadata"]["name"]
    if store.latest(kind.storage, asked.namespace, name) is not None:
        return None
    if asked.options.dry_run:
        return Outcome(kind=kind, object=new, status=201)
    encode = encoder(workshop.state.stored_kind(kind), stored_form(kind, new))
    try:
        record = await store.put(kind.storage, asked.namespace, name, encode, previous=None)
    except Changed:
        return None
    return Outcome(kind=kind, record=record, status=201)
