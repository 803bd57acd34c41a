"""A sealed copy of the interpreter in memory, for processes that enter containers.

A process inside can be tricked into executing ``/proc/self/exe``; whoever may look at it then can open the file that it
runs. If that is the machine's interpreter, and root inside is root outside, that file can be overwritten (runc's
CVE-2019-5736). A sealed copy cannot, and belongs to nobody else.
"""

from __future__ import annotations

import fcntl
import os
import sys
from pathlib import Path

_NAME = "shoal-zygote"
_MAY_EXECUTE = 0x0010
"""MFD_EXEC, which says that the file is one to execute (Linux 6.3); older kernels refuse it, and do not need it."""
_SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
_PIECE = 1 << 24
DESCRIPTOR = 3
"""The number under which what ``spawn_sealed`` runs has the descriptor that it was given."""


def sealed_interpreter() -> int:
    """A descriptor of a sealed copy of the file that this process runs."""
    copy = _memory_file()
    try:
        with Path("/proc/self/exe").open("rb") as original:
            while os.sendfile(copy, original.fileno(), None, _PIECE):
                pass
        fcntl.fcntl(copy, fcntl.F_ADD_SEALS, _SEALS)
    except BaseException:
        os.close(copy)
        raise
    return copy


def library_folders() -> list[str]:
    """Where the libraries lie that the interpreter may look for beside itself, which a copy would not find there."""
    mapped = (line.split(maxsplit=5)[5:] for line in Path("/proc/self/maps").read_text().splitlines())
    paths = {Path(entry[0]) for entry in mapped if entry}
    return sorted({str(path.parent) for path in paths if path.name.startswith("libpython")})


def spawn_sealed(code: str, *, environment: dict[str, str], descriptor: int) -> int:
    """Runs code in a new interpreter from a sealed copy; returns its pid.

    It inherits stdout, stderr and the named descriptor (as its fourth), and nothing of the environment.
    """
    libraries = ":".join(library_folders())
    copy = sealed_interpreter()
    try:
        return os.posix_spawn(
            f"/proc/self/fd/{copy}",
            [sys.executable, "-I", "-S", "-X", "utf8", "-c", code],
            {**({"LD_LIBRARY_PATH": libraries} if libraries else {}), **environment},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, descriptor, DESCRIPTOR),
            ],
            setsigmask=(),
        )
    finally:
        os.close(copy)


def _memory_file() -> int:
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    try:
        return os.memfd_create(_NAME, flags | _MAY_EXECUTE)
    except OSError:
        return os.memfd_create(_NAME, flags)
