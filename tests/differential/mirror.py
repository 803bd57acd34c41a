"""What a cluster holds, kept by watching it: one connection a kind, for all stories together."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from tests.conformance.player import Server
from tests.differential.kinds import ALL, collection

Object = dict[str, Any]


class Api:
    """Requests as the admin over one connection that stays open; for one thread."""

    def __init__(self, server: Server, *, timeout: float = 30.0) -> None:
        self._context = ssl.create_default_context(cafile=str(server.ca_file))
        self._address = urlsplit(server.server).netloc
        self._headers = {"Authorization": f"Bearer {server.admin_token}", "Accept": "application/json"}
        self._timeout = timeout
        self._connection = self._connect()

    def ask(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> tuple[int, Any]:
        """The status and the JSON answered."""
        headers = self._headers | ({} if body is None else {"Content-Type": content_type})
        self._connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = self._connection.getresponse()
        return response.status, json.loads(response.read())

    def lines(self, path: str) -> Iterator[Any]:
        """The JSON of each line of an answer that does not end."""
        self._connection.request("GET", path, headers=self._headers)
        response = self._connection.getresponse()
        while line := response.readline():
            yield json.loads(line)

    def close(self) -> None:
        self._connection.close()

    def _connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._address, timeout=self._timeout, context=self._context)


class Mirror:
    """All objects of all kinds that stories look at."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._objects: dict[str, dict[tuple[str, str], Object]] = {kind: {} for kind in ALL}
        self._versions = dict.fromkeys(ALL, 0)
        self._told_until = self._event_seen_at = 0.0
        self._ever: dict[str, dict[str, Object]] = {}
        self._changed_at: dict[str, float] = {}
        self._changed = threading.Condition()
        self._ended = False
        self._listed = threading.Semaphore(0)
        self._threads = [threading.Thread(target=self._follow, args=(kind,), daemon=True) for kind in ALL]

    def __enter__(self) -> Mirror:
        for thread in self._threads:
            thread.start()
        for _ in self._threads:
            assert self._listed.acquire(timeout=30), "a kind could not be listed"
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True

    def find(self, kind: str, namespace: str, name: str) -> Object | None:
        with self._changed:
            return self._objects[kind].get((namespace, name))

    def all_of(self, kind: str, namespace: str) -> list[Object]:
        """The objects of a namespace by name; of a kind without namespaces, those whose names begin with its name."""
        with self._changed:
            found = sorted(self._objects[kind].items())
        return [one for (place, name), one in found if _belongs(place, name, namespace)]

    def ever(self, namespace: str) -> list[Object]:
        """All objects that a namespace has had, as they last were, but for events."""
        with self._changed:
            return list(self._ever.get(namespace, {}).values())

    def wait(self, holds: Callable[[], object], what: str, *, within: float) -> None:
        """Returns once something holds; it is looked at again after every change."""
        deadline = time.monotonic() + within
        while not holds():
            with self._changed:
                left = deadline - time.monotonic()
                assert left > 0, f"waited {within:.0f} s in vain until {what}"
                self._changed.wait(min(left, 0.25))

    def wait_for_version(self, kind: str, version: str) -> None:
        """Returns once a write that was answered with this version is seen."""
        self.wait(lambda: self._versions[kind] >= int(version), f"{kind} {version} is seen", within=20)

    def wait_for_rest(self, namespace: str, *, quiet: float, within: float) -> None:
        """Returns once nothing has changed in a namespace for so long, and what was to tell of it is told."""
        deadline = time.monotonic() + within
        while (left := self._changed_at.get(namespace, 0.0) + quiet - time.monotonic()) > 0 or self._is_behind(quiet):
            assert time.monotonic() < deadline, f"{namespace} did not come to rest within {within:.0f} s"
            time.sleep(max(left, 0.1))

    def _is_behind(self, quiet: float) -> bool:
        """Whether events come that tell of what was long ago: then there are more of those in line."""
        with self._changed:
            return time.monotonic() - self._event_seen_at < 0.5 and time.time() - self._told_until > quiet

    def _follow(self, kind: str) -> None:
        while not self._ended:
            api = Api(self._server, timeout=3600)
            try:
                version = self._list(kind, api)
                self._listed.release()
                for event in api.lines(f"{collection(kind)}?watch=true&resourceVersion={version}"):
                    if event["type"] == "ERROR":
                        break
                    self._take(kind, event)
            except (OSError, ValueError, http.client.HTTPException):
                time.sleep(0.1)
            finally:
                api.close()

    def _list(self, kind: str, api: Api) -> str:
        status, answer = api.ask("GET", collection(kind))
        if status != 200:
            raise OSError(f"{kind}: {answer}")
        with self._changed:
            self._objects[kind] = {_key(one): one for one in answer["items"]}
            self._versions[kind] = int(answer["metadata"]["resourceVersion"])
            self._changed.notify_all()
        version: str = answer["metadata"]["resourceVersion"]
        return version

    def _take(self, kind: str, event: Any) -> None:
        content = event["object"]
        namespace, name = key = _key(content)
        with self._changed:
            if event["type"] == "DELETED":
                self._objects[kind].pop(key, None)
            else:
                self._objects[kind][key] = content
            self._versions[kind] = max(self._versions[kind], int(content["metadata"]["resourceVersion"]))
            if kind == "Event" and event["type"] == "ADDED" and content.get("firstTimestamp"):
                self._event_seen_at = time.monotonic()
                self._told_until = datetime.fromisoformat(content["firstTimestamp"]).timestamp()
            if kind != "Event":
                self._ever.setdefault(namespace, {})[content["metadata"]["uid"]] = content
            # What is tried again and again makes the counts of its events grow.
            if (kind, event["type"]) != ("Event", "MODIFIED"):
                self._changed_at[namespace or name.partition(".")[0]] = time.monotonic()
            self._changed.notify_all()


def _key(content: Object) -> tuple[str, str]:
    metadata = content["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def _belongs(place: str, name: str, namespace: str) -> bool:
    return place == namespace if place else name == namespace or name.startswith(f"{namespace}.")
