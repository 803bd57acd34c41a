"""``/get-snapshot`` and ``/get-job-order`` on the scheduler's plugin server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from aiohttp import web

from shoal.api.core import NODES, PODS
from shoal.api.kai_scheduler import TOPOLOGIES
from shoal.api.scheduling_k8s_io import PRIORITY_CLASSES
from shoal.api.scheduling_run_ai import BIND_REQUESTS, POD_GROUPS, QUEUES
from shoal.kube import Manager
from shoal.scheduler.explaining.places import in_order
from shoal.scheduler.explaining.questions import CycleOutcome, Questions, Unanswered
from shoal.scheduler.explaining.routes import Accepts, is_allowed, not_signed_in, refusal
from shoal.scheduler.numa import NODE_RESOURCE_TOPOLOGIES
from shoal.scheduler.session.session import Session
from shoal.scheduler.snapshots.sections import NEEDED_SECTIONS
from shoal.scheduler.snapshots.snapshot import Json
from shoal.scheduler.snapshots.writing import packed, snapshot_document
from shoal.scheduler.watching.watches import NEEDED

Source = Callable[[], Sequence[Any]]


def snapshot_routes(
    sources: Mapping[str, Source],
    questions: Questions,
    *,
    config: Json,
    parameters: Json,
    discovery: Json | None = None,
    accepts: Accepts | None = None,
    clock: Callable[[], float] = time.time,
) -> list[web.RouteDef]:
    """Both routes. ``sources``: the objects of each section, as whoever watches them has them now."""

    async def snapshot(request: web.Request) -> web.Response:
        if not is_allowed(request, accepts):
            return not_signed_in()
        # Objects never change: what is listed here in an instant is written down beside whatever goes on.
        objects = {section: list(source()) for section, source in sources.items()}
        now = clock()

        def made() -> bytes:
            return packed(
                snapshot_document(objects, config=config, parameters=parameters, discovery=discovery, taken_at=now)
            )

        return web.Response(
            body=await asyncio.to_thread(made),
            content_type="application/zip",
            headers={"Content-Disposition": "attachment; filename=snapshot.zip", "Cache-Control": "no-store"},
        )

    async def order(request: web.Request) -> web.Response:
        if not is_allowed(request, accepts):
            return not_signed_in()

        def question(outcome: CycleOutcome) -> Json:
            return job_order(outcome.session)

        try:
            found = await questions.ask(question)
        except Unanswered as error:
            return refusal(503, str(error), {"Retry-After": "1"})
        return web.Response(body=msgspec.json.encode(found), content_type="application/json")

    return [web.get("/get-snapshot", snapshot), web.get("/get-job-order", order)]


def job_order(session: Session) -> Json:
    """The jobs that wait, in the order in which the next cycle takes them: all of them, and by queue."""
    everybody: list[Json] = []
    queues: dict[str, list[Json]] = {}
    for job in in_order(session):
        told = {"id": job.name, "namespace": job.namespace, "priority": job.priority}
        everybody.append(told)
        queues.setdefault(job.queue, []).append(told)
    return {"global_order": everybody, "queue_order": queues}


def watched_sources(manager: Manager, *, reads_zones: bool = False) -> dict[str, Source]:
    """What the scheduler watches anyway, by section. ``reads_zones``: the NUMA zones of nodes too."""
    cache = manager.cache
    zones = {"nodeResourceTopologies": cache.informer(NODE_RESOURCE_TOPOLOGIES).items} if reads_zones else {}
    return {
        "pods": cache.informer(PODS).items,
        "nodes": cache.informer(NODES).items,
        "queues": cache.informer(QUEUES).items,
        "podGroups": cache.informer(POD_GROUPS).items,
        "bindRequests": cache.informer(BIND_REQUESTS).items,
        "priorityClasses": cache.informer(PRIORITY_CLASSES).items,
        "topologies": cache.informer(TOPOLOGIES).items,
        **{section: cache.informer(NEEDED[kind]).items for section, kind in NEEDED_SECTIONS.items()},
        **zones,
    }
