"""The whole server as one function from a request to its answer: who asks, what for, may they, and do it.

It knows nothing of sockets. The HTTP front and the in-process transport of tests both end here.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import structlog

from shoal.cluster.apiserver.access.authentication import ANONYMOUS, Authenticator
from shoal.cluster.apiserver.access.authorization import Authorizer, Query
from shoal.cluster.apiserver.access.impersonation import impersonated
from shoal.cluster.apiserver.access.user import User
from shoal.cluster.apiserver.body_memory import BodyMemory
from shoal.cluster.apiserver.builtin.names import path_segment_problems
from shoal.cluster.apiserver.calls import Call, Reply, no_such_path, refusal_answer
from shoal.cluster.apiserver.front.paths import Paths
from shoal.cluster.apiserver.front.request_info import RequestInfo, request_info
from shoal.cluster.apiserver.front.resources import NoSuchPath, Resources
from shoal.cluster.apiserver.refusals import Refused, bad_request, internal_error, unavailable
from shoal.cluster.apiserver.storage import StorageFailed
from shoal.cluster.apiserver.turns import Turns
from shoal.cluster.apiserver.verbs.selection import parse_fields, required_name

_READING = frozenset({"get", "list", "watch"})

_log = structlog.get_logger(__name__)


class Service:
    """Answers requests; ``told`` hears of each what it was, how it ended and how long it took."""

    def __init__(
        self,
        *,
        authenticator: Authenticator,
        authorizer: Authorizer,
        resources: Resources,
        paths: Paths,
        told: Callable[[RequestInfo, int, float], None],
    ) -> None:
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._resources = resources
        self._paths = paths
        self._told = told
        self._turns = Turns()
        self._bodies = BodyMemory()

    async def answer(self, call: Call) -> Reply:
        """The answer to a request; whatever goes wrong, it is one that the client can read."""
        started = time.monotonic()
        watch = call.value("watch").lower() not in ("", "0", "false", "f")
        info = request_info(call.method, call.path, watch=watch)
        reply = await self._answer_or_refuse(call, info)
        self._told(info, reply.status, time.monotonic() - started)
        return reply

    async def _answer_or_refuse(self, call: Call, info: RequestInfo) -> Reply:
        try:
            return await self._answer(call, info)
        except Refused as refusal:
            return refusal_answer(refusal)
        except NoSuchPath:
            return no_such_path()
        except RecursionError:
            return refusal_answer(bad_request("the request is nested too deeply"))
        except StorageFailed as error:
            _log.error("write failed", error=str(error))
            return refusal_answer(unavailable(f"the storage refused the write: {error}"))
        except Exception:
            _log.exception("request failed", method=call.method, path=call.path)
            return refusal_answer(internal_error("a fault of the server, which its log describes"))

    async def _answer(self, call: Call, info: RequestInfo) -> Reply:
        user = self._authenticator.authenticate(
            authorization=call.headers.get("authorization"),
            peer_certificate=call.certificate,
            trusted_socket=call.is_trusted,
        )
        call.is_authenticated = user is not None
        user = user or ANONYMOUS
        name = info.name or _selected_name(call, info)
        if call.impersonation:
            user = impersonated(user, call.impersonation, self._authorizer.allowed, _query(user, info, name))
        query = _query(user, info, name)
        if not self._authorizer.allowed(query):
            raise self._authorizer.refusal(query)
        if call.load is None:
            return await self._carried_out(call, info, user)
        with self._bodies.held(user.name, call.body_size):
            call.body = await call.load()
            return await self._carried_out(call, info, user)

    async def _carried_out(self, call: Call, info: RequestInfo, user: User) -> Reply:
        if info.is_resource:
            if info.verb not in _READING:
                await self._turns.mine(user.name)
            return await self._resources.answer(call, info, user)
        return await self._paths.answer(call, user)


def _selected_name(call: Call, info: RequestInfo) -> str:
    """The one name that a list or a watch is about by its field selector: who may read that object may do it so."""
    text = call.value("fieldSelector")
    if not text or info.verb not in ("list", "watch") or info.is_watch_path:
        return ""
    try:
        name = required_name(parse_fields(text))
    except Refused:
        return ""  # which those who may list at all are told
    return "" if name is None or path_segment_problems(name) else name


def _query(user: User, info: RequestInfo, name: str) -> Query:
    return Query(
        user=user,
        verb=info.verb,
        group=info.group,
        version=info.version,
        resource=info.resource,
        subresource=info.subresource,
        namespace=info.namespace,
        name=name,
        path="" if info.is_resource else info.path,
    )
