"""What the processes of a container tell the runtime, over a socket that they share with it alone.

The socket tells more by its end: when the runtime sees it, nobody of the container is left to say anything; when they
see it, the runtime is gone.
"""

from __future__ import annotations

import array
import socket
from collections.abc import Sequence

import msgspec

GO = b"go"
"""What the runtime says to an init once its parent is the runtime."""
_LONGEST = 64 * 1024
_MOST_DESCRIPTORS = 8
_DESCRIPTOR = array.array("i").itemsize


class Born(msgspec.Struct, frozen=True, tag=True):
    """A process was made that lives on when the one that says so ends; its pid as the runtime sees it."""

    pid: int


class Guided(msgspec.Struct, frozen=True, tag=True):
    """A process is on its way into the namespaces of a pod; its pid as the runtime sees it."""

    pid: int


class Running(msgspec.Struct, frozen=True, tag=True):
    """The program was executed. With it come a pidfd of it and the master of its terminal, where there is one."""

    started: float


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The program could not be started."""

    reason: str
    message: str


class Over(msgspec.Struct, frozen=True, tag=True):
    """The program ended, and with it all that ran in the container."""

    finished: float
    status: int
    """As ``os.waitpid`` gives it."""


Report = Guided | Born | Running | Failed | Over
_decoder: msgspec.json.Decoder[Report] = msgspec.json.Decoder(Report)
_encoder = msgspec.json.Encoder()


def socket_pair() -> tuple[socket.socket, socket.socket]:
    """The runtime's end, which never blocks, and that of a container's processes."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    return ours, theirs


def tell(control: socket.socket, report: Report, descriptors: Sequence[int] = ()) -> None:
    """Says it; nobody may be there to hear it."""
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
    try:
        control.sendmsg([_encoder.encode(report)], rights, socket.MSG_NOSIGNAL)
    except (BrokenPipeError, ConnectionResetError):
        return


def heard(control: socket.socket) -> tuple[Report, list[int]] | None:
    """What was said next, and the descriptors that came with it; None when all who could say something are gone."""
    try:
        said, rights = _received(control)
    except ConnectionResetError:
        # They ended with something of ours unread. That is reported before what they said, which is still there.
        said, rights = _received(control)
    if not said:
        return None
    descriptors = array.array("i")
    for level, kind, given in rights:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(given[: len(given) - len(given) % _DESCRIPTOR])
    return _decoder.decode(said), descriptors.tolist()


def _received(control: socket.socket) -> tuple[bytes, list[tuple[int, int, bytes]]]:
    space = socket.CMSG_SPACE(_MOST_DESCRIPTORS * _DESCRIPTOR)
    said, rights, _, _ = control.recvmsg(_LONGEST, space, socket.MSG_CMSG_CLOEXEC)
    return said, rights


def has_ended(control: socket.socket) -> bool:
    """Whether the other side is gone, without waiting and without taking anything that it said."""
    try:
        return not control.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True
