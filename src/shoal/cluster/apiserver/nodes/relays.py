"""pods/exec, pods/attach and pods/portforward: a WebSocket here, a WebSocket to the agent, and messages between them.

What the messages say is the business of the two ends. The agent is connected first, so that its refusal can still be
an answer to the request. Each way has one message in hand at a time: whoever reads slowly slows the other end down, as
a pipe would, and when one end closes, so does the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress

from shoal.cluster.apiserver.access.authorization import Authorizer, Query
from shoal.cluster.apiserver.calls import Call, Socket, Upgrade
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.nodes.agents import Agent, Agents, unreachable
from shoal.cluster.apiserver.nodes.answers import refusal_of
from shoal.cluster.apiserver.nodes.containers import assigned_node, chosen_container
from shoal.cluster.apiserver.nodes.options import flag, ports
from shoal.cluster.apiserver.reader import Reader
from shoal.cluster.apiserver.refusals import Refused, bad_request, not_found
from shoal.cluster.apiserver.verbs.asked import Asked
from shoal.cluster.upgraded import until_either_ends
from shoal.kube.errors import ApiError, ConnectionFault, error_from_response
from shoal.kube.transport import Request, WebSocket

COMMAND_PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
PORT_PROTOCOLS = ("SPDY/3.1+portforward.k8s.io", "v4.channel.k8s.io", "portforward.k8s.io")

_STREAMS = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}
_ANSWERS_WITHIN = 30.0
_CLIENT_COMES_WITHIN = 30.0
_NO_SPDY = (
    "streams by SPDY are not served here: connect by WebSocket, as kubectl does from 1.31 on "
    "(and before that with KUBECTL_REMOTE_COMMAND_WEBSOCKETS=true)"
)


class Relays:
    """Answers requests on the three subresources; a WebSocket needs the right to create, whatever its method."""

    def __init__(self, state: Reader, agents: Agents, authorizer: Authorizer) -> None:
        self._state = state
        self._agents = agents
        self._authorizer = authorizer
        self._sessions: set[asyncio.Task[None]] = set()

    async def exec(self, asked: Asked) -> Upgrade:
        """Runs a command in a container."""
        return await self._command(asked, "exec", [("command", word) for word in asked.call.query.get("command", ())])

    async def attach(self, asked: Asked) -> Upgrade:
        """Joins a container's main process."""
        return await self._command(asked, "attach", [])

    async def forward(self, asked: Asked) -> Upgrade:
        """Connects to ports of a pod."""
        wanted = ports(asked.call)
        pod = self._pod(asked)
        agent = self._agent(pod)
        query = (("port", ",".join(map(str, wanted))),) if wanted else ()
        path = f"/portForward/{asked.namespace}/{asked.name}"
        return await self._upgrade(asked.call, agent, path, query, PORT_PROTOCOLS)

    async def close(self) -> None:
        """Ends all that goes on."""
        for task in self._sessions:
            task.cancel()
        if self._sessions:
            await asyncio.wait(self._sessions)

    async def _command(self, asked: Asked, path: str, words: list[tuple[str, str]]) -> Upgrade:
        call = asked.call
        pod = self._pod(asked)
        container = chosen_container(pod, call.value("container"))
        agent = self._agent(pod)
        streams = [(theirs, "1") for ours, theirs in _STREAMS.items() if flag(call, ours)]
        # Version 5 can close standard input and is otherwise the same as 4: without input either will do.
        alike = () if flag(call, "stdin") else COMMAND_PROTOCOLS
        path = f"/{path}/{asked.namespace}/{asked.name}/{container}"
        return await self._upgrade(call, agent, path, (*words, *streams), COMMAND_PROTOCOLS, alike=alike)

    def _pod(self, asked: Asked) -> Object:
        if asked.call.method != "POST":
            query = Query(
                user=asked.user,
                verb="create",
                version=asked.kind.version,
                resource=asked.kind.resource,
                subresource=asked.subresource,
                namespace=asked.namespace,
                name=asked.name,
            )
            if not self._authorizer.allowed(query):
                raise self._authorizer.refusal(query)
        pod = self._state.get(asked.kind.storage, asked.namespace, asked.name)
        if pod is None:
            raise not_found(asked.kind.resource, asked.kind.group, asked.name)
        return pod

    def _agent(self, pod: Object) -> Agent:
        return self._agents.agent(assigned_node(pod), named_as="pods")

    async def _upgrade(
        self,
        call: Call,
        agent: Agent,
        path: str,
        query: Sequence[tuple[str, str]],
        known: tuple[str, ...],
        *,
        alike: tuple[str, ...] = (),
    ) -> Upgrade:
        request = Request(method="GET", path=path, query=tuple(query), accept="*/*", timeout=_ANSWERS_WITHIN)
        wanted = call.headers.get("upgrade", "").lower()
        if "upgrade" not in call.headers.get("connection", "").lower() or not wanted:
            raise bad_request("Upgrade request required")
        if wanted != "websocket" or call.method != "GET":
            raise await _why_no_stream(agent, request)
        offered = [name.strip() for name in call.headers.get("sec-websocket-protocol", "").split(",")]
        usable = tuple(name for name in offered if name in known)
        if not usable:
            raise bad_request(f"none of the WebSocket subprotocols is known here: offer one of {', '.join(known)}")
        session = _Session(agent, request, usable + tuple(name for name in alike if name not in usable))
        task = asyncio.create_task(session.run())
        self._sessions.add(task)
        task.add_done_callback(self._sessions.discard)
        try:
            agreed = await session.agreed
        except asyncio.CancelledError:
            task.cancel()
            raise
        return Upgrade(protocol=agreed if agreed in usable else usable[0], serve=session.serving(task))


class _Session:
    """One connection to an agent, from its opening to its end; it waits for the client, though not for ever."""

    def __init__(self, agent: Agent, request: Request, protocols: tuple[str, ...]) -> None:
        self._agent = agent
        self._request = request
        self._protocols = protocols
        loop = asyncio.get_running_loop()
        self.agreed: asyncio.Future[str] = loop.create_future()
        """The subprotocol that the agent chose, or why it refused."""
        self._client: asyncio.Future[Socket] = loop.create_future()

    async def run(self) -> None:
        """Connects to the agent, and relays once the client is there."""
        try:
            async with self._agent.websocket(self._request, self._protocols) as websocket:
                if websocket.protocol not in self._protocols:
                    raise bad_request(
                        f"the agent of node {self._agent.node} speaks none of {', '.join(self._protocols)}"
                    )
                if self.agreed.done():
                    return
                self.agreed.set_result(websocket.protocol)
                async with asyncio.timeout(_CLIENT_COMES_WITHIN):
                    client = await self._client
                await relay(client, websocket)
        except (Refused, ApiError, ConnectionFault, TimeoutError) as error:
            if not self.agreed.done():
                self.agreed.set_exception(_as_refusal(error))

    def serving(self, task: asyncio.Task[None]) -> Callable[[Socket], Awaitable[None]]:
        """What the front calls with the client's end; ``task`` is the one that runs this session."""

        async def serve(client: Socket) -> None:
            if not self._client.done():
                self._client.set_result(client)
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError:
                task.cancel()
                await asyncio.wait({task})
                raise

        return serve


async def relay(client: Socket, agent: WebSocket) -> None:
    """Carries messages both ways, untouched, until either end has closed."""
    await until_either_ends(_carry(client.messages(), agent.send), _carry(agent.messages(), client.send))


async def _carry(messages: AsyncIterator[bytes], send: Callable[[bytes], Awaitable[None]]) -> None:
    # An end that breaks has closed: there is nobody left to tell.
    with suppress(ConnectionError, ConnectionFault):
        async for message in messages:
            await send(message)


async def _why_no_stream(agent: Agent, request: Request) -> Refused:
    """Why there is no stream by SPDY.

    kubectl asks for one whenever a WebSocket was refused, for whatever reason, and shows what it is told now. So the
    agent is asked the same without an upgrade, which runs nothing: what else stands against it comes first.
    """
    try:
        answer = await agent.send(request)
    except ConnectionFault as fault:
        return unreachable(fault)
    refusal = refusal_of(error_from_response(answer.status, answer.body))
    text = refusal.status.message.lower()
    is_about_upgrade = answer.status in (400, 403, 426) and (
        not answer.body or "upgrade" in text or "websocket" in text
    )
    return bad_request(_NO_SPDY) if answer.status < 400 or is_about_upgrade else refusal


def _as_refusal(error: Exception) -> Refused:
    match error:
        case Refused():
            return error
        case ApiError():
            return refusal_of(error)
        case ConnectionFault():
            return unreachable(error)
    return unreachable(ConnectionFault(str(error)))
