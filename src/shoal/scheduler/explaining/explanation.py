"""What an explanation says: plain frozen values, for scripts as JSON and for people as a page.

Amounts are in the units that people use: CPU cores, bytes, GPUs. None stands for *without limit*.
"""

from __future__ import annotations

from datetime import datetime
from enum import Enum

import msgspec


class Fact(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of all parts: every field is always there, so that a script need not ask whether it is."""


class State(Enum):
    """How far a job is."""

    RUNNING = "Running"
    STARTING = "Starting"
    """Its pods have their places, and are not running yet."""
    PROMISED = "Promised"
    """It has places that others are still leaving."""
    WAITING = "Waiting"
    NOT_READY = "NotReady"
    """Pods that it needs do not exist yet, or are held back by gates."""
    UNKNOWN_QUEUE = "UnknownQueue"
    BACKED_OFF = "BackedOff"
    FINISHED = "Finished"


class Figures(Fact, frozen=True, kw_only=True):
    """So much of what queues share."""

    cpu_cores: float | None = 0.0
    memory_bytes: float | None = 0.0
    gpus: float | None = 0.0


class PodCounts(Fact, frozen=True, kw_only=True):
    """How many pods a job has, by how far they are."""

    needed: int = 0
    """As many must start together."""
    existing: int = 0
    gated: int = 0
    waiting: int = 0
    promised: int = 0
    placed: int = 0


class Part(Fact, frozen=True, kw_only=True):
    """A subgroup that lacks pods."""

    name: str
    needed: int
    existing: int
    gated: int


class Position(Fact, frozen=True, kw_only=True):
    """Where a job stands among those that wait; the first is 1."""

    in_queue: int
    of_queue: int
    overall: int | None
    """None where so many are before it that nobody counted."""
    of_all: int


class QueueFigures(Fact, frozen=True, kw_only=True):
    """What a queue is entitled to, and what it has."""

    name: str
    parent: str
    priority: int
    quota: Figures
    limit: Figures
    fair_share: Figures
    allocated: Figures
    allocated_non_preemptible: Figures
    requested: Figures


class NodeReason(Fact, frozen=True, kw_only=True):
    """Why so many nodes will not do."""

    reason: str
    nodes: int


class Nearest(Fact, frozen=True, kw_only=True):
    """The node that lacks least, and what it lacks, by resource and in the resource's own unit."""

    node: str
    lacks: dict[str, float]


class TaskShortage(Fact, frozen=True, kw_only=True):
    """Pods of one kind, and what they find on the nodes."""

    pods: int
    example: str
    requests: dict[str, float]
    nodes: int
    room: int
    """How many of such pods have room at the moment, all nodes together."""
    reasons: list[NodeReason]
    nearest: Nearest | None = None


class TopologyShortage(Fact, frozen=True, kw_only=True):
    """Pods that are to be near each other, and what they find."""

    subgroup: str
    message: str
    domains: list[str]
    """Those with the most room, and how far it goes."""


class WhyKept(Enum):
    """Why a job that holds something is not made to give it back."""

    NON_PREEMPTIBLE = "NonPreemptible"
    MIN_RUNTIME = "MinRuntime"
    PRIORITY = "PriorityNotLower"
    NO_PLAN = "NoPlan"
    """It could be; no choice of such jobs would have been fair and have left room for all that is needed."""


class Holding(Fact, frozen=True, kw_only=True):
    """Jobs of a queue that hold something, and why they keep it."""

    why: WhyKept
    jobs: int
    pods: int
    holds: Figures
    examples: list[str]
    until: datetime | None = None
    """When the first of them is protected no longer."""


class Holder(Fact, frozen=True, kw_only=True):
    """A queue that holds what the job waits for."""

    queue: str
    allocated: Figures
    entitled: Figures
    beyond: Figures
    """What it has beyond that."""
    jobs: list[Holding]


class KeptRoom(Fact, frozen=True, kw_only=True):
    """Nodes where room is kept for a job that found none, until it starts."""

    job: str
    """The job that it is kept for, with its namespace."""
    own: bool
    """Whether that is the job which is explained; otherwise it is kept out by it."""
    nodes: list[str]
    """The first of them."""
    node_count: int
    free: Figures
    """What of it is free already, or becomes so."""
    until: datetime | None = None
    """When the job can start at the latest; None where nobody knows."""


class Remedy(Fact, frozen=True, kw_only=True):
    """Something that would let the job start, or bring it nearer to it."""

    what: str
    """The kind of thing, in one word."""
    message: str
    until: datetime | None = None
    """When it happens by itself."""


class Explanation(Fact, frozen=True, kw_only=True):
    """Everything about one job."""

    name: str
    namespace: str
    queue: str
    priority: int
    preemptible: bool
    state: State
    reason: str
    """In one word, as PodGroups carry it; empty where nothing stands in the way."""
    message: str
    """In one sentence."""
    pods: PodCounts
    requested: Figures
    """What it would take next."""
    parts: list[Part] = []
    position: Position | None = None
    queues: list[QueueFigures] = []
    """Its queue, then those above it."""
    shortages: list[TaskShortage] = []
    topology: list[TopologyShortage] = []
    entitled: bool = False
    """Whether its queue's share has room for it: then it may take back from those that have more than theirs."""
    holders: list[Holder] = []
    kept: KeptRoom | None = None
    """Where room is kept for large gangs: what concerns this job of it."""
    remedies: list[Remedy] = []


class Answer(Fact, frozen=True, kw_only=True):
    """What is known of an object that somebody asked about."""

    kind: str
    name: str
    namespace: str
    cycle: int
    at: datetime
    jobs: list[Explanation]
    message: str = ""
    """Where there is no job: why."""
