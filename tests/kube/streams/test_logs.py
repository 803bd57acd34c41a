"""Logs: whole lines whatever the pieces, bounded memory, and the options that were asked for."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import pytest

from shoal.kube.errors import NotFound
from shoal.kube.streams import follow_logs, log_chunks, logs
from tests.support.network.streams import pods

POD: dict[str, Any] = {"namespace": "a", "pod": "b"}


@pytest.mark.parametrize(
    ("log", "lines"),
    [
        pytest.param(b"", [], id="nothing"),
        pytest.param(b"one\n", [b"one"], id="one"),
        pytest.param(b"one\ntwo\nthree", [b"one", b"two", b"three"], id="the-last-is-not-ended"),
        pytest.param(b"\n\n", [b"", b""], id="empty-lines"),
        pytest.param(
            b"a rather long line that comes in pieces\nb\n",
            [b"a rather long line that comes in pieces", b"b"],
            id="pieces",
        ),
        pytest.param(b"\xff\xfe\r\nx\n", [b"\xff\xfe\r", b"x"], id="not-text"),
    ],
)
async def test_a_log_is_read_line_by_line(log: bytes, lines: list[bytes]) -> None:
    async with pods() as (server, transport):
        server.log = log
        assert [line async for line in follow_logs(transport, **POD, follow=False)] == lines
        assert b"".join([chunk async for chunk in log_chunks(transport, **POD, follow=False)]) == log


async def test_a_log_is_followed_past_its_present_end() -> None:
    async with pods() as (server, transport):
        server.log = b"old\n"
        assert [line async for line in follow_logs(transport, **POD)] == [b"old", b"live"]


async def test_what_is_asked_for_is_asked_of_the_server() -> None:
    async with pods() as (server, transport):
        chosen: dict[str, Any] = {
            "container": "main",
            "previous": True,
            "timestamps": True,
            "tail_lines": 0,
            "since_seconds": 60,
            "limit_bytes": 1000,
        }
        assert [line async for line in follow_logs(transport, **POD, follow=False, **chosen)] == []
        assert [line async for line in follow_logs(transport, **POD, since_time="2026-01-02T03:04:05Z")] == [b"live"]
    assert server.queries == [
        {
            "container": ["main"],
            "previous": ["true"],
            "timestamps": ["true"],
            "tailLines": ["0"],
            "sinceSeconds": ["60"],
            "limitBytes": ["1000"],
        },
        {"follow": ["true"], "sinceTime": ["2026-01-02T03:04:05Z"]},
    ]


async def test_a_line_without_end_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "LONGEST_LINE", 1000)
    async with pods() as (server, transport):
        server.log = b"x" * 100_000
        pieces = [piece async for piece in follow_logs(transport, **POD, follow=False)]
    assert b"".join(pieces) == server.log
    assert len(pieces) > 1


async def test_a_log_can_be_left_early() -> None:
    async with pods() as (server, transport):
        server.log = b"line\n" * 1000
        async with aclosing(follow_logs(transport, **POD)) as lines:
            assert await anext(lines) == b"line"


async def test_a_pod_that_is_not_there_has_no_log() -> None:
    async with pods() as (_, transport):
        with pytest.raises(NotFound, match="no such pod"):
            await anext(follow_logs(transport, namespace="a", pod="missing"))
