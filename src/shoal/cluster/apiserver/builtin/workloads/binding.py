"""Binding a pod to a node, as schedulers do it."""

from __future__ import annotations

from shoal.cluster.apiserver.builtin.workloads.conditions import set_pod_condition
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.refusals import Refused, bad_request, conflict, refused
from shoal.kube.admission.fields import FieldProblem, not_supported, required


def validate_binding(binding: Object) -> list[FieldProblem]:
    """What is wrong with a Binding by itself."""
    target = binding.get("target") or {}
    kind = target.get("kind", "")
    problems = [] if kind in ("", "Node") else [not_supported("target.kind", kind, ["Node", "<empty>"])]
    return problems if target.get("name") else [*problems, required("target.name")]


def bind(pod: Object, binding: Object) -> Object:
    """The pod on its node; raises Refused where it cannot go there. The pod that is given stays as it is.

    The generation does not rise, although the specification changes: a node's name is no wish of its author.
    """
    metadata, given = pod.get("metadata") or {}, binding.get("metadata") or {}
    name = metadata.get("name", "")
    if given.get("name", "") != name:
        raise bad_request("name in URL does not match name in Binding object")
    if problems := validate_binding(binding):
        raise _refused_as_it_stands(problems)
    for field in ("uid", "resourceVersion"):
        if given.get(field) and given[field] != metadata.get(field):
            raise conflict("pods", "", name, _precondition(pod, field, given[field]))
    if why := _blocked(pod, name):
        raise conflict("pods/binding", "", name, why)
    status = {**(pod.get("status") or {})}
    status.pop("nominatedNodeName", None)
    set_pod_condition(status, "PodScheduled", "True")
    changed = {**metadata}
    for field in ("annotations", "labels"):
        if given.get(field):
            changed[field] = {**(metadata.get(field) or {}), **given[field]}
    spec = {**(pod.get("spec") or {}), "nodeName": binding["target"]["name"]}
    return {**pod, "metadata": changed, "spec": spec, "status": status}


def _blocked(pod: Object, name: str) -> str:
    spec = pod.get("spec") or {}
    if (pod.get("metadata") or {}).get("deletionTimestamp"):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if node := spec.get("nodeName"):
        return f'pod {name} is already assigned to node "{node}"'
    if spec.get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


def _precondition(pod: Object, field: str, wanted: str) -> str:
    """A pod that is not the one that was meant, in the words of Kubernetes' storage."""
    metadata, shown = pod.get("metadata") or {}, {"uid": "UID", "resourceVersion": "ResourceVersion"}[field]
    key = f"/registry/pods/{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    return (
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: {shown} in precondition: {wanted}, {shown} in object meta: {metadata.get(field, '')}"
    )


def _refused_as_it_stands(problems: list[FieldProblem]) -> Refused:
    """Kubernetes answers these as a fault of its own, without causes."""
    said = [str(each) for each in problems]
    message = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    return refused(500, "", message)
