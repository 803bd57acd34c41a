"""Update: a stored object is replaced by another, whole or its status alone; patches end here as well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from shoal.cluster.apiserver.admission.attributes import Attributes
from shoal.cluster.apiserver.apply import keep_times, record_update
from shoal.cluster.apiserver.builtin.certificates import prepare_approval, validate_approval
from shoal.cluster.apiserver.builtin.metadata import drop_duplicate_owners, validate_metadata_update
from shoal.cluster.apiserver.builtin.namespaces import prepare_finalize, validate_finalize
from shoal.cluster.apiserver.builtin.workloads.pod_updates import (
    prepare_ephemeral_containers,
    validate_ephemeral_containers_update,
)
from shoal.cluster.apiserver.builtin.workloads.resize import prepare_resize, validate_resize
from shoal.cluster.apiserver.kinds.kind import Kind, Object
from shoal.cluster.apiserver.refusals import bad_request, conflict, invalid, not_found
from shoal.cluster.apiserver.state import encoder
from shoal.cluster.apiserver.storage import Changed, Record
from shoal.cluster.apiserver.verbs.asked import Asked, Outcome
from shoal.cluster.apiserver.verbs.bodies import read_object
from shoal.cluster.apiserver.verbs.creating import CERTIFICATE_REQUESTS, create, finalizer_warnings, match_namespace
from shoal.cluster.apiserver.verbs.deleting import is_finished, removed
from shoal.cluster.apiserver.verbs.service_addresses import SERVICES
from shoal.cluster.apiserver.verbs.writing import (
    Workshop,
    attributes,
    check_escalation,
    committed,
    is_under_way,
    live_object,
    same_content,
    stored_form,
)
from shoal.kube.admission.fields import FieldProblem
from shoal.kube.admission.fields import invalid as invalid_field
from shoal.kube.admission.wire import Operation

# Metadata that a client may leave out but not change, that nobody can take back, and that the server alone writes.
_LEFT_OUT = ("uid",)
_ONCE_SET = ("deletionTimestamp", "deletionGracePeriodSeconds")
_OURS = ("creationTimestamp", "generation", "selfLink")
_NOT_SPEC = ("apiVersion", "kind", "metadata", "status")


@dataclass(frozen=True, kw_only=True, slots=True)
class SpecialUpdate:
    """An update through a subresource that changes one part of the object and keeps the rest."""

    prepare: Callable[[Object, Object], None]
    validate: Callable[[Object, Object], list[FieldProblem]]


SPECIAL_UPDATES = {
    ("pods", "ephemeralcontainers"): SpecialUpdate(
        prepare=prepare_ephemeral_containers, validate=validate_ephemeral_containers_update
    ),
    ("pods", "resize"): SpecialUpdate(prepare=prepare_resize, validate=validate_resize),
    (CERTIFICATE_REQUESTS, "approval"): SpecialUpdate(prepare=prepare_approval, validate=validate_approval),
    ("namespaces", "finalize"): SpecialUpdate(prepare=prepare_finalize, validate=validate_finalize),
}


async def update(workshop: Workshop, asked: Asked) -> Outcome:
    """Replaces the object that the URL names by the body."""
    while True:
        # Read anew for each attempt: one that came too late has completed its object from a state that is gone.
        new = await asked.computed(lambda: read_object(asked))
        is_conditional = new.get("metadata", {}).get("resourceVersion", "") not in ("", "0")
        try:
            return await _updated(workshop, asked, new)
        except Changed:
            if is_conditional:
                raise conflict(asked.kind.resource, asked.kind.group, asked.name) from None


async def _updated(workshop: Workshop, asked: Asked, new: Object) -> Outcome:
    match_name(asked, new)
    match_namespace(asked, new)
    store, kind = workshop.state.store, asked.kind
    previous = store.latest(kind.storage, asked.namespace, asked.name)
    if previous is None:
        if kind.rules.create_on_update and not asked.subresource:
            if uid := new["metadata"].get("uid"):
                why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: "
                raise conflict(kind.resource, kind.group, asked.name, why)
            new["metadata"].pop("resourceVersion", None)
            return await create(workshop, asked, new)
        raise not_found(kind.resource, kind.group, asked.name)
    _check_identity(asked, new, previous)
    return await replace(workshop, asked, previous, new)


async def replace(
    workshop: Workshop,
    asked: Asked,
    previous: Record,
    new: Object,
    *,
    live: Object | None = None,
    has_managers: bool = False,
) -> Outcome:
    """Carries an update out on one version of the object; raises Changed where it is no longer the newest.

    ``live`` is that version where its values are at hand; ``has_managers`` where apply has told who owns what already.
    """
    kind, state = asked.kind, workshop.state
    asked.stored_size = len(previous.data)
    if live is None:
        live = live_object(kind, state, previous)
    _check_version(asked, new, live)
    if asked.call.method != "PATCH":
        asked.warnings.extend(drop_duplicate_owners(new, is_admitted=False))
    if not has_managers:
        await asked.computed(
            partial(
                record_update,
                kind.schema,
                live,
                new,
                manager=asked.options.manager,
                subresource=asked.subresource,
                now=workshop.now(),
                resets=kind.rules.resets.get(asked.subresource, ()),
            )
        )
    request = attributes(asked, Operation.UPDATE, new=new, old=live)
    await workshop.admission.mutate(request)
    assert request.object is not None
    new = request.object
    asked.warnings.extend(drop_duplicate_owners(new, is_admitted=True))
    check_escalation(workshop.authorizer, asked, new, live)
    try:
        return await _completed_and_written(workshop, asked, previous, request, live)
    except BaseException as problem:
        if not is_under_way(asked, problem):
            await workshop.admission.refund(request)
        raise
    finally:
        workshop.addresses.release(new)


async def _completed_and_written(
    workshop: Workshop, asked: Asked, previous: Record, request: Attributes, live: Object
) -> Outcome:
    kind, new = asked.kind, request.object
    assert new is not None
    await asked.computed(partial(_complete, kind, asked.subresource, new, live))
    if kind.storage == SERVICES and not asked.subresource:
        workshop.addresses.allocate(new, live)
    await asked.computed(partial(_validate, asked, new, live), evaluates=kind.is_custom)
    request.object = new
    await workshop.admission.validate(request)
    outcome = await _written(workshop, asked, previous, new, live)
    if outcome.record is previous:
        await workshop.admission.refund(request)
    return outcome


async def _written(workshop: Workshop, asked: Asked, previous: Record, new: Object, live: Object) -> Outcome:
    kind, state = asked.kind, workshop.state
    if is_finished(kind, new, live):
        new["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
        await removed(workshop, asked, previous, live)
        return Outcome(kind=kind, object=new)
    if await asked.computed(partial(_is_unchanged, new, live)):
        await committed(state, previous)
        return Outcome(kind=kind, record=previous)
    if asked.options.dry_run:
        new["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
        return Outcome(kind=kind, object=new)
    encode = encoder(state.stored_kind(kind), stored_form(kind, new))
    written = state.store.put(kind.storage, asked.namespace, asked.name, encode, previous=previous)
    asked.is_staged = True
    return Outcome(kind=kind, record=await written)


def _is_unchanged(new: Object, live: Object) -> bool:
    keep_times(live, new)
    return same_content(new, live)


def match_name(asked: Asked, new: Object) -> None:
    """The object's name is the URL's."""
    given = new.setdefault("metadata", {}).get("name", "")
    if given and given != asked.name:
        raise bad_request(f"the name of the object ({given}) does not match the name on the URL ({asked.name})")
    if not given:
        problem = f"the name of the object ({asked.name} based on URL) was undeterminable: name must be provided"
        raise bad_request(problem)


def _check_version(asked: Asked, new: Object, live: Object) -> None:
    """Optimistic concurrency: a version or an identity that the client names must be the one that is there."""
    kind, metadata = asked.kind, new["metadata"]
    version = metadata.get("resourceVersion", "")
    if version and version != "0":
        if version != live["metadata"]["resourceVersion"]:
            raise conflict(kind.resource, kind.group, asked.name)
    elif not kind.rules.unconditional_update:
        problem = invalid_field("metadata.resourceVersion", 0, "must be specified for an update")
        raise invalid(kind.resource, kind.group, asked.name, [problem])


def _check_identity(asked: Asked, new: Object, previous: Record) -> None:
    """An update that names an identity means that object, and no other of the same name."""
    uid = new["metadata"].get("uid", "")
    if uid and uid != previous.uid:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {previous.uid}"
        raise conflict(asked.kind.resource, asked.kind.group, asked.name, why)


def _complete(kind: Kind, subresource: str, new: Object, live: Object) -> None:
    """What an update cannot change stays as it is, and a changed spec counts as a new generation."""
    metadata, old = new["metadata"], live["metadata"]
    for name in _LEFT_OUT:
        if not metadata.get(name) and name in old:
            metadata[name] = old[name]
    for name in _ONCE_SET:
        if name in old:
            metadata[name] = old[name]
    for name in _OURS:
        metadata.pop(name, None)
        if name in old:
            metadata[name] = old[name]
    metadata["resourceVersion"] = old["resourceVersion"]
    if special := SPECIAL_UPDATES.get((kind.storage, subresource)):
        special.prepare(new, live)
        _count_generation(kind, new, live)
        return
    if subresource == "status":
        for key in [key for key in new if key not in _NOT_SPEC]:
            del new[key]
        new.update({key: value for key, value in live.items() if key not in _NOT_SPEC})
        kind.rules.prepare_status(new, live)
        return
    if kind.has_status:
        if "status" in live:
            new["status"] = live["status"]
        else:
            new.pop("status", None)
    kind.rules.prepare_update(new, live)
    _count_generation(kind, new, live)


def _count_generation(kind: Kind, new: Object, live: Object) -> None:
    if kind.rules.has_generation and _spec_differs(kind, new, live):
        new["metadata"]["generation"] = live["metadata"].get("generation", 0) + 1


def _spec_differs(kind: Kind, new: Object, live: Object) -> bool:
    beside = _NOT_SPEC if kind.has_status or not kind.is_custom else _NOT_SPEC[:-1]
    return any(new.get(key) != live.get(key) for key in {*new, *live} if key not in beside)


def _validate(asked: Asked, new: Object, live: Object) -> None:
    kind = asked.kind
    problems = validate_metadata_update(new, live, is_custom=kind.is_custom or not kind.rules.checks_metadata)
    if special := SPECIAL_UPDATES.get((kind.storage, asked.subresource)):
        problems += special.validate(new, live)
    elif asked.subresource == "status":
        problems += kind.rules.validate_status(new, live)
    else:
        problems += kind.rules.validate_update(new, live)
    if problems:
        raise invalid(kind.kind, kind.storage.partition(".")[2], asked.name, problems)
    is_new_generation = not kind.rules.has_generation or new["metadata"].get("generation") != live["metadata"].get(
        "generation"
    )
    asked.warnings.extend(finalizer_warnings(kind, new, live))
    if is_new_generation and kind.storage != "pods" and asked.subresource != "status":
        asked.warnings.extend(kind.rules.warnings(new))
