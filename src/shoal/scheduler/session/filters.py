"""Which nodes a task may go to by what the nodes are, whatever else is placed there.

Tasks that are alike share their constraints and their request, so each question is put once for all of them: the answer
is one mask over all nodes. What was refused is kept by reason, for whoever has to explain it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.api import kai_names
from shoal.scheduler.model.nodes import Node, Nodes
from shoal.scheduler.model.resources import Mask
from shoal.scheduler.model.tasks import Constraints, Request
from shoal.scheduler.session.labels import LabelIndex
from shoal.scheduler.session.taints import TaintIndex

UNSCHEDULABLE: Final = "is marked unschedulable"
NOT_READY: Final = "is not ready"
OUT_OF_REACH: Final = "cannot reach the volumes or claims that the pod needs"
NOT_SELECTED: Final = "does not match the pod's node selector"
NO_AFFINITY: Final = "does not match the pod's node affinity"
NO_GPU_WORKER: Final = "is not a GPU worker node"
NO_CPU_WORKER: Final = "is not a CPU worker node"
CLAIMED_GPUS: Final = "hands its GPUs out by claims and shares none"
NO_MIG: Final = "has no MIG instances"
MIG_SINGLE: Final = "takes only pods that ask for whole GPUs (MIG strategy single)"
MIG_MIXED: Final = "takes only pods that ask for MIG instances (MIG strategy mixed)"
MIG_NOT_SHARED: Final = "has MIG instances, which are not shared"
UNKNOWN_MEMORY: Final = "does not say how much memory its GPUs have"

_MOST_KEPT: Final = 4096
"""Answers that are kept: beyond that, tasks differ so much that keeping them no longer pays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterSettings:
    """What the scheduler's flags say about nodes."""

    restrict_node_scheduling: bool = False
    """Whether GPU pods go to GPU workers alone, and all others to CPU workers alone."""
    cpu_worker_label: str = kai_names.CPU_WORKER
    gpu_worker_label: str = kai_names.GPU_WORKER
    scores_preferred_nodes: bool = False
    """Whether preferred node affinity has a score; KAI gives it none."""


class _GpuKind(NamedTuple):
    """What a request asks of GPUs, as far as the kind of node goes."""

    wants_gpu: bool
    is_shared: bool
    is_mig: bool
    is_memory: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Answer:
    mask: Mask
    refused: tuple[tuple[str, Mask], ...]
    """[nodes] by reason, in the order of the checks; only those that refuse a node at all."""


class Filters:
    """The rules, for one set of nodes. What they need to know of the nodes is gathered when it is first asked for."""

    def __init__(self, nodes: Nodes, settings: FilterSettings) -> None:
        self._nodes = nodes
        self._settings = settings
        self._labels = LabelIndex(nodes)
        self._answers: dict[tuple[Constraints, Request], _Answer] = {}
        self._alike: dict[tuple[Constraints, _GpuKind], _Answer] = {}

    def static_mask(self, constraints: Constraints, request: Request) -> Mask:
        """[nodes] where a task with these constraints and this request may go. Shared: it must not be written to."""
        return self._answer(constraints, request).mask

    def why_not(self, constraints: Constraints, request: Request, row: int) -> str:
        """Why a node will not do, to be read after its name; "" where it will."""
        return next((reason for reason, mask in self._answer(constraints, request).refused if mask[row]), "")

    def reasons(self, constraints: Constraints, request: Request, among: Mask | None = None) -> dict[str, int]:
        """How many nodes will not do, by the first reason of each."""
        left = np.ones(len(self._nodes), dtype=np.bool_) if among is None else among.copy()
        counts = {}
        for reason, mask in self._answer(constraints, request).refused:
            if count := int(np.count_nonzero(mask & left)):
                counts[reason] = count
                left &= ~mask
        return counts

    def preferred_scores(self, constraints: Constraints) -> NDArray[np.float64]:
        """[nodes] the weights of the preferred terms that each matches; nothing unless the settings ask for it."""
        scores = np.zeros(len(self._nodes))
        if self._settings.scores_preferred_nodes:
            for term in constraints.preferred_node_terms:
                scores += term.get("weight", 0) * self._labels.matching(term.get("preference") or {})
        return scores

    @cached_property
    def _taints(self) -> TaintIndex:
        return TaintIndex(self._nodes)

    @cached_property
    def _rules(self) -> _GpuRules:
        return _GpuRules(self._nodes)

    @cached_property
    def _is_unschedulable(self) -> Mask:
        return _column(self._nodes, lambda node: node.is_unschedulable)

    @cached_property
    def _pressures(self) -> dict[str, Mask]:
        found = sorted({pressure for node in self._nodes.nodes for pressure in node.pressures})
        return {one: _column(self._nodes, lambda node, one=one: one in node.pressures) for one in found}  # type: ignore[misc]

    def _answer(self, constraints: Constraints, request: Request) -> _Answer:
        found = self._answers.get((constraints, request))
        if found is None:
            kind = _kind(request)
            found = self._alike.get((constraints, kind))
            if found is None:
                if len(self._alike) >= _MOST_KEPT:
                    self._alike.clear()
                found = self._alike[constraints, kind] = self._asked(constraints, kind)
            if len(self._answers) >= _MOST_KEPT:
                self._answers.clear()
            self._answers[constraints, request] = found
        return found

    def _asked(self, constraints: Constraints, kind: _GpuKind) -> _Answer:
        refused = tuple((reason, mask) for reason, mask in self._checks(constraints, kind) if mask.any())
        allowed = np.ones(len(self._nodes), dtype=np.bool_)
        for _, mask in refused:
            allowed &= ~mask
        allowed.flags.writeable = False
        return _Answer(allowed, refused)

    def _checks(self, constraints: Constraints, kind: _GpuKind) -> Iterator[tuple[str, Mask]]:
        """[nodes] what each check refuses, the cheapest to understand first."""
        if constraints.missing:
            yield constraints.missing, np.ones(len(self._nodes), dtype=np.bool_)
        yield UNSCHEDULABLE, self._is_unschedulable
        yield NOT_READY, ~self._nodes.is_ready
        for pressure, mask in self._pressures.items():
            yield f"has the condition {pressure}", mask
        yield from self._rules.refused(kind)
        if constraints.allowed_nodes is not None:
            yield OUT_OF_REACH, ~self._rows(constraints.allowed_nodes)
        for taint, mask in self._taints.untolerated(constraints.tolerations).items():
            yield f"has the taint {taint}, which the pod does not tolerate", mask
        if constraints.node_selector:
            yield NOT_SELECTED, ~self._labels.selected(constraints.node_selector)
        if constraints.has_required_node_terms or constraints.required_node_terms:
            yield NO_AFFINITY, ~self._labels.matching_any(constraints.required_node_terms)
        if self._settings.restrict_node_scheduling:
            yield self._not_a_worker(kind)

    def _not_a_worker(self, kind: _GpuKind) -> tuple[str, Mask]:
        label = self._settings.gpu_worker_label if kind.wants_gpu else self._settings.cpu_worker_label
        return NO_GPU_WORKER if kind.wants_gpu else NO_CPU_WORKER, ~self._labels.column(label).is_present

    def _rows(self, names: frozenset[str]) -> Mask:
        mask = np.zeros(len(self._nodes), dtype=np.bool_)
        mask[[row for name in names if (row := self._nodes.index.get(name)) is not None]] = True
        return mask


class _GpuRules:
    """Which kind of GPU request goes to which kind of node."""

    def __init__(self, nodes: Nodes) -> None:
        self._has_claimed = _column(nodes, lambda node: node.has_claimed_gpus)
        self._has_mig = _column(nodes, lambda node: node.has_mig)
        self._is_single = self._has_mig & _column(nodes, lambda node: node.mig_strategy == "single")
        self._is_mixed = self._has_mig & _column(nodes, lambda node: node.mig_strategy == "mixed")
        self._is_memory_unknown = _column(nodes, lambda node: not node.is_gpu_memory_known)

    def refused(self, kind: _GpuKind) -> Iterator[tuple[str, Mask]]:
        """[nodes] what each rule refuses."""
        if not kind.wants_gpu:
            return
        if kind.is_shared:
            yield CLAIMED_GPUS, self._has_claimed
        if kind.is_mig:
            yield NO_MIG, ~self._has_mig
        if kind.is_mig or kind.is_shared:
            yield MIG_SINGLE, self._is_single
        if not kind.is_mig:
            yield MIG_MIXED, self._is_mixed
        if kind.is_shared:
            yield MIG_NOT_SHARED, self._has_mig
        if kind.is_memory:
            yield UNKNOWN_MEMORY, self._is_memory_unknown


def _kind(request: Request) -> _GpuKind:
    gpu = request.gpu
    return _GpuKind(request.wants_gpu, request.is_shared, bool(gpu.mig), gpu.memory > 0)


def _column(nodes: Nodes, claim: Callable[[Node], bool]) -> Mask:
    return np.array([claim(node) for node in nodes.nodes], dtype=np.bool_)
