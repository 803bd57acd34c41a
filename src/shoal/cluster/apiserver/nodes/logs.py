"""pods/log: what a container wrote, passed on from the agent of its node as it comes."""

from __future__ import annotations

from contextlib import AsyncExitStack

from shoal.cluster.apiserver.calls import Answer, Call, Streaming
from shoal.cluster.apiserver.kinds.go_time import BadTime, normal_time
from shoal.cluster.apiserver.nodes.agents import Agents, failed, unreachable
from shoal.cluster.apiserver.nodes.answers import passed_on
from shoal.cluster.apiserver.nodes.containers import chosen_container
from shoal.cluster.apiserver.nodes.options import flag, integer
from shoal.cluster.apiserver.reader import Reader
from shoal.cluster.apiserver.refusals import Refused, bad_request, internal_error, invalid, not_found, refused
from shoal.cluster.apiserver.verbs.asked import Asked
from shoal.kube.admission.fields import FieldProblem, forbidden
from shoal.kube.admission.fields import invalid as invalid_field
from shoal.kube.errors import ConnectionFault
from shoal.kube.transport import Request, Stream

_PLAIN = "text/plain"
_ANSWERS_WITHIN = 30.0
_LONGEST_REFUSAL = 50_000
_GO_ZERO_TIME = "0001-01-01T00:00:00Z"
_GENERIC = {
    401: ("Unauthorized", "the server has asked for the client to provide credentials"),
    403: ("Forbidden", ""),
    404: ("NotFound", "the server could not find the requested resource"),
    405: ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: ("Timeout", "the server was unable to return a response in the time allotted, but may still be processing"),
}


class Logs:
    """Answers requests on pods/log."""

    def __init__(self, state: Reader, agents: Agents) -> None:
        self._state = state
        self._agents = agents

    async def get(self, asked: Asked) -> Answer | Streaming:
        """The log as it comes; of a pod that is on no node yet there is nothing."""
        query = log_query(asked.call, asked.name)
        pod = self._state.get(asked.kind.storage, asked.namespace, asked.name)
        if pod is None:
            raise not_found(asked.kind.resource, asked.kind.group, asked.name)
        container = chosen_container(pod, asked.call.value("container"))
        node = pod["spec"].get("nodeName")
        if not node:
            return Answer(status=204, content_type=_PLAIN)
        request = Request(
            method="GET",
            path=f"/containerLogs/{asked.namespace}/{asked.name}/{container}",
            query=query,
            accept="*/*",
            timeout=_ANSWERS_WITHIN,
        )
        any_certificate = flag(asked.call, "insecureSkipTLSVerifyBackend")
        # Kubernetes blames the pod's resource for a node that is missing.
        agent = self._agents.agent(node, named_as=asked.kind.resource)
        async with AsyncExitStack() as stack:
            try:
                stream = await stack.enter_async_context(agent.stream(request, any_certificate=any_certificate))
                if not 200 <= stream.status <= 206:
                    raise await _refusal(stream, asked.name)
            except ConnectionFault as fault:
                raise unreachable(fault) from fault
            return Streaming(chunks=_Log(stream, stack.pop_all()), content_type=_PLAIN, patience=None)


class _Log:
    """The pieces of a log. It is an iterator and no generator, so that closing it works before it was begun."""

    def __init__(self, stream: Stream, stack: AsyncExitStack) -> None:
        self._chunks = stream.chunks()
        self._stack = stack

    def __aiter__(self) -> _Log:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await anext(self._chunks)
        except ConnectionFault as fault:
            raise ConnectionResetError(str(fault)) from fault

    async def aclose(self) -> None:
        """Ends the request to the agent."""
        await self._stack.aclose()


def log_query(call: Call, name: str) -> dict[str, str]:
    """The agent's parameters for a request's options; raises Refused where those are wrong."""
    tail, limit, since = (integer(call, option) for option in ("tailLines", "limitBytes", "sinceSeconds"))
    since_time = _time(call)
    problems: list[FieldProblem] = []
    if tail is not None and tail < 0:
        problems.append(invalid_field("tailLines", tail, "must be greater than or equal to 0"))
    if limit is not None and limit < 1:
        problems.append(invalid_field("limitBytes", limit, "must be greater than 0"))
    if since is not None and since_time is not None:
        problems.append(forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    elif since is not None and since < 1:
        problems.append(invalid_field("sinceSeconds", since, "must be greater than 0"))
    if "stream" in call.query:
        problems.append(forbidden("stream", "may not be specified"))
    if problems:
        raise invalid("PodLogOptions", "", name, problems)
    query = {option: "true" for option in ("follow", "previous", "timestamps") if flag(call, option)}
    numbers = {"sinceSeconds": since, "tailLines": tail, "limitBytes": limit}
    query |= {option: str(number) for option, number in numbers.items() if number is not None}
    return query if since_time is None else query | {"sinceTime": since_time}


def _time(call: Call) -> str | None:
    values = call.query.get("sinceTime")
    if not values:
        return None
    try:
        return (normal_time(values[0]) if values[0] else None) or _GO_ZERO_TIME
    except BadTime as error:
        raise bad_request(str(error)) from None


async def _refusal(stream: Stream, name: str) -> Refused:
    """What an agent's answer that is no log means."""
    body = b""
    async for chunk in stream.chunks():
        body += chunk
        if len(body) >= _LONGEST_REFUSAL:
            break
    told = passed_on(stream.status, body)
    if told is not None:
        return told
    text = body[:_LONGEST_REFUSAL].decode(errors="replace")
    if 300 <= stream.status < 400:
        return failed(f'Get "{stream.headers.get("Location", "")}": redirects forbidden')
    if stream.status == 400:
        return bad_request(text)
    if stream.status == 500:
        return internal_error(text)
    reason, message = _GENERIC.get(stream.status, ("", ""))
    words = f"{message or text or 'unknown'} ( pods/log {name})"
    return refused(stream.status, reason, words, name=name, kind="pods/log")
