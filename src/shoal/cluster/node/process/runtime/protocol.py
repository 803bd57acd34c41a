"""What the agent and the runtime say to each other, over a Unix socket: one JSON object on each line.

A question carries a number that its answer repeats; what happens by itself (a container ends) is told to every
connection as a ``Happening``. File descriptors travel beside a line that says how many belong to it.

This module and all of ``runtime`` load nothing but the standard library and msgspec: the runtime is a small process
that is copied for every container.
"""

from __future__ import annotations

from typing import Any

import msgspec

VERSION = 1


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line."""


# What the runtime is given


class Ids(Message, frozen=True, kw_only=True):
    """Who a process runs as, inside."""

    user: int = 0
    group: int = 0
    groups: list[int] = []


class Bind(Message, frozen=True, kw_only=True):
    """A file or folder of this machine at a path inside."""

    source: str
    target: str
    is_read_only: bool = False
    follows_links: bool = True
    """False where others may write on the way to it: a link there, which could lead anywhere, is then refused."""
    is_of_machine: bool = False
    """Whether the pod chose the source, as with hostPath: one that is hidden, or lies in what is, is then refused."""
    has_devices: bool = False
    """Whether device files in it can be opened."""


class Limits(Message, frozen=True, kw_only=True):
    """What a container may use, where the system lets us say so; None is no limit."""

    memory_bytes: int | None = None
    cpu_cores: float | None = None
    cpu_shares: int | None = None
    """The weight against others, 1024 for each core asked for."""
    processes: int | None = None


class SandboxSpec(Message, frozen=True, kw_only=True):
    """What the containers of a pod share: its network, its name, perhaps its processes."""

    uid: str
    name: str
    """``namespace/name`` of the pod, for people."""
    hostname: str
    address: str = ""
    """The pod's own address; empty for a pod in the node's own network."""
    shares_processes: bool = False
    sysctls: dict[str, str] = {}


class ContainerSpec(Message, frozen=True, kw_only=True):
    """How one container is run."""

    id: str
    """64 hexadecimal digits, chosen by the agent; a container that is started again is another one."""
    sandbox: str
    """The uid of its pod."""
    name: str
    attempt: int = 0
    argv: list[str]
    env: list[str] = []
    """``NAME=value``; PATH is among them, and the program is looked for in it, inside."""
    directory: str = "/"
    root: str = ""
    """A folder that becomes the root; empty for one that is made of ``shown``."""
    shown: list[str] = []
    """Without ``root``: the files and folders of the machine that are there, at their own paths, and no others."""
    scratch: str
    """A folder of this container alone: what it writes outside of its volumes goes there."""
    is_root_read_only: bool = False
    binds: list[Bind] = []
    """In the order in which they are made. Missing mount points are made."""
    hidden: list[str] = []
    """Files and folders of the machine that must not be seen inside by whatever way, such as the data dir."""
    devices: list[str] = []
    """Device files beyond the usual ones, such as /dev/nvidia0."""
    ids: Ids = Ids()
    capabilities: list[str] = []
    """Those that remain, without CAP_."""
    may_gain_privileges: bool = True
    has_filter: bool = False
    """Whether system calls are refused that programs do not need: the seccomp profile RuntimeDefault."""
    limits: Limits = Limits()
    log: str
    """The file that its output goes to, in the form of container runtimes; older pieces lie beside it."""
    has_stdin: bool = False
    closes_stdin: bool = False
    """The first one who attaches and leaves closes it for good."""
    has_tty: bool = False
    joins_processes_of: str = ""
    """The id of a running container whose processes it sees and shares."""
    shm_bytes: int = 64 * 1024 * 1024


class ExecSpec(Message, frozen=True, kw_only=True):
    """A further command in a running container."""

    container: str
    argv: list[str]
    env: list[str] = []
    directory: str = "/"
    ids: Ids = Ids()
    capabilities: list[str] = []
    has_tty: bool = False
    rows: int = 0
    columns: int = 0


class SocketSpec(Message, frozen=True, kw_only=True):
    """A socket in a network that only the runtime can enter."""

    sandbox: str = ""
    """The uid of the pod in whose network it is; empty for the node's own."""
    is_datagram: bool = False
    address: str = ""
    """Where it listens (a datagram socket: is bound); empty for one that is to be connected."""
    port: int = 0
    is_version_6: bool = False
    """Whether it speaks IPv6; one with an address speaks what its address does."""
    is_netfilter: bool = False
    """It speaks with the kernel about the rules for packets there, and has no address."""


# What the runtime tells


class Facts(Message, frozen=True, kw_only=True):
    """What this machine lets the runtime do."""

    version: int = VERSION
    pid: int
    has_namespaces: bool
    """False means degraded: containers are plain processes that see the whole machine."""
    has_network: bool
    """Whether pods have addresses of their own; otherwise they use the machine's."""
    has_translation: bool = False
    """Whether the kernel translates the addresses of Services, so that servers see their clients' own."""
    has_all_ids: bool
    """Whether users inside are those of the machine (root started it); otherwise all are the one who started it."""
    has_overlays: bool
    """Whether containers may write to the machine's files, each to its own copy; otherwise these are read-only."""
    cgroups: str
    """``v2``, ``v1`` or empty."""
    shortfalls: list[str] = []
    """A sentence for each thing that this machine does not allow, and why."""


class ContainerState(Message, frozen=True, kw_only=True):
    """How a container is. Times are seconds since 1970."""

    id: str
    sandbox: str
    name: str
    attempt: int
    pid: int = 0
    started: float = 0.0
    finished: float | None = None
    exit_code: int | None = None
    """128 + the signal where one ended it."""
    signal: int = 0
    is_out_of_memory: bool = False


class SandboxState(Message, frozen=True, kw_only=True):
    """A pod as the runtime knows it."""

    uid: str
    name: str
    address: str = ""
    containers: list[ContainerState] = []
    """Those that run, and those that ended and were not removed."""


class ContainerReading(Message, frozen=True, kw_only=True):
    """What a container has used."""

    id: str
    cpu_seconds: float
    memory_bytes: int
    processes: int


class Happening(Message, frozen=True, kw_only=True):
    """Something that was not asked for: a container ended, or a command in one did."""

    ended: ContainerState | None = None
    command: int | None = None
    """The number that the answer to ``exec`` gave."""
    exit_code: int = 0


# Lines


class Question(Message, frozen=True, kw_only=True):
    """``verb`` is one of those in ``docs/design``'s record of the process node."""

    number: int
    verb: str
    given: msgspec.Raw = msgspec.Raw(b"{}")
    descriptors: int = 0


class Answer(Message, frozen=True, kw_only=True):
    """What a question gave, or why it failed."""

    number: int
    result: msgspec.Raw = msgspec.Raw(b"null")
    reason: str = ""
    """Empty where it went well; a CamelCase word otherwise."""
    message: str = ""
    descriptors: int = 0


class Line(Message, frozen=True, kw_only=True):
    """What the runtime writes: an answer or a happening."""

    answer: Answer | None = None
    happening: Happening | None = None


def encoded(value: Any) -> msgspec.Raw:
    """A value as part of a line."""
    return msgspec.Raw(msgspec.json.encode(value))
