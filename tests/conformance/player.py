"""Plays a story to a server, over its own connection, and keeps every answer as it came."""

from __future__ import annotations

import http.client
import json
import re
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, urlencode, urlsplit

import yaml

from tests.conformance.story import JSON, Events, Request, Story, Watch

AGENT = "conformance/1.0"
_KEPT_HEADERS = ("Content-Type", "Warning", "Retry-After", "Www-Authenticate", "Location", "Allow")
_REFERENCE = re.compile(r"\{([a-z]\w*)((?:\.[\w-]+|\[\d+\])+)\}")
_WARNING = re.compile(r'\d{3} \S+ "(?:[^"\\]|\\.)*"')
_PATIENCE = 10.0


class Server(Protocol):
    """What is needed of a server to talk to it as its admin; RealKubernetes has it, and so has the embedded one."""

    @property
    def server(self) -> str: ...
    @property
    def ca_file(self) -> Path: ...
    @property
    def admin_token(self) -> str: ...


@dataclass(frozen=True)
class Answer:
    """What a server said to one step."""

    request: str
    status: int
    headers: dict[str, Any]
    body: Any

    def as_json(self) -> dict[str, Any]:
        return {"request": self.request, "status": self.status, "headers": self.headers, "body": self.body}


def play(story: Story, server: Server) -> list[Answer]:
    """All answers; the namespace, and the account that pods need, are made before and not recorded."""
    return _Player(story, server).played()


class _Player:
    def __init__(self, story: Story, server: Server) -> None:
        self._story = story
        self._server = server
        self._context = ssl.create_default_context(cafile=str(server.ca_file))
        self._connection = self._connect()
        self._called: dict[str, Any] = {}
        self._streams: dict[str, tuple[http.client.HTTPSConnection, http.client.HTTPResponse]] = {}

    def played(self) -> list[Answer]:
        try:
            self._prepare()
            return [self._step(step) for step in self._story.steps]
        finally:
            self._connection.close()
            for connection, response in self._streams.values():
                response.close()
                connection.close()

    def _prepare(self) -> None:
        name = self._story.namespace
        made = [("/api/v1/namespaces", {"metadata": {"name": name}})]
        if self._story.account:
            made.append((f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}}))
        for path, body in made:
            answer = self._ask(Request(method="POST", path=path, body=body, content_type=JSON))
            assert answer.status in (201, 409), f"{path} could not be prepared: {answer.status} {answer.body}"

    def _step(self, step: Request | Watch | Events) -> Answer:
        match step:
            case Watch():
                return self._opened(step)
            case Events():
                return self._read(step)
            case Request():
                return self._waited_for(step)

    def _waited_for(self, step: Request) -> Answer:
        """The first answer that is the one waited for, or the last one when patience ends."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            answer = self._ask(step)
            if step.until is None or step.until(answer.status, answer.body) or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        if step.called:
            self._called[step.called] = answer.body
        if step.shown is not None and answer.status < 300:
            return Answer(answer.request, answer.status, answer.headers, _shown(step.shown, answer.body))
        return answer

    def _ask(self, step: Request) -> Answer:
        target = self._target(step.path, step.query)
        headers = self._headers(step)
        body = self._body(step.body)
        try:
            response = _sent(self._connection, step.method, target, headers, body)
            content = response.read()
        except (OSError, http.client.HTTPException) as error:
            # The server may close on a request it does not want to read; the next one gets a new connection.
            self._connection.close()
            self._connection = self._connect()
            return Answer(f"{step.method} {_shown_target(step)}", 0, {}, f"connection ended: {type(error).__name__}")
        if response.will_close:
            self._connection.close()
        is_watch = step.query.get("watch") == "true" and response.status == 200
        kept = _kept(response)
        return Answer(f"{step.method} {_shown_target(step)}", response.status, kept, _parsed(content, kept, is_watch))

    def _opened(self, step: Watch) -> Answer:
        connection = self._connect()
        request = Request(method="GET", path=step.path, query=step.query, accept=step.accept)
        response = _sent(connection, "GET", self._target(step.path, step.query), self._headers(request), None)
        self._streams[step.called] = (connection, response)
        kept = _kept(response)
        body = None if response.status == 200 else _parsed(response.read(), kept, is_watch=False)
        return Answer(f"GET {_shown_target(request)}", response.status, kept, body)

    def _read(self, step: Events) -> Answer:
        events: list[Any] = []
        _, response = self._streams[step.of]
        try:
            while len(events) < step.count and (line := response.readline()):
                events.append(json.loads(line))
        except (OSError, ValueError, http.client.HTTPException) as error:
            events.append(f"no more events: {type(error).__name__}")
        return Answer(f"events of {step.of}", 200, {}, events)

    def _connect(self) -> http.client.HTTPSConnection:
        address = urlsplit(self._server.server).netloc
        return http.client.HTTPSConnection(address, timeout=_PATIENCE, context=self._context)

    def _target(self, path: str, query: Mapping[str, Any]) -> str:
        chosen = urlencode({name: self._filled(value) for name, value in query.items()}, doseq=True)
        return str(self._filled(path)) + (f"?{chosen}" if chosen else "")

    def _headers(self, step: Request) -> list[tuple[str, str]]:
        headers = [("User-Agent", AGENT)]
        headers += [("Accept", step.accept)] if step.accept else []
        headers += [("Content-Type", step.content_type)] if step.content_type else []
        headers += [("Authorization", f"Bearer {self._server.admin_token}")] if step.user != "-" else []
        headers += [("Impersonate-User", self._filled(step.user))] if step.user not in ("", "-") else []
        headers += [("Impersonate-Group", self._filled(group)) for group in step.groups]
        return headers + [(name, self._filled(value)) for name, value in step.headers.items()]

    def _body(self, body: Any) -> bytes | None:
        if body is None or isinstance(body, bytes):
            return body
        filled = self._filled(body)
        return filled.encode() if isinstance(filled, str) else json.dumps(filled).encode()

    def _filled(self, value: Any) -> Any:
        """The value with every reference replaced by what it refers to; one that is all of a string keeps its type."""
        match value:
            case str():
                if (whole := _REFERENCE.fullmatch(value)) and whole[1] in self._called:
                    return _found(self._called[whole[1]], whole[2])
                return _REFERENCE.sub(self._referred, value).replace("{ns}", self._story.namespace)
            case dict():
                return {self._filled(key): self._filled(item) for key, item in value.items()}
            case list():
                return [self._filled(item) for item in value]
        return value

    def _referred(self, match: re.Match[str]) -> str:
        return str(_found(self._called[match[1]], match[2])) if match[1] in self._called else match[0]


def _sent(
    connection: http.client.HTTPSConnection,
    method: str,
    target: str,
    headers: list[tuple[str, str]],
    body: bytes | None,
) -> http.client.HTTPResponse:
    """The response to a request with exactly these headers, of which some may come twice."""
    connection.putrequest(method, target, skip_accept_encoding=True)
    for name, value in headers:
        connection.putheader(name, value)
    if body is not None or method in ("POST", "PUT", "PATCH"):
        connection.putheader("Content-Length", str(len(body or b"")))
    connection.endheaders(body)
    return connection.getresponse()


def _shown(shown: Callable[[Any], Any], body: Any) -> Any:
    """The chosen part of a body, or that it has none such: what a server got wrong is a difference, no crash."""
    try:
        return shown(body)
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        return f"cannot be shown: {error!r}"


def _shown_target(step: Request) -> str:
    """The request as the story has it: what it refers to differs from run to run."""
    asked = "&".join(f"{name}={quote(str(value), safe='{}[].,=!() ')}" for name, value in step.query.items())
    who = f" as {step.user or 'admin'}{''.join(f' of {group}' for group in step.groups)}" if step.user else ""
    return step.path + (f"?{asked}" if asked else "") + who


def _kept(response: http.client.HTTPResponse) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name in _KEPT_HEADERS:
        if values := response.headers.get_all(name):
            kept[name] = _WARNING.findall(", ".join(values)) if name == "Warning" else values[0]
    if response.headers.get("Etag"):
        kept["Etag"] = "present"
    return kept


def _parsed(content: bytes, headers: Mapping[str, Any], is_watch: bool) -> Any:
    media_type = str(headers.get("Content-Type", "")).split(";")[0]
    text = content.decode(errors="replace")
    try:
        if is_watch:
            return [json.loads(line) for line in text.splitlines() if line]
        if media_type.endswith("json") or text.startswith("{"):
            return json.loads(text)
        if media_type.endswith("yaml"):
            return yaml.load(text, yaml.BaseLoader)
    except ValueError:
        pass
    return text


def _found(value: Any, path: str) -> Any:
    for name, position in re.findall(r"\.([\w-]+)|\[(\d+)\]", path):
        try:
            value = value[name] if name else value[int(position)]
        except (KeyError, IndexError, TypeError):
            return f"<no {path.lstrip('.')}>"
    return value
