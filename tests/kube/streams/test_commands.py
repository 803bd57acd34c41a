"""Commands in pods, run for real at the far end of the wire."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from shoal.kube.errors import ApiError, ConnectionFault, Forbidden, NotFound
from shoal.kube.streams import Completed, Output, StdinStaysOpen, attach, exec_in_pod, run_in_pod
from tests.support.network.streams import pods
from tests.support.waiting import eventually

POD: dict[str, Any] = {"namespace": "a", "pod": "b"}
V4, V5 = "v4.channel.k8s.io", "v5.channel.k8s.io"


def shell(script: str) -> list[str]:
    return ["sh", "-c", script]


@pytest.mark.parametrize("protocol", [V5, V4])
@pytest.mark.parametrize("code", [0, 1, 42, 255])
async def test_a_command_gives_its_output_and_its_exit_code(protocol: str, code: int) -> None:
    async with pods() as (server, transport):
        server.protocols = (protocol,)
        done = await run_in_pod(transport, **POD, command=shell(f"echo out; echo err >&2; exit {code}"))
    assert done == Completed(b"out\n", b"err\n", code)


async def test_a_command_is_sent_word_by_word_with_what_it_may_use() -> None:
    async with pods() as (server, transport):
        await run_in_pod(transport, **POD, command=["echo", "a b", "&c=d"], container="main")
    assert server.queries == [
        {
            "command": ["echo", "a b", "&c=d"],
            "container": ["main"],
            "stdin": ["false"],
            "stdout": ["true"],
            "stderr": ["true"],
            "tty": ["false"],
        }
    ]


async def test_input_is_fed_whole_and_its_end_is_seen() -> None:
    text = b"0123456789abcdef" * 20_000
    async with pods() as (_, transport):
        done = await run_in_pod(transport, **POD, command=shell("cat; echo end >&2"), stdin=text)
    assert done == Completed(text, b"end\n", 0)


async def test_a_command_need_not_read_all_of_its_input() -> None:
    async with pods() as (_, transport):
        done = await run_in_pod(transport, **POD, command=shell("head -c 3"), stdin=b"abc" * 1_000_000)
    assert (done.stdout, done.exit_code) == (b"abc", 0)


async def test_empty_input_is_an_end_too() -> None:
    async with pods() as (_, transport):
        assert await run_in_pod(transport, **POD, command=["cat"], stdin=b"") == Completed(b"", b"", 0)


async def test_a_server_that_cannot_close_input_is_not_left_hanging() -> None:
    async with pods() as (server, transport):
        server.protocols = (V4,)
        with pytest.raises(StdinStaysOpen, match=f"speaks {V4}, not {V5}"):
            await run_in_pod(transport, **POD, command=["cat"], stdin=b"x")


async def test_a_conversation_goes_back_and_forth() -> None:
    async with pods() as (_, transport), exec_in_pod(transport, **POD, command=["cat"], stdin=True) as session:
        for word in (b"one", b"two"):
            await session.write(word)
            assert await session.read() == Output("stdout", word)
        while_it_runs = session.exit_code
        await session.close_stdin()
        assert await session.read() is None
        assert (while_it_runs, session.exit_code, await session.wait()) == (None, 0, 0)


async def test_waiting_drops_what_is_still_written() -> None:
    async with (
        pods() as (_, transport),
        exec_in_pod(transport, **POD, command=shell("seq 1 100000; exit 7")) as session,
    ):
        assert await session.wait() == 7


async def test_a_terminal_has_one_stream_and_a_size() -> None:
    async with (
        pods() as (server, transport),
        exec_in_pod(
            transport, **POD, command=shell("read line; echo $line; echo err >&2"), stdin=True, tty=True
        ) as session,
    ):
        await session.resize(width=120, height=40)
        await session.write(b"hello\n")
        output = [piece async for piece in session]
    assert {piece.source for piece in output} == {"stdout"}
    assert b"".join(piece.data for piece in output) == b"hello\nerr\n"
    assert server.sizes == [{"Width": 120, "Height": 40}]
    assert server.queries[0]["stderr"] == ["false"]
    assert server.queries[0]["tty"] == ["true"]


async def test_leaving_early_ends_the_command() -> None:
    async with pods() as (_, transport):
        before = set(asyncio.all_tasks())
        async with exec_in_pod(transport, **POD, command=shell("echo started; sleep 300")) as session:
            assert await session.read() == Output("stdout", b"started\n")
        await eventually(lambda: asyncio.all_tasks() <= before)


async def test_waiting_for_output_can_be_given_up_and_taken_up_again() -> None:
    async with pods() as (_, transport), exec_in_pod(transport, **POD, command=["cat"], stdin=True) as session:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await session.read()
        await session.write(b"still here")
        assert await session.read() == Output("stdout", b"still here")


async def test_a_process_can_be_joined() -> None:
    async with pods() as (server, transport), attach(transport, **POD, container="main", stdin=True) as session:
        assert await session.run(b"hello") == Completed(b"attached\nhello", b"", 0)
    assert "command" not in server.queries[0]


async def test_a_command_that_could_not_be_started_is_the_servers_error() -> None:
    status = {"status": "Failure", "reason": "InternalError", "code": 500, "message": "exec: no such file: nope"}
    async with pods() as (server, transport):
        server.say = [b"\x03" + json.dumps(status).encode()]
        with pytest.raises(ApiError, match="no such file: nope") as caught:
            await run_in_pod(transport, **POD, command=["nope"])
    assert caught.value.code == 500
    assert "/pods/b/exec" in str(caught.value)


@pytest.mark.parametrize(
    "status",
    [
        pytest.param(b"container gone", id="no-json"),
        pytest.param(b'{"status":"Failure","reason":"NonZeroExitCode","message":"odd"}', id="no-cause"),
        pytest.param(
            b'{"status":"Failure","reason":"NonZeroExitCode",'
            b'"details":{"causes":[{"reason":"ExitCode","message":"x"}]}}',
            id="no-number",
        ),
    ],
)
async def test_a_status_that_holds_no_exit_code_is_an_error(status: bytes) -> None:
    async with pods() as (server, transport):
        server.say = [b"\x03" + status]
        with pytest.raises(ApiError):
            await run_in_pod(transport, **POD, command=["x"])


async def test_an_end_without_an_exit_code_is_a_fault_and_not_a_success() -> None:
    async with pods() as (server, transport):
        server.say = [b"\x01half"]
        with pytest.raises(ConnectionFault, match="before its exit code came"):
            await run_in_pod(transport, **POD, command=["x"])


async def test_unknown_channels_and_empty_messages_are_passed_over() -> None:
    async with pods() as (server, transport):
        server.say = [b"", b"\x09?", b"\x01", b"\x01out", b"\x03", b'\x03{"status":"Success"}']
        assert await run_in_pod(transport, **POD, command=["x"]) == Completed(b"out", b"", 0)


async def test_a_pod_that_is_not_there_is_said_so() -> None:
    async with pods() as (_, transport):
        with pytest.raises(NotFound, match="no such pod"):
            await run_in_pod(transport, namespace="a", pod="missing", command=["x"])


async def test_a_server_that_speaks_no_version_of_ours_refuses() -> None:
    async with pods() as (server, transport):
        server.protocols = ("v9.channel.k8s.io",)
        with pytest.raises(Forbidden):
            await run_in_pod(transport, **POD, command=["x"])
