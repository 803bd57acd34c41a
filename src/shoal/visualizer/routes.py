"""The visualizer's routes: who may ask what, and what is answered; all of it from the last published view."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import structlog
from aiohttp import web

from shoal.api.visualizer import ClusterView
from shoal.visualizer.access import Accepts, bearer_token
from shoal.visualizer.answers import ALLOWED, PREFLIGHT, answer, refused
from shoal.visualizer.events import Stream
from shoal.visualizer.library import Library
from shoal.visualizer.pages import Body
from shoal.visualizer.publisher import Publisher
from shoal.visualizer.queries import check_parameters, kinds, namespaces
from shoal.visualizer.refusals import Refusal, method_not_allowed, not_signed_in, not_yet_published

PREFIX = "/api/v1/visualizer"

log = structlog.get_logger("shoal.visualizer")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Show = Callable[[web.Request, ClusterView], Awaitable[Body]]


def routes(
    publisher: Publisher,
    auth: Accepts | None = None,
    *,
    library: Library | None = None,
    stream: Stream | None = None,
) -> list[web.RouteDef]:
    """All routes of the visualizer; ``auth`` says which bearer tokens are good, and None that nobody needs one.

    The last of them answers for everything else under the prefix. A server that has more to offer adds `catch_all`
    behind its own routes.
    """
    shown = library or Library()
    changes = stream or Stream(publisher, shown)

    async def jobs(request: web.Request, view: ClusterView) -> Body:
        return await shown.jobs(view, namespaces(request.query))

    async def events(request: web.Request) -> web.StreamResponse:
        check_parameters(request.query, ["kind"])
        return await changes.serve(request, kinds(request.query))

    def reading(name: str, show: Show, parameters: Sequence[str] = ()) -> web.RouteDef:
        async def read(request: web.Request) -> web.StreamResponse:
            check_parameters(request.query, parameters)
            published = publisher.latest
            if published is None:
                raise not_yet_published()
            return await answer(request, published, await show(request, published.view))

        return web.route("*", f"{PREFIX}/{name}", _guarded(read, auth))

    return [
        reading("summary", lambda _, view: shown.summary(view)),
        reading("queues", lambda _, view: shown.queues(view)),
        reading("jobs", jobs, ["namespace"]),
        reading("nodes", lambda _, view: shown.nodes(view)),
        web.route("*", f"{PREFIX}/events", _guarded(events, auth)),
        web.route("*", PREFIX + "{rest:(/.*)?}", _not_found),
    ]


def catch_all() -> web.RouteDef:
    """Answers for every path and method that no other route of a server does: 405 where the path is known, or 404."""
    return web.route("*", "/{rest:.*}", _not_found)


def _guarded(handler: Handler, auth: Accepts | None) -> Handler:
    """A handler with everything around it that is the same for all: methods, tokens, errors."""

    async def guarded(request: web.Request) -> web.StreamResponse:
        if request.method == "OPTIONS":  # asked by browsers before anybody has signed in
            return web.Response(status=204, headers=PREFLIGHT)
        try:
            if request.method not in ("GET", "HEAD"):
                raise method_not_allowed(request.method, ALLOWED)
            if auth is not None:
                token = bearer_token(request.headers.get("Authorization", ""))
                if not token or not auth(token):
                    raise not_signed_in(presented=bool(token))
            return await handler(request)
        except Refusal as refusal:
            return refused(refusal)
        except ConnectionResetError:
            raise  # nobody is there to be told
        except Exception as error:
            log.exception("request_failed", path=request.path)
            sentence = f"the view cannot be shown ({type(error).__name__}): the scheduler's log says more"
            return refused(Refusal(500, sentence))

    return guarded


async def _not_found(request: web.Request) -> web.StreamResponse:
    allowed: set[str] = set()
    for resource in request.app.router.resources():
        _, methods = await resource.resolve(request)
        allowed |= methods - {"*"}
    if allowed:
        return refused(method_not_allowed(request.method, ", ".join(sorted(allowed))))
    if request.method == "OPTIONS":  # so that a page gets to see that there is nothing
        return web.Response(status=204, headers=PREFLIGHT)
    there = ", ".join(sorted(path for path in _paths(request.app) if "{" not in path))
    return refused(Refusal(404, f"there is no {request.path[:200]!r} here: there are {there}"))


def _paths(app: web.Application) -> set[str]:
    return {resource.canonical for resource in app.router.resources()}
