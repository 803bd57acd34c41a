"""Requests on resources: finds the kind, carries the verb out, and writes the answer as the client wants to read it."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import msgspec
import yaml

from shoal.cluster.apiserver.access.user import User
from shoal.cluster.apiserver.access.wording import quoted
from shoal.cluster.apiserver.builtin.names import path_segment_problems
from shoal.cluster.apiserver.calls import Answer, Call, Reply, Streaming
from shoal.cluster.apiserver.front.deprecation import deprecation
from shoal.cluster.apiserver.front.negotiation import (
    KNOWN,
    STREAMED,
    Form,
    Representation,
    check_producible,
    negotiated,
)
from shoal.cluster.apiserver.front.representation import page, shown, table, unstored_table
from shoal.cluster.apiserver.front.request_info import RequestInfo
from shoal.cluster.apiserver.kinds.go_names import internal_name
from shoal.cluster.apiserver.kinds.kind import Kind, Object
from shoal.cluster.apiserver.refusals import Refused, bad_request, method_not_allowed, no_such_route, not_found, refused
from shoal.cluster.apiserver.tables import has_table
from shoal.cluster.apiserver.verbs.asked import Asked, Outcome, WriteOptions, write_options
from shoal.cluster.apiserver.verbs.bodies import media_type, read_object
from shoal.cluster.apiserver.verbs.creating import create
from shoal.cluster.apiserver.verbs.deleting import DeleteOptions, delete, delete_collection
from shoal.cluster.apiserver.verbs.list_options import get_options, list_options
from shoal.cluster.apiserver.verbs.patching import APPLY_PATCH, patch
from shoal.cluster.apiserver.verbs.reading import Listed, get, list_page
from shoal.cluster.apiserver.verbs.selection import selection
from shoal.cluster.apiserver.verbs.updating import update
from shoal.cluster.apiserver.verbs.watching import Encoding, watch
from shoal.cluster.apiserver.verbs.writing import Workshop
from shoal.kube.admission.fields import invalid as invalid_field

Special = Callable[[Asked], Awaitable[Outcome | Reply]]
"""What a subresource, or a resource that is not stored, does with a request."""

_YAML = "application/yaml"
_DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
# PyYAML is built with libyaml nearly everywhere, and ten times as fast with it.
_YamlDumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_LONG_LIST = 500
"""From so many rows on a worker thread makes a table."""
_WARNINGS_LENGTH = 4096
_WARNING_LENGTH = 256
# Subresources with media types of their own.
_RAW = ("attach", "exec", "log", "portforward", "proxy")
_INCLUDED = ("Metadata", "Object", "None")
# The subresources that are a view of the object; all others are special.
_VIEWS = ("", "status", "ephemeralcontainers", "resize", "finalize", "approval")


class Resources:
    """Answers requests on resources. ``specials`` are by (storage, subresource, verb)."""

    def __init__(self, workshop: Workshop, specials: dict[tuple[str, str, str], Special]) -> None:
        self._workshop = workshop
        self._state = workshop.state
        self._specials = specials

    async def answer(self, call: Call, info: RequestInfo, user: User) -> Reply:
        """Carries a request out."""
        kind = self._kind(info)
        asked = Asked(
            kind=kind,
            namespace=info.namespace if kind.namespaced else "",
            name=info.name,
            subresource=info.subresource,
            user=user,
            call=call,
            offload=self._workshop.offload,
            is_costly=kind.storage == _DEFINITIONS,
        )
        if told := deprecation(kind):
            asked.warnings.append(told)
        try:
            reply = await self._carried_out(asked, info)
        except Refused as refusal:
            refusal.warnings = _warnings(asked)
            raise
        if isinstance(reply, Answer) and reply.content_type == _YAML:
            # A long list takes seconds, in which others want to be answered.
            reply.body = await asyncio.to_thread(_in_yaml, reply.body)
        return reply

    async def _carried_out(self, asked: Asked, info: RequestInfo) -> Reply:
        kind, call = asked.kind, asked.call
        if info.name:
            _check_name(info.name)
        if not kind.is_custom and info.subresource not in _RAW:
            check_producible(call.headers.get("accept", ""), _produced(kind, info))
        special = self._specials.get((kind.storage, info.subresource, info.verb)) or self._specials.get(
            ("*", info.subresource, info.verb)
        )
        if special is not None and (not info.subresource or info.subresource in kind.subresources):
            return self._written(asked, await special(asked))
        self._check_verb(kind, info)
        _representation(asked)  # what cannot be shown is not done either
        if info.verb in ("get", "list"):
            return await self._read(asked, info)
        if info.verb == "watch":
            return self._watch(asked, info)
        return self._written(asked, await self._write(asked, info))

    def _kind(self, info: RequestInfo) -> Kind:
        kind = self._state.registry.find(info.group, info.version, info.resource)
        if kind is not None and kind.is_custom and info.subresource and info.subresource not in kind.subresources:
            raise not_found(kind.resource, kind.group, info.name)
        if kind is None or not _is_right_place(kind, info):
            # Groups of Kubernetes' own know that something is missing; those of definitions are not there at all.
            if self._state.registry.is_builtin(info.group):
                raise no_such_route()
            raise NoSuchPath
        return kind

    def _check_verb(self, kind: Kind, info: RequestInfo) -> None:
        verbs = kind.subresources[info.subresource].verbs if info.subresource else kind.verbs
        if (
            info.subresource not in _VIEWS
            or info.verb not in verbs
            or (kind.namespaced and not info.namespace and info.verb == "create")
            or (info.verb == "create" and info.name and not info.subresource)
            or (info.verb in ("update", "patch") and not info.name)
        ):
            raise method_not_allowed()

    # Reading

    async def _read(self, asked: Asked, info: RequestInfo) -> Answer:
        representation = _representation(asked)
        if info.verb == "get":
            if representation.form is Form.METADATA_LIST:
                raise _wrong_form(representation, f"is not a list (*{internal_name(asked.kind)})")
            record = await get(self._state, asked, get_options(asked.call))
            return _encoded(asked, shown(asked.kind, self._state, record, representation), representation)
        if representation.form is Form.METADATA:
            raise _wrong_form(representation, f"is a list (*{internal_name(asked.kind, 'List')})")
        listed = await list_page(self._state, asked, list_options(asked.call))
        return _encoded(asked, await self._page(asked, listed, representation), representation)

    async def _page(self, asked: Asked, listed: Listed, representation: Representation) -> list[bytes]:
        """A list as it is shown; stored bytes are sent as they are, and anything else is made of each object anew."""
        make = partial(page, asked.kind, self._state, listed, representation)
        is_stored_form = representation.form is Form.WHOLE and asked.kind.from_storage is None
        if is_stored_form or len(listed.records) < _LONG_LIST or asked.offload is None:
            return make()
        return await asked.offload.run(asked.user.name, make)

    def _watch(self, asked: Asked, info: RequestInfo) -> Streaming:
        representation = _representation(asked)
        kind, state = asked.kind, self._state
        if representation.form is Form.METADATA_LIST:
            raise _wrong_form(representation, f"is not a list (*{internal_name(kind)})")
        first = None
        if representation.form is Form.TABLE:

            def encode(record: Any) -> bytes:
                metadata = {"resourceVersion": str(record.revision)}
                return table(kind, state, [record], representation, metadata, with_columns=False)

            def first(record: Any) -> bytes:
                return table(kind, state, [record], representation, {"resourceVersion": str(record.revision)})

        else:

            def encode(record: Any) -> bytes:
                return shown(kind, state, record, representation)

        encoding = Encoding(key=(kind.api_version, representation), encode=encode, first=first)
        options = list_options(asked.call)
        # A version or a selector that cannot be read is told before the stream begins.
        _ = options.revision, selection(kind, options.labels, options.fields, name=info.name)
        headers = {"Warning": ", ".join(_warnings(asked))} if asked.warnings else {}
        return Streaming(chunks=watch(state, asked, options, encoding, name=info.name), headers=headers)

    # Writing

    async def _write(self, asked: Asked, info: RequestInfo) -> Outcome | Answer:
        verb, call = info.verb, asked.call
        if verb == "create":
            asked.options = write_options(call, "CreateOptions")
            return await create(self._workshop, asked, await asked.computed(lambda: read_object(asked)))
        if verb == "update":
            asked.options = write_options(call, "UpdateOptions")
            return await update(self._workshop, asked)
        if verb == "patch":
            is_apply = media_type(call.headers.get("content-type", "")) == APPLY_PATCH
            asked.options = write_options(call, "PatchOptions", is_apply=is_apply)
            return await patch(self._workshop, asked)
        options = await asked.computed(lambda: DeleteOptions.of(asked))
        asked.options = WriteOptions(dry_run=options.dry_run)
        if verb == "delete":
            return await delete(self._workshop, asked, options)
        listed = await delete_collection(self._workshop, asked, options, list_options(call))
        representation = _representation(asked)
        return _encoded(asked, await self._page(asked, listed, representation), representation)

    def _written(self, asked: Asked, outcome: Outcome | Reply) -> Reply:
        if not isinstance(outcome, Outcome):
            return outcome
        representation = _representation(asked)
        if outcome.record is not None:
            data = shown(outcome.kind, self._state, outcome.record, representation)
        else:
            data = _dressed(outcome.kind, outcome.object or {}, representation)
        return _encoded(asked, data, representation, status=outcome.status)


def _produced(kind: Kind, info: RequestInfo) -> tuple[str, ...]:
    return (*KNOWN, *STREAMED) if info.verb in ("list", "watch") and "watch" in kind.verbs else KNOWN


def _check_name(name: str) -> None:
    """Refuses a name that no object can have since it has a meaning of its own in paths."""
    if problems := path_segment_problems(name):
        raise bad_request(f"Name parameter invalid: {quoted(name)}: {'; '.join(problems)}")


def _is_right_place(kind: Kind, info: RequestInfo) -> bool:
    if info.subresource and (not info.name or info.subresource not in kind.subresources):
        return False
    if info.rest and info.subresource != "proxy":
        return False
    if info.resource == "namespaces":
        return True
    return bool(info.namespace) or not info.name if kind.namespaced else not info.namespace


class NoSuchPath(Exception):
    """Nothing at all is served there, in any group; the answer is plain text."""


def _dressed(kind: Kind, value: Object, representation: Representation) -> bytes:
    """An object that is nowhere stored: the answer of a dry run, or of a subresource with a kind of its own."""
    if representation.form is Form.TABLE and value.get("kind") in (kind.kind, "Scale"):
        return unstored_table(kind, value, representation)
    if representation.is_metadata and value.get("kind") != "Status":
        version = f"meta.k8s.io/{representation.version}"
        value = {"kind": "PartialObjectMetadata", "apiVersion": version, "metadata": value.get("metadata", {})}
    return msgspec.json.encode(value)


def _wrong_form(representation: Representation, problem: str) -> Refused:
    """406: one object was asked for as many, or many as one."""
    message = f"you requested {representation.form.value}, but the requested object {problem}"
    return refused(406, "NotAcceptable", message)


def _representation(asked: Asked) -> Representation:
    call = asked.call
    representation = negotiated(call.headers.get("accept", ""), tables=has_table(asked.kind, asked.subresource))
    include = call.value("includeObject")
    if include and representation.form is Form.TABLE:
        if include not in _INCLUDED:
            problem = invalid_field("includeObject", include, "must be 'Metadata', 'Object', 'None', or empty")
            raise bad_request(f"Unable to convert to Table as requested: {problem}")
        representation = dataclasses.replace(representation, include=include)
    return representation


def _encoded(asked: Asked, data: bytes | list[bytes], representation: Representation, *, status: int = 200) -> Answer:
    if representation.is_yaml:
        return Answer(status=status, body=data, content_type=_YAML, warnings=_warnings(asked))
    if asked.call.value("pretty") not in ("", "false", "0"):
        content = b"".join(data) if isinstance(data, list) else data
        data = msgspec.json.format(content, indent=2)
    return Answer(status=status, body=data, warnings=_warnings(asked))


def _in_yaml(data: bytes | Sequence[bytes]) -> bytes:
    content = msgspec.json.decode(data if isinstance(data, bytes) else b"".join(data))
    return yaml.dump(content, Dumper=_YamlDumper, sort_keys=True).encode()


def _warnings(asked: Asked) -> list[str]:
    """The request's warnings as headers carry them, each once."""
    if not asked.warnings:
        return []
    return [f"299 - {_quoted(text)}" for text in _shortened(list(dict.fromkeys(asked.warnings)))]


def _shortened(warnings: list[str]) -> list[str]:
    """Warnings that fit into the headers: where all of them are too long, the beginnings of as many as have room."""
    if sum(map(len, warnings)) <= _WARNINGS_LENGTH:
        return warnings
    shown: list[str] = []
    length = 0
    for text in warnings:
        if length >= _WARNINGS_LENGTH:
            break
        shown.append(text[:_WARNING_LENGTH])
        length += len(shown[-1])
    return shown


def _quoted(text: str) -> str:
    if not text.isprintable():
        text = "".join(character if character.isprintable() else " " for character in text)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
