"""Routes for those whom the API server knows: a bearer token of the cluster, and the right to get the path.

What kube-rbac-proxy does beside a program: a TokenReview says whose the token is, a SubjectAccessReview whether its
user may get the path as a non-resource URL. That URL begins with ``/shoal``: every user of a cluster, and so every pod,
may get what begins with ``/api`` (the ClusterRole system:discovery). Both answers are good for a little while.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import structlog
from aiohttp import web

from shoal.api.authentication_k8s_io import TOKEN_REVIEWS
from shoal.api.authorization_k8s_io import SUBJECT_ACCESS_REVIEWS
from shoal.kube import ApiError, Client, ConnectionFault
from shoal.visualizer.access import bearer_token
from shoal.visualizer.answers import refused
from shoal.visualizer.refusals import Refusal, not_signed_in
from shoal.visualizer.routes import Handler

log = structlog.get_logger("shoal.scheduler")

PREFIX: Final = "/shoal"
"""Before the path of a request in the URL that a ClusterRole names."""
_REMEMBERED: Final = 1000
_ANSWERS_WITHIN: Final = 10.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the API server said of a token and a path."""

    user: str
    """Whose the token is; empty where it is nobody's."""
    is_allowed: bool


class ApiTokens:
    """Asks the API server about tokens, and remembers for some seconds what it said of good ones."""

    def __init__(self, client: Client, *, good_for: float = 30.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._good_for = good_for
        self._clock = clock
        self._allowed: OrderedDict[tuple[bytes, str], tuple[float, Verdict]] = OrderedDict()

    async def verdict(self, token: str, path: str) -> Verdict:
        """Whose a token is, and whether that user may get a path."""
        key = (hashlib.sha256(token.encode(errors="replace")).digest(), path)
        known = self._allowed.get(key)
        if known is not None and self._clock() - known[0] < self._good_for:
            return known[1]
        verdict = await self._asked(token, path)
        if verdict.is_allowed:
            self._allowed[key] = (self._clock(), verdict)
            self._allowed.move_to_end(key)
            if len(self._allowed) > _REMEMBERED:
                self._allowed.popitem(last=False)
        return verdict

    async def _asked(self, token: str, path: str) -> Verdict:
        review = await self._client.create(TOKEN_REVIEWS, {"spec": {"token": token}})
        found = review.content.get("status") or {}
        user = found.get("user") or {}
        if not found.get("authenticated") or not user.get("username"):
            return Verdict("", is_allowed=False)
        subject = {"user": user["username"], "uid": user.get("uid", ""), "groups": user.get("groups") or []}
        if user.get("extra"):
            subject["extra"] = user["extra"]
        question = {"spec": {**subject, "nonResourceAttributes": {"path": PREFIX + path, "verb": "get"}}}
        answer = (await self._client.create(SUBJECT_ACCESS_REVIEWS, question)).content.get("status") or {}
        return Verdict(str(user["username"]), is_allowed=bool(answer.get("allowed")))


def behind_tokens(routes: Iterable[web.RouteDef], tokens: ApiTokens) -> list[web.RouteDef]:
    """The same routes, answered only to those whom the API server lets get their paths."""
    return [web.route(each.method, each.path, _guarded(each.handler, tokens), **each.kwargs) for each in routes]


def _guarded(handler: Handler, tokens: ApiTokens) -> Handler:
    async def guarded(request: web.Request) -> web.StreamResponse:
        if request.method == "OPTIONS":  # asked by browsers before anybody has signed in
            return await handler(request)
        token = bearer_token(request.headers.get("Authorization", ""))
        if not token:
            return refused(not_signed_in(presented=False))
        try:
            async with asyncio.timeout(_ANSWERS_WITHIN):
                verdict = await tokens.verdict(token, request.path)
        except (ApiError, ConnectionFault, TimeoutError) as error:
            log.warning("token not reviewed", error=str(error))
            return refused(
                Refusal(503, "the API server cannot be asked about this token: try again", {"Retry-After": "1"})
            )
        if not verdict.user:
            return refused(not_signed_in(presented=True))
        if not verdict.is_allowed:
            sentence = (
                f'user "{verdict.user}" may not get {request.path[:200]!a}: bind a ClusterRole with this '
                "nonResourceURL and the verb get"
            )
            return refused(Refusal(403, sentence))
        return await handler(request)

    return guarded
