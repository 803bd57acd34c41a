"""What the answers here need of others, and no more: who lives on this node, and what the runtime does for them."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from shoal.api.core.pod_details import PodDetails
from shoal.cluster.node.process.runtime.protocol import ContainerSpec, ExecSpec, SocketSpec


class Residents(Protocol):
    """The pods of this node and their containers, as they are now."""

    def pod(self, namespace: str, name: str) -> PodDetails | None:
        """A pod by its name."""
        ...

    def address(self, uid: str) -> str | None:
        """A pod's address in the network of the pods; None where it does not run, empty where it has none there."""
        ...

    def running(self, uid: str, container: str) -> str | None:
        """The id of a container of a pod, where it runs."""
        ...

    def log(self, uid: str, container: str, *, previous: bool) -> Path | None:
        """The log of a container's last life, or of the one before it; None where it had none."""
        ...

    def spec(self, uid: str, container: str) -> ContainerSpec | None:
        """How a container was started last."""
        ...

    async def ended(self, container_id: str) -> None:
        """Returns once a container has ended, and its log is whole."""
        ...


class Command(Protocol):
    """A command that runs in a container."""

    @property
    def terminal(self) -> int | None:
        """The terminal's other end, which is ours to close."""
        ...

    async def wait(self) -> int:
        """The exit code, when it has ended."""
        ...


class Runtime(Protocol):
    """What is asked of the runtime here. Each call may raise RuntimeFault."""

    async def execute(self, spec: ExecSpec, descriptors: Sequence[int] = ()) -> Command:
        """Runs a command in a running container."""
        ...

    async def stdin(self, container: str) -> int:
        """The writing end of a container's input, or its terminal."""
        ...

    async def socket(self, spec: SocketSpec) -> socket.socket:
        """A socket in the network of a pod."""
        ...
