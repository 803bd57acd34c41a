"""Why a pod cannot be on a node, in kube-scheduler's words and in its order: only the first rule that fails counts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping

from shoal.api.core import Taint
from shoal.cluster.controllers.binding.demand import EVERY_ADDRESS, PODS, HostPort, Load, Shape
from shoal.cluster.controllers.binding.picture import NodeState, Picture
from shoal.cluster.placement import NO_SCHEDULE, tolerates, untolerated

NO_NODES = "no nodes available to schedule pods"

_CLOSED = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)
_NUMBER = re.compile(r"\b\d+\b")

LabelsJudge = Callable[[Mapping[str, str]], str]
VolumesJudge = Callable[[NodeState], str]


def reason_of_standing(shape: Shape, state: NodeState) -> str:
    """What a node itself has against pods of this shape, whatever room it has; equal nodes are judged once."""
    node = state.node
    if node is None:
        return NO_NODES
    labels = node.metadata.labels
    kind = (state.standing, tuple([labels.get(key) for key in shape.label_keys]))
    if shape.pinned is not None:
        return _standing(shape, state)
    known = shape.verdicts.get(kind)
    if known is None:
        known = shape.verdicts[kind] = _standing(shape, state)
    return known


def has_room(shape: Shape, state: NodeState) -> bool:
    """Whether what is left of a node is enough."""
    free = state.free
    for name, amount in shape.requests.items():
        if free.get(name, 0) < amount:
            return False
    return not shape.ports or not has_port_conflict(shape.ports, state.ports)


def has_port_conflict(wanted: tuple[HostPort, ...], taken: Mapping[HostPort, int]) -> bool:
    """Whether one of the ports is taken: by the same address, or where either means all addresses."""
    return any(
        protocol == other_protocol
        and number == other_number
        and (address == other or EVERY_ADDRESS in (address, other))
        for address, protocol, number in wanted
        for other, other_protocol, other_number in taken
    )


def shortages(shape: Shape, state: NodeState) -> list[str]:
    """What a node has too little of."""
    short = [name for name, amount in shape.requests.items() if state.free.get(name, 0) < amount]
    return ["Too many pods" if name == PODS else f"Insufficient {name}" for name in short]


def reasons_against(load: Load, state: NodeState, *, by_peers: LabelsJudge, by_volumes: VolumesJudge) -> list[str]:
    """Why a pod cannot be on a node; nothing where it can."""
    shape = load.shape
    if reason := reason_of_standing(shape, state):
        return [reason]
    if shape.ports and has_port_conflict(shape.ports, state.ports):
        return ["node(s) didn't have free ports for the requested pod ports"]
    if short := shortages(shape, state):
        return short
    if reason := by_volumes(state):
        return [reason]
    reason = by_peers(state.labels)
    return [reason] if reason else []


def explain(load: Load, picture: Picture, *, by_volumes: VolumesJudge) -> str:
    """Why a pod fits nowhere, as kube-scheduler says it."""
    if not picture.count:
        return NO_NODES
    counts: Counter[str] = Counter()
    by_peers = picture.reason_by_peers(load)
    pinned = load.shape.pinned
    if pinned is None:
        states = [state for state in picture.nodes if state.node is not None]
    else:
        states = [state for name in pinned if (state := picture.node(name)) is not None]
        others = picture.count - len(states)
        if others:
            counts["node(s) didn't satisfy plugin(s) [NodeAffinity]"] = others
    for state in states:
        counts.update(reasons_against(load, state, by_peers=by_peers, by_volumes=by_volumes))
    return nowhere(picture.count, ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items())))


def nowhere(nodes: int, why: str) -> str:
    """The sentence that a pod which fits nowhere gets."""
    return f"0/{nodes} nodes are available: {why}."


def story_of(message: str) -> str:
    """A message without its numbers: what changes with every pod that comes or goes is not worth writing again."""
    return " ".join(sorted(_NUMBER.sub("", message).replace(".", "").replace(",", "").split()))


def _standing(shape: Shape, state: NodeState) -> str:
    node = state.node
    assert node is not None
    if node.spec.unschedulable and not tolerates(shape.tolerations, _CLOSED):
        return "node(s) were unschedulable"
    if state.taints and untolerated(state.taints, shape.tolerations):
        return "node(s) had untolerated taint(s)"
    if not shape.requirements.matches(node):
        return "node(s) didn't match Pod's node affinity/selector"
    return ""
