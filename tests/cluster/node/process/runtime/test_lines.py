from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from shoal.cluster.node.process.runtime import lines
from shoal.cluster.node.process.runtime.lines import Channel, Lost


@pytest.fixture
def ends() -> Iterator[tuple[Channel, Channel]]:
    here, there = socket.socketpair()
    one, other = Channel(here), Channel(there)
    yield one, other
    one.close()
    other.close()


@pytest.fixture
def raw() -> Iterator[tuple[socket.socket, Channel]]:
    here, there = socket.socketpair()
    channel = Channel(there)
    yield here, channel
    here.close()
    channel.close()


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_lines_arrive_as_they_were_sent(ends: tuple[Channel, Channel]) -> None:
    one, other = ends
    for line in (b"a", b"", b'{"b": 1}'):
        one.send(line)
    assert list(other.receive()) == [b"a", b"", b'{"b": 1}']


def test_a_line_may_come_in_pieces(raw: tuple[socket.socket, Channel]) -> None:
    sender, channel = raw
    got: list[bytes] = []
    for piece in (b"he", b"llo\nwor", b"ld", b"\n"):
        sender.send(piece)
        got += channel.receive()
    assert got == [b"hello", b"world"]


def test_each_line_has_its_own_descriptors(ends: tuple[Channel, Channel]) -> None:
    one, other = ends
    reading, writing = os.pipe()
    one.send(b"none")
    one.send(b"one", [writing])
    one.send(b"two", [reading, writing])
    os.close(reading)
    os.close(writing)
    counts = {b"none": 0, b"one": 1, b"two": 2}
    got = [(line, other.take(counts[line])) for _ in range(3) for line in other.receive()]
    assert [line for line, _ in got] == [b"none", b"one", b"two"]
    os.write(got[1][1][0], b"through")
    assert os.read(got[2][1][0], 100) == b"through"
    assert not os.get_inheritable(got[1][1][0])
    for _, descriptors in got:
        for descriptor in descriptors:
            os.close(descriptor)


def test_a_long_line_with_descriptors_arrives_whole(ends: tuple[Channel, Channel]) -> None:
    one, other = ends
    long = b"x" * (lines.LONGEST_LINE - 1)
    with Path(os.devnull).open("rb") as file:
        one.send(long, [file.fileno()])
    got: list[bytes] = []
    while not got:
        got += other.receive()
        one.flush()
    assert got == [long]
    (descriptor,) = other.take(1)
    os.close(descriptor)


def test_the_lines_before_the_end_are_read(ends: tuple[Channel, Channel]) -> None:
    one, other = ends
    one.send(b"last")
    one.close()
    got: list[bytes] = []
    with pytest.raises(Lost, match="closed"):  # noqa: PT012 (it takes any number of pieces)
        while True:
            got += other.receive()
    assert got == [b"last"]


def test_a_line_without_end_is_not_kept(raw: tuple[socket.socket, Channel]) -> None:
    sender, channel = raw
    sender.setblocking(False)
    with pytest.raises(Lost, match="longer"):  # noqa: PT012
        while True:
            with suppress(BlockingIOError):
                sender.send(b"x" * 65536)
            list(channel.receive())


def test_one_who_does_not_read_is_lost(ends: tuple[Channel, Channel]) -> None:
    one, _ = ends
    with pytest.raises(Lost, match="does not read"):  # noqa: PT012
        for _ in range(10_000):
            one.send(b"x" * 10_000)


@pytest.mark.parametrize("count", [-1, 1, 5])
def test_descriptors_that_did_not_come_cannot_be_taken(ends: tuple[Channel, Channel], count: int) -> None:
    with pytest.raises(Lost, match="lacks"):
        ends[1].take(count)


def test_descriptors_that_nobody_takes_do_not_pile_up(raw: tuple[socket.socket, Channel]) -> None:
    sender, channel = raw
    before = open_files()
    with Path(os.devnull).open("rb") as file, pytest.raises(Lost, match="descriptors"):  # noqa: PT012
        for _ in range(100):
            socket.send_fds(sender, [b"x\n"], [file.fileno()] * 10)
            list(channel.receive())
    channel.close()
    assert open_files() < before


def test_nothing_on_its_way_stays_open(ends: tuple[Channel, Channel]) -> None:
    one, other = ends
    before = open_files()
    with Path(os.devnull).open("rb") as file:
        with suppress(Lost):
            for _ in range(8):
                one.send(b"x" * 1_000_000, [file.fileno()])
        list(other.receive())
    one.close()
    other.close()
    assert open_files() == before - 2
