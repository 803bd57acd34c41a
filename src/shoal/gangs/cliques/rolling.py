"""How a new template reaches the pods of a clique that is in no scaling group.

``next_update`` says which update the clique is in: it opens one when it is the clique's turn, and again when the
templates change once more. ``next_step`` says which pods the open one deletes now: those that are of no use at once,
the others one at a time, oldest first, while enough are ready. What is deleted is replaced like any pod that goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from shoal.api.core import Pod, is_ready
from shoal.api.grove import PodClique, PodCliqueUpdate, PodsToUpdate, names


@dataclass(frozen=True, kw_only=True)
class Turn:
    """What the set says to its cliques about updates."""

    generation_hash: str
    """The templates that the set goes to; empty where it has not said so yet."""
    on_delete: bool
    """Whether pods change only when somebody deletes them."""
    is_here: bool
    """Whether it is the turn of the clique's replica."""
    has_template: bool
    """Whether the clique was made from the template that the set has now."""
    has_old_pods: bool
    """Whether any pod that stays was made from another one."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """The pods that an update deletes now, which ready ones it has chosen so far, and whether it is through."""

    delete: tuple[Pod, ...] = ()
    selected: PodsToUpdate | None = None
    is_done: bool = False


def is_open(update: PodCliqueUpdate | None) -> bool:
    """Whether an update runs."""
    return update is not None and update.update_ended_at is None


def next_update(clique: PodClique, turn: Turn, now: datetime) -> PodCliqueUpdate | None:
    """The update that a clique is in, or had last.

    A clique that was just made has an update of no length, since its pods are born new: unless its template changed
    before anything was told of it.
    """
    known = clique.status.update_progress
    if not turn.generation_hash:
        return known
    template = clique.metadata.labels.get(names.TEMPLATE_HASH_LABEL, "")
    target = PodCliqueUpdate(
        update_started_at=now,
        pod_clique_set_generation_hash=turn.generation_hash,
        pod_template_hash=template,
    )
    closed = msgspec.structs.replace(target, update_ended_at=now)
    if known is None:
        is_fresh = not clique.status.current_pod_template_hash and not turn.has_old_pods
        return closed if is_fresh or turn.on_delete else target if turn.is_here and turn.has_template else None
    if (known.pod_clique_set_generation_hash, known.pod_template_hash) == (turn.generation_hash, template):
        is_left_open = turn.on_delete and is_open(known)
        return msgspec.structs.replace(known, update_ended_at=now) if is_left_open else known
    if turn.on_delete:
        return closed if turn.has_template else known
    return target if turn.is_here and turn.has_template else known


def next_step(pods: Sequence[Pod], *, target: str, minimum: int, replicas: int, selected: PodsToUpdate | None) -> Step:
    """What an update to the target's hash does now, with the ready pods that it has chosen so far."""
    staying = [pod for pod in pods if not pod.metadata.is_deleting]
    old = [pod for pod in staying if pod.metadata.labels.get(names.TEMPLATE_HASH_LABEL) != target]
    useless = tuple(pod for pod in old if not is_ready(pod))
    serving = sorted((pod for pod in old if is_ready(pod)), key=_creation)
    ready = sum(map(is_ready, staying))
    if selected is not None:
        if again := [pod for pod in serving if pod.metadata.name == selected.current]:
            # It was chosen and written down, and then something kept us from deleting it.
            return Step(delete=(*useless, *again), selected=selected)
        # Scaling in may have made a replacement needless: then all pods are there, and none is on its way to be ready.
        is_coming = len(staying) != replicas or ready < len(staying) - len(useless)
        if is_coming and ready - len(serving) < min(len(selected.completed) + 1, replicas):
            return Step(delete=useless, selected=selected)
    if not serving:
        return Step(delete=useless, selected=selected, is_done=not useless)
    if ready < min(minimum, replicas):
        return Step(delete=useless, selected=selected)
    completed = [] if selected is None else [*selected.completed, selected.current]
    chosen = serving[0]
    return Step(delete=(*useless, chosen), selected=PodsToUpdate(current=chosen.metadata.name, completed=completed))


def after_step(update: PodCliqueUpdate, step: Step, now: datetime) -> PodCliqueUpdate:
    """How far an update is once its step is taken."""
    if step.is_done:
        return msgspec.structs.replace(update, update_ended_at=now, ready_pods_selected_to_update=None)
    return msgspec.structs.replace(update, ready_pods_selected_to_update=step.selected)


def _creation(pod: Pod) -> tuple[float, str]:
    created = pod.metadata.creation_timestamp
    return (created.timestamp() if created is not None else 0.0, pod.metadata.name)
