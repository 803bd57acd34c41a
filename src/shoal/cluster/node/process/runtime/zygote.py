"""The process that is copied to enter containers.

It was executed from a sealed copy of the interpreter, with an empty environment, before any container was known. It is
not dumpable, and neither are its copies, so that nobody inside can trace them or look at their memory, their files and
what they execute. It reads no orders: a copy does, and knows of nothing but the container that it is for.
"""

from __future__ import annotations

import array
import gc
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from types import FrameType

from shoal.cluster.node.process.runtime.entering import carry_out
from shoal.cluster.node.process.runtime.forks import ended_children, fork
from shoal.cluster.node.process.runtime.journal import note
from shoal.cluster.node.process.runtime.launcher import ENDED, READY
from shoal.cluster.node.process.runtime.orders import read
from shoal.cluster.node.process.runtime.sealed import DESCRIPTOR
from shoal.cluster.node.process.runtime.syscalls import PR_SET_DUMPABLE, end_with_parent, prctl

_MOST_DESCRIPTORS = 64
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The runtime decides when it is over, and is seen to end by the end of the socket."""


def main() -> None:
    """The life of the zygote, which ends with the runtime."""
    prctl(PR_SET_DUMPABLE, 0)
    end_with_parent()
    runtime = socket.socket(fileno=DESCRIPTOR)
    runtime.set_inheritable(False)
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    # Whatever is not loaded by now would be looked for among the files of a container.
    sys.path.clear()
    sys.path_importer_cache.clear()
    gc.collect()
    gc.freeze()
    with suppress(BrokenPipeError, ConnectionResetError):
        runtime.send(READY)
        _serve(runtime)


def _serve(runtime: socket.socket) -> None:
    reads, writes = os.pipe()
    for descriptor in (reads, writes):
        os.set_blocking(descriptor, False)
    signal.set_wakeup_fd(writes, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, _only_wake)
    while True:
        ready, _, _ = select.select([runtime.fileno(), reads], [], [])
        if reads in ready:
            with suppress(BlockingIOError):
                os.read(reads, 4096)
            _report_ended(runtime)
        if runtime.fileno() in ready and not _begin(runtime):
            return


def _begin(runtime: socket.socket) -> bool:
    """Has a copy carry out the next order; False where there are no more."""
    size = array.array("i").itemsize
    told, ancillary, _, _ = runtime.recvmsg(1, socket.CMSG_SPACE(_MOST_DESCRIPTORS * size), socket.MSG_CMSG_CLOEXEC)
    if not told:
        return False
    descriptors = array.array("i")
    for _, _, content in ancillary:
        descriptors.frombytes(content[: len(content) - len(content) % size])
    order, *others = descriptors
    zygote = os.getpid()
    try:
        fork(lambda: carry_out(read(order), others, zygote=zygote), kept=descriptors)
    except OSError as error:  # those who wait for it see that nobody holds the other end of their socket
        note("a process could not be made", error=str(error))
    for one in descriptors:
        os.close(one)
    return True


def _report_ended(runtime: socket.socket) -> None:
    for pid, status in ended_children():
        runtime.send(ENDED.pack(pid, status))


def _only_wake(number: int, frame: FrameType | None) -> None:
    """The loop looks for children that ended."""
