"""The far end of exec, attach, logs and port-forward: a server that speaks the wire as Kubernetes publishes it.

It answers as an API server would and, on a kubelet's paths, as a kubelet, so that a real API server can stand between.
A "pod" here is this machine: commands are real processes and ports are real ports. The messages follow the API
server's stream translator (v5) and the container runtimes' own servers (v4): an empty message on the first channel at
once, a close signal of 255 in v5 alone, a Status on channel 3 last; for ports two bytes of port number on each channel.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
from aiohttp import web

from shoal.kube.connection import Connection
from shoal.kube.http import HttpTransport
from tests.support.network.http_servers import serving

STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255


class PodServer:
    """Answers for pods; a test reads what it saw and changes how it behaves."""

    def __init__(self) -> None:
        self.protocols: tuple[str, ...] = ("v5.channel.k8s.io",)
        self.log = b""
        self.queries: list[dict[str, list[str]]] = []
        self.sizes: list[dict[str, int]] = []
        self.phase = "Running"
        self.say: list[bytes] = []
        """Messages that an exec answers with in place of running anything."""
        self.open_ports = 0

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        self.queries.append({name: request.query.getall(name) for name in request.query})
        match request.path.removeprefix("/api/v1/namespaces/a/pods/b").split("/"):
            case [""]:
                return web.json_response({"kind": "Pod", "status": {"phase": self.phase}})
            case ["", "log"] | ["", "containerLogs", _, _, _]:
                return await self._logs(request)
            case ["", "exec" | "attach"] | ["", "exec" | "attach", _, _, _]:
                return await self._command(request)
            case ["", "portforward"] | ["", "portForward", _, _]:
                return await self._port(request)
        body = {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404, "message": "no such pod"}
        return web.json_response(body, status=404)

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await answer.prepare(request)
        for start in range(0, len(self.log), 7):
            await answer.write(self.log[start : start + 7])
        if request.query.get("follow") == "true":
            await answer.write(b"live\n")
        return answer

    async def _command(self, request: web.Request) -> web.StreamResponse:
        websocket = web.WebSocketResponse(protocols=self.protocols)
        offered = [name.strip() for name in request.headers.get("Sec-WebSocket-Protocol", "").split(",")]
        if not set(offered) & set(self.protocols):
            return web.Response(status=403)
        await websocket.prepare(request)
        await websocket.send_bytes(bytes([STDOUT]))
        if self.say:
            for message in self.say:
                await websocket.send_bytes(message)
        else:
            await self._run(request, websocket)
        await websocket.close()
        return websocket

    async def _run(self, request: web.Request, websocket: web.WebSocketResponse) -> None:
        stdin = request.query.get("stdin") == "true" or request.query.get("input") == "1"
        tty = request.query.get("tty") in ("true", "1")
        command = request.query.getall("command", ["sh", "-c", "echo attached; cat"])
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT if tty else asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        receiving = asyncio.create_task(self._receive(websocket, process))
        try:
            copies = [self._copy(websocket, STDOUT, process.stdout)]
            if process.stderr is not None:
                copies.append(self._copy(websocket, STDERR, process.stderr))
            await asyncio.gather(*copies)
            await websocket.send_bytes(bytes([ERROR]) + json.dumps(exit_status(await process.wait())).encode())
        finally:
            receiving.cancel()
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await asyncio.wait({receiving})
            await process.communicate()

    async def _receive(self, websocket: web.WebSocketResponse, process: asyncio.subprocess.Process) -> None:
        async for message in websocket:
            assert message.type is aiohttp.WSMsgType.BINARY
            channel, data = message.data[0], message.data[1:]
            if channel == STDIN and process.stdin is not None:
                with suppress(ConnectionError):
                    process.stdin.write(data)
                    await process.stdin.drain()
            elif channel == RESIZE:
                self.sizes.append(json.loads(data))
            elif channel == CLOSE and websocket.ws_protocol == "v5.channel.k8s.io":
                assert data == bytes([STDIN])
                assert process.stdin is not None
                process.stdin.close()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    async def _copy(self, websocket: web.WebSocketResponse, channel: int, source: asyncio.StreamReader | None) -> None:
        assert source is not None
        while data := await source.read(32 * 1024):
            await websocket.send_bytes(bytes([channel]) + data)

    async def _port(self, request: web.Request) -> web.StreamResponse:
        websocket = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
        await websocket.prepare(request)
        port = int(request.query.get("ports") or request.query["port"])
        for channel in (0, 1):
            await websocket.send_bytes(bytes([channel]) + port.to_bytes(2, "little"))
        self.open_ports += 1
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError as error:
            await websocket.send_bytes(bytes([1]) + f"error forwarding port {port}: {error.strerror}".encode())
        else:
            sending = asyncio.create_task(self._copy(websocket, 0, reader))
            receiving = asyncio.create_task(self._upload(websocket, writer))
            try:
                await asyncio.wait({sending, receiving}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                writer.close()
                for task in (sending, receiving):
                    task.cancel()
                await asyncio.wait({sending, receiving})
        finally:
            self.open_ports -= 1
        await websocket.close()
        return websocket

    async def _upload(self, websocket: web.WebSocketResponse, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            async for message in websocket:
                assert message.data[0] == 0
                writer.write(message.data[1:])
                await writer.drain()


def exit_status(code: int) -> dict[str, Any]:
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


@asynccontextmanager
async def pods() -> AsyncIterator[tuple[PodServer, HttpTransport]]:
    """A server with pod b in namespace a, and a transport to it."""
    server = PodServer()
    async with serving(server) as url:
        transport = HttpTransport(Connection(server=url))
        try:
            yield server, transport
        finally:
            await transport.close()
