from __future__ import annotations

import errno
import sys
from pathlib import Path
from typing import Any

import pytest

from shoal.cluster.node.process.runtime.node import Node
from shoal.cluster.node.process.runtime.privileges import CAPABILITIES
from shoal.cluster.node.process.runtime.seccomp import Instruction, default_filter, has_filter
from tests.cluster.node.process.runtime.conftest import InNode
from tests.cluster.node.process.runtime.test_commands import a_command
from tests.support.node.runtime_program import a_container
from tests.support.node.small_runtime import SmallRuntime

ALLOWED = 0x7FFF0000
X86_64 = 0xC000003E
CALLS = {"read": 0, "clone": 56, "socket": 41, "unshare": 272, "mount": 165, "clone3": 435, "personality": 135}


def outcome(filter_: list[Instruction], number: int, argument: int = 0, architecture: int = X86_64) -> int:
    """What the kernel would make of a call: 0 where it is allowed, else the error."""
    position, loaded = 0, 0
    found = {0: number, 4: architecture, 16: argument & 0xFFFFFFFF}
    while True:
        code, if_so, if_not, operand = filter_[position]
        position += 1
        if code == 0x06:
            return 0 if operand == ALLOWED else operand & 0xFFFF
        if code == 0x20:
            loaded = found[operand]
            continue
        holds = {0x15: loaded == operand, 0x35: loaded >= operand, 0x45: bool(loaded & operand)}[code]
        position += if_so if holds else if_not


@pytest.mark.parametrize(
    ("call", "argument", "capabilities", "expected"),
    [
        ("read", 0, [], 0),
        ("unshare", 0, [], errno.EPERM),
        ("unshare", 0, ["SYS_ADMIN"], 0),
        ("mount", 0, ["SYS_PTRACE"], errno.EPERM),
        ("clone", 0x11, [], 0),  # a plain fork
        ("clone", 0x10000011, [], errno.EPERM),  # with a new user namespace
        ("clone", 0x10000011, ["SYS_ADMIN"], 0),
        ("clone3", 0, [], errno.ENOSYS),
        ("socket", 2, [], 0),
        ("socket", 40, [], errno.EPERM),
        ("socket", 40, list(CAPABILITIES), errno.EPERM),
        ("personality", 0xFFFFFFFF, [], 0),
        ("personality", 0x0040000, [], errno.EPERM),
    ],
)
def test_a_call_is_refused_as_container_runtimes_do(
    call: str, argument: int, capabilities: list[str], expected: int
) -> None:
    assert outcome(default_filter(capabilities, "x86_64"), CALLS[call], argument) == expected


@pytest.mark.parametrize("machine", ["x86_64", "aarch64", "riscv64", "loongarch64"])
def test_calls_of_another_architecture_and_of_the_future_do_not_exist(machine: str) -> None:
    architecture = default_filter([], machine)[1][3]
    made = default_filter([], machine)
    assert outcome(made, 0, architecture=architecture) == 0
    assert outcome(made, 0, architecture=0x40000003) == errno.ENOSYS
    assert outcome(made, 471, architecture=architecture) == errno.ENOSYS
    assert outcome(made, 0x40000000, architecture=architecture) == errno.ENOSYS


TRIES = """
import ctypes, errno, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def tell(name, result):
    print(name, errno.errorcode[ctypes.get_errno()] if result < 0 else "ok")
tell("unshare", libc.unshare(0x10000000))
try:
    socket.socket(40, socket.SOCK_STREAM).close()
    print("vsock", "ok")
except OSError as error:
    print("vsock", errno.errorcode[error.errno])
pid = os.fork()
if pid == 0:
    os._exit(0)
print("fork", os.waitpid(pid, 0)[1])
"""


@pytest.mark.skipif(not has_filter(), reason="there is no filter for this architecture")
@pytest.mark.parametrize("may_gain_privileges", [False, True])
def test_a_program_and_a_command_beside_it_are_bound_by_the_filter(
    may_gain_privileges: bool, in_node: InNode, folder: Path
) -> None:
    def act(node: Node) -> None:
        runtime = SmallRuntime(node)
        python = (sys.executable, "-I", "-c", TRIES)
        kinds: dict[str, Any] = {"has_filter": True, "may_gain_privileges": may_gain_privileges}
        bound = "unshare EPERM\nvsock EPERM\nfork 0\n"
        assert runtime.output(a_container(folder, *python, number=1, **kinds)) == bound
        launched = runtime.start(a_container(folder, "sleep", "1000", number=2, **kinds))
        assert runtime.execute(a_command(launched, *python), launched) == (0, bound, "")
        free = runtime.output(a_container(folder, *python, number=3))
        assert free.startswith("unshare ok\n")

    in_node(act)
