"""Delete: at once, after a grace period, or when the last finalizer is gone."""

from __future__ import annotations

import asyncio
import dataclasses
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from shoal.api.meta import format_time, parse_time
from shoal.cluster.apiserver.calls import Call
from shoal.cluster.apiserver.custom import DEFINITIONS, mark_definition
from shoal.cluster.apiserver.kinds.bodies import BadBody, version_and_kind
from shoal.cluster.apiserver.kinds.decode import WrongType, decode
from shoal.cluster.apiserver.kinds.kind import Kind, Object
from shoal.cluster.apiserver.kinds.tables import type_schema
from shoal.cluster.apiserver.refusals import Refused, bad_request, conflict, invalid, not_found
from shoal.cluster.apiserver.state import encoder
from shoal.cluster.apiserver.storage import Changed, Record
from shoal.cluster.apiserver.verbs.asked import Asked, Outcome
from shoal.cluster.apiserver.verbs.bodies import read_body
from shoal.cluster.apiserver.verbs.list_options import ListOptions
from shoal.cluster.apiserver.verbs.reading import Listed, list_page
from shoal.cluster.apiserver.verbs.writing import (
    Workshop,
    attributes,
    committed,
    live_object,
    same_content,
    stored_form,
)
from shoal.kube.admission.fields import FieldProblem, not_supported
from shoal.kube.admission.fields import invalid as invalid_field
from shoal.kube.admission.wire import Operation

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"

_AT_ONCE = 16
"""Objects of a collection that are deleted together, so that one commit serves them all."""
_JOBS = "jobs.batch"
_JOBS_KEEP_PODS = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)

# Kinds whose dependents stay behind unless the request says otherwise, and one that has none to speak of.
_ORPHAN_BY_DEFAULT = frozenset({"jobs.batch", "replicationcontrollers"})
_NO_DEPENDENTS = frozenset({"events"})

# Kinds that answer a deletion with the object rather than a Status.
_ANSWER_WITH_OBJECT = frozenset(
    {
        "pods",
        "podtemplates",
        "persistentvolumes",
        "persistentvolumeclaims",
        "resourcequotas",
        "services",
        "serviceaccounts",
        "namespaces",
        "csidrivers.storage.k8s.io",
        "csinodes.storage.k8s.io",
        "storageclasses.storage.k8s.io",
        "volumeattachments.storage.k8s.io",
        "volumeattributesclasses.storage.k8s.io",
        "deviceclasses.resource.k8s.io",
        "resourceclaims.resource.k8s.io",
        "resourceclaimtemplates.resource.k8s.io",
        "resourceslices.resource.k8s.io",
    }
)


@dataclass(frozen=True, kw_only=True, slots=True)
class DeleteOptions:
    """How an object shall go."""

    grace_seconds: int | None = None
    propagation: str = ""
    orphan_dependents: bool | None = None
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False

    @staticmethod
    def of(asked: Asked) -> DeleteOptions:
        """The options of a request: its body, or else its query."""
        call = asked.call
        value: Any = {}
        if call.body:
            schema = type_schema("meta.v1.DeleteOptions")
            value = _read_options(call)
            try:
                value = decode(schema, value, [])
            except WrongType as error:
                raise bad_request(str(error)) from None
        else:
            if seconds := call.value("gracePeriodSeconds"):
                try:
                    value["gracePeriodSeconds"] = int(seconds)
                except ValueError:
                    raise bad_request(f'strconv.ParseInt: parsing "{seconds}": invalid syntax') from None
            if policy := call.value("propagationPolicy"):
                value["propagationPolicy"] = policy
            if orphan := call.value("orphanDependents"):
                value["orphanDependents"] = orphan.lower() in ("1", "t", "true")
            value["dryRun"] = list(call.query.get("dryRun", ()))
        return DeleteOptions.of_value(value)

    @staticmethod
    def of_value(value: dict[str, Any]) -> DeleteOptions:
        """The options that a body states."""
        _check_options(value)
        preconditions = value.get("preconditions") or {}
        return DeleteOptions(
            grace_seconds=value.get("gracePeriodSeconds"),
            propagation=value.get("propagationPolicy", ""),
            orphan_dependents=value.get("orphanDependents"),
            uid=preconditions.get("uid", ""),
            resource_version=preconditions.get("resourceVersion", ""),
            dry_run="All" in (value.get("dryRun") or ()),
        )


async def delete(workshop: Workshop, asked: Asked, options: DeleteOptions) -> Outcome:
    """Deletes one object, or marks it as one that shall go."""
    kind, store = asked.kind, workshop.state.store
    if kind.storage == _JOBS and not options.propagation and options.orphan_dependents is None:
        asked.warnings.append(_JOBS_KEEP_PODS)
    while True:
        previous = store.latest(kind.storage, asked.namespace, asked.name)
        if previous is None:
            raise not_found(kind.resource, kind.group, asked.name)
        try:
            return await _deleted(workshop, asked, options, previous)
        except Changed:
            continue


async def delete_collection(workshop: Workshop, asked: Asked, options: DeleteOptions, which: ListOptions) -> Listed:
    """Deletes all objects that are selected, and says which they were; those that vanish meanwhile do not matter."""
    listed = await list_page(workshop.state, asked, which)
    left = iter(listed.records)
    refusals: list[Refused] = []

    async def delete_some() -> None:
        for record in left:
            one = dataclasses.replace(asked, namespace=record.namespace, name=record.name)
            try:
                await delete(workshop, one, options)
            except Refused as refusal:
                if refusal.status.code != 404:
                    refusals.append(refusal)
            if refusals:
                return
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(_AT_ONCE, len(listed.records))):
            group.create_task(delete_some())
    if refusals:
        raise refusals[0]
    return listed


async def _deleted(workshop: Workshop, asked: Asked, options: DeleteOptions, previous: Record) -> Outcome:
    kind = asked.kind
    live = live_object(kind, workshop.state, previous)
    check_preconditions(asked, options, live["metadata"])
    request = attributes(asked, Operation.DELETE, new=None, old=live)
    await workshop.admission.mutate(request)
    await workshop.admission.validate(request)
    marked = live_object(kind, workshop.state, previous)
    if not _mark(kind, options, marked, workshop.now()):
        await committed(workshop.state, previous)
        return Outcome(kind=kind, record=previous)
    if is_finished(kind, marked, marked):
        last = live
        if kind.rules.grace_seconds is not None:
            # What is given time is told to go first, even where the time is none; both are staged at once, so that
            # they are one commit.
            if not asked.options.dry_run and not same_content(marked, live):
                told = _put(workshop, asked, previous, marked)
                told.add_done_callback(_is_heard)
                previous = workshop.state.store.latest(kind.storage, asked.namespace, asked.name) or previous
            last = marked
        outcome = await removed(workshop, asked, previous, last)
        if kind.storage not in _ANSWER_WITH_OBJECT:
            outcome.record, outcome.object = None, _success(kind, live)
        return outcome
    if same_content(marked, live):
        await committed(workshop.state, previous)
        return Outcome(kind=kind, record=previous)
    if asked.options.dry_run:
        return Outcome(kind=kind, object=marked)
    return Outcome(kind=kind, record=await _put(workshop, asked, previous, marked))


def _is_heard(done: asyncio.Future[Record]) -> None:
    """Takes note of a failure that the next write, which fails with it, tells."""
    if not done.cancelled():
        done.exception()


def _put(workshop: Workshop, asked: Asked, previous: Record, marked: Object) -> asyncio.Future[Record]:
    kind, state = asked.kind, workshop.state
    encode = encoder(state.stored_kind(kind), stored_form(kind, marked))
    return state.store.put(kind.storage, asked.namespace, asked.name, encode, previous=previous)


def is_finished(kind: Kind, new: Object, old: Object) -> bool:
    """Whether an object that was asked to go has nothing left to wait for."""
    if "deletionTimestamp" not in old["metadata"] or new["metadata"].get("finalizers"):
        return False
    if kind.storage == "namespaces" and new.get("spec", {}).get("finalizers"):
        return False
    return bool(not old["metadata"].get("deletionGracePeriodSeconds"))


async def removed(workshop: Workshop, asked: Asked, previous: Record, last: Object) -> Outcome:
    """Takes an object out of the store; ``last`` is what watchers see of it."""
    kind, store = asked.kind, workshop.state.store
    if asked.options.dry_run:
        return Outcome(kind=kind, object=last)
    encode = encoder(workshop.state.stored_kind(kind), stored_form(kind, last))
    record = await store.remove(kind.storage, asked.namespace, asked.name, encode, previous=previous)
    return Outcome(kind=kind, record=record)


def _mark(kind: Kind, options: DeleteOptions, marked: Object, now: str) -> bool:
    """Notes on the object how and when it goes; whether there is anything to do (or it is on its way already)."""
    metadata = marked["metadata"]
    grace = options.grace_seconds
    if grace is not None and grace < 0:
        grace = 1
    is_first = "deletionTimestamp" not in metadata
    finalizers = _finalizers(kind, options, metadata)
    changed = finalizers != metadata.get("finalizers", [])
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    if is_first:
        seconds = 0 if kind.rules.grace_seconds is None else kind.rules.grace_seconds(marked, grace)
        metadata["deletionTimestamp"] = _later(now, seconds)
        if kind.storage != "namespaces":
            metadata["deletionGracePeriodSeconds"] = seconds
        if metadata.get("generation"):
            metadata["generation"] += 1
        if kind.storage == "namespaces":
            marked.setdefault("status", {})["phase"] = "Terminating"
        elif kind.storage == DEFINITIONS:
            mark_definition(marked, now)
        return True
    left = metadata.get("deletionGracePeriodSeconds") or 0
    if not left:
        return True
    if kind.rules.grace_seconds is None or grace is None or grace >= left:
        return bool(changed)
    metadata["deletionTimestamp"] = max(_later(metadata["deletionTimestamp"], grace - left), now)
    if metadata["deletionTimestamp"] == now and grace:
        grace = 1
    metadata["deletionGracePeriodSeconds"] = grace
    return True


def _finalizers(kind: Kind, options: DeleteOptions, metadata: dict[str, Any]) -> list[str]:
    """The finalizers after the request's wish for the object's dependents."""
    present: list[str] = metadata.get("finalizers", [])
    if kind.storage in _NO_DEPENDENTS:
        return present
    wanted = set()
    if options.orphan_dependents is not None:
        wanted = {ORPHAN} if options.orphan_dependents else set()
    elif options.propagation:
        wanted = {"Orphan": {ORPHAN}, "Foreground": {FOREGROUND}}.get(options.propagation, set())
    elif ORPHAN in present or FOREGROUND in present:
        return present
    elif kind.storage in _ORPHAN_BY_DEFAULT:
        wanted = {ORPHAN}
    kept = [name for name in present if name not in (ORPHAN, FOREGROUND)]
    return kept + sorted(wanted)


def check_preconditions(asked: Asked, options: DeleteOptions, metadata: dict[str, Any]) -> None:
    """Refuses to delete another object, or another version of it, than the one that is meant."""
    kind = asked.kind
    group = kind.storage.partition(".")[2]
    if options.uid and options.uid != metadata["uid"]:
        raise conflict(
            kind.kind,
            group,
            asked.name,
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({metadata['uid']}). "
            "The object might have been deleted and then recreated",
        )
    if options.resource_version and options.resource_version != metadata["resourceVersion"]:
        raise conflict(
            kind.kind,
            group,
            asked.name,
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the ResourceVersion "
            f"in record ({metadata['resourceVersion']}). The object might have been modified",
        )


def _read_options(call: Call) -> dict[str, Any]:
    """The options in a body; a body rules out those of the query."""
    try:
        value, _ = read_body(call)
        _, name = version_and_kind(value, call.body)
    except BadBody as error:
        raise bad_request(error.problem) from None
    if name not in ("", "DeleteOptions"):
        raise bad_request(f"decoded object cannot be converted to DeleteOptions: it is a {name}")
    return value or {}


def _check_options(value: dict[str, Any]) -> None:
    problems: list[FieldProblem] = []
    policy = value.get("propagationPolicy")
    if policy is not None and value.get("orphanDependents") is not None:
        problems.append(
            invalid_field("propagationPolicy", policy, "orphanDependents and deletionPropagation cannot be both set")
        )
    if policy is not None and policy not in ("Foreground", "Background", "Orphan"):
        problems.append(not_supported("propagationPolicy", policy, ["Foreground", "Background", "Orphan", "nil"]))
    dry_run = value.get("dryRun") or []
    if any(each not in ("", "All") for each in dry_run):
        problems.append(not_supported("dryRun", dry_run, ["All"]))
    if problems:
        raise invalid("DeleteOptions", "meta.k8s.io", "", problems)


def _success(kind: Kind, gone: Object) -> Object:
    details = {"name": gone["metadata"]["name"], "group": kind.group, "kind": kind.resource}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {key: value for key, value in details.items() if value} | {"uid": gone["metadata"]["uid"]},
    }


def _later(moment: str, seconds: int) -> str:
    return format_time(parse_time(moment) + timedelta(seconds=seconds)) if seconds else moment
