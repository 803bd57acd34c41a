"""Lease: who holds something, and for how long."""

from __future__ import annotations

from shoal.cluster.apiserver.builtin.names import subdomain_problems
from shoal.cluster.apiserver.builtin.values import not_negative
from shoal.cluster.apiserver.kinds.kind import Object, Rules
from shoal.kube.admission.fields import FieldProblem, invalid


def prepare(new: Object) -> None:
    """Drops what coordinated elections need, which are not served."""
    spec = new.get("spec") or {}
    spec.pop("strategy", None)
    spec.pop("preferredHolder", None)


def lease_problems(new: Object) -> list[FieldProblem]:
    """What is wrong with a lease."""
    spec = new.get("spec") or {}
    seconds = spec.get("leaseDurationSeconds")
    problems: list[FieldProblem] = []
    if seconds is not None and seconds <= 0:
        problems.append(invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
    return problems + not_negative("spec.leaseTransitions", spec.get("leaseTransitions"))


RULES = {
    ("coordination.k8s.io", "Lease"): Rules(
        name_problems=subdomain_problems,
        prepare_create=prepare,
        prepare_update=lambda new, _old: prepare(new),
        validate_create=lease_problems,
        validate_update=lambda new, _old: lease_problems(new),
        has_generation=False,
        unconditional_update=False,
        create_on_update=True,
    )
}
