"""A client that gives answers whole: status, body and warnings, refusals included."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

Told = tuple[int, dict[str, Any], list[str]]


class Asking:
    """One connection to the server that a kubeconfig names, as the user that it names."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._headers = {"Authorization": f"Bearer {user['token']}", "Content-Type": "application/json"}
        host = urlsplit(cluster["server"]).netloc
        self._connection = http.client.HTTPSConnection(host, context=ssl.create_default_context(cadata=authority))

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Told:
        """The answer to one request."""
        self._connection.request(method, path, None if body is None else json.dumps(body), self._headers)
        response = self._connection.getresponse()
        content = response.read()
        warnings = response.headers.get_all("Warning") or []
        try:
            return response.status, json.loads(content), warnings
        except ValueError:
            return response.status, {"message": content.decode(errors="replace")}, warnings

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()
