"""What the runtime keeps in mind: sandboxes, containers and commands, each with those who wait for something of it."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from shoal.cluster.node.process.runtime.cgroups import Cgroup
from shoal.cluster.node.process.runtime.commands import RunningCommand
from shoal.cluster.node.process.runtime.connections import Reply
from shoal.cluster.node.process.runtime.container import Ended, Launch, StartFailed
from shoal.cluster.node.process.runtime.protocol import ContainerState, SandboxState
from shoal.cluster.node.process.runtime.sandbox import Sandbox


class KeptContainer:
    """A container from its start until it is removed, with those who wait for it."""

    def __init__(self, launched: Launch, cgroup: Cgroup | None) -> None:
        self.launch = launched
        self.cgroup = cgroup
        self.asked = time.time()
        self.has_started = False
        self.outcome: StartFailed | Ended | None = None
        """What it told last, before its last process ends."""
        self.state: ContainerState | None = None
        """How it ended; None while something of it is left."""
        self.at_start: list[Reply] = []
        self.at_end: list[Callable[[], None]] = []

    def shown(self) -> ContainerState:
        """The container as it is told; one that is being started is, since somebody may come who did not ask for it."""
        if not self.has_started:
            return msgspec.structs.replace(self.launch.state, started=self.asked)
        return self.state or self.launch.state

    @property
    def is_running(self) -> bool:
        """Whether its program was executed and has not ended."""
        return self.has_started and self.outcome is None


class KeptSandbox:
    """A sandbox, with its containers by id."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.containers: dict[str, KeptContainer] = {}
        self.at_close: list[Reply] = []

    def state(self) -> SandboxState:
        """The sandbox as it is told."""
        spec = self.sandbox.spec
        shown = [one.shown() for one in self.containers.values()]
        return SandboxState(uid=spec.uid, name=spec.name, address=self.sandbox.address, containers=shown)


class KeptCommand:
    """A command, with the one who asked for it."""

    def __init__(self, running: RunningCommand, reply: Reply) -> None:
        self.running = running
        self.reply = reply
