"""Logs as they are asked for, written by the runtime's own writer."""

from __future__ import annotations

import asyncio
import os
import resource
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shoal.cluster.node.kubelet import LogOptions
from shoal.cluster.node.process.answers.logs import log_text
from shoal.cluster.node.process.answers.records import Reading, records, timestamp
from shoal.cluster.node.process.answers.watches import Watches
from shoal.cluster.node.process.runtime.logs import LONGEST_TEXT, ContainerLog
from tests.cluster.node.process.answers.conftest import open_descriptors
from tests.support.waiting import eventually, wait_until

T0 = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


def a_record(text: str, *, second: int = 0, stream: str = "stdout", tag: str = "F") -> bytes:
    return timestamp(T0 + timedelta(seconds=second)) + f" {stream} {tag} {text}\n".encode()


def written(path: Path, *pieces: bytes, largest_file: int = 1 << 20) -> Path:
    """A log in which a program wrote these pieces, each at a moment of its own."""
    log = ContainerLog(path, largest_file=largest_file, most_files=100)
    for piece in pieces:
        log.add(b"stdout", piece)
        log.settle(b"stdout")
    for descriptor in log.descriptors:
        os.close(descriptor)
    return path


async def text(path: Path, **options: object) -> bytes:
    """What is read of a log that is not followed."""
    pieces = log_text(path, LogOptions(**options), Watches(), None)  # type: ignore[arg-type]
    return b"".join([piece async for piece in pieces])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(
    pieces=st.lists(st.binary(max_size=60) | st.just(b"\n") | st.just(b"x" * (2 * LONGEST_TEXT + 7)), max_size=30),
    largest_file=st.sampled_from([100, 1000, 1 << 20]),
)
async def test_any_bytes_come_back_as_they_were_written(tmp_path: Path, pieces: list[bytes], largest_file: int) -> None:
    for old in tmp_path.iterdir():
        old.unlink()
    path = written(tmp_path / "0.log", *pieces, largest_file=largest_file)
    whole = b"".join(pieces)
    assert await text(path) == whole
    *ended, rest = whole.split(b"\n")
    lines = [line + b"\n" for line in ended] + ([rest] if rest else [])
    for tail in (0, 1, 2, 5, 1000):
        assert await text(path, tail=tail) == b"".join(lines[-tail:] if tail else [])


async def test_a_last_line_that_has_not_ended_gains_no_end(tmp_path: Path) -> None:
    path = written(tmp_path / "0.log", b"one\n", b"password: ")
    assert await text(path) == b"one\npassword: "
    assert await text(path, tail=1) == b"password: "


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, b"onetwo\nfault\nthree\nfour"),
        ({"since": T0 + timedelta(seconds=2)}, b"fault\nthree\nfour"),
        ({"since": T0 + timedelta(seconds=9)}, b""),
        ({"tail": 2}, b"three\nfour"),
        ({"tail": 3, "since": T0 + timedelta(seconds=4)}, b"four"),
        ({"timestamps": True, "tail": 1}, b"2026-01-01T12:00:04.000000000Z four"),
        (
            {"timestamps": True, "since": T0 + timedelta(seconds=2), "tail": 3},
            b"2026-01-01T12:00:02.000000000Z fault\n2026-01-01T12:00:03.000000000Z three\n"
            b"2026-01-01T12:00:04.000000000Z four",
        ),
        ({"timestamps": True, "since": T0 + timedelta(microseconds=1), "tail": 4}, None),
    ],
    ids=["all", "since", "since-later", "tail", "both", "timed", "timed-since", "joined"],
)
async def test_the_part_that_is_asked_for_is_read(
    tmp_path: Path, options: dict[str, object], expected: bytes | None
) -> None:
    path = tmp_path / "0.log"
    path.with_name("0.log.2").write_bytes(a_record("one", tag="P") + a_record("two", second=1))
    path.with_name("0.log.1").write_bytes(a_record("fault", second=2, stream="stderr"))
    path.write_bytes(a_record("three", second=3) + a_record("four", second=4, tag="P"))
    if expected is None:
        # A line whose beginning is too old has no time: it is no line of its own.
        expected = b"two\n" + await text(path, timestamps=True, tail=3)
    assert await text(path, **options) == expected


def test_streams_are_told_apart_and_what_is_no_record_is_passed_over() -> None:
    block = a_record("out") + b"\nhalf of a rec\n" + a_record("err ", stream="stderr", tag="P")
    assert list(records(block)) == [("stdout", b"out\n"), ("stderr", b"err ")]
    assert Reading().text(block) == b"out\nerr "


async def test_a_log_that_grows_while_it_is_read_ends_where_it_ended_at_first(tmp_path: Path) -> None:
    path = written(tmp_path / "0.log", b"x" * 1000 + b"\n")
    pieces = log_text(path, LogOptions(), Watches(), None)
    assert await anext(pieces) == b""
    first = await anext(pieces)
    written(path, b"later\n")
    assert first + b"".join([piece async for piece in pieces]) == b"x" * 1000 + b"\n"


class Follower:
    """Follows a log until its container is said to have ended."""

    def __init__(self, path: Path, **options: object) -> None:
        self.seen = bytearray()
        self.watches = Watches()
        self._over = asyncio.Event()
        self._path = path
        self._options = LogOptions(follow=True, **options)  # type: ignore[arg-type]
        self._task = asyncio.create_task(self._follow())

    async def has_seen(self, wanted: bytes) -> None:
        await eventually(lambda: bytes(self.seen) == wanted)

    async def end(self) -> bytes:
        self._over.set()
        async with asyncio.timeout(20):
            await self._task
        self.watches.close()
        return bytes(self.seen)

    async def _follow(self) -> None:
        async def ended() -> None:
            await self._over.wait()

        async with aclosing(log_text(self._path, self._options, self.watches, ended)) as pieces:
            async for piece in pieces:
                self.seen += piece


async def test_a_followed_log_gives_each_piece_when_it_is_written_and_ends_with_the_container(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    log = ContainerLog(path)
    log.add(b"stdout", b"old\nnew\n")
    follower = Follower(path, tail=1)
    await follower.has_seen(b"new\n")
    log.add(b"stdout", b"$ ")
    log.settle(b"stdout")
    await follower.has_seen(b"new\n$ ")
    log.add(b"stderr", b"last words\n")
    assert await follower.end() == b"new\n$ last words\n"


async def test_a_log_that_nothing_was_written_to_is_there_at_once(tmp_path: Path) -> None:
    follower = Follower(tmp_path / "0.log")
    log = ContainerLog(tmp_path / "0.log")
    log.add(b"stdout", b"first\n")
    await follower.has_seen(b"first\n")
    await follower.end()


async def test_nothing_is_lost_when_a_fast_writer_rotates_the_log(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    log = ContainerLog(path, largest_file=100_000)
    follower = Follower(path)
    blocks = [
        b"".join(b"%06d\n" % number for number in range(start, start + 1000)) for start in range(0, 200_000, 1000)
    ]

    def write() -> None:
        for number, block in enumerate(blocks):
            # Three blocks fill a file and five files are kept: a reader who is further behind has lost something.
            wait_until(partial(has_read, (number - 5) * len(block)), "the reader")
            log.add(b"stdout", block)

    def has_read(size: int) -> bool:
        return len(follower.seen) > size

    await asyncio.to_thread(write)
    assert await follower.end() == b"".join(blocks)


async def test_several_follow_one_log_and_none_leaves_anything_open(tmp_path: Path) -> None:
    path = written(tmp_path / "0.log", b"x\n")
    await Follower(path).end()
    before = open_descriptors()
    followers = [Follower(path) for _ in range(20)]
    for follower in followers:
        await follower.has_seen(b"x\n")
    for follower in followers:
        follower._task.cancel()
    await asyncio.wait({follower._task for follower in followers})
    for follower in followers:
        follower.watches.close()
    assert open_descriptors() == before


async def test_a_large_log_costs_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    block = a_record("x" * 100) * 10_000
    with path.open("wb") as file:
        for _ in range(100):
            file.write(block)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    size = 0
    async for piece in log_text(path, LogOptions(), Watches(), None):
        size += len(piece)
    assert size == 101 * 1_000_000
    assert await text(path, tail=2) == b"x" * 100 + b"\n" + b"x" * 100 + b"\n"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 * 1024
