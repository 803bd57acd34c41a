"""Ports that are found again."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path

from shoal.cli.listeners import listen_as_before, listen_on_socket


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


def test_a_socket_that_a_killed_run_left_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "agents" / "egress.sock"
    path.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    with ExitStack() as stack:
        listen_on_socket(stack, path)
        assert path.stat().st_mode & 0o777 == 0o600
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
    assert not path.exists()
