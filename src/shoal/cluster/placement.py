"""Which nodes a pod may be on: taints and tolerations, node selectors and node affinity, as pure functions.

Rules that are put to thousands of nodes are compiled once: ``NodeRequirements.of(...)``, then ``matches(node)`` for
each.
A term of a node affinity that breaks the rules (an unknown operator, say) selects no node, as in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shoal.api.core import Node, Taint, Toleration
from shoal.api.meta import LabelOperator, LabelRequirement, Selector

NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "PreferNoSchedule", "NoExecute"
"""What a taint does: keeps pods away, would rather keep them away, or drives them away too."""

HARD_EFFECTS = frozenset({NO_SCHEDULE, NO_EXECUTE})
"""The effects that keep a pod off a node."""

NODE_NAME_FIELD = "metadata.name"
"""The one field that a node affinity may match."""

_OPERATORS = {
    "In": LabelOperator.IN,
    "NotIn": LabelOperator.NOT_IN,
    "Exists": LabelOperator.EXISTS,
    "DoesNotExist": LabelOperator.DOES_NOT_EXIST,
    "Gt": LabelOperator.GREATER_THAN,
    "Lt": LabelOperator.LESS_THAN,
}


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether one of the tolerations is for this taint."""
    return any(_is_for(toleration, taint) for toleration in tolerations)


def untolerated(
    taints: Iterable[Taint], tolerations: Sequence[Toleration], *, effects: Collection[str] = HARD_EFFECTS
) -> list[Taint]:
    """The taints of these effects that none of the tolerations is for, in their order."""
    return [taint for taint in taints if taint.effect in effects and not tolerates(tolerations, taint)]


def matches_node_selector(selector: Mapping[str, Any], node: Node) -> bool:
    """Whether a node selector, a list of ``nodeSelectorTerms`` of which one must hold, selects the node."""
    return any(term(node) for term in _terms(selector))


@dataclass(frozen=True, slots=True)
class NodeRequirements:
    """What a pod's node selector and required node affinity ask of a node, ready to be put to many."""

    _labels: tuple[tuple[str, str], ...]
    _terms: tuple[Callable[[Node], bool], ...] | None
    """One of these must hold; None where the affinity asks for nothing."""

    @staticmethod
    def of(node_selector: Mapping[str, str], affinity: Mapping[str, Any] | None) -> NodeRequirements:
        """The requirements of ``spec.nodeSelector`` and ``spec.affinity`` of a pod."""
        required = required_node_selector(affinity)
        terms = None if required is None else tuple(_terms(required))
        return NodeRequirements(tuple(node_selector.items()), terms)

    @property
    def is_everything(self) -> bool:
        """Whether every node will do."""
        return not self._labels and self._terms is None

    def matches(self, node: Node) -> bool:
        """Whether a node will do."""
        labels = node.metadata.labels
        if any(labels.get(key) != value for key, value in self._labels):
            return False
        return self._terms is None or any(term(node) for term in self._terms)


def required_node_selector(affinity: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """What an affinity requires of nodes, as the wire has it; None where it requires nothing."""
    node_affinity = (affinity or {}).get("nodeAffinity") or {}
    required: Mapping[str, Any] | None = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required


def _is_for(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    # Comparing by number (Gt, Lt) is an alpha feature that Kubernetes has off.
    return toleration.operator == "Exists"


def _terms(selector: Mapping[str, Any]) -> list[Callable[[Node], bool]]:
    """The terms of a selector as functions; those that are empty or wrong select nothing, and are left out."""
    compiled = (_term(term) for term in selector.get("nodeSelectorTerms") or () if term)
    return [term for term in compiled if term is not None]


def _term(term: Mapping[str, Any]) -> Callable[[Node], bool] | None:
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return None
    requirements = []
    for expression in expressions:
        operator = _OPERATORS.get(expression.get("operator", ""))
        if operator is None:
            return None
        requirement = LabelRequirement(expression["key"], operator, tuple(expression.get("values") or ()))
        if requirement.problems():
            return None
        requirements.append(requirement)
    wanted: list[tuple[str, str, bool]] = []
    for field in fields:
        values = list(field.get("values") or ())
        if field.get("operator") not in ("In", "NotIn") or len(values) != 1:
            return None
        wanted.append((field["key"], values[0], field["operator"] == "In"))
    labels = Selector(tuple(requirements))

    def holds(node: Node) -> bool:
        if not labels.matches(node.metadata.labels):
            return False
        name = node.metadata.name
        return all(((name if key == NODE_NAME_FIELD else "") == value) is equal for key, value, equal in wanted)

    return holds
