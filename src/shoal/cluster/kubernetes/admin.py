"""The few plain requests that starting a cluster takes, made as its admin and without an event loop.

Controllers use ``shoal.kube``; this is for the launcher, which must be able to look before anything else runs.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

_APPLY = "application/apply-patch+yaml"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Refused(Exception):
    """The API server answered a request with an error."""

    def __init__(self, status: int, request: str, message: str) -> None:
        self.status = status
        super().__init__(f"{request} was refused: {message} ({status})")


class Unreachable(OSError):
    """The API server did not answer."""


class AdminApi:
    """Asks one API server, one connection a request."""

    def __init__(self, server: str, *, token: str, authority: str, timeout: float = 10.0) -> None:
        self._address = urlsplit(server).netloc
        self._context = ssl.create_default_context(cadata=authority)
        self._token = token
        self._timeout = timeout

    def request(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, content_type: str = "application/json"
    ) -> Any:
        """The JSON answered; raises Refused or Unreachable."""
        status, answer = self._exchange(method, path, body, content_type)
        try:
            content = json.loads(answer)
        except ValueError:
            content = {"message": answer.decode(errors="replace")}
        if status >= 400:
            raise Refused(status, f"{method} {path}", content.get("message", "no reason given"))
        return content

    def is_ready(self) -> bool:
        """Whether the server says it is ready and has made the namespaces it starts with; raises Unreachable."""
        return self.exists("/readyz") and self.exists("/api/v1/namespaces/default")

    def exists(self, path: str) -> bool:
        """Whether a GET of this path is answered with success."""
        return self._exchange("GET", path, None, "")[0] == 200

    def define(self, definitions: Iterable[Mapping[str, Any]], *, within: float = 30.0) -> None:
        """Applies custom resource definitions and waits until their kinds are served."""
        names = []
        for definition in definitions:
            names.append(definition["metadata"]["name"])
            query = "?fieldManager=shoal-up&force=true"
            self.request("PATCH", f"{_DEFINITIONS}/{names[-1]}{query}", definition, content_type=_APPLY)
        deadline = time.monotonic() + within
        for name in names:
            while not _is_established(self.request("GET", f"{_DEFINITIONS}/{name}")):
                if time.monotonic() > deadline:
                    raise Unreachable(f"{name} was applied but is not served after {within:.0f} s: see its conditions")
                time.sleep(0.02)

    def _exchange(self, method: str, path: str, body: Mapping[str, Any] | None, content_type: str) -> tuple[int, bytes]:
        connection = http.client.HTTPSConnection(self._address, timeout=self._timeout, context=self._context)
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = content_type
        try:
            connection.request(method, path, None if body is None else json.dumps(body).encode(), headers)
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"{method} {path}: {self._address} does not answer: {error}") from error
        finally:
            connection.close()


def _is_established(definition: Mapping[str, Any]) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or []
    return any(condition["type"] == "Established" and condition["status"] == "True" for condition in conditions)
