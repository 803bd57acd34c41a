"""Bearer tokens for any user and groups, while the API server runs.

kube-apiserver reads its token file at the start alone, and service accounts cannot choose their groups. But it asks a
webhook about tokens it does not know. A token here carries its user and groups, signed with a key of the cluster's; the
reviewer only checks the signature. So making a token is a calculation, and tokens outlive restarts.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_PREFIX = "shoal-user-"
_LARGEST_REVIEW = 1024 * 1024


@dataclass(frozen=True)
class User:
    """Whom a token stands for."""

    name: str
    groups: tuple[str, ...] = ()


class TokenKey:
    """Signs and reads the tokens of one cluster."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def token(self, name: str, groups: Sequence[str] = ()) -> str:
        """A token for this user; the same one each time."""
        claims = _text(json.dumps({"user": name, "groups": list(groups)}).encode())
        return f"{_PREFIX}{claims}.{self._signature(claims)}"

    def user(self, token: str) -> User | None:
        """Whom the token stands for, or None where it is not ours."""
        claims, dot, signature = token.removeprefix(_PREFIX).partition(".")
        if not token.startswith(_PREFIX) or not dot:
            return None
        if not hmac.compare_digest(signature.encode(), self._signature(claims).encode()):
            return None
        try:
            read = json.loads(base64.urlsafe_b64decode(claims))
        except (binascii.Error, ValueError):
            return None
        return User(read["user"], tuple(read["groups"]))

    def _signature(self, claims: str) -> str:
        return _text(hmac.digest(self._secret, claims.encode(), hashlib.sha256))


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


def _text(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode()
