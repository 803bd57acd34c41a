"""The ports that ``shoal up`` listens on, opened before anything is started.

A port that is taken is found at once. Processes inherit the sockets when they are forked: where one of them is started
again its port stays ours, and whoever connects meanwhile waits instead of being refused.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from shoal.cli.exits import CommandError

_BACKLOG = 1024
_ANYWHERE = {4: "127.0.0.1", 6: "::1"}


@dataclass(frozen=True)
class Listener:
    """A port that is ours."""

    socket: socket.socket
    host: str
    """Where to connect to: an address of this machine, also where every one is listened on."""

    @property
    def port(self) -> int:
        """Its number."""
        number: int = self.socket.getsockname()[1]
        return number

    def url(self, scheme: str) -> str:
        """The base URL of what is served here."""
        return f"{scheme}://[{self.host}]:{self.port}" if ":" in self.host else f"{scheme}://{self.host}:{self.port}"


def listen(stack: ExitStack, bind: str, port: int, *, option: str) -> Listener:
    """Opens a port (0: any free one) until the stack is closed; ``option`` is how a person would choose another."""
    try:
        return _opened(stack, bind, port)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise CommandError(
            f"cannot listen on {bind}:{port}: {why}: choose another {option}, or {option} 0 for any free one"
        ) from error


def check_free(bind: str, wanted: Mapping[str, int]) -> None:
    """Raises where several ports are taken, by the options that choose them: all are told at once, not one by one."""
    taken = {option: port for option, port in wanted.items() if not _is_free(bind, port)}
    if len(taken) > 1:
        said = ", ".join(f"{port} ({option})" for option, port in taken.items())
        free = " ".join(f"{option} 0" for option in taken)
        raise CommandError(f"cannot listen on {bind}: {said} are taken, maybe by another Shoal: try {free}")


def _is_free(bind: str, port: int) -> bool:
    with ExitStack() as briefly:
        try:
            _opened(briefly, bind, port)
        except OSError:
            return False
    return True


def listen_as_before(stack: ExitStack, bind: str, memory: Path) -> Listener:
    """Opens the port that a file remembers, or any other where that one is taken, which is then remembered."""
    with suppress(OSError, ValueError):
        return _opened(stack, bind, int(memory.read_text()))
    opened = _opened(stack, bind, 0)
    memory.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    memory.write_text(f"{opened.port}\n")
    return opened


def listen_on_socket(stack: ExitStack, path: Path) -> socket.socket:
    """Listens on a Unix socket until the stack is closed; a file that an earlier run left there is replaced."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.unlink(missing_ok=True)
    opened = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
    opened.bind(str(path))
    path.chmod(0o600)
    opened.listen(_BACKLOG)
    opened.setblocking(False)
    stack.callback(path.unlink, missing_ok=True)
    return opened


def _opened(stack: ExitStack, bind: str, port: int) -> Listener:
    address = ipaddress.ip_address(bind)
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    opened = stack.enter_context(socket.socket(family, socket.SOCK_STREAM))
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    opened.bind((bind, port))
    opened.listen(_BACKLOG)
    opened.setblocking(False)
    return Listener(opened, _ANYWHERE[address.version] if address.is_unspecified else bind)
