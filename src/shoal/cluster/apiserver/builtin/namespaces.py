"""Namespace: its finalizer, its phase, and the label that carries its name."""

from __future__ import annotations

from shoal.cluster.apiserver.builtin.metadata import kube_finalizer_problems
from shoal.cluster.apiserver.builtin.names import label_problems, qualified_name_problems
from shoal.cluster.apiserver.builtin.values import named, text
from shoal.cluster.apiserver.kinds.kind import Object, Rules
from shoal.kube.admission.fields import FieldProblem, invalid

NAME_LABEL = "kubernetes.io/metadata.name"
FINALIZER = "kubernetes"


def default_namespace(new: Object) -> None:
    """Labels it with its name, so that selectors can pick it, and calls it active."""
    name_label(new)
    status = new.setdefault("status", {})
    if not status.get("phase"):
        status["phase"] = "Active"


def name_label(new: Object) -> None:
    """Sets the label; a client can neither change nor remove it."""
    metadata = new.setdefault("metadata", {})
    if name := metadata.get("name"):
        metadata["labels"] = {**(metadata.get("labels") or {}), NAME_LABEL: name}


def prepare_create(new: Object) -> None:
    """Starts it active, and with the finalizer that lets its contents go first."""
    name_label(new)
    new["status"] = {"phase": "Active"}
    spec = new.setdefault("spec", {})
    finalizers = spec.get("finalizers") or []
    spec["finalizers"] = finalizers if FINALIZER in finalizers else [*finalizers, FINALIZER]


def prepare_update(new: Object, old: Object) -> None:
    """Keeps the finalizers: they change through their subresource alone."""
    name_label(new)
    spec = dict(new.get("spec") or {})
    spec.pop("finalizers", None)
    if finalizers := (old.get("spec") or {}).get("finalizers"):
        spec["finalizers"] = list(finalizers)
    new["spec"] = spec


def prepare_finalize(new: Object, old: Object) -> None:
    """A write to the finalize subresource changes everything but status."""
    name_label(new)
    if (status := old.get("status")) is not None:
        new["status"] = status


def validate_create(new: Object) -> list[FieldProblem]:
    """What is wrong with its finalizers."""
    finalizers = (new.get("spec") or {}).get("finalizers") or ()
    return [problem for each in finalizers for problem in _finalizer_problems("spec.finalizers", each)]


def validate_finalize(new: Object, _old: Object) -> list[FieldProblem]:
    """The same for a write to the finalize subresource."""
    finalizers = (new.get("spec") or {}).get("finalizers") or ()
    return [
        problem
        for index, each in enumerate(finalizers)
        for problem in _finalizer_problems(f"spec.finalizers[{index}]", each)
    ]


def validate_status(new: Object, _old: Object) -> list[FieldProblem]:
    """Its phase follows from whether it is being deleted."""
    phase = (new.get("status") or {}).get("phase", "")
    ending = bool(new["metadata"].get("deletionTimestamp"))
    wanted = "Terminating" if ending else "Active"
    if phase == wanted:
        return []
    when = "is not empty" if ending else "is empty"
    return [invalid("status.Phase", phase, f"may only be '{wanted}' if `deletionTimestamp` {when}")]


def _finalizer_problems(path: str, finalizer: str) -> list[FieldProblem]:
    return named(path, finalizer, qualified_name_problems) + kube_finalizer_problems(finalizer, path)


RULES = {
    ("", "Namespace"): Rules(
        name_problems=label_problems,
        defaults=default_namespace,
        prepare_create=prepare_create,
        prepare_update=prepare_update,
        validate_create=validate_create,
        validate_status=validate_status,
        has_generation=False,
        resets={"": (("status",),), "status": (("spec",),), "finalize": (("status",),)},
        fields={"status.phase": text("status", "phase")},
    )
}
