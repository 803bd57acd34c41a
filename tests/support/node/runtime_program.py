"""The process node's runtime as tests run it: the real program, and pieces of it in a process of their own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import msgspec

from shoal.cluster.node.process.contents.machine_files import usual_files, without_parts
from shoal.cluster.node.process.contents.machine_root import Interpreter
from shoal.cluster.node.process.runtime.networks import Addresses
from shoal.cluster.node.process.runtime.node import Node, enter
from shoal.cluster.node.process.runtime.protocol import ContainerSpec, SandboxSpec
from tests.support.programs.ordinary_user import USER, as_ordinary_user, become_ordinary_user, is_root
from tests.support.waiting import wait_until

ADDRESSES = Addresses(
    node=IPv4Address("10.88.0.1"), pods=IPv4Network("10.88.0.0/16"), services=IPv4Network("10.96.0.0/12")
)
SHOWN = tuple(without_parts([*usual_files(one.name for one in Path("/etc").iterdir()), *Interpreter.ours().files]))
"""What containers on the machine's files see of it."""
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Program(msgspec.Struct):
    """A runtime that runs."""

    process: subprocess.Popen[bytes]
    folder: Path
    log: Path

    @property
    def socket(self) -> Path:
        return self.folder / "runtime.sock"

    @property
    def pid(self) -> int:
        """Its own pid, which is not that of the command that gives it another user."""
        return self.process.pid

    def said(self) -> str:
        """What it wrote for people."""
        return self.log.read_text()

    def stop(self, *, number: int = signal.SIGTERM, within: float = 15.0) -> int:
        """Asks it to end, and waits for that."""
        self.process.send_signal(number)
        return self.process.wait(within)


@contextmanager
def a_folder(*, is_ordinary: bool) -> Iterator[Path]:
    """A folder that belongs to whom the runtime runs as, where he can get at it."""
    folder = Path(tempfile.mkdtemp(dir="/tmp", prefix="shoal-runtime-"))
    if is_ordinary and is_root():
        os.chown(folder, USER, USER)
    try:
        yield folder
    finally:
        wait_until(lambda: _is_removed(folder), f"{folder} to be let go")


def _is_removed(folder: Path) -> bool:
    """Removes a folder, in which a container that is just being ended may still be making files."""
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


@contextmanager
def a_runtime(folder: Path, *arguments: str, is_ordinary: bool, before: Sequence[str] = ()) -> Iterator[Program]:
    """A runtime that serves, and has ended afterwards whatever it did; ``before`` is a command that runs it."""
    log = folder.with_suffix(".log")
    reading, writing = os.pipe()
    command = [
        *before,
        sys.executable,
        "-m",
        "shoal.cluster.node.process.runtime",
        *("--socket", str(folder / "runtime.sock"), "--root", str(folder / "root")),
        *("--ready-fd", str(writing), "--grace", "1", *arguments),
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(
            as_ordinary_user(*command) if is_ordinary else command,
            stderr=output,
            stdin=subprocess.DEVNULL,
            pass_fds=[writing],
        )
    os.close(writing)
    program = Program(process, folder, log)
    try:
        with os.fdopen(reading, "rb") as reports:
            report = json.loads(reports.readline() or "{}")
            assert report == {"ready": True}, f"{report.get('failed')}\n{program.said()}"
            yield program
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        process.wait()
        log.unlink()


def in_a_node(folder: Path, action: Callable[[Node], object], *, is_ordinary: bool) -> None:
    """Does something in a node, in a process that ends afterwards; its faults are ours."""

    def enter_and_act() -> None:
        if is_ordinary and is_root():
            become_ordinary_user()
        root = folder / "root"
        root.mkdir()
        action(enter(root, ADDRESSES))

    in_a_process(enter_and_act)


def in_a_process(action: Callable[[], object]) -> None:
    """Does something in a copy of this process; what it raises is told here."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        try:
            action()
        except BaseException:
            os.write(writing, traceback.format_exc().encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as faults:
        fault = faults.read().decode()
    os.waitpid(pid, 0)
    assert not fault, fault


def a_sandbox(uid: str = "pod-1", *, address: str = "10.88.0.2", **fields: object) -> SandboxSpec:
    """A pod's sandbox."""
    sandbox = SandboxSpec(uid=uid, name=f"default/{uid}", hostname=uid, address=address)
    return msgspec.structs.replace(sandbox, **fields)


def a_container(folder: Path, *argv: str, sandbox: str = "pod-1", number: int = 1, **fields: object) -> ContainerSpec:
    """A container on the machine's own files, with a scratch folder and a log of its own."""
    scratch = folder / f"{sandbox}-{number}"
    scratch.mkdir(exist_ok=True)
    scratch.chmod(0o755)
    if scratch.stat().st_uid != folder.stat().st_uid:
        os.chown(scratch, folder.stat().st_uid, folder.stat().st_gid)
    container = ContainerSpec(
        id=f"{number:04x}{sandbox.encode().hex()}".ljust(64, "0"),
        sandbox=sandbox,
        name=f"c{number}",
        argv=list(argv),
        env=[PATH],
        scratch=str(scratch),
        log=str(folder / f"{sandbox}-{number}.log"),
        shown=list(SHOWN),
        hidden=[str(folder)],
        capabilities=[],
    )
    return msgspec.structs.replace(container, **fields)


def text_of_log(spec: ContainerSpec) -> str:
    """What a container wrote, without times and streams; lines that came in parts are whole."""
    written = ""
    with suppress(FileNotFoundError):
        for line in Path(spec.log).read_text().splitlines():
            _, _, tag, text = line.split(" ", 3)
            written += text + ("\n" if tag == "F" else "")
    return written
