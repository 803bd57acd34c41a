"""A runtime of a few lines, for tests: it launches containers in a node and reaps, with no socket to ask it by."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Sequence

from shoal.cluster.node.process.runtime.cgroups import Cgroup
from shoal.cluster.node.process.runtime.commands import Finished, RunningCommand, execute
from shoal.cluster.node.process.runtime.container import Ended, Launch, Progress, Started, StartFailed, launch
from shoal.cluster.node.process.runtime.forks import ended_children
from shoal.cluster.node.process.runtime.node import Node
from shoal.cluster.node.process.runtime.protocol import ContainerSpec, ExecSpec
from shoal.cluster.node.process.runtime.syscalls import PR_SET_CHILD_SUBREAPER, prctl
from tests.support.node.runtime_program import PATH, text_of_log


class SmallRuntime:
    """Launches containers, and waits for what becomes of them."""

    def __init__(self, node: Node, namespaces: Sequence[int] = ()) -> None:
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        self.node = node.with_zygote()
        self.namespaces = list(namespaces)
        self.launches: list[Launch] = []
        self.commands: list[RunningCommand] = []
        self.progress: dict[Launch, list[Progress]] = {}
        self.results: dict[RunningCommand, list[Started | StartFailed | Finished]] = {}

    def begin(
        self,
        spec: ContainerSpec,
        *,
        joined: Launch | None = None,
        cgroup: Cgroup | None = None,
        namespaces: Sequence[int] | None = None,
    ) -> Launch:
        """Launches a container and does not wait."""
        others = self.namespaces if namespaces is None else namespaces
        begun = launch(spec, node=self.node, namespaces=others, joined=joined, cgroup=cgroup)
        self.launches.append(begun)
        self.progress[begun] = []
        return begun

    def start(self, spec: ContainerSpec, *, joined: Launch | None = None) -> Launch:
        """Launches a container and waits until its program runs."""
        begun = self.begin(spec, joined=joined)
        self.until(lambda: self.progress[begun], f"the start of {spec.argv}")
        assert self.progress[begun][0] == Started(), self.progress[begun]
        return begun

    def failure(self, spec: ContainerSpec) -> str:
        """Launches a container that cannot be, and tells why."""
        begun = self.begin(spec)
        self.until(lambda: self.progress[begun], f"the failure of {spec.argv}")
        failed = self.progress[begun][0]
        assert isinstance(failed, StartFailed), failed
        assert failed.reason == "StartError"
        return failed.message

    def end(self, launched: Launch, *, within: float = 10.0) -> int:
        """Waits for the end of a container; its exit code."""
        self.until(lambda: Ended() in self.progress[launched], "the end of a container", within=within)
        assert launched.state.exit_code is not None
        return launched.state.exit_code

    def output(self, spec: ContainerSpec) -> str:
        """Runs a container to its end, which is a good one; what it wrote."""
        code = self.end(self.start(spec))
        assert code == 0, f"{spec.argv} ended with {code}: {text_of_log(spec)}"
        return text_of_log(spec)

    def said(self, launched: Launch, text: str) -> None:
        """Waits until a container has written something."""
        self.until(lambda: text in text_of_log(launched.spec), f"{text!r} in the log")

    def execute(self, spec: ExecSpec, launched: Launch, given: bytes = b"") -> tuple[int, str, str]:
        """Runs a command with pipes; its exit code, and what it wrote to each."""
        pipes = [os.pipe() for _ in range(3)]
        os.write(pipes[0][1], given)
        os.close(pipes[0][1])
        theirs = [pipes[0][0], pipes[1][1], pipes[2][1]]
        command = self.begin_command(spec, launched, theirs)
        for descriptor in theirs:
            os.close(descriptor)
        texts = []
        for descriptor in (pipes[1][0], pipes[2][0]):
            with os.fdopen(descriptor, "rb") as reading:
                texts.append(reading.read().decode())
        return self.result(command), texts[0], texts[1]

    def output_of(self, launched: Launch, *argv: str) -> str:
        """Runs a command in a container to its good end; what it wrote."""
        code, output, errors = self.execute(ExecSpec(container="", argv=list(argv), env=[PATH]), launched)
        assert code == 0, errors
        return output

    def begin_command(self, spec: ExecSpec, launched: Launch, descriptors: Sequence[int] = ()) -> RunningCommand:
        command = execute(spec, launched, descriptors)
        self.commands.append(command)
        self.results[command] = []
        return command

    def result(self, command: RunningCommand) -> int:
        """Waits for the end of a command; its exit code."""
        self.until(lambda: len(self.results[command]) == 2, "the end of a command")
        finished = self.results[command][1]
        assert isinstance(finished, Finished)
        return finished.exit_code

    def until(self, condition: Callable[[], object], what: str, *, within: float = 10.0) -> None:
        """Turns until a condition holds."""
        deadline = time.monotonic() + within
        while not condition():
            assert time.monotonic() < deadline, f"waited {within:.0f} s in vain for {what}"
            self.turn()

    def turn(self) -> None:
        """Does what is to be done, after a moment at most."""
        open_launches = [one for one in self.launches if not {Ended} & {type(two) for two in self.progress[one]}]
        open_commands = [one for one in self.commands if not self.results[one]]
        watched = [one.fileno() for one in open_launches] + [one.fileno() for one in open_commands]
        select.select([*watched, self.node.launcher.fileno()], [], [], 0.002)
        for ended in self.node.launcher.ended():
            self._reaped(*ended)
        for pid, status in ended_children():
            self._reaped(pid, status)
        for launched in self.launches:
            if (progress := launched.advance()) is not None:
                self.progress[launched].append(progress)
        for command in self.commands:
            if (result := command.advance()) is not None:
                self.results[command].append(result)

    def _reaped(self, pid: int, status: int) -> None:
        for launched in self.launches:
            launched.reaped(pid, status)
        for command in self.commands:
            command.reaped(pid, status)
