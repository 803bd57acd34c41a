from __future__ import annotations

import fcntl
import os
import signal
import struct
import termios
from pathlib import Path

import pytest

from shoal.cluster.node.process.runtime.node import Node
from shoal.cluster.node.process.runtime.protocol import Ids
from shoal.cluster.node.process.runtime.shared_processes import SharedProcesses
from tests.cluster.node.process.runtime.conftest import InNode
from tests.support.node.runtime_program import a_container, text_of_log
from tests.support.node.small_runtime import SmallRuntime
from tests.support.waiting import is_alive, wait_until

CAPABILITIES = ["KILL", "SETGID", "SETUID"]


def tagged(path: str) -> list[str]:
    """Entries of a log without their times."""
    return [line.split(" ", 1)[1] for line in Path(path).read_bytes().decode().splitlines()]


def test_output_and_errors_are_told_apart_and_in_order(in_node: InNode, folder: Path) -> None:
    def act(node: Node) -> None:
        script = "echo one; sleep 0.05; echo two >&2; sleep 0.05; printf three"
        spec = a_container(folder, "sh", "-c", script)
        SmallRuntime(node).output(spec)
        assert tagged(spec.log) == ["stdout F one", "stderr F two", "stdout P three"]

    in_node(act)


def test_a_prompt_is_seen_before_its_line_ends(in_node: InNode, folder: Path) -> None:
    def act(node: Node) -> None:
        runtime = SmallRuntime(node)
        spec = a_container(folder, "sh", "-c", "printf 'name? '; read name; echo hello $name", has_stdin=True)
        launched = runtime.start(spec)
        runtime.said(launched, "name? ")
        stdin = launched.stdin()
        assert stdin is not None
        os.write(stdin, b"you\n")
        assert runtime.end(launched) == 0
        assert tagged(spec.log) == ["stdout P name? ", "stdout F hello you"]

    in_node(act)


def test_all_that_was_written_before_the_end_is_logged(in_node: InNode, folder: Path) -> None:
    def act(node: Node) -> None:
        spec = a_container(folder, "sh", "-c", "seq 1 200000; kill -KILL $$")
        runtime = SmallRuntime(node)
        assert runtime.end(runtime.start(spec)) == 137
        assert text_of_log(spec).split() == [str(number) for number in range(1, 200_001)]

    in_node(act)


def test_a_program_that_closes_its_output_runs_on(in_node: InNode, folder: Path) -> None:
    def act(node: Node) -> None:
        spec = a_container(folder, "sh", "-c", "echo one; exec >&- 2>&-; sleep 0.1; exit 5")
        runtime = SmallRuntime(node)
        assert runtime.end(runtime.start(spec)) == 5
        assert text_of_log(spec) == "one\n"

    in_node(act)


def test_what_a_program_leaves_behind_ends_with_it(in_node: InNode, folder: Path) -> None:
    def act(node: Node) -> None:
        # The one that is left holds the output open, which must not delay the end.
        script = "(trap '' TERM HUP; setsid sleep 1000) & echo $!; exit 3"
        runtime = SmallRuntime(node)
        launched = runtime.start(a_container(folder, "sh", "-c", script))
        assert runtime.end(launched, within=3) == 3

    in_node(act)


def test_orphans_are_reaped(in_node: InNode, folder: Path) -> None:
    script = """
        for i in 1 2 3 4 5; do (sleep 0.01 & ); done
        n=0; while set -- /proc/[0-9]*; test $# -gt 2 && test $n -lt 400; do n=$((n + 1)); sleep 0.05; done
        for status in /proc/[0-9]*/status; do grep Name $status; done
    """

    def act(node: Node) -> None:
        names = SmallRuntime(node).output(a_container(folder, "sh", "-c", script)).split()[1::2]
        assert names == ["shoal-init", "sh"]

    in_node(act)


@pytest.mark.parametrize("name", ["HUP", "INT", "QUIT", "USR1", "USR2", "TERM", "CONT", "WINCH", "RTMIN+3"])
def test_a_signal_to_the_first_process_is_one_to_the_program(name: str, in_node: InNode, folder: Path) -> None:
    """As `kill 1` does in a container whose program is the first process itself."""
    script = f"""
        trap 'echo got it; exit 0' {name if "+" not in name else signal.SIGRTMIN + 3}
        kill -{name if "+" not in name else signal.SIGRTMIN + 3} 1
        while :; do sleep 0.01; done
    """

    def act(node: Node) -> None:
        spec = a_container(folder, "sh", "-c", script, capabilities=CAPABILITIES)
        assert SmallRuntime(node).output(spec) == "got it\n"

    in_node(act)


def test_a_container_cannot_kill_its_init(in_node: InNode, folder: Path) -> None:
    def act(node: Node) -> None:
        spec = a_container(folder, "sh", "-c", "kill -KILL 1; kill -STOP 1; echo still here", capabilities=CAPABILITIES)
        assert SmallRuntime(node).output(spec) == "still here\n"

    in_node(act)


class TestTerminal:
    def test_a_program_has_a_terminal_of_its_own(self, in_node: InNode, folder: Path) -> None:
        script = "tty; test -t 0 && test -t 1 && test -t 2 && echo all; echo to tty > /dev/tty; echo x > /dev/console"

        def act(node: Node) -> None:
            spec = a_container(folder, "sh", "-c", script, has_tty=True)
            runtime = SmallRuntime(node)
            assert runtime.end(runtime.start(spec)) == 0
            assert Path(spec.log).read_bytes().count(b"\r\n") == 4
            assert text_of_log(spec).split() == ["/dev/pts/0", "all", "to", "tty", "x"]
            assert all(" stdout F " in line for line in Path(spec.log).read_text().splitlines())

        in_node(act)

    def test_it_can_be_written_to_and_resized_and_its_keys_send_signals(self, in_node: InNode, folder: Path) -> None:
        script = "trap 'stty size; exit 7' INT; echo ready; while :; do sleep 0.01; done"

        def act(node: Node) -> None:
            spec = a_container(folder, "sh", "-c", script, has_tty=True, ids=Ids(user=1000, group=1000))
            runtime = SmallRuntime(node)
            launched = runtime.start(spec)
            runtime.said(launched, "ready")
            terminal = launched.stdin()
            assert terminal is not None
            fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 132, 0, 0))
            os.write(terminal, b"\x03")
            assert runtime.end(launched) == 7
            assert "50 132" in text_of_log(spec)

        in_node(act)

    def test_its_user_may_open_it_by_name(self, in_node: InNode, folder: Path) -> None:
        def act(node: Node) -> None:
            spec = a_container(
                folder, "sh", "-c", "echo named > $(tty); id -u", has_tty=True, ids=Ids(user=1000, group=1000)
            )
            assert SmallRuntime(node).output(spec).split() == ["named", "1000"]

        in_node(act)


class TestSharedProcesses:
    def test_a_container_that_joins_another_sees_its_processes_and_outlives_none(
        self, in_node: InNode, folder: Path
    ) -> None:
        def act(node: Node) -> None:
            runtime = SmallRuntime(node)
            first = runtime.start(a_container(folder, "sleep", "4321", number=1))
            second = runtime.start(
                a_container(folder, "sh", "-c", "cat /proc/[0-9]*/cmdline; sleep 1000", number=2), joined=first
            )
            runtime.said(second, "sleep\x004321")
            first.kill()
            assert runtime.end(first) == 137
            assert runtime.end(second) == 137

        in_node(act)

    def test_the_end_of_one_that_joined_ends_its_own_processes_and_no_others(
        self, in_node: InNode, folder: Path
    ) -> None:
        def act(node: Node) -> None:
            runtime = SmallRuntime(node)
            first = runtime.start(a_container(folder, "sleep", "1000", number=1))
            script = "(setsid sleep 4322 &); (setsid sh -c 'sleep 4322; :' &); echo ready; read x"
            second = runtime.start(a_container(folder, "sh", "-c", script, number=2, has_stdin=True), joined=first)
            runtime.said(second, "ready")
            stdin = second.stdin()
            assert stdin is not None
            os.write(stdin, b"\n")
            assert runtime.end(second) == 0
            assert is_alive(first.state.pid)
            left = runtime.output_of(first, "sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
            assert "4322" not in left

        in_node(act)

    def test_containers_of_a_pod_share_processes_until_the_pod_is_closed(self, in_node: InNode, folder: Path) -> None:
        def act(node: Node) -> None:
            runtime = SmallRuntime(node)
            shared = SharedProcesses(runtime.node.launcher)
            runtime.namespaces = [shared.namespace]
            first = runtime.start(a_container(folder, "sh", "-c", "(setsid sleep 1000 &); sleep 1000", number=1))
            second = runtime.start(
                a_container(folder, "sh", "-c", "cat /proc/*/comm; read x", number=2, has_stdin=True)
            )
            runtime.said(second, "shoal-pause\n")
            runtime.said(second, "sleep\n")
            first.signal(signal.SIGTERM)
            assert runtime.end(first) == 143
            assert is_alive(second.state.pid)
            pid = second.state.pid
            shared.close()
            assert runtime.end(second) == 137
            wait_until(lambda: not is_alive(pid), "the end of all")

        in_node(act)
