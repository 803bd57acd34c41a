"""The Node object of this machine: what it says, and what must be written where it says something else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from shoal.api.core import AGENT_SOCKET
from shoal.api.meta import format_time, parse_quantity, parse_time
from shoal.cluster.node.kubelet.whereabouts import agent_addresses, daemon_endpoints
from shoal.cluster.node.process.layout import NODE_ADDRESS, NODE_NAME
from shoal.cluster.node.process.machine.facts import LEAST_MEMORY, Machine, Shortage, least_disk
from shoal.cluster.node.process.machine.gpus import RESOURCE
from shoal.cluster.node.process.machine.nvml import Gpu, gpu_labels
from shoal.cluster.node.simulated.pools import is_simulated

PODS = "250"
KUBELET_VERSION = "v1.36.4+shoal"
RUNTIME = "shoal://"
MOST_IMAGES = 50
SHORTFALLS = "shoal.dev/shortfalls"
"""Annotation: what this machine does not allow, one sentence on each line; absent where it allows everything."""
HEARTBEAT = timedelta(minutes=5)
"""How old the word that nothing changed may be, as with kubelets. Whether the node lives is told by its lease."""
CALM = timedelta(minutes=5)
"""For so long a shortage is spoken of at least: one that comes and goes would have pods come and go."""

Values = dict[str, Any]


class Presence(msgspec.Struct, frozen=True, kw_only=True):
    """All that the Node object is made of."""

    machine: Machine
    socket: str
    """Where the agent answers."""
    port: int | None = None
    """And on which port of this machine; None where the API server knows sockets."""
    version: str
    """Of Shoal."""
    address: str = NODE_ADDRESS
    """By which pods reach the node: the machine's own where they are in its network."""
    gpus: Sequence[Gpu] = ()
    images: Sequence[str] = ()
    """Names of images that the node has something for."""
    shortage: Shortage = Shortage()
    shortfalls: Sequence[str] = ()
    """What this machine does not allow; pods run all the same."""
    problem: str = ""
    """Why no pod can run now; empty where they can."""


def is_foreign(node: Values) -> bool:
    """Whether a node of our name is another agent's; one that nobody speaks for is ours, as with kubelets."""
    runtime = (node.get("status") or {}).get("nodeInfo", {}).get("containerRuntimeVersion", "")
    return is_simulated(_annotations(node)) or (bool(runtime) and not runtime.startswith(RUNTIME))


def new_node(presence: Presence, now: datetime) -> Values:
    """The Node object of a machine that registers."""
    metadata = {"name": NODE_NAME, "labels": node_labels(presence), "annotations": node_annotations(presence)}
    status = _fixed(presence) | {"conditions": conditions(presence, {}, now)}
    return {"metadata": metadata, "status": status}


def node_patch(node: Values, presence: Presence, now: datetime) -> Values:
    """What differs from what we have to say, as a strategic merge patch; empty where nothing does.

    Labels, annotations and taints of others stay as they are, and so do conditions of types that are not ours.
    """
    patch: Values = {}
    metadata = {
        "labels": _changes(node["metadata"].get("labels") or {}, node_labels(presence), ours=_is_our_label),
        "annotations": _changes(_annotations(node), node_annotations(presence), ours=lambda name: name == SHORTFALLS),
    }
    if changed := {name: value for name, value in metadata.items() if value}:
        patch["metadata"] = changed
    if status := _status_patch(node.get("status") or {}, presence, now):
        patch["status"] = status
    return patch


def node_labels(presence: Presence) -> dict[str, str]:
    """What pods may choose the node by."""
    return {
        "kubernetes.io/hostname": NODE_NAME,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": presence.machine.architecture,
        **gpu_labels(presence.gpus),
    }


def node_annotations(presence: Presence) -> dict[str, str]:
    """Where the agent is found, and what it cannot do."""
    found = {AGENT_SOCKET: presence.socket}
    return found | ({SHORTFALLS: "\n".join(presence.shortfalls)} if presence.shortfalls else {})


def capacity(presence: Presence) -> dict[str, str]:
    """What the machine has."""
    machine = presence.machine
    return _resources(machine.cores, machine.memory_bytes, machine.disk_bytes, len(presence.gpus))


def allocatable(presence: Presence) -> dict[str, str]:
    """What pods may ask for: all but what the machine must keep free."""
    machine = presence.machine
    memory = max(0, machine.memory_bytes - LEAST_MEMORY)
    return _resources(machine.cores, memory, machine.disk_bytes - least_disk(machine.disk_bytes), len(presence.gpus))


def conditions(presence: Presence, seen: Mapping[str, Values], now: datetime) -> list[Values]:
    """What we say of the node, in kubelets' words; a condition that stays as it was seen keeps its time."""
    shortage = presence.shortage
    return [
        _pressure(seen, "MemoryPressure", shortage.memory, now, _MEMORY),
        _pressure(seen, "DiskPressure", shortage.disk, now, _DISK),
        _pressure(seen, "PIDPressure", shortage.pids, now, _PIDS),
        _condition(seen, "Ready", *_readiness(presence), now=now),
    ]


_Words = tuple[tuple[str, str], tuple[str, str]]
_MEMORY: _Words = (
    ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
)
_DISK: _Words = (
    ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("KubeletHasDiskPressure", "kubelet has disk pressure"),
)
_PIDS: _Words = (
    ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
)


def _readiness(presence: Presence) -> tuple[str, str, str]:
    if presence.problem:
        return "False", "KubeletNotReady", presence.problem
    message = "kubelet is posting ready status"
    if presence.shortfalls:
        message = f"{message}. WARNING: {'; '.join(presence.shortfalls)}"
    return "True", "KubeletReady", message


def _pressure(seen: Mapping[str, Values], kind: str, is_short: bool, now: datetime, words: _Words) -> Values:
    before = seen.get(kind, {})
    since = before.get("lastTransitionTime")
    if not is_short and before.get("status") == "True" and since and now - parse_time(since) < CALM:
        is_short = True
    return _condition(seen, kind, str(is_short), *words[is_short], now=now)


def _condition(
    seen: Mapping[str, Values], kind: str, status: str, reason: str, message: str, *, now: datetime
) -> Values:
    before, moment = seen.get(kind, {}), format_time(now)
    since = before.get("lastTransitionTime") if before.get("status") == status else None
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": moment,
        "lastTransitionTime": since or moment,
    }


def _status_patch(status: Values, presence: Presence, now: datetime) -> Values:
    patch = {name: value for name, value in _fixed(presence).items() if not _is_same(name, status.get(name), value)}
    for name in ("capacity", "allocatable"):
        if name in patch:
            gone = {resource: None for resource in status.get(name) or {} if resource == RESOURCE}
            patch[name] = gone | patch[name]
    seen = {condition["type"]: condition for condition in status.get("conditions") or ()}
    wanted = conditions(presence, seen, now)
    changed = [one for one in wanted if _said(one) != _said(seen.get(one["type"], {}))]
    if changed or any(_is_old(seen[one["type"]], now) for one in wanted):
        patch["conditions"] = wanted
    return patch


def _fixed(presence: Presence) -> Values:
    """All of the status but the conditions."""
    machine = presence.machine
    return {
        "capacity": capacity(presence),
        "allocatable": allocatable(presence),
        "addresses": [
            {"type": "InternalIP", "address": presence.address},
            {"type": "Hostname", "address": machine.hostname},
            *agent_addresses(presence.port),
        ],
        "nodeInfo": {
            "architecture": machine.architecture,
            "bootID": machine.boot_id,
            "containerRuntimeVersion": f"{RUNTIME}{presence.version}",
            "kernelVersion": machine.kernel,
            "kubeProxyVersion": "",
            "kubeletVersion": KUBELET_VERSION,
            "machineID": machine.machine_id,
            "operatingSystem": "linux",
            "osImage": machine.system,
            "systemUUID": machine.machine_id,
        },
        "daemonEndpoints": daemon_endpoints(presence.port),
        "images": [{"names": [name]} for name in presence.images[:MOST_IMAGES]],
    }


def _resources(cores: float, memory: int, disk: int, gpus: int) -> dict[str, str]:
    milli = int(cores * 1000)
    found = {
        "cpu": f"{milli}m" if milli % 1000 else str(milli // 1000),
        "memory": f"{memory // 1024}Ki",
        "ephemeral-storage": f"{disk // 1024}Ki",
        "pods": PODS,
    }
    return found | ({RESOURCE: str(gpus)} if gpus else {})


def _changes(
    held: Mapping[str, str], wanted: Mapping[str, str], *, ours: Callable[[str], bool]
) -> dict[str, str | None]:
    gone: dict[str, str | None] = {name: None for name in held if ours(name) and name not in wanted}
    return gone | {name: value for name, value in wanted.items() if held.get(name) != value}


def _is_our_label(name: str) -> bool:
    return name.startswith(f"{RESOURCE}.")


def _is_same(name: str, seen: Any, wanted: Any) -> bool:
    """Whether a part of the status says what it should, whatever others added and however amounts are written."""
    if name in ("capacity", "allocatable"):
        held = {resource: parse_quantity(amount) for resource, amount in (seen or {}).items()}
        asked = {resource: parse_quantity(amount) for resource, amount in wanted.items()}
        return all(held.get(resource) == amount for resource, amount in asked.items()) and (
            RESOURCE in asked or RESOURCE not in held
        )
    if isinstance(wanted, dict):
        return all((seen or {}).get(field, "") == value for field, value in wanted.items())
    if name == "addresses":
        return all(address in (seen or []) for address in wanted)
    return bool((seen or []) == wanted)


def _said(condition: Values) -> tuple[Any, ...]:
    return tuple(condition.get(field) for field in ("status", "reason", "message"))


def _is_old(condition: Values, now: datetime) -> bool:
    said = condition.get("lastHeartbeatTime")
    return not said or now - parse_time(said) >= HEARTBEAT


def _annotations(node: Values) -> dict[str, str]:
    return node["metadata"].get("annotations") or {}
