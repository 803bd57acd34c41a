"""What the runtime orders from its zygote: processes that enter the namespaces of pods and containers.

An order travels as a file in memory beside the descriptors that it needs, and is read by the process that carries it
out. The zygote, which is copied for every order, never sees one.
"""

from __future__ import annotations

import os

import msgspec

from shoal.cluster.node.process.runtime.protocol import ContainerSpec, ExecSpec, Facts


class StartContainer(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Start a container. Descriptors: the control socket, the namespaces to enter, and stdin where it has one."""

    spec: ContainerSpec
    facts: Facts
    entered: list[int]
    """The kinds of the namespaces to enter, in the order of their descriptors."""
    made: int
    """The kinds of namespaces that are new."""
    has_own_processes: bool
    has_cgroup: bool
    """Whether it sees a cgroup of its own."""
    has_stdin: bool
    cgroup: list[str]
    """The folders of its control group."""


class StartCommand(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Start a command in a container. Descriptors: the control socket, a pidfd of the program, and stdio."""

    spec: ExecSpec
    container: ContainerSpec
    facts: Facts
    kinds: int
    """The kinds of the program's namespaces to enter."""
    cgroup: list[str]


class StartPause(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Start the first process of a PID namespace that containers share. Descriptor: the control socket."""


Order = StartContainer | StartCommand | StartPause
_decoder: msgspec.json.Decoder[Order] = msgspec.json.Decoder(Order)
_encoder = msgspec.json.Encoder()


def written(order: Order) -> int:
    """A descriptor of a file in memory that holds an order."""
    descriptor = os.memfd_create("order", os.MFD_CLOEXEC)
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(_encoder.encode(order))
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def read(descriptor: int) -> Order:
    """The order in a file."""
    with os.fdopen(os.dup(descriptor), "rb") as file:
        return _decoder.decode(file.read())
