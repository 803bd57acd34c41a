"""The verbs of the Kubernetes API, typed by the ``Resource`` they act on.

A ``Client`` sits on a ``Transport`` and adds what every caller wants: errors as exceptions, a rate limit, and retries
where trying again is safe. What is safe: an answer of 429 was refused before it was carried out, so any request may be
sent again after ``Retry-After``; after a broken connection or a server fault only requests that may happen twice are
(reads, replacing, applying, merging, deleting), and a create only where it surely never left.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec
import structlog
from prometheus_client import Counter, Histogram

from shoal.api.meta.objects import HasMetadata, PartialObject
from shoal.api.meta.resource import DecodeError, Resource
from shoal.api.meta.scan import members
from shoal.kube import freshness, streams
from shoal.kube.backoff import Backoff, TokenBucket
from shoal.kube.errors import ApiError, Conflict, ConnectionFault, error_from_response
from shoal.kube.metrics import Metrics
from shoal.kube.queries import FieldValidation, Propagation, delete_options, options, selection, watch_query
from shoal.kube.transport import Request, Response, Transport
from shoal.kube.watch import WatchEvent, event_batches

log = structlog.get_logger("shoal.kube.client")

T = TypeVar("T", bound=HasMetadata)
R = TypeVar("R")
Body = msgspec.Struct | Mapping[str, Any]

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
JSON = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"

_TWICE_SAFE = frozenset({"GET", "PUT", "DELETE"})
_TWICE_SAFE_PATCHES = frozenset({APPLY, MERGE, STRATEGIC})
_OF_THE_OBJECT = frozenset({"", "status"})
"""Where a write is answered with the whole object; a scale, say, has none of its labels."""
PAGE = 500


@dataclass(frozen=True, kw_only=True)
class Retry:
    """When to give up: the delays between tries, and the seconds all tries together may take."""

    backoff: Backoff = Backoff(initial=0.1, cap=5.0, jitter=0.5)
    within: float = 30.0


@dataclass(frozen=True, kw_only=True)
class Listing(Generic[T]):
    """The objects of a kind at one resource version, and those that did not decode."""

    items: list[T]
    resource_version: str
    undecodable: list[DecodeError]


class ListMeta(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The metadata of a list."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class _Page(msgspec.Struct, frozen=True, kw_only=True):
    metadata: ListMeta = ListMeta()
    items: list[msgspec.Raw] | None = None


_PAGES = msgspec.json.Decoder(_Page)


class Client:
    """Talks to one API server."""

    def __init__(
        self,
        transport: Transport,
        *,
        metrics: Metrics | None = None,
        rate_limit: TokenBucket | None = None,
        retry: Retry = Retry(),
        timeout: float = 60.0,
        host: str = "",
    ) -> None:
        self.transport = transport
        self.metrics = metrics or Metrics()
        self._rate_limit = rate_limit
        self._retry = retry
        self._timeout = timeout
        self._host = host or transport.host
        self._known_meters: dict[tuple[str, str], tuple[Counter, Histogram]] = {}
        self.under_way = 0
        """Requests that wait for their answers, watches aside."""

    # Reading

    async def get(self, resource: Resource[T], name: str, namespace: str = "", *, resource_version: str = "") -> T:
        """One object, as new as the server has it (``resource_version="0"`` accepts its cache)."""
        query = {"resourceVersion": resource_version} if resource_version else {}
        return resource.decode(await self._call("GET", resource.path(namespace, name), query=query))

    async def list(
        self,
        resource: Resource[T],
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        page: int = PAGE,
    ) -> Listing[T]:
        """All objects at one consistent version, read in pages; what does not decode is listed apart."""
        items: list[T] = []
        undecodable: list[DecodeError] = []
        version = ""
        query = selection(label_selector, field_selector) | {"limit": str(page)}
        while True:
            path = resource.path(namespace)
            answer = _page_of(await self._call("GET", path, query=query), path)
            version = answer.metadata.resource_version
            for raw in answer.items or ():
                try:
                    items.append(resource.decode(raw))
                except DecodeError as error:
                    undecodable.append(error)
            if not answer.metadata.continue_:
                return Listing(items=items, resource_version=version, undecodable=undecodable)
            query = query | {"continue": answer.metadata.continue_}

    async def watch(
        self,
        resource: Resource[T],
        namespace: str = "",
        *,
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
        initial_events: bool = False,
        timeout_seconds: int | None = None,
    ) -> AsyncIterator[WatchEvent[T]]:
        """Changes as they happen, bookmarks included; ends when the server ends it.

        With ``initial_events`` the server first sends everything there is, then a bookmark that says so.
        """
        query = watch_query(
            resource_version=resource_version,
            label_selector=label_selector,
            field_selector=field_selector,
            initial_events=initial_events,
            timeout_seconds=timeout_seconds,
        )
        async for batch in self.watch_batches(resource, namespace, query):
            for event in batch:
                yield event

    async def watch_batches(
        self, resource: Resource[T], namespace: str, query: Mapping[str, str], *, idle_limit: float | None = None
    ) -> AsyncIterator[Sequence[WatchEvent[T]]]:
        """The events of one watch as they arrive together; a watch that is silent past ``idle_limit`` is broken."""
        request = Request(method="GET", path=resource.path(namespace), query=query, timeout=self._timeout)
        await self._pace("WATCH")
        async with self.transport.stream(request) as stream:
            self.metrics.requests.labels(str(stream.status), "GET", self._host).inc()
            if stream.status >= 300:
                try:
                    async with asyncio.timeout(self._timeout):
                        body = await stream.read()
                except TimeoutError:
                    raise ConnectionFault(f"the refusal of a watch did not arrive ({request})") from None
                after = _retry_after(stream.headers)
                raise error_from_response(stream.status, body, request=str(request), retry_after=after)
            async for batch in event_batches(resource, stream.chunks(), request=str(request), idle_limit=idle_limit):
                yield batch

    async def read_path(
        self, path: str, query: Mapping[str, str] | None = None, *, accept: str = "application/json"
    ) -> bytes:
        """Any path of the server as it answers: discovery, OpenAPI, metrics, health."""
        return await self._call("GET", path, query=query or {}, accept=accept)

    # Writing

    async def create(
        self,
        resource: Resource[T],
        body: Body,
        namespace: str = "",
        *,
        field_manager: str = "",
        field_validation: FieldValidation | None = None,
        dry_run: bool = False,
    ) -> T:
        """Creates an object; ``metadata.generateName`` lets the server finish its name."""
        query = options(field_manager=field_manager, field_validation=field_validation, dry_run=dry_run)
        answer = await self._call("POST", resource.path(namespace), query=query, body=encode(resource, body))
        return self._written(resource, answer, query)

    async def update(
        self, resource: Resource[T], body: Body, namespace: str = "", *, name: str, subresource: str = "",
        field_manager: str = "", dry_run: bool = False,
    ) -> T:  # fmt: skip
        """Replaces a whole object. Only for kinds of which we know every field: others are patched or applied."""
        query = options(field_manager=field_manager, dry_run=dry_run)
        path = resource.path(namespace, name, subresource)
        answer = await self._call("PUT", path, query=query, body=encode(resource, body))
        return self._written(resource, answer, query, subresource)

    async def apply(
        self, resource: Resource[T], body: Body, namespace: str = "", *, name: str, field_manager: str,
        force: bool = False, subresource: str = "", dry_run: bool = False,
    ) -> T:  # fmt: skip
        """Server-side apply: makes these fields so, and gives up those of ours that are not named any more."""
        query = options(field_manager=field_manager, dry_run=dry_run, force=force)
        return await self._patch(resource, name, namespace, subresource, APPLY, query, encode(resource, body))

    async def merge_patch(
        self, resource: Resource[T], name: str, patch: Body, namespace: str = "", *, subresource: str = "",
        field_manager: str = "", dry_run: bool = False,
    ) -> T:  # fmt: skip
        """JSON merge patch; one that carries ``metadata.resourceVersion`` is refused where the object has changed."""
        query = options(field_manager=field_manager, dry_run=dry_run)
        return await self._patch(resource, name, namespace, subresource, MERGE, query, msgspec.json.encode(patch))

    async def strategic_patch(
        self, resource: Resource[T], name: str, patch: Body, namespace: str = "", *, subresource: str = "",
        field_manager: str = "", dry_run: bool = False,
    ) -> T:  # fmt: skip
        """Strategic merge patch, for built-in kinds."""
        query = options(field_manager=field_manager, dry_run=dry_run)
        return await self._patch(resource, name, namespace, subresource, STRATEGIC, query, msgspec.json.encode(patch))

    async def json_patch(
        self, resource: Resource[T], name: str, operations: Iterable[Mapping[str, Any]], namespace: str = "", *,
        subresource: str = "", field_manager: str = "", dry_run: bool = False,
    ) -> T:  # fmt: skip
        """JSON patch; begin it with a ``test`` on what was read, so that it never acts on another state."""
        query = options(field_manager=field_manager, dry_run=dry_run)
        body = msgspec.json.encode(list(operations))
        return await self._patch(resource, name, namespace, subresource, JSON, query, body)

    async def delete(
        self,
        resource: Resource[Any],
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: Propagation | None = None,
        grace_seconds: int | None = None,
        dry_run: bool = False,
    ) -> None:
        """Deletes an object; with ``uid`` only that very one. NotFound is raised where it is gone already."""
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        body = msgspec.json.encode(delete_options(propagation, grace_seconds, preconditions))
        # Sent again without a precondition it could meet, and delete, an object that was made meanwhile.
        answer = await self._call(
            "DELETE",
            resource.path(namespace, name),
            query=options(dry_run=dry_run),
            body=body,
            twice_safe=bool(uid or resource_version),
        )
        if not dry_run:
            freshness.note_delete(resource, namespace, name, uid or _uid_of(answer))

    async def delete_collection(
        self,
        resource: Resource[Any],
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        propagation: Propagation | None = None,
        grace_seconds: int | None = None,
    ) -> None:
        """Deletes every object that the selectors choose."""
        body = msgspec.json.encode(delete_options(propagation, grace_seconds, {}))
        query = selection(label_selector, field_selector)
        await self._call("DELETE", resource.path(namespace), query=query, body=body)

    async def replicas(self, resource: Resource[Any], name: str, namespace: str = "") -> int:
        """The size that an object's scale subresource asks for."""
        answer = msgspec.json.decode(await self._call("GET", resource.path(namespace, name, "scale")))
        return int(answer.get("spec", {}).get("replicas", 0))

    async def scale(self, resource: Resource[Any], name: str, replicas: int, namespace: str = "") -> None:
        """Sets an object's size through its scale subresource."""
        patch = msgspec.json.encode({"spec": {"replicas": replicas}})
        path = resource.path(namespace, name, "scale")
        answer = await self._call("PATCH", path, body=patch, content_type=MERGE)
        freshness.note_write(resource, msgspec.json.decode(answer, type=PartialObject).metadata)

    async def bind(
        self, pods: Resource[Any], name: str, namespace: str, *, node: str, uid: str = "",
        annotations: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        """Binds a pod to a node, once and for all; the pod gets the annotations in the same moment."""
        metadata: dict[str, Any] = {"name": name, "namespace": namespace}
        if uid:
            metadata["uid"] = uid
        if annotations:
            metadata["annotations"] = annotations
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": metadata,
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await self._call("POST", pods.path(namespace, name, "binding"), body=msgspec.json.encode(body))

    async def evict(
        self, pods: Resource[Any], name: str, namespace: str, *, uid: str = "", grace_seconds: int | None = None
    ) -> None:
        """Asks for a pod's eviction; TooManyRequests is raised while a disruption budget forbids it."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": delete_options(None, grace_seconds, {"uid": uid}),
        }
        # A 429 is the budget's answer here, not a plea to slow down: the caller decides when to ask again.
        path = pods.path(namespace, name, "eviction")
        await self._call("POST", path, body=msgspec.json.encode(body), retry_refusals=False)
        freshness.note_delete(pods, namespace, name, uid)

    # Into pods

    def logs(self, pod: str, namespace: str, **chosen: Any) -> AsyncIterator[bytes]:
        """A container's log, line by line; see ``streams.follow_logs`` for what can be chosen."""
        return streams.follow_logs(self.transport, pod=pod, namespace=namespace, **chosen)

    def exec(
        self, pod: str, namespace: str, command: Sequence[str], **chosen: Any
    ) -> AbstractAsyncContextManager[streams.ExecSession]:
        """Runs a command in a container."""
        return streams.exec_in_pod(self.transport, pod=pod, namespace=namespace, command=command, **chosen)

    def port_forward(
        self, pod: str, namespace: str, port: int, *, local_port: int = 0
    ) -> AbstractAsyncContextManager[int]:
        """Listens on a local port (0: any free one, which is given) and carries its connections to the pod's."""
        return streams.forward_port(self.transport, pod=pod, namespace=namespace, port=port, local_port=local_port)

    async def close(self) -> None:
        """Closes the connections."""
        await self.transport.close()

    # How a request is sent

    def _written(self, resource: Resource[T], body: bytes, query: Mapping[str, str], subresource: str = "") -> T:
        written = resource.decode(body)
        if "dryRun" not in query:
            freshness.note_write(resource, written.metadata, body if subresource in _OF_THE_OBJECT else None)
        return written

    async def _patch(
        self,
        resource: Resource[T],
        name: str,
        namespace: str,
        subresource: str,
        content_type: str,
        query: Mapping[str, str],
        body: bytes,
    ) -> T:
        path = resource.path(namespace, name, subresource)
        answer = await self._call("PATCH", path, query=query, body=body, content_type=content_type)
        return self._written(resource, answer, query, subresource)

    async def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        retry_refusals: bool = True,
        twice_safe: bool | None = None,
    ) -> bytes:
        request = Request(
            method=method,
            path=path,
            query=query or {},
            body=body,
            content_type=content_type,
            accept=accept,
            timeout=self._timeout,
        )
        if twice_safe is None:
            twice_safe = method in _TWICE_SAFE or (method == "PATCH" and content_type in _TWICE_SAFE_PATCHES)
        started = time.monotonic()
        failures = 0
        while True:
            failure: ApiError | ConnectionFault
            try:
                response = await self._send(request)
            except ConnectionFault as fault:
                failure, code = fault, "<error>"
                may_retry = not fault.lasting and (twice_safe or not fault.sent)
            else:
                if response.status < 300:
                    return response.body
                failure = error_from_response(
                    response.status, response.body, request=str(request), retry_after=_retry_after(response.headers)
                )
                code = str(response.status)
                refused = response.status == 429 and retry_refusals
                # An apply of a field that the schema does not know is answered with 500, each time.
                passing = (502, 503, 504) if content_type == APPLY else (500, 502, 503, 504)
                may_retry = refused or (twice_safe and response.status in passing)
            failures += 1
            delay = self._retry.backoff.delay(failures)
            if isinstance(failure, ApiError) and failure.retry_after is not None:
                delay = max(delay, failure.retry_after)
            if not may_retry or time.monotonic() - started + delay > self._retry.within:
                raise failure
            self.metrics.request_retries.labels(code, method, self._host).inc()
            if failures == 1:
                log.warning("trying again", error=str(failure), give_up_after=self._retry.within)
            await asyncio.sleep(delay)

    async def _send(self, request: Request) -> Response:
        await self._pace(request.method)
        started = time.perf_counter()
        code = "<error>"
        self.under_way += 1
        try:
            response = await self.transport.send(request)
            code = str(response.status)
            return response
        finally:
            self.under_way -= 1
            counter, histogram = self._meters(code, request.method)
            counter.inc()
            histogram.observe(time.perf_counter() - started)

    def _meters(self, code: str, method: str) -> tuple[Counter, Histogram]:
        """The counter and the histogram of such requests: finding them by their labels costs more than counting."""
        known = self._known_meters.get((code, method))
        if known is None:
            known = (
                self.metrics.requests.labels(code, method, self._host),
                self.metrics.request_time.labels(method, self._host),
            )
            self._known_meters[code, method] = known
        return known

    async def _pace(self, verb: str) -> None:
        if self._rate_limit is not None and (delay := self._rate_limit.reserve()) > 0:
            self.metrics.rate_limited.labels(verb, self._host).observe(delay)
            await asyncio.sleep(delay)


async def retry_on_conflict(attempt: Callable[[], Awaitable[R]], *, tries: int = 5) -> R:
    """Reads, changes and writes again when another writer was quicker; ``attempt`` must read anew each time."""
    backoff = Backoff(initial=0.01, cap=1.0, jitter=1.0)
    for failures in range(1, tries):
        try:
            return await attempt()
        except Conflict:
            await asyncio.sleep(backoff.delay(failures))
    return await attempt()


def encode(resource: Resource[Any], body: Body) -> bytes:
    """An object as JSON that says what it is."""
    content = msgspec.to_builtins(body) if isinstance(body, msgspec.Struct) else body
    for field, ours in (("apiVersion", resource.api_version), ("kind", resource.kind)):
        if content.get(field) not in (None, "", ours):
            raise ValueError(f"the object says {field} {content[field]}, but is written as {ours}: make them agree")
    return msgspec.json.encode({**content, "apiVersion": resource.api_version, "kind": resource.kind})


def _page_of(body: bytes, path: str) -> _Page:
    try:
        return _PAGES.decode(body)
    except RecursionError:
        # One of the objects is nested deeper than a decoder goes: they are taken apart without being understood.
        fields = dict(members(body))
        items = [msgspec.Raw(item) for _, item in members(fields.get("items", b"[]"))]
        return _Page(metadata=msgspec.json.decode(fields.get("metadata", b"{}"), type=ListMeta), items=items)
    except msgspec.DecodeError as error:
        raise ConnectionFault(f"the answer is not a list: {error} (GET {path})") from error


class _Identity(msgspec.Struct):
    uid: str = ""


class _Deleted(msgspec.Struct):
    metadata: _Identity = msgspec.field(default_factory=_Identity)
    details: _Identity = msgspec.field(default_factory=_Identity)


def _uid_of(answer: bytes) -> str:
    """The uid of what was deleted: a Status names it in its details, an object in its metadata."""
    try:
        deleted = msgspec.json.decode(answer, type=_Deleted)
    except (msgspec.DecodeError, RecursionError):
        return ""
    return deleted.metadata.uid or deleted.details.uid


def _retry_after(headers: Mapping[str, str]) -> float | None:
    value = headers.get("Retry-After", "")
    return float(value) if value.isdigit() else None
