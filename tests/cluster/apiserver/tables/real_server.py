"""A real API server asked for tables: every row with the whole object that it was made of."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from shoal.cluster.apiserver.kinds.kind import Kind, Object
from shoal.cluster.apiserver.tables import cells, columns
from tests.cluster.apiserver.tables.cases import Case

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
MERGE = "application/merge-patch+json"
FACTS = ("name", "type", "format", "priority")
_TIMEOUT = 20.0


class RealServer:
    """Requests as the kubeconfig's user, on one connection."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._token = user["token"]
        self._connection = http.client.HTTPSConnection(
            urlsplit(cluster["server"]).netloc,
            timeout=_TIMEOUT,
            context=ssl.create_default_context(cadata=authority),
        )

    def close(self) -> None:
        self._connection.close()

    def request(
        self, method: str, path: str, body: Any = None, *, accept: str = "application/json", content_type: str = ""
    ) -> tuple[int, Any]:
        with self._answer(method, path, body, accept, content_type or "application/json") as answer:
            content = answer.read()
            return answer.status, json.loads(content) if content.startswith((b"{", b"[")) else content.decode()

    def demand(self, method: str, path: str, body: Any = None, **options: str) -> Any:
        """The answer, which must not be an error."""
        status, answer = self.request(method, path, body, **options)
        assert status < 300, f"{method} {path}: {status} {answer}"
        return answer

    def bookmark(self, path: str) -> Object | None:
        """The table with the bookmark that ends the first events of a watch; None where there is no watch."""
        query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        with self._answer("GET", f"{path}?{query}", None, TABLE, "") as answer:
            if answer.status != 200:
                answer.read()
                return None
            while line := answer.readline():
                event = json.loads(line)
                if event["type"] == "BOOKMARK":
                    self._connection.close()
                    return dict(event["object"])
            return None

    @contextmanager
    def _answer(
        self, method: str, path: str, body: Any, accept: str, content_type: str
    ) -> Iterator[http.client.HTTPResponse]:
        headers = {"Authorization": f"Bearer {self._token}", "Accept": accept}
        if body is not None:
            headers["Content-Type"] = content_type
        self._connection.request(method, path, None if body is None else json.dumps(body), headers)
        yield self._connection.getresponse()


def collection(kind: Kind, namespace: str = "") -> str:
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    return f"{root}/namespaces/{namespace}/{kind.resource}" if namespace else f"{root}/{kind.resource}"


class Row:
    """One row of the real server, with ours: as of before or after the answer, in which a second may have passed."""

    def __init__(self, kind: Kind, row: Object, before: datetime, after: datetime) -> None:
        self.kind = kind
        self.object: Object = row["object"]
        self.cells: list[Any] = row["cells"]
        self.conditions: list[Object] = row.get("conditions") or []
        self._moments = (before, after)
        self.reprint(self.object)

    def reprint(self, value: Object, *, is_stored: bool = False) -> None:
        """Prints this object for the row."""
        before, after = self._moments
        self.at, self.ours = before, cells(self.kind, value, before, is_stored=is_stored)
        if self.ours != self.cells:
            self.at, self.ours = after, cells(self.kind, value, after, is_stored=is_stored)

    @property
    def name(self) -> str:
        return f"{self.kind.kind} {self.object['metadata'].get('name', '')}"


def table_rows(
    server: RealServer, kind: Kind, method: str, path: str, body: Any = None, content_type: str = ""
) -> list[Row]:
    """The rows that a request is answered with, whose columns must be ours; none where it gives no table."""
    before = datetime.now(UTC)
    path += "?includeObject=Object"
    status, table = server.request(method, path, body, accept=f"{TABLE},application/json", content_type=content_type)
    after = datetime.now(UTC)
    if status == 404:
        return []
    assert status < 300, f"{method} {path}: {status} {table}"
    if table["kind"] != "Table":
        return []
    assert facts(columns(kind)) == facts(table["columnDefinitions"]), kind.kind
    return [Row(kind, row, before, after) for row in table["rows"]]


def facts(definitions: list[Object]) -> list[list[Any]]:
    """What must be equal of columns; descriptions are our own."""
    return [[definition[fact] for fact in FACTS] for definition in definitions]


class Making:
    """Objects that are made on the real server, and the rows that it answered each write with."""

    def __init__(self, server: RealServer, namespace: str) -> None:
        self._server = server
        self._namespace = namespace
        self._paths: list[str] = []
        self.rows: list[Row] = []

    def make(self, kind: Kind, case: Case) -> None:
        home = collection(kind, self._namespace if kind.namespaced else "")
        body = {"apiVersion": kind.api_version, "kind": kind.kind, **case.body}
        if case.is_deleted:
            body["metadata"] = {**body["metadata"], "finalizers": ["tables.test/hold"]}
        path = f"{home}/{body['metadata']['name']}"
        self._paths.append(path)
        self.rows += table_rows(self._server, kind, "POST", home, body)
        for subresource, patch in case.patches.items():
            self.rows += table_rows(self._server, kind, "PATCH", f"{path}/{subresource}", patch, MERGE)
        if case.is_deleted:
            self.rows += table_rows(self._server, kind, "DELETE", path)

    def remove(self) -> None:
        for path in self._paths:
            self._server.request("PATCH", path, {"metadata": {"finalizers": None}}, content_type=MERGE)
            self._server.request("DELETE", f"{path}?gracePeriodSeconds=0")
