"""Which pods of a gang are ready, as the API server tells: a list, then a watch that goes on where it broke.

Plain HTTP of the standard library, since every waiting pod pays for what is imported here: the runtime's own client
takes four times as long to load as all of this.
"""

from __future__ import annotations

import http.client
import ssl
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlencode

import msgspec

from shoal.api.grove import names
from shoal.gangs.startup.surroundings import Surroundings, Unusable

_PAGE = 500
_WATCH_SECONDS = 300
_ANSWER_LIMIT = 30.0
_SILENCE_LIMIT = 150.0
"""Bookmarks come about every minute: silence much longer than that means a dead connection."""


class Unreachable(Exception):
    """The server did not answer, or not with what was asked for: it may do so later."""


class Refused(Exception):
    """The server will not answer this."""


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}


class _Status(msgspec.Struct, frozen=True):
    conditions: list[_Condition] = []


class _Pod(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()
    status: _Status = _Status()


class _PageMetadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    next_page: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct, frozen=True):
    metadata: _PageMetadata = _PageMetadata()
    items: list[_Pod] | None = None


class _Event(msgspec.Struct, frozen=True):
    type: str = ""
    object: msgspec.Raw = msgspec.Raw(b"{}")


class _Failure(msgspec.Struct, frozen=True):
    message: str = ""
    code: int = 0


class GangPods:
    """The ready pods of some cliques of a gang, kept up to date for as long as somebody reads ``counts``."""

    def __init__(self, surroundings: Surroundings, cliques: list[str]) -> None:
        self._surroundings = surroundings
        self._path = f"/api/v1/namespaces/{surroundings.namespace}/pods"
        self._selector = f"{names.GANG_LABEL}={surroundings.gang},{names.CLIQUE_LABEL} in ({','.join(cliques)})"
        self._version = ""
        self._ready: dict[str, str] = {}
        """The clique of each ready pod."""

    def counts(self) -> Iterator[Counter[str]]:
        """How many pods of each clique are ready, now and whenever it changes, until the server ends the watch.

        Called again it goes on where it was. Raises Unreachable and Refused.
        """
        if not self._version:
            self._read_all()
            yield Counter(self._ready.values())
        yield from self._follow()

    def _read_all(self) -> None:
        ready: dict[str, str] = {}
        query = {"labelSelector": self._selector, "limit": str(_PAGE)}
        while True:
            page = self._page(query)
            ready.update((pod.metadata.name, _clique(pod)) for pod in page.items or () if _is_ready(pod))
            if not page.metadata.next_page:
                self._ready, self._version = ready, page.metadata.resource_version
                return
            query = query | {"continue": page.metadata.next_page}

    def _page(self, query: dict[str, str]) -> _Page:
        with self._answer(query) as answer:
            body = answer.read()
        try:
            return msgspec.json.decode(body, type=_Page)
        except msgspec.MsgspecError as error:
            raise Unreachable(f"its list of pods cannot be read: {error}") from error

    def _follow(self) -> Iterator[Counter[str]]:
        query = {
            "labelSelector": self._selector,
            "watch": "true",
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_WATCH_SECONDS),
        }
        with self._answer(query, silence_limit=_SILENCE_LIMIT) as answer:
            while line := answer.readline():
                if self._takes(line):
                    yield Counter(self._ready.values())

    def _takes(self, line: bytes) -> bool:
        """Takes over one event, and says whether another pod is ready now or one no longer is."""
        try:
            event = msgspec.json.decode(line, type=_Event)
            if event.type == "ERROR":
                self._version = ""
                raise Unreachable(f"the watch ended: {msgspec.json.decode(event.object, type=_Failure).message}")
            pod = msgspec.json.decode(event.object, type=_Pod)
        except msgspec.MsgspecError as error:
            self._version = ""
            raise Unreachable(f"its watch of pods cannot be read: {error}") from error
        self._version = pod.metadata.resource_version or self._version
        if event.type == "BOOKMARK":
            return False
        name = pod.metadata.name
        before = self._ready.pop(name, None)
        if event.type != "DELETED" and _is_ready(pod):
            self._ready[name] = _clique(pod)
        return before != self._ready.get(name)

    @contextmanager
    def _answer(
        self, query: dict[str, str], *, silence_limit: float = _ANSWER_LIMIT
    ) -> Iterator[http.client.HTTPResponse]:
        """What the server answers, for the length of a block, on a connection of its own."""
        found = self._surroundings
        connection = http.client.HTTPSConnection(
            found.host, found.port, timeout=_ANSWER_LIMIT, context=_trust(found.authorities())
        )
        headers = {"Authorization": f"Bearer {found.token()}", "Accept": "application/json"}
        try:
            connection.connect()
            socket = connection.sock  # which the connection forgets where the server is going to close it
            connection.request("GET", f"{self._path}?{urlencode(query)}", headers=headers)
            answer = connection.getresponse()
            socket.settimeout(silence_limit)
            if answer.status != http.client.OK:
                raise self._refusal(answer.status, answer.read(1 << 20))
            yield answer
        except (OSError, http.client.HTTPException) as error:
            raise _broken(error) from error
        finally:
            connection.close()

    def _refusal(self, status: int, body: bytes) -> Exception:
        try:
            message = msgspec.json.decode(body, type=_Failure).message
        except msgspec.MsgspecError:
            message = ""
        said = message or f"it answers {status} {http.client.responses.get(status, '')}".rstrip()
        if status == http.client.GONE:
            self._version = ""
            return Unreachable(said)
        may_pass = status >= http.client.INTERNAL_SERVER_ERROR or status == http.client.TOO_MANY_REQUESTS
        return Unreachable(said) if may_pass else Refused(said)


def _trust(authorities: str | None) -> ssl.SSLContext:
    """Trusts as clusters' own programs do: see ``shoal.kube.tls``, which is too much to load here."""
    try:
        context = ssl.create_default_context(cadata=authorities)
    except (ssl.SSLError, ValueError) as error:
        raise Unusable(f"the account's ca.crt holds no certificate: {error}") from error
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def _broken(error: Exception) -> Unreachable:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error) or type(error).__name__
    return Unreachable(reason)


def _is_ready(pod: _Pod) -> bool:
    return any(condition.type == "Ready" and condition.status == "True" for condition in pod.status.conditions)


def _clique(pod: _Pod) -> str:
    return pod.metadata.labels.get(names.CLIQUE_LABEL, "")
