"""Why a job waits, over HTTP, on the scheduler's plugin server."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import msgspec
from aiohttp import web

from shoal.scheduler.explaining.explanation import Answer
from shoal.scheduler.explaining.finding import PodOf, TaskOf, find
from shoal.scheduler.explaining.in_full import explain
from shoal.scheduler.explaining.questions import CycleOutcome, Questions, Unanswered

PATH: Final = "/api/v1/scheduler/explain"
Accepts = Callable[[str], bool]
"""Says whether a bearer token is a good one."""

_MOST_JOBS: Final = 20
"""So many jobs of one workload are told of."""


def explain_routes(
    questions: Questions, *, task_of: TaskOf, pod_of: PodOf, accepts: Accepts | None = None
) -> list[web.RouteDef]:
    """The route; ``accepts`` says which bearer tokens are good, and None that nobody needs one."""

    async def serve(request: web.Request) -> web.Response:
        if not is_allowed(request, accepts):
            return not_signed_in()
        kind, name = request.query.get("kind", "").strip(), request.query.get("name", "").strip()
        namespace = request.query.get("namespace", "").strip() or "default"
        if not kind or not name:
            return refusal(400, "say what is meant: ?kind=podgroup&name=NAME&namespace=NAMESPACE")

        def question(outcome: CycleOutcome) -> Answer:
            return answer_of(outcome, kind, namespace, name, task_of=task_of, pod_of=pod_of)

        try:
            answer = await questions.ask(question)
        except Unanswered as error:
            return refusal(503, str(error), {"Retry-After": "1"})
        return web.Response(
            status=200 if answer.jobs else 404,
            body=msgspec.json.encode(answer),
            content_type="application/json",
            headers={"Access-Control-Allow-Origin": "*", "Cache-Control": "no-store"},
        )

    return [web.get(PATH, serve)]


def answer_of(outcome: CycleOutcome, kind: str, namespace: str, name: str, *, task_of: TaskOf, pod_of: PodOf) -> Answer:
    """What is known of an object at the end of a cycle."""
    session = outcome.session
    found = find(session.cluster, kind, namespace, name, task_of=task_of, pod_of=pod_of)
    jobs = sorted(found.jobs, key=lambda job: (job.pending == 0, job.created, job.uid))[:_MOST_JOBS]
    return Answer(
        kind=kind,
        name=name,
        namespace=namespace,
        cycle=outcome.number,
        at=datetime.fromtimestamp(session.now, UTC).replace(microsecond=0),
        jobs=[explain(session, job) for job in jobs],
        message=found.message,
    )


def is_allowed(request: web.Request, accepts: Accepts | None) -> bool:
    """Whether whoever asks may."""
    if accepts is None:
        return True
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return scheme.lower() == "bearer" and accepts(token.strip())


def not_signed_in() -> web.Response:
    """A token is needed."""
    sentence = 'a bearer token is needed: send it as "Authorization: Bearer TOKEN"'
    return refusal(401, sentence, {"WWW-Authenticate": 'Bearer realm="scheduler"'})


def refusal(status: int, sentence: str, headers: dict[str, str] | None = None) -> web.Response:
    """A refusal as one line of text."""
    return web.Response(
        status=status, text=sentence + "\n", headers={"Access-Control-Allow-Origin": "*", **(headers or {})}
    )
