"""Main processes of real containers, joined through the API server."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

import pytest

from shoal.kube.errors import ApiError
from shoal.kube.streams import Completed, ExecSession, attach
from tests.cluster.node.process.answers.conftest import Household
from tests.support.waiting import eventually

HERE: dict[str, Any] = {"namespace": "default", "pod": "web"}


async def read_until(session: ExecSession, wanted: bytes) -> bytes:
    seen = b""
    async with asyncio.timeout(10):
        while wanted not in seen:
            output = await session.read()
            assert output is not None, seen
            seen += output.data
    return seen


async def test_what_is_written_from_now_on_is_seen_until_the_container_ends(household: Household) -> None:
    script = "echo before; read line; echo got $line; printf part >&2; exit 3"
    await household.start("web", "sh", "-c", script, says=b"before", has_stdin=True)
    async with attach(household.transport, **HERE, stdin=True) as session:
        await session.write(b"words\n")
        async with asyncio.timeout(10):
            assert await session.run() == Completed(b"got words\n", b"part", 0)
    assert (await household.end_of("web")).exit_code == 3


async def test_input_that_ends_is_the_end_of_the_first_ones_input(household: Household) -> None:
    await household.start("web", "cat", has_stdin=True, closes_stdin=True)
    async with attach(household.transport, **HERE, stdin=True) as session, asyncio.timeout(10):
        assert await session.run(b"x" * 200_000) == Completed(b"x" * 200_000, b"", 0)
    assert (await household.end_of("web")).exit_code == 0


async def test_the_one_whom_a_container_was_started_for_sees_what_it_said_before(household: Household) -> None:
    script = "echo before; read line; echo got $line"
    await household.start("web", "sh", "-c", script, says=b"before", has_stdin=True, closes_stdin=True)
    async with attach(household.transport, **HERE) as watcher:
        async with attach(household.transport, **HERE, stdin=True) as session, asyncio.timeout(10):
            assert await session.run(b"words\n") == Completed(b"before\ngot words\n", b"", 0)
        async with asyncio.timeout(10):
            assert await watcher.run() == Completed(b"got words\n", b"", 0)


async def test_what_was_read_from_the_log_before_joining_is_not_shown_again(household: Household) -> None:
    gate = f"/tmp/{secrets.token_hex(8)}"
    script = f"echo read; until rm {gate} 2>/dev/null; do sleep 0.02; done; echo missed; cat"
    await household.start("web", "sh", "-c", script, says=b"read", has_stdin=True, closes_stdin=True)
    code, log, _ = await household.kubectl("logs", "web")
    assert (code, log) == (0, "read\n")
    written = household.log(household.pods["web"].metadata.uid, "main", previous=False)
    assert written is not None
    assert await household.kubectl("exec", "web", "--", "touch", gate) == (0, "", "")
    await eventually(lambda: b"missed" in written.read_bytes())
    async with attach(household.transport, **HERE, stdin=True) as session, asyncio.timeout(10):
        assert await session.run(b"words\n") == Completed(b"missed\nwords\n", b"", 0)


async def test_whoever_leaves_leaves_the_container_running_for_the_next(household: Household) -> None:
    await household.start("web", "sh", "-c", "while read line; do echo got $line; done", has_stdin=True)
    for word in (b"one", b"two"):
        async with attach(household.transport, **HERE, stdin=True) as session:
            await session.write(word + b"\n")
            assert await read_until(session, b"got") == b"got " + word + b"\n"
    async with attach(household.transport, **HERE) as first, attach(household.transport, **HERE, stdin=True) as second:
        await second.write(b"three\n")
        assert await read_until(first, b"three") == await read_until(second, b"three") == b"got three\n"


async def test_a_terminal_shows_its_prompt_at_once_and_is_resized(household: Household) -> None:
    await household.start("web", "sh", "-i", has_stdin=True, has_tty=True)
    async with attach(household.transport, **HERE, stdin=True, tty=True) as session:
        await session.resize(width=123, height=45)
        await session.write(b"stty size; printf 'no newline''> '; read x\n")
        shown = await read_until(session, b"no newline> ")
        assert b"45 123" in shown
        await session.write(b"\n")
        await session.write(b"exit 4\n")
        assert await session.wait() == 0
    assert (await household.end_of("web")).exit_code == 4


async def test_a_container_that_has_no_input_is_watched_all_the_same(household: Household) -> None:
    await household.start("web", "sh", "-c", "sleep 0.3; echo alone")
    async with attach(household.transport, **HERE, stdin=True) as session, asyncio.timeout(10):
        await session.write(b"nobody hears this\n")
        assert await session.run() == Completed(b"alone\n", b"", 0)


async def test_a_container_that_has_ended_cannot_be_joined(household: Household) -> None:
    await household.start("web", "true")
    await household.end_of("web")
    with pytest.raises(ApiError, match="container main not found in pod web_default"):
        async with attach(household.transport, **HERE):
            pass
