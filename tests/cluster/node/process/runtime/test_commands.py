from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from shoal.cluster.node.process.runtime.cgroups import Cgroups
from shoal.cluster.node.process.runtime.commands import RunningCommand
from shoal.cluster.node.process.runtime.container import Launch, StartFailed
from shoal.cluster.node.process.runtime.node import Node
from shoal.cluster.node.process.runtime.protocol import Bind, ExecSpec, Ids, Limits
from shoal.cluster.node.process.runtime.sandbox import Sandbox
from tests.cluster.node.process.runtime.conftest import InNode
from tests.support.node.runtime_program import PATH, a_container, a_sandbox
from tests.support.node.small_runtime import SmallRuntime
from tests.support.waiting import is_alive, wait_until


def a_command(launched: Launch, *argv: str, **fields: object) -> ExecSpec:
    return ExecSpec(container=launched.spec.id, argv=list(argv), env=[PATH], **fields)  # type: ignore[arg-type]


def failure(runtime: SmallRuntime, command: RunningCommand) -> StartFailed:
    runtime.until(lambda: runtime.results[command], "a failure")
    failed = runtime.results[command][0]
    assert isinstance(failed, StartFailed)
    return failed


def test_a_command_is_where_the_program_is(in_node: InNode, folder: Path) -> None:
    (folder / "volume").mkdir()
    (folder / "volume/seen").write_text("yes\n")
    namespaces = "for kind in cgroup ipc mnt net pid user uts; do readlink /proc/{}/ns/$kind; done"

    def act(node: Node) -> None:
        runtime = SmallRuntime(node, Sandbox(a_sandbox(hostname="web-0"), node).namespaces)
        binds = [Bind(source=str(folder / "volume"), target="/data")]
        launched = runtime.start(a_container(folder, "sleep", "1000", binds=binds))
        assert runtime.execute(a_command(launched, "hostname"), launched) == (0, "web-0\n", "")
        assert runtime.execute(a_command(launched, "cat", "seen", directory="/data"), launched) == (0, "yes\n", "")
        of_command = runtime.execute(a_command(launched, "sh", "-c", namespaces.format("self")), launched)
        of_program = runtime.execute(a_command(launched, "sh", "-c", namespaces.format("2")), launched)
        assert of_command == of_program
        assert len(of_command[1].split()) == 7

    in_node(act)


def test_a_command_has_its_input_its_outputs_and_its_exit_code(in_node: InNode, folder: Path) -> None:
    def act(node: Node) -> None:
        runtime = SmallRuntime(node)
        launched = runtime.start(a_container(folder, "sleep", "1000"))
        command = a_command(launched, "sh", "-c", "cat; echo err >&2; exit 9")
        assert runtime.execute(command, launched, b"given\n") == (9, "given\n", "err\n")
        assert runtime.execute(a_command(launched, "sh", "-c", "kill -TERM $$"), launched) == (143, "", "")
        assert runtime.execute(a_command(launched, "true"), launched) == (0, "", "")
        assert is_alive(launched.state.pid)

    in_node(act)


@pytest.mark.parametrize("of_program", [0, 1000], ids=["beside root", "beside another user"])
@pytest.mark.parametrize("of_command", [0, 2000], ids=["root", "a user"])
def test_a_command_runs_as_who_was_asked_for(of_program: int, of_command: int, in_node: InNode, folder: Path) -> None:
    def act(node: Node) -> None:
        runtime = SmallRuntime(node)
        ids = Ids(user=of_program, group=of_program)
        launched = runtime.start(
            a_container(folder, "sleep", "1000", ids=ids, capabilities=["CHOWN"], may_gain_privileges=False)
        )
        command = a_command(
            launched,
            *("sh", "-c", "id -u; grep -E 'CapEff|CapBnd|NoNewPrivs' /proc/self/status | cut -f2"),
            ids=Ids(user=of_command, group=of_command),
            capabilities=["CHOWN"],
        )
        code, output, _ = runtime.execute(command, launched)
        assert code == 0
        user, effective, bounding, is_bound = output.split()
        expected = of_command if node.facts.has_all_ids else of_program  # where there is but one id to have
        assert int(user) == expected
        assert int(effective, 16) == (1 if expected == 0 else 0)
        assert int(bounding, 16) == 1
        assert is_bound == "1"

    in_node(act)


def test_a_command_can_have_a_terminal(in_node: InNode, folder: Path) -> None:
    def act(node: Node) -> None:
        runtime = SmallRuntime(node)
        launched = runtime.start(a_container(folder, "sleep", "1000", ids=Ids(user=1000, group=1000)))
        spec = a_command(launched, "sh", "-c", "tty; stty size; read x; echo got $x", has_tty=True, rows=33, columns=99)
        command = runtime.begin_command(spec, launched)
        runtime.until(lambda: runtime.results[command], "its start")
        terminal = command.terminal
        assert terminal is not None
        os.write(terminal, b"word\n")
        assert runtime.result(command) == 0
        shown = b""
        try:
            while output := os.read(terminal, 4096):
                shown += output
        except OSError:
            pass  # nobody has the other end any more
        assert sorted(shown.decode().split()) == sorted(["word", "/dev/pts/0", "33", "99", "got", "word"])

    in_node(act)


@pytest.mark.parametrize(
    ("argv", "directory", "message"),
    [
        (["nope"], "/", 'exec: "nope": executable file not found in $PATH'),
        (["/nope"], "/", 'exec: "/nope": no such file or directory'),
        (["true"], "/nope", 'chdir to cwd ("/nope") failed: no such file or directory'),
    ],
)
def test_a_command_that_cannot_be_executed_is_told_in_a_sentence(
    argv: list[str], directory: str, message: str, in_node: InNode, folder: Path
) -> None:
    def act(node: Node) -> None:
        runtime = SmallRuntime(node)
        launched = runtime.start(a_container(folder, "sleep", "1000"))
        with Path("/dev/null").open("r+b") as null:
            spec = a_command(launched, *argv, directory=directory)
            command = runtime.begin_command(spec, launched, [null.fileno()] * 3)
            assert failure(runtime, command) == StartFailed("StartError", message)

    in_node(act)


def test_a_command_in_a_container_that_has_just_ended_is_not_running(in_node: InNode, folder: Path) -> None:
    def act(node: Node) -> None:
        runtime = SmallRuntime(node)
        launched = runtime.start(a_container(folder, "sleep", "1000"))
        launched.kill()
        wait_until(lambda: not is_alive(launched.state.pid), "its end")
        with Path("/dev/null").open("r+b") as null:
            command = runtime.begin_command(a_command(launched, "true"), launched, [null.fileno()] * 3)
            assert failure(runtime, command).reason == "NotRunning"

    in_node(act)


def test_a_signal_reaches_a_command_and_closing_ends_it(in_node: InNode, folder: Path) -> None:
    def act(node: Node) -> None:
        runtime = SmallRuntime(node)
        launched = runtime.start(a_container(folder, "sleep", "1000"))
        with Path("/dev/null").open("r+b") as null:
            for end, code in ((lambda one: one.signal(signal.SIGTERM), 143), (RunningCommand.close, 137)):
                command = runtime.begin_command(a_command(launched, "sleep", "1000"), launched, [null.fileno()] * 3)
                runtime.until(lambda one=command: runtime.results[one], "its start")  # type: ignore[misc]
                end(command)
                assert runtime.result(command) == code

    in_node(act)


def test_commands_end_with_their_container(in_node: InNode, folder: Path) -> None:
    def act(node: Node) -> None:
        runtime = SmallRuntime(node)
        launched = runtime.start(a_container(folder, "sleep", "1000"))
        with Path("/dev/null").open("r+b") as null:
            command = runtime.begin_command(a_command(launched, "sleep", "1000"), launched, [null.fileno()] * 3)
            runtime.until(lambda: runtime.results[command], "its start")
            launched.signal(signal.SIGTERM)
            assert runtime.end(launched) == 143
            assert runtime.result(command) == 137

    in_node(act)


def test_a_program_and_its_commands_are_in_the_containers_cgroup(in_node: InNode, folder: Path) -> None:
    def act(node: Node) -> None:
        cgroups = Cgroups.detect()
        if cgroups is None:
            return  # this user may make none here
        spec = a_container(folder, "sleep", "1000")
        cgroup = cgroups.make(spec.id, Limits())
        runtime = SmallRuntime(node)
        launched = runtime.begin(spec, cgroup=cgroup)
        runtime.until(lambda: runtime.progress[launched], "its start")
        reads, writes = os.pipe()
        command = runtime.begin_command(a_command(launched, "sleep", "1000"), launched, [reads, writes, writes])
        runtime.until(lambda: runtime.results[command], "its start")
        runtime.until(lambda: cgroup.reading().processes == 3, "the init, its program and the command alone")
        launched.kill()
        runtime.result(command)
        runtime.until(lambda: launched.is_gone, "its end")
        cgroup.remove()
        cgroups.close()

    in_node(act)


def test_a_command_finds_no_open_files_but_its_own(in_node: InNode, folder: Path) -> None:
    def act(node: Node) -> None:
        runtime = SmallRuntime(node)
        launched = runtime.start(a_container(folder, "sleep", "1000"))
        assert runtime.execute(a_command(launched, "ls", "/proc/self/fd"), launched)[1].split() == ["0", "1", "2", "3"]

    in_node(act)


TRACED = "import ctypes, os, signal; ctypes.CDLL(None).ptrace(0, 0, 0, 0); os.kill(os.getpid(), signal.SIGWINCH)"


def test_a_program_that_has_itself_traced_by_its_parent_is_ended_and_nothing_else(
    in_node: InNode, folder: Path
) -> None:
    def act(node: Node) -> None:
        runtime = SmallRuntime(node)
        launched = runtime.start(a_container(folder, "sleep", "1000"))
        with Path(os.devnull).open("r+b") as nothing:  # not a pipe: it would be read while nobody reaps
            descriptors = [nothing.fileno()] * 3
            traced = runtime.begin_command(a_command(launched, sys.executable, "-c", TRACED), launched, descriptors)
        assert runtime.result(traced) == 137
        assert runtime.execute(a_command(launched, "true"), launched) == (0, "", "")
        program = runtime.start(a_container(folder, sys.executable, "-c", TRACED, number=2))
        assert runtime.end(program) == 137

    in_node(act)
