"""Plays one sequence of steps to two servers and says where their answers part."""

from __future__ import annotations

import http.client
import json
import re
import ssl
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any
from urllib.parse import urlencode, urlsplit

from tests.conformance.fuzz.exclusions import asks_for_live, why_excluded
from tests.conformance.fuzz.steps import Kind, Step, needs_live, request_of
from tests.conformance.normal import normalised
from tests.conformance.player import AGENT, Answer, Server
from tests.conformance.recording import difference
from tests.conformance.story import JSON, Request, Story

_PATIENCE = 10.0
_WATCH_PATIENCE = 10.0
_LAST = "the-end"
# Problems of a typed value are found in the order of a Go map, up to the first field that nobody declared.
_IN_ANY_ORDER = re.compile(r"failed to create typed .*(errors:|field not declared in schema)", re.DOTALL)
# A patch that leads to no object is told with all of the object, written as Go happens to write it.
_DOCUMENT = re.compile(r"((?:patch: )?Invalid value: )(?:\"?\{.*\}\"?|\"map\[.*\]\")(: )", re.DOTALL)
# What can be no value of its type is found by the schema of apply in one server and by its types in the other.
_UNREADABLE = re.compile(
    r"failed to (create typed|convert new object).*(expected any scalar|json: cannot unmarshal|cannot convert)"
)
# A strategic patch is read into Go's types by another decoder, with problems in words of its own that say less.
_NO_STRUCT = re.compile(r"<document>: (?!strict)[^\"\\]*(?:\\.[^\"\\]*)*")
# Which address a dry run shows is chance, even whether it is the last one's.
_ADDRESS = re.compile(r"<cluster ip \d+>")
_BRACKETS = str.maketrans("", "", "[]")
_RANDOM = re.compile(r"(?:(?<=\bone-)|(?<=\btwo-)|(?<=\d-))[bcdfghjklmnpqrstvwxz2456789]{5}\b")


class Duel:
    """Two servers and a connection to each; sequences get namespaces of their own, so that none meets another."""

    def __init__(self, real: Server, embedded: Server, *, names: str = "fuzz") -> None:
        self._sides = (Side(real), Side(embedded))
        self._numbers = count(1)
        self._names = names
        self._threads = ThreadPoolExecutor(2)
        self.steps = 0
        self.accepted = 0

    def close(self) -> None:
        self._threads.shutdown()
        for side in self._sides:
            side.close()

    def both(self, request: Request) -> list[Answer]:
        """The answers of both to one request, which prepares something."""
        return [side.ask(request) for side in self._sides]

    def difference(self, kind: Kind, steps: Sequence[Step]) -> str:
        """Where the answers to these steps differ, "" where they do not."""
        namespace = f"{self._names}-{next(self._numbers)}"
        self.steps += len(steps)
        runs = [self._threads.submit(_played, side, kind, steps, namespace) for side in self._sides]
        story = Story(namespace, [Request(method="", path=namespace, body=repr(steps))])
        self.accepted += sum(answer.request in map(str, steps) and answer.status < 400 for answer in runs[0].result())
        real, embedded = (_comparable(kind, normalised(story, run.result())) for run in runs)
        return difference(real, embedded, left="real server", right="embedded")


class Side:
    """One server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._context = ssl.create_default_context(cafile=str(server.ca_file))
        self._connection = self._connect(_PATIENCE)

    def close(self) -> None:
        self._connection.close()

    def ask(self, request: Request, shown: str = "") -> Answer:
        target = request.path + (f"?{urlencode(request.query, doseq=True)}" if request.query else "")
        body = None if request.body is None else json.dumps(request.body, sort_keys=True).encode()
        headers = self._headers(request.content_type)
        try:
            self._connection.request(request.method, target, body, headers)
            response = self._connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            self._connection = self._connect(_PATIENCE)
            return Answer(shown, 0, {}, f"connection ended: {type(error).__name__}")
        warnings = ", ".join(response.headers.get_all("Warning") or [])
        kept = {"Warning": sorted(re.split(r", (?=299 - )", warnings))}
        try:
            return Answer(shown, response.status, kept, json.loads(content))
        except ValueError:
            return Answer(shown, response.status, kept, content.decode(errors="replace"))

    def watch(self, path: str, version: str) -> Watching:
        connection = self._connect(_WATCH_PATIENCE)
        query = urlencode({"watch": "true", "resourceVersion": version})
        connection.request("GET", f"{path}?{query}", None, self._headers(""))
        return Watching(connection, connection.getresponse())

    def _headers(self, content_type: str) -> Mapping[str, str]:
        headers = {"User-Agent": AGENT, "Accept": JSON, "Authorization": f"Bearer {self._server.admin_token}"}
        return {**headers, "Content-Type": content_type} if content_type else headers

    def _connect(self, timeout: float) -> http.client.HTTPSConnection:
        address = urlsplit(self._server.server).netloc
        return http.client.HTTPSConnection(address, timeout=timeout, context=self._context)


class Watching:
    """A watch that is open."""

    def __init__(self, connection: http.client.HTTPSConnection, response: http.client.HTTPResponse) -> None:
        self._connection = connection
        self._response = response

    def until(self, name: str) -> list[Any]:
        """The events before the one of the object of this name."""
        events: list[Any] = []
        try:
            while line := self._response.readline():
                event = json.loads(line)
                if event["object"].get("metadata", {}).get("name") == name:
                    break
                events.append(event)
        except (OSError, ValueError, http.client.HTTPException) as error:
            events.append(f"no more events: {type(error).__name__}")
        finally:
            self._response.close()
            self._connection.close()
        return events


def _played(side: Side, kind: Kind, steps: Sequence[Step], namespace: str) -> list[Answer]:
    collection = kind.collection(0, namespace)
    _prepare(side, namespace)
    listed = side.ask(Request(method="GET", path=collection, query={"limit": "1"}))
    watching = side.watch(collection, listed.body["metadata"]["resourceVersion"])
    answers = []
    for step in steps:
        live = None
        read = Request(
            method="GET", path=f"{kind.collection(step.version, namespace)}/{kind.name(step.name, namespace)}"
        )
        if needs_live(step) or asks_for_live(step, kind):
            answers.append(side.ask(read, shown=f"GET {step.name}"))
            live = answers[-1].body if answers[-1].status == 200 else None
        request = request_of(step, kind, namespace, live)
        if why := why_excluded(step, kind, request, live):
            answers.append(side.ask(read, shown=f"GET {step.name}: {why}"))
        else:
            answers.append(side.ask(request, shown=f"{step}"))
    last = kind.name(_LAST, namespace)
    side.ask(Request(method="POST", path=collection, body=kind.least(last, namespace), content_type=JSON))
    events = [one for one in watching.until(last) if not kind.is_cluster_wide or namespace in json.dumps(one)]
    answers.append(Answer("events", 200, {}, events))
    if not kind.is_cluster_wide:
        listed = side.ask(Request(method="GET", path=collection), shown="list")
        if any(step.how == "generate" for step in steps):
            # Which of the names that are made comes first is left to chance.
            listed.body["items"].sort(key=lambda item: int(item["metadata"]["resourceVersion"]))
        answers.append(listed)
    _clean(side, kind, namespace)
    return answers


def _prepare(side: Side, namespace: str) -> None:
    for path, name in (("namespaces", namespace), (f"namespaces/{namespace}/serviceaccounts", "default")):
        made = side.ask(
            Request(method="POST", path=f"/api/v1/{path}", body={"metadata": {"name": name}}, content_type=JSON)
        )
        assert made.status in (201, 409), f"{path} could not be made: {made.body}"


def _clean(side: Side, kind: Kind, namespace: str) -> None:
    """Gives back what there is only so much of: node ports, and names for all."""
    if kind.is_cluster_wide or kind.kind == "Service":
        for name in ("one", "two", _LAST):
            path = f"{kind.collection(0, namespace)}/{kind.name(name, namespace)}"
            unbound = {"metadata": {"finalizers": None}}
            side.ask(Request(method="PATCH", path=path, body=unbound, content_type="application/merge-patch+json"))
            side.ask(Request(method="DELETE", path=path))


def _comparable(kind: Kind, answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The answers with what is left to chance, or to the second in which a request came, put in an order."""
    ordered = [_ordered(answer, is_custom=kind.is_custom) for answer in answers]
    for answer in ordered:
        if answer["request"].startswith("strategic") and "patch" in json.dumps(answer["body"]):
            answer["body"] = json.loads(_NO_STRUCT.sub("<document>", json.dumps(answer["body"])))
    return ordered


def _ordered(value: Any, key: str = "", *, is_custom: bool) -> Any:
    match value:
        case dict():
            if value.get("kind") == "Status" and isinstance(value.get("message"), str):
                value = {**value, "message": _message(value, is_custom=is_custom)}
            return {name: _ordered(item, name, is_custom=is_custom) for name, item in value.items()}
        case list():
            rows = [_ordered(item, is_custom=is_custom) for item in value]
            return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True)) if key in _SORTED else rows
        case str():
            value = value.replace("Invalid value: <object>", "Invalid value: <document>")
            return _ADDRESS.sub("<cluster ip>", _RANDOM.sub("<random>", _DOCUMENT.sub(r"\1<document>\2", value)))
    return value


def _message(status: dict[str, Any], *, is_custom: bool) -> str:
    message: str = status["message"]
    if _IN_ANY_ORDER.search(message):
        return "<several problems of typed values>"
    if _UNREADABLE.search(message):
        return "<no value of its type>"
    causes = (status.get("details") or {}).get("causes") or []
    if len(causes) > 1 and (is_custom or "{" in message or "<object>" in message):
        # The fields of a custom object are checked in the order of a Go map; the causes say the same, sorted. So they
        # do where whole objects are shown, whose ends among other problems cannot be told.
        return message.partition("is invalid: [")[0]
    if len(causes) > 1:
        # The keys of a map, such as labels or amounts, are checked in any order too.
        about, says, problems = message.translate(_BRACKETS).partition(" is invalid: ")
        return about + says + ", ".join(sorted(problems.split(", ")))
    return message


# Owners are listed by the second of their last write, which one server may reach before the other.
_SORTED = frozenset({"managedFields", "causes"})
