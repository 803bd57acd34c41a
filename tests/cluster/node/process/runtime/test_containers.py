from __future__ import annotations

import os
import random
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.cluster.node.process.runtime.launcher import SEARCH_PATH
from shoal.cluster.node.process.runtime.node import Node
from shoal.cluster.node.process.runtime.protocol import Bind, ContainerSpec, Facts, Ids
from shoal.cluster.node.process.runtime.sandbox import Sandbox
from tests.cluster.node.process.runtime.conftest import InNode
from tests.support.node.runtime_program import PATH, a_container, a_sandbox, in_a_process, text_of_log
from tests.support.node.small_runtime import SmallRuntime
from tests.support.waiting import is_alive, wait_until

USUAL = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "MKNOD", "SETGID", "SETUID", "SETPCAP", "NET_RAW", "SYS_CHROOT", "SETFCAP"]
ANOTHER = 8_000_000 + os.getpid()
"""Seconds that nobody else sleeps."""


def processes(*words: str) -> Iterator[int]:
    """All processes of the machine with these among their arguments."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (folder / "cmdline").read_text().split("\0")
        except OSError:
            continue
        if set(words) <= set(arguments) and is_alive(int(folder.name)):
            yield int(folder.name)


@pytest.mark.parametrize(
    ("script", "code", "number"),
    [
        ("exit 0", 0, 0),
        ("exit 42", 42, 0),
        ("kill -TERM $$", 143, signal.SIGTERM),
        ("kill -KILL $$", 137, signal.SIGKILL),
        ("kill -SEGV $$", 139, signal.SIGSEGV),
    ],
)
def test_a_container_ends_as_its_program_does(
    script: str, code: int, number: int, in_node: InNode, folder: Path
) -> None:
    def act(node: Node) -> None:
        runtime = SmallRuntime(node)
        before = time.time()
        launched = runtime.start(a_container(folder, "sh", "-c", f"read x; {script}", has_stdin=True))
        assert is_alive(launched.state.pid)
        stdin = launched.stdin()
        assert stdin is not None
        os.write(stdin, b"go\n")
        assert runtime.end(launched) == code
        state = launched.state
        assert (state.exit_code, state.signal) == (code, number)
        assert state.finished is not None
        assert before <= state.started <= state.finished <= time.time()
        assert not is_alive(state.pid)

    in_node(act)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["nope"], 'exec: "nope": executable file not found in $PATH'),
        (["/nope"], 'exec: "/nope": no such file or directory'),
        (["/etc/passwd"], 'exec: "/etc/passwd": permission denied'),
        (["/etc"], 'exec: "/etc": is a directory'),
        ([""], 'exec: "": executable file not found in $PATH'),
        ([], "no command specified"),
        (["/volume/text"], 'exec: "/volume/text": exec format error'),
        (["/volume/script"], 'exec: "/volume/script": no such file or directory'),
    ],
)
def test_a_program_that_cannot_be_executed_is_told_in_a_sentence(
    argv: list[str], message: str, in_node: InNode, folder: Path
) -> None:
    volume = folder / "volume"
    volume.mkdir()
    for name, text in (("text", "not a program"), ("script", "#!/no/such/interpreter\n")):
        (volume / name).write_text(text)
        (volume / name).chmod(0o755)

    def act(node: Node) -> None:
        spec = a_container(folder, *argv, binds=[Bind(source=str(volume), target="/volume")])
        assert SmallRuntime(node).failure(spec) == message

    in_node(act)


def has_no_children() -> bool:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return True
    return False


def test_a_failed_start_leaves_nothing(in_node: InNode, folder: Path) -> None:
    def act(node: Node) -> None:
        runtime = SmallRuntime(node)
        runtime.failure(a_container(folder, "nope"))
        runtime.node.launcher.close()
        wait_until(has_no_children, "all to end")

    in_node(act)


def test_environment_and_arguments_arrive_as_they_are(in_node: InNode, folder: Path) -> None:
    def act(node: Node) -> None:
        env = [PATH, "A=", "B=1=2", "C=ä ö\tü"]
        spec = a_container(folder, "env", env=env)
        assert SmallRuntime(node).output(spec).splitlines() == env
        spec = a_container(folder, "printf", "[%s]", "", "a b", "ä*", number=2)
        assert SmallRuntime(node).output(spec) == "[][a b][ä*]"

    in_node(act)


def test_a_container_is_alone_with_its_own_processes_and_its_own_name(in_node: InNode, folder: Path) -> None:
    def act(node: Node) -> None:
        sandbox = Sandbox(a_sandbox(hostname="web-0"), node)
        script = "hostname; cat /proc/[0-9]*/comm; ls /proc | grep -c '^[0-9]'"
        runtime = SmallRuntime(node, sandbox.namespaces)
        name, *programs, count = runtime.output(a_container(folder, "sh", "-c", script)).split()
        assert name == "web-0"
        assert programs[:2] == ["shoal-init", "sh"]
        assert int(count) <= 5

    in_node(act)


FORBIDDEN = {
    "a hidden folder": ("cat /machine/data/secret", "No such file"),
    "taking away what hides": ("umount /machine/data", "must be superuser"),
    "taking away what hides, in new namespaces": ("unshare -Urm umount /machine/data", "not mounted|Invalid argument"),
    "mounting": ("mount -t tmpfs none /tmp", "permission denied|must be superuser"),
    "thawing what is frozen, in new namespaces": (
        "unshare -Urm mount -o remount,bind,rw /proc/sys",
        "permission denied|not permitted",
    ),
    "the machine's files": ("echo x > /machine/read-only/file", "Read-only file system"),
    "the machine's settings": ("echo 1 > /proc/sys/kernel/panic", "Read-only file system|Permission denied"),
    "the machine's devices": ("echo 1 > /sys/kernel/profiling", "Read-only file system|Permission denied"),
    "the processes of the machine": ("kill -0 {pid}", "No such process"),
    "the init's files": ("ls /proc/1/root/", "Permission denied"),
    "the init's environment": ("cat /proc/1/environ", "Permission denied"),
    "the init's memory": ("head -c1 /proc/1/mem", "Permission denied"),
    "the init's namespaces": ("nsenter -t 1 -m true", "not permitted|Permission denied"),
    "a disk": ("mknod /tmp/disk b 254 0", "not permitted"),
    "the name of its pod": ("hostname other", "must be root|not permitted"),
    "the network's settings": ("ip link set lo down", "not permitted"),
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_a_container_cannot_get_at(what: str, in_node: InNode, folder: Path) -> None:
    for name in ("data", "read-only"):
        (folder / name).mkdir()
        (folder / name).chmod(0o777)
    (folder / "data" / "secret").write_text("x")

    def act(node: Node) -> None:
        command, refusal = FORBIDDEN[what]
        runtime = SmallRuntime(node, Sandbox(a_sandbox(), node).namespaces)
        spec = a_container(
            folder,
            *("sh", "-c", command.format(pid=os.getpid())),
            capabilities=USUAL,
            binds=[Bind(source=str(folder), target="/machine", is_read_only=True)],
            hidden=[str(folder / "data")],
        )
        assert runtime.end(runtime.start(spec)) != 0
        assert re.search(refusal, text_of_log(spec)), text_of_log(spec)

    in_node(act)


def test_a_container_cannot_trace_its_init(in_node: InNode, folder: Path) -> None:
    script = "import ctypes, sys; sys.exit(ctypes.CDLL(None).ptrace(16, 1, 0, 0) == 0)"

    def act(node: Node) -> None:
        python = "/usr/bin/python3"
        if Path(python).exists():
            SmallRuntime(node).output(a_container(folder, python, "-c", script, capabilities=[*USUAL, "SYS_PTRACE"]))

    in_node(act)


def test_one_that_may_mount_mounts_for_itself_alone_and_uncovers_nothing(in_node: InNode, folder: Path) -> None:
    (folder / "data").mkdir()
    script = "mount -t tmpfs none /opt && grep ' /opt tmpfs' /proc/mounts && ! umount /machine/data"

    def act(node: Node) -> None:
        spec = a_container(
            folder,
            *("sh", "-c", script),
            capabilities=[*USUAL, "SYS_ADMIN"],
            binds=[Bind(source=str(folder), target="/machine", is_read_only=True)],
            hidden=[str(folder / "data")],
        )
        assert "/machine/data" in SmallRuntime(node).output(spec)

    in_node(act)


def test_a_signal_reaches_the_program_and_nothing_else(in_node: InNode, folder: Path) -> None:
    script = "trap 'echo got usr1' USR1; trap 'echo got term; exit 3' TERM; echo ready; while :; do sleep 0.01; done"

    def act(node: Node) -> None:
        runtime = SmallRuntime(node)
        launched = runtime.start(a_container(folder, "sh", "-c", script))
        runtime.said(launched, "ready")
        launched.signal(signal.SIGUSR1)
        runtime.said(launched, "got usr1")
        launched.signal(signal.SIGTERM)
        assert runtime.end(launched) == 3
        launched.signal(signal.SIGTERM)  # nobody is there

    in_node(act)


def test_a_program_that_handles_no_signal_ends_by_one(in_node: InNode, folder: Path) -> None:
    def act(node: Node) -> None:
        runtime = SmallRuntime(node)
        launched = runtime.start(a_container(folder, "sleep", "1000"))
        launched.signal(signal.SIGTERM)
        assert runtime.end(launched) == 143

    in_node(act)


def test_killing_a_container_ends_all_that_runs_in_it(in_node: InNode, folder: Path) -> None:
    script = "trap '' TERM; for i in 1 2 3; do (trap '' TERM; setsid sleep 1000) & done; echo ready; wait"

    def act(node: Node) -> None:
        runtime = SmallRuntime(node)
        launched = runtime.start(a_container(folder, "sh", "-c", script))
        runtime.said(launched, "ready")
        launched.kill()
        assert runtime.end(launched) == 137
        assert launched.state.signal == signal.SIGKILL

    in_node(act)


def test_killing_a_container_again_ends_its_init(in_node: InNode, folder: Path) -> None:
    def act(node: Node) -> None:
        runtime = SmallRuntime(node)
        launched = runtime.start(a_container(folder, "sleep", "1000"))
        launched.kill()
        launched.kill()
        assert runtime.end(launched) == 137

    in_node(act)


def test_one_that_is_killed_while_it_starts_never_starts_or_ends(in_node: InNode, folder: Path) -> None:
    def act(node: Node) -> None:
        runtime = SmallRuntime(node)
        for number in range(20):
            launched = runtime.begin(a_container(folder, "sleep", str(ANOTHER), number=number))
            deadline = time.monotonic() + random.random() * 0.03
            while time.monotonic() < deadline:
                runtime.turn()
            launched.kill()
            launched.kill()
            runtime.until(lambda one=launched: one.state.finished or runtime.progress[one], "an end")  # type: ignore[misc]
        for launched in runtime.launches:
            launched.close()
        wait_until(lambda: not list(processes("sleep", str(ANOTHER))), "nothing to be left")

    in_node(act)


def test_stdin_stays_open_until_the_one_who_may_close_it_leaves(in_node: InNode, folder: Path) -> None:
    def act(node: Node) -> None:
        runtime = SmallRuntime(node)
        launched = runtime.start(a_container(folder, "cat", has_stdin=True))
        for word in (b"one\n", b"two\n"):
            stdin = launched.stdin()
            assert stdin is not None
            os.write(stdin, word)
            os.close(stdin)
        runtime.said(launched, "one\ntwo\n")
        assert launched.state.finished is None
        launched.kill()
        runtime.end(launched)
        assert launched.stdin() is None

        launched = runtime.start(a_container(folder, "cat", has_stdin=True, closes_stdin=True, number=2))
        stdin = launched.stdin()
        assert stdin is not None
        assert launched.stdin() is None
        os.write(stdin, b"once\n")
        os.close(stdin)
        assert runtime.end(launched) == 0
        assert text_of_log(launched.spec) == "once\n"

        assert runtime.start(a_container(folder, "cat", number=3)).stdin() is None

    in_node(act)


def copies() -> list[int]:
    """Programs of containers that this test began, and copies of zygotes, which are their guides and inits."""
    users = Path("/proc/self/ns/user").stat().st_ino
    found = list(processes("sleep", str(ANOTHER)))
    for folder in Path("/proc").glob("[0-9]*"):
        pid = int(folder.name)
        try:
            is_zygote = SEARCH_PATH.encode() in (folder / "cmdline").read_bytes()
            is_copy = is_zygote and (folder / "ns/user").stat().st_ino == users
        except OSError:
            continue
        if is_copy and pid != os.getpid() and is_alive(pid):
            found.append(pid)
    return found


def test_nothing_outlives_a_runtime_that_is_killed_at_any_moment(in_node: InNode, folder: Path) -> None:
    def launch_many(node: Node) -> None:
        runtime = SmallRuntime(node)
        for number in range(30):
            script = f"setsid sleep {ANOTHER} & sleep {ANOTHER}"
            runtime.begin(a_container(folder, "sh", "-c", script, sandbox=f"{os.getpid()}", number=number))
            runtime.turn()

    def act(node: Node) -> None:
        for _ in range(5):
            pid = os.fork()
            if pid == 0:
                try:
                    launch_many(node)
                finally:
                    os._exit(1)
            wait_until(lambda: len(copies()) > 3, "some to be launched")
            time.sleep(random.random() * 0.1)  # not to wait for anything: the moment is what is tried out
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            wait_until(lambda: not copies(), "all to end")

    in_node(act)


class TestWithoutNamespaces:
    """Where the system forbids namespaces."""

    def degraded(self, *, is_ordinary: bool) -> Node:
        facts = Facts(
            pid=os.getpid(),
            has_namespaces=False,
            has_network=False,
            has_all_ids=not is_ordinary,
            has_overlays=False,
            cgroups="",
        )
        return Node(facts=facts, root=Path("/nowhere"), network=None)

    def test_programs_run_are_logged_and_end_the_same(self, folder: Path, is_ordinary: bool) -> None:
        def act() -> None:
            runtime = SmallRuntime(self.degraded(is_ordinary=is_ordinary))
            spec = a_container(folder, "sh", "-c", "pwd; echo err >&2; exit 3", directory="/no/such/folder")
            launched = runtime.start(spec)
            assert runtime.end(launched) == 3
            assert sorted(text_of_log(spec).split()) == sorted([spec.scratch, "err"])
            assert runtime.failure(a_container(folder, "nope", number=2)) == (
                'exec: "nope": executable file not found in $PATH'
            )
            launched = runtime.start(a_container(folder, "sleep", "1000", number=3))
            launched.signal(signal.SIGTERM)
            assert runtime.end(launched) == 143

        in_a_process(act)

    def test_all_that_descends_from_a_program_ends_with_it(self, folder: Path, is_ordinary: bool) -> None:
        script = f"setsid sh -c 'sleep {ANOTHER} & sleep {ANOTHER}' & (sleep {ANOTHER} &) ; echo ready; read x"

        def act() -> None:
            runtime = SmallRuntime(self.degraded(is_ordinary=is_ordinary))
            launched = runtime.start(a_container(folder, "sh", "-c", script, has_stdin=True))
            runtime.said(launched, "ready")
            wait_until(lambda: len(list(processes("sleep", str(ANOTHER)))) == 3, "all to run")
            stdin = launched.stdin()
            assert stdin is not None
            os.write(stdin, b"\n")
            assert runtime.end(launched) == 0
            assert not list(processes("sleep", str(ANOTHER)))

        in_a_process(act)

    def test_all_of_it_ends_with_the_runtime(self, folder: Path, is_ordinary: bool) -> None:
        def act() -> None:
            runtime = SmallRuntime(self.degraded(is_ordinary=is_ordinary))
            script = f"setsid sleep {ANOTHER} & echo ready; sleep {ANOTHER}"
            runtime.said(runtime.start(a_container(folder, "sh", "-c", script)), "ready")
            wait_until(lambda: len(list(processes("sleep", str(ANOTHER)))) == 2, "all to run")

        in_a_process(act)
        wait_until(lambda: not list(processes("sleep", str(ANOTHER))), "all to end")

    def test_root_runs_as_who_was_asked_for(self, folder: Path, is_ordinary: bool) -> None:
        if is_ordinary:
            pytest.skip("only root can")

        def act() -> None:
            folder.chmod(0o755)
            spec: ContainerSpec = a_container(folder, "id", "-u", ids=Ids(user=1234, group=1234))
            assert SmallRuntime(self.degraded(is_ordinary=False)).output(spec) == "1234\n"

        in_a_process(act)
