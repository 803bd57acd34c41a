"""Commands in real containers, through the API server."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from shoal.cluster.node.kubelet.channels import Size
from shoal.cluster.node.process.answers.commands import exec_spec
from shoal.cluster.node.process.runtime.protocol import ContainerSpec, ExecSpec, Ids
from shoal.kube.errors import ApiError, BadRequest
from shoal.kube.streams import Completed, ExecSession, exec_in_pod, run_in_pod
from shoal.kube.transport import Request
from tests.cluster.node.process.answers.conftest import Household, open_descriptors
from tests.support.waiting import eventually, is_alive

HERE: dict[str, Any] = {"namespace": "default", "pod": "web"}


@pytest.fixture
async def home(household: Household) -> Household:
    """A household whose pod "web" does nothing, for a long time."""
    await household.start("web", "sleep", "1000")
    return household


async def test_a_command_has_its_input_both_outputs_and_its_exit_code(home: Household) -> None:
    command = ["sh", "-c", "cat; echo oops >&2; exit 3"]
    done = await run_in_pod(home.transport, **HERE, command=command, stdin=b"x" * 300_000)
    assert done == Completed(b"x" * 300_000, b"oops\n", 3)
    assert await run_in_pod(home.transport, **HERE, command=["true"]) == Completed(b"", b"", 0)


async def test_a_command_that_cannot_be_run_is_an_error_that_says_why(home: Household) -> None:
    with pytest.raises(ApiError, match=r"error executing command in container: .*nope") as refused:
        await run_in_pod(home.transport, **HERE, command=["nope"])
    assert (refused.value.code, refused.value.reason) == (500, "InternalError")


async def test_a_container_that_does_not_run_runs_no_commands(home: Household) -> None:
    await home.start("short", "true")
    await home.end_of("short")
    with pytest.raises(ApiError, match=r'container not found \("main"\)'):
        await run_in_pod(home.transport, namespace="default", pod="short", command=["true"])


async def read_until(session: ExecSession, wanted: bytes) -> bytes:
    """What a session's terminal shows, up to something."""
    seen = b""
    async with asyncio.timeout(10):
        while wanted not in seen:
            output = await session.read()
            assert output is not None, seen
            seen += output.data
    return seen


async def test_a_terminal_is_one_that_its_shell_sees_resized(home: Household) -> None:
    async with exec_in_pod(home.transport, **HERE, command=["sh"], stdin=True, tty=True) as session:
        await session.resize(width=80, height=24)
        await session.write(b"tty; stty size; echo done-$((1+1))\n")
        shown = await read_until(session, b"done-2")
        assert b"/dev/pts/" in shown
        assert b"24 80" in shown
        await session.resize(width=132, height=43)
        await session.write(b"stty size; echo again-$((1+1))\n")
        assert b"43 132" in await read_until(session, b"again-2")
        await session.write(b"exit 5\n")
        assert await session.wait() == 5


async def test_a_command_may_know_the_size_of_its_terminal_from_its_start(home: Household) -> None:
    async with exec_in_pod(home.transport, **HERE, command=["stty", "size"], stdin=True, tty=True) as session:
        await session.resize(width=99, height=33)
        assert b"33 99" in await read_until(session, b"33 99")


async def pid_of(session: ExecSession, folder: Path) -> int:
    """The pid, on this machine, of a session's shell: it is the one that has a certain name open."""
    seen = await read_until(session, b"me=")
    while not seen.partition(b"me=")[2].strip().endswith(b";"):
        seen += await read_until(session, b";")
    marker = seen.partition(b"me=")[2].partition(b";")[0].decode().strip()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                environment = (entry / "environ").read_bytes()
            except OSError:
                continue
            if f"MARKER={marker}".encode() in environment.split(b"\0"):
                return int(entry.name)
    raise AssertionError(f"no process is marked {marker}")


@pytest.mark.parametrize("tty", [True, False], ids=["terminal", "pipes"])
async def test_whoever_leaves_hangs_up_on_the_command(home: Household, tmp_path: Path, tty: bool) -> None:
    marker = os.urandom(8).hex()
    # Only a terminal kills its command; whoever reads a pipe sees its end.
    script = "sleep 1000" if tty else "cat >/dev/null"
    command = ["env", f"MARKER={marker}", "sh", "-c", f"echo 'me={marker};'; {script}"]
    async with exec_in_pod(home.transport, **HERE, command=command, stdin=True, tty=tty) as session:
        pid = await pid_of(session, tmp_path)
        assert is_alive(pid)
    await eventually(lambda: not is_alive(pid))


async def test_a_client_that_leaves_while_its_input_is_stuck_is_let_go(home: Household) -> None:
    before = open_descriptors()
    socket = aiohttp.UnixConnector(str(home.cluster.sockets / "local.sock"))
    url = "http://agent/exec/default/web/main?command=sleep&command=1000&input=1"
    async with (
        aiohttp.ClientSession(connector=socket) as session,
        session.ws_connect(url, protocols=["v5.channel.k8s.io"]) as websocket,
    ):

        async def write() -> None:
            while True:
                await websocket.send_bytes(bytes(1 << 15))

        writing = asyncio.create_task(write())
        await asyncio.wait({writing}, timeout=0.3)
        writing.cancel()
        assert websocket._response.connection is not None
        assert websocket._response.connection.transport is not None
        websocket._response.connection.transport.abort()
    await eventually(lambda: open_descriptors() <= before)


async def test_much_output_arrives_whole_before_the_exit_code(home: Household) -> None:
    command = ["sh", "-c", "head -c 50000000 /dev/zero; echo end >&2"]
    async with exec_in_pod(home.transport, **HERE, command=command) as session:
        seen = {"stdout": 0, "stderr": 0}
        async for output in session:
            seen[output.source] += len(output.data)
        assert (seen, session.exit_code) == ({"stdout": 50_000_000, "stderr": 4}, 0)


async def test_a_command_that_leaves_somebody_behind_ends_all_the_same(home: Household) -> None:
    async with asyncio.timeout(10):
        done = await run_in_pod(home.transport, **HERE, command=["sh", "-c", "sleep 1000 & echo begun"])
    assert done == Completed(b"begun\n", b"", 0)


async def test_commands_leave_nothing_open(home: Household) -> None:
    await run_in_pod(home.transport, **HERE, command=["cat"], stdin=b"x")
    before = open_descriptors()
    for _ in range(10):
        await run_in_pod(home.transport, **HERE, command=["cat"], stdin=b"x")
    await asyncio.gather(*(run_in_pod(home.transport, **HERE, command=["cat"], stdin=b"x") for _ in range(10)))
    await eventually(lambda: open_descriptors() <= before + 20)
    await home.transport.close()
    await eventually(lambda: open_descriptors() <= before)


async def test_the_kubelets_own_paths_run_commands(home: Household) -> None:
    path = "/api/v1/nodes/node-a/proxy/run/default/web/main"
    answer = await home.transport.send(Request(method="POST", path=path, query={"cmd": "echo hello"}))
    assert (answer.status, answer.body) == (200, b"hello\n")
    code, status = await home.cluster.call("POST", path, query={"cmd": "false"})
    assert (code, status["message"]) == (500, "command 'false' exited with 1: ")
    code, status = await home.cluster.call("GET", "/api/v1/nodes/node-a/proxy/exec/default/web/main")
    assert code == 400, status
    with pytest.raises(BadRequest, match="at least 1 of stdin, stdout, stderr"):
        await run_nothing(home)


async def run_nothing(home: Household) -> None:
    async with exec_in_pod(home.transport, **HERE, command=["true"], stdout=False, stderr=False):
        pass


def test_a_command_runs_as_and_where_the_container_does() -> None:
    spec = ContainerSpec(
        id="c", sandbox="u", name="main", argv=["x"], env=["A=b"], directory="/app", scratch="/s", log="/l"
    )
    assert exec_spec(spec, ["ls"]) == ExecSpec(container="c", argv=["ls"], env=["A=b"], directory="/app", ids=Ids())
    with_terminal = exec_spec(spec, ["sh"], has_tty=True, size=Size(80, 24))
    assert (with_terminal.env, with_terminal.rows, with_terminal.columns) == (["A=b", "TERM=xterm"], 24, 80)
