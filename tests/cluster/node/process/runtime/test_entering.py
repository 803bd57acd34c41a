"""What a container can find out about the processes that enter it, while they are not yet its own."""

from __future__ import annotations

import fcntl
import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from shoal.cluster.node.process.runtime.devices import open_device
from shoal.cluster.node.process.runtime.node import Node
from shoal.cluster.node.process.runtime.privileges import CAPABILITIES
from shoal.cluster.node.process.runtime.protocol import Bind, Ids
from shoal.cluster.node.process.runtime.sealed import sealed_interpreter
from tests.cluster.node.process.runtime.conftest import InNode
from tests.cluster.node.process.runtime.test_commands import a_command
from tests.support.node.runtime_program import a_container, text_of_log
from tests.support.node.small_runtime import SmallRuntime

SPY = '''
import os, signal
FILES = ("environ", "mem", "maps", "exe", "auxv", "stack", "syscall")
FOLDERS = ("fd", "fdinfo", "map_files", "root", "cwd")

def command(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read().partition(b"\\0")[0].rpartition(b"/")[2].decode()

def inspect(pid):
    open_to_us = []
    for name in FILES:
        try:
            with open(f"/proc/{pid}/{name}", "rb") as file:
                if name != "mem":
                    file.read(1)
                open_to_us.append(name)
        except OSError:
            pass
    for name in FOLDERS:
        try:
            for entry in os.listdir(f"/proc/{pid}/{name}"):
                os.close(os.open(f"/proc/{pid}/{name}/{entry}", os.O_RDONLY | os.O_NONBLOCK))
                open_to_us.append(f"{name}/{entry}")
        except OSError:
            pass
    try:
        open_to_us.append("exe is " + os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        pass
    return open_to_us

def signal_if_allowed(pid, number):
    try:
        os.kill(int(pid), number)
    except PermissionError:
        pass  # it is still somebody else

def follow(pid):
    """Looks at a process where it is stopped just now, and lets it go on for a moment; False once it is the program."""
    signal_if_allowed(pid, signal.SIGSTOP)
    try:
        before, found, after = command(pid), inspect(pid), command(pid)
    finally:
        signal_if_allowed(pid, signal.SIGCONT)
    if not before or before != after or before == "true":
        return False
    print("caught", *found, flush=True)
    with open(f"/data/{pid}", "w"):
        pass
    return True

seen = {name for name in os.listdir("/proc") if name.isdigit()}
print("watching", flush=True)
while not os.path.exists("/data/stop"):
    for pid in os.listdir("/proc"):
        if not pid.isdigit() or pid in seen:
            continue
        seen.add(pid)
        try:
            while follow(pid):
                pass
        except OSError:
            pass
'''


@pytest.mark.parametrize("user", [0, 1000], ids=["root", "a user"])
def test_a_process_that_enters_by_exec_cannot_be_looked_at_from_inside(
    user: int, in_node: InNode, folder: Path
) -> None:
    volume = folder / "volume"
    volume.mkdir()
    volume.chmod(0o777)

    def act(node: Node) -> None:
        runtime = SmallRuntime(node)
        ids = Ids(user=user, group=user)
        spec = a_container(
            folder,
            *(sys.executable, "-I", "-c", SPY),
            ids=ids,
            binds=[Bind(source=str(volume), target="/data")],
            may_gain_privileges=False,
        )
        launched = runtime.start(spec)
        runtime.until(lambda: "watching" in text_of_log(spec), "the spy to be ready")
        for _ in range(150):
            runtime.execute(a_command(launched, "true", ids=ids), launched)
            if len(list(volume.iterdir())) >= 20:
                break
        (volume / "stop").touch()
        runtime.end(launched)
        caught = [line for line in text_of_log(spec).splitlines() if line.startswith("caught")]
        assert caught, "no process was caught while it entered"
        assert set(caught) == {"caught"}

    in_node(act)


@pytest.mark.parametrize("capabilities", [[], list(CAPABILITIES)], ids=["none", "all capabilities"])
def test_the_init_of_a_container_cannot_be_looked_at_from_inside(
    capabilities: list[str], in_node: InNode, folder: Path
) -> None:
    program = SPY.partition("def follow")[0] + "print('init', *inspect(1))"

    def act(node: Node) -> None:
        spec = a_container(folder, sys.executable, "-I", "-c", program, capabilities=capabilities)
        assert SmallRuntime(node).output(spec) == "init\n"

    in_node(act)


def test_a_link_to_a_descriptor_of_the_init_is_not_followed(in_node: InNode, folder: Path) -> None:
    def act(_: Node) -> None:
        kept = os.open("/", os.O_PATH)
        for name in ("null", "ptmx"):
            (folder / name).symlink_to(f"/proc/self/fd/{kept}/etc/passwd")
            with pytest.raises(OSError, match="symbolic links"):
                open_device(str(folder / name), os.O_RDONLY)

    in_node(act)


def test_the_file_that_entering_processes_execute_cannot_be_written() -> None:
    copy = sealed_interpreter()
    try:
        assert fcntl.fcntl(copy, fcntl.F_GET_SEALS) & fcntl.F_SEAL_WRITE
        for attempt in (lambda: os.pwrite(copy, b"x", 0), lambda: os.ftruncate(copy, 0)):
            with pytest.raises(PermissionError):
                attempt()
        with suppress(OSError):
            again = os.open(f"/proc/self/fd/{copy}", os.O_RDWR)
            with pytest.raises(PermissionError):
                os.write(again, b"x")
            os.close(again)
        assert os.pread(copy, 64, 0) == Path(sys.executable).read_bytes()[:64]
    finally:
        os.close(copy)
