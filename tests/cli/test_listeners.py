"""Ports that are found again."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path

from shoal.cli.listeners import listen_as_before


def test_a_port_is_the_same_again_unless_somebody_else_has_it(tmp_path: Path) -> None:
    memory = tmp_path / "agents" / "local.port"
    with ExitStack() as first:
        port = listen_as_before(first, "127.0.0.1", memory).port
    with ExitStack() as second:
        assert listen_as_before(second, "127.0.0.1", memory).port == port
    with socket.create_server(("127.0.0.1", port)), ExitStack() as third:
        other = listen_as_before(third, "127.0.0.1", memory).port
        assert other != port
    with ExitStack() as fourth:
        assert listen_as_before(fourth, "127.0.0.1", memory).port == other


def test_a_memory_that_makes_no_sense_is_made_anew(tmp_path: Path) -> None:
    memory = tmp_path / "local.port"
    memory.write_text("nonsense")
    with ExitStack() as stack:
        port = listen_as_before(stack, "127.0.0.1", memory).port
    assert int(memory.read_text()) == port
