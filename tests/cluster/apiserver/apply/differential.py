"""The same writes to a real API server and to our functions, with the objects and their owners compared after each."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from shoal.api.meta import LAST_APPLIED
from shoal.cluster.apiserver.apply import apply, keep_times, record_update
from shoal.cluster.apiserver.kinds.decode import decode
from shoal.cluster.apiserver.kinds.tables import type_schema
from shoal.cluster.apiserver.refusals import Refused
from shoal.cluster.apiserver.schema import ListType, Schema

Object = dict[str, Any]
Request = Callable[[str, str, Any, str], tuple[int, Object]]
"""Method, path, body and content type to a status and an answer."""

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
JSON = "application/json"
MADE_UP = "before-first-apply"


@dataclass(frozen=True)
class Subject:
    """A kind that is tried."""

    api_version: str
    kind: str
    path: str
    schema: Schema
    defaulted: frozenset[str] = frozenset()
    """Fields that only the server's defaults set."""
    resets: dict[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    """One write: ``put``, ``merge``, ``apply``, ``force``, ``client``, ``forget`` or ``edit``."""

    verb: str
    manager: str
    body: Object
    subresource: str = ""


class Disagreement(AssertionError):
    """Ours and the real one differ."""


class Trial:
    """One object through a sequence of steps."""

    def __init__(self, request: Request, subject: Subject, name: str) -> None:
        self.request = request
        self.subject = subject
        self.name = name
        self.live: Object | None = None
        self.taken = 0
        self.agreed = 0

    def take(self, step: Step) -> None:
        """Takes one step on both sides."""
        status, live = self.request("GET", f"{self.subject.path}/{self.name}", None, JSON)
        self.live = live if status == 200 else None
        if self.live is None and (step.verb in ("merge", "forget", "edit") or step.subresource):
            return
        self.taken += 1
        if step.verb in ("apply", "force"):
            self._apply(step)
        else:
            self._write(step)

    def _apply(self, step: Step) -> None:
        body = self._object(step.body)
        if self.live is not None:
            body["metadata"]["resourceVersion"] = self.live["metadata"]["resourceVersion"]
        status, answer = self.request("PATCH", self._path(step, force=step.verb == "force"), body, APPLY)
        if status == 409 and "has been modified" in answer["message"]:
            return
        before = copy.deepcopy(self.live)
        try:
            ours = apply(
                self.subject.schema,
                self.live,
                copy.deepcopy(body),
                manager=step.manager,
                force=step.verb == "force",
                subresource=step.subresource,
                now=_time(answer, step.manager, "Apply"),
                resets=self.subject.resets.get(step.subresource, ()),
                versions={self.subject.api_version},
            )
        except Refused as refusal:
            _require(self.live == before, "the live object was changed", self, step)
            said = [(cause.field, cause.message) for cause in refusal.status.details.causes]
            causes = [(cause["field"], cause["message"]) for cause in answer.get("details", {}).get("causes", [])]
            theirs = (status, answer.get("message", ""), sorted(causes))
            if "errors:" in theirs[1]:
                # Which of several problems are found, and in what order, is left to chance there.
                _require("failed to create typed patch object" in refusal.status.message, theirs[1], self, step)
                return
            _equal((refusal.status.code, refusal.status.message, sorted(said)), theirs, "refusal", self, step)
            self.agreed += 1
            return
        _require(self.live == before, "the live object was changed", self, step)
        if status >= 400 and "failed to create typed" not in answer["message"] and "conflict" not in answer["message"]:
            return  # Refused by validation, which is not our part.
        _require(status < 400, f"refused: {answer.get('message')}", self, step)
        self._agree(self._completed(ours, answer, step), answer, step)

    def _write(self, step: Step) -> None:
        body = self._body(step)
        sent = copy.deepcopy(body)
        if self.live is None:
            path = f"{self.subject.path}?fieldManager={step.manager}"
            status, answer = self.request("POST", path, body, JSON)
        elif step.verb in ("put", "edit", "client"):
            status, answer = self.request("PUT", self._path(step), body, JSON)
        else:
            status, answer = self.request("PATCH", self._path(step), body, MERGE)
        if status >= 400:
            return
        ours = copy.deepcopy(answer)
        ours["metadata"].pop("managedFields", None)
        if self.live is None and self.subject.resets:
            ours.pop("status", None)
            if self.subject.schema.go_type:
                ours["status"] = {}
        if "managedFields" in sent["metadata"]:
            ours["metadata"]["managedFields"] = sent["metadata"]["managedFields"]
        before = copy.deepcopy(self.live)
        record_update(
            self.subject.schema,
            self.live,
            ours,
            manager=step.manager,
            subresource=step.subresource,
            now=_time(answer, step.manager, "Update"),
            resets=self.subject.resets.get(step.subresource, ()),
            versions={self.subject.api_version},
        )
        _require(self.live == before, "the live object was changed", self, step)
        self._agree(self._completed(ours, answer, step), answer, step)

    def _body(self, step: Step) -> Object:
        body = self._object(step.body)
        if step.verb == "client":
            text = msgspec.json.encode(body).decode()
            body["metadata"]["annotations"] = {**(body["metadata"].get("annotations") or {}), LAST_APPLIED: text}
        if self.live is None:
            return body
        if step.verb == "forget":
            body = {"metadata": {"managedFields": step.body["managedFields"]}}
        elif step.verb == "edit":
            body = copy.deepcopy(self.live)
            if step.body["how"] == "version" and not self.subject.schema.go_type:
                return body  # The real one gives up all owners of a custom object then, which nobody can want.
            _edit(body["metadata"].get("managedFields", []), step.body["how"])
        elif step.verb == "merge":
            body["metadata"].pop("name", None)
        # Controllers write too: a step that they came before is refused, and counts for nothing.
        body["metadata"]["resourceVersion"] = self.live["metadata"]["resourceVersion"]
        return body

    def _object(self, body: Object) -> Object:
        out = copy.deepcopy(body)
        metadata = {"name": self.name, **out.pop("metadata", {})}
        return {"apiVersion": self.subject.api_version, "kind": self.subject.kind, "metadata": metadata, **out}

    def _path(self, step: Step, *, force: bool = False) -> str:
        tail = f"/{step.subresource}" if step.subresource else ""
        forced = "&force=true" if force else ""
        return f"{self.subject.path}/{self.name}{tail}?fieldManager={step.manager}{forced}"

    def _completed(self, ours: Object, answer: Object, step: Step) -> Object:
        """Our object with what the server alone sets: names of its own, defaults, the part that the endpoint resets."""
        entries = ours["metadata"].get("managedFields")
        if self.subject.schema.go_type:
            ours = decode(self.subject.schema, ours, [])
        else:
            ours = _without_nulls(self.subject.schema, ours)
            ours["metadata"] = decode(type_schema("meta.v1.ObjectMeta"), ours["metadata"], [])
        if entries:
            ours["metadata"]["managedFields"] = entries
        for name in ("uid", "resourceVersion", "generation", "creationTimestamp", "namespace"):
            if name in answer["metadata"]:
                ours["metadata"][name] = answer["metadata"][name]
        for path in self.subject.resets.get(step.subresource, ()):
            if path[0] == "metadata":
                entries = ours["metadata"].get("managedFields")
                ours["metadata"] = copy.deepcopy(answer["metadata"])
                ours["metadata"].pop("managedFields", None)
                if entries:
                    ours["metadata"]["managedFields"] = entries
                continue
            ours.pop(path[0], None)
            if path[0] in answer:
                ours[path[0]] = answer[path[0]]
        completed: Object = _with_defaults(ours, answer, self.subject.defaulted)
        if self.live is not None:
            completed["metadata"]["resourceVersion"] = self.live["metadata"]["resourceVersion"]
            if not self._is_written_anyway(step):
                keep_times(self.live, completed)
            completed["metadata"]["resourceVersion"] = answer["metadata"]["resourceVersion"]
        return completed

    def _is_written_anyway(self, step: Step) -> bool:
        """Whether the real one takes what was applied for a change once a second has passed.

        In the metadata of a custom object it tells an empty list or map from none until they are stored.
        """
        is_custom = not self.subject.schema.go_type
        metadata = step.body.get("metadata") or {}
        return is_custom and step.verb in ("apply", "force") and not all(metadata.values())

    def _agree(self, ours: Object, theirs: Object, step: Step) -> None:
        mine, real = ours["metadata"].pop("managedFields", []), theirs["metadata"].pop("managedFields", [])
        _equal(ours, theirs, "object", self, step)
        for entry in real:
            if entry.get("manager") == MADE_UP and entry not in _managed(self.live):
                # The real one looks at its clock twice for one request, and a second may end in between.
                entry["time"] = next((e["time"] for e in mine if e["manager"] == MADE_UP), entry.get("time"))
        _equal(mine, real, "managedFields", self, step)
        self.agreed += 1


def _edit(entries: list[Object], how: str) -> None:
    """What clients may do to managedFields, sensible or not."""
    if not entries:
        return
    entry = entries[0]
    if how == "drop":
        del entries[0]
    elif how == "empty":
        entry["fieldsV1"] = {}
    elif how == "rename":
        entry["manager"] = "cat"
    elif how == "more":
        entry["fieldsV1"] |= {"f:other": {"x:unknown": {}, "f:below": {}}, 'k:{"b": 1, "a":"x"}': {".": {}}}
    elif how == "same":
        entries.append({**entry, "fieldsV1": {"f:other": {}}})
    elif how == "older":
        entry["time"] = "2020-01-01T02:00:00+02:00"
    elif how == "timeless":
        entry.pop("time", None)
    elif how == "version":
        entry["apiVersion"] = "example.com/v1"
    elif how == "label":
        entry["fieldsV1"] = {"nonsense": {}}
    elif how == "update":
        entry["operation"] = "Update"


EDITS = ("drop", "empty", "rename", "more", "same", "older", "timeless", "version", "label", "update")


def _managed(live: Object | None) -> list[Object]:
    entries: list[Object] = (live or {}).get("metadata", {}).get("managedFields") or []
    return entries


def _time(answer: Object, manager: str, operation: str) -> str:
    entries = _managed(answer)
    times = [e.get("time", "") for e in entries if (e.get("manager"), e["operation"]) == (manager, operation)]
    made_up = [e.get("time", "") for e in entries if e.get("manager") == MADE_UP]
    return max(times + made_up, default="2026-01-01T00:00:00Z") or "2026-01-01T00:00:00Z"


def _without_nulls(schema: Schema, value: Any) -> Any:
    """A custom object as its decoding leaves it: without nulls in places that may not be null."""
    if isinstance(value, dict):
        out = {}
        for key, item in value.items():
            below = schema.properties.get(key, schema.additional)
            if below is None:
                out[key] = item
            elif item is not None or below.nullable:
                out[key] = _without_nulls(below, item)
        if schema.is_embedded and out.get("metadata"):
            out["metadata"] = decode(type_schema("meta.v1.ObjectMeta"), out["metadata"], [])
        return out
    if isinstance(value, list) and schema.items is not None:
        return [_without_nulls(schema.items, item) for item in value]
    return value


def _with_defaults(ours: Any, theirs: Any, names: frozenset[str]) -> Any:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        added = {key: item for key, item in theirs.items() if not ours.get(key) and key in names}
        return {key: _with_defaults(item, theirs.get(key), names) for key, item in ours.items()} | added
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return [_with_defaults(one, other, names) for one, other in zip(ours, theirs, strict=True)]
    return ours


def _require(held: bool, what: str, trial: Trial, step: Step) -> None:
    if not held:
        raise Disagreement(f"{what}\nstep {trial.taken} {step}\nlive {trial.live}")


def _equal(ours: Any, theirs: Any, what: str, trial: Trial, step: Step) -> None:
    _require(ours == theirs, f"{what} differs\nours   {ours}\ntheirs {theirs}", trial, step)


def schema_of(row: Object) -> Schema:
    """The schema of a CRD, as far as the kind tried here needs it."""
    additional = row.get("additionalProperties")
    return Schema(
        type=row.get("type", ""),
        format=row.get("format", ""),
        properties={name: schema_of(field) for name, field in row.get("properties", {}).items()},
        additional=schema_of(additional) if additional else None,
        items=schema_of(row["items"]) if "items" in row else None,
        list_type=ListType(row.get("x-kubernetes-list-type", "atomic")),
        list_keys=tuple(row.get("x-kubernetes-list-map-keys", ())),
        is_atomic=row.get("x-kubernetes-map-type") == "atomic",
        preserves_unknown=row.get("x-kubernetes-preserve-unknown-fields", False),
        is_embedded=row.get("x-kubernetes-embedded-resource", False),
        default=row.get("default", msgspec.UNSET),
        nullable=row.get("nullable", False),
        raw=row,
    )
