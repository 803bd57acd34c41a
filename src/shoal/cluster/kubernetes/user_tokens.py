"""Tells kube-apiserver whom a token of the cluster's own stands for.

kube-apiserver reads its token file at the start alone, and service accounts cannot choose their groups. But it asks a
webhook about tokens it does not know; this is that webhook.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from shoal.cluster.keyring import TokenKey

_LARGEST_REVIEW = 1024 * 1024


class TokenReviewer:
    """Answers the API server's token reviews on a loopback port, from a thread of its own."""

    def __init__(self, key: TokenKey) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(key))
        # The interval is how long closing may take.
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, name="token-reviewer", daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """Where the API server sends its reviews."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/"

    def close(self) -> None:
        """Stops answering."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def review(request: Any, key: TokenKey) -> dict[str, Any]:
    """The answer to a TokenReview."""
    spec = request.get("spec") if isinstance(request, dict) else None
    token = spec.get("token") if isinstance(spec, dict) else None
    user = key.user(token) if isinstance(token, str) else None
    status: dict[str, Any] = {"authenticated": user is not None}
    if user is not None:
        status["user"] = {"username": user.name, "uid": user.name, "groups": list(user.groups)}
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "status": status}


def _handler(key: TokenKey) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            try:
                request = json.loads(self.rfile.read(min(length, _LARGEST_REVIEW)))
            except ValueError:
                self.send_error(400, "not a TokenReview")
                return
            answer = json.dumps(review(request, key)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's own name
            """Writes nothing: the API server's log has each failed sign-in already."""

    return Handler
