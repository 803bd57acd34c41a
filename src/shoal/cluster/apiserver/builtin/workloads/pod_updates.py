"""What of a pod may change after it was made: little."""

from __future__ import annotations

from typing import Any

from shoal.cluster.apiserver.builtin.differences import difference
from shoal.cluster.apiserver.builtin.names import outside
from shoal.cluster.apiserver.builtin.workloads.affinity import REQUIRED
from shoal.cluster.apiserver.builtin.workloads.claims import MIRROR
from shoal.cluster.apiserver.builtin.workloads.pod_annotations import update_problems
from shoal.cluster.apiserver.builtin.workloads.pod_spec import pod_problems
from shoal.cluster.apiserver.builtin.workloads.scheduling import check_tolerations
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.kube.admission.fields import FieldProblem, forbidden, invalid

_LARGEST = 2**31 - 1
_MAY_CHANGE = ",".join(
    (
        "`spec.containers[*].image`",
        "`spec.initContainers[*].image`",
        "`spec.activeDeadlineSeconds`",
        "`spec.tolerations` (only additions to existing tolerations)",
        "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
    )
)


def validate_pod_update(new: Object, old: Object) -> list[FieldProblem]:
    """What is wrong with an update of a pod."""
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    problems = pod_problems(new) + update_problems(_annotations(new), _annotations(old), "metadata.annotations")
    for field in ("containers", "initContainers"):
        if len(spec.get(field) or ()) != len(before.get(field) or ()):
            problems.append(forbidden(f"spec.{field}", "pod updates may not add or remove containers"))
            return problems
    stops = _check_deadline(spec, before, problems)
    if stops:
        return problems
    _check_tolerations(spec, before, problems)
    _check_gates(spec, before, problems)
    if spec == before:
        return problems
    kept = _with_old_values(spec, before)
    if before.get("schedulingGates"):
        _keep_placement(kept, before, problems)
    if kept != before:
        shown = difference(before, kept)
        problems.append(forbidden("spec", f"pod updates may not change fields other than {_MAY_CHANGE}\n{shown}"))
    return problems


def prepare_ephemeral_containers(new: Object, old: Object) -> None:
    """Of what is written to the subresource, only the ephemeral containers count."""
    containers = (new.get("spec") or {}).get("ephemeralContainers")
    new["spec"] = {**(old.get("spec") or {})}
    if containers:
        new["spec"]["ephemeralContainers"] = containers
    else:
        new["spec"].pop("ephemeralContainers", None)
    keep_old_status_and_metadata(new, old)


def validate_ephemeral_containers_update(new: Object, old: Object) -> list[FieldProblem]:
    """Ephemeral containers are added, and never changed or taken away."""
    problems = pod_problems(new) + update_problems(_annotations(new), _annotations(old), "metadata.annotations")
    if MIRROR in _annotations(old):
        return [forbidden("", "static pods do not support ephemeral containers")]
    path = "spec.ephemeralContainers"
    present = {each.get("name", ""): each for each in (new.get("spec") or {}).get("ephemeralContainers") or ()}
    for container in (old.get("spec") or {}).get("ephemeralContainers") or ():
        name = container.get("name", "")
        if name not in present:
            problems.append(forbidden(path, f'existing ephemeral containers "{name}" may not be removed\n'))
        elif present[name] != container:
            shown = difference(container, present[name])
            problems.append(forbidden(path, f'existing ephemeral containers "{name}" may not be changed\n{shown}'))
    return problems


def keep_old_status_and_metadata(new: Object, old: Object) -> None:
    """For a subresource that writes one part of the specification: all else is as it was."""
    if "status" in old:
        new["status"] = old["status"]
    else:
        new.pop("status", None)
    metadata, before = new.setdefault("metadata", {}), old.get("metadata") or {}
    for field in ("labels", "annotations", "finalizers", "ownerReferences", "deletionTimestamp"):
        if field in before:
            metadata[field] = before[field]
        else:
            metadata.pop(field, None)


def _annotations(pod: Object) -> dict[str, str]:
    return (pod.get("metadata") or {}).get("annotations") or {}


def _check_deadline(spec: Object, before: Object, problems: list[FieldProblem]) -> bool:
    """Whether there is no more to say after it."""
    deadline, earlier, path = (
        spec.get("activeDeadlineSeconds"),
        before.get("activeDeadlineSeconds"),
        "spec.activeDeadlineSeconds",
    )
    if deadline is None:
        if earlier is not None:
            problems.append(invalid(path, None, "must not update from a positive integer to nil value"))
        return False
    if not 0 <= deadline <= _LARGEST:
        problems.append(invalid(path, deadline, outside(0, _LARGEST)))
        return True
    if earlier is not None and earlier < deadline:
        problems.append(invalid(path, deadline, "must be less than or equal to previous value"))
        return True
    return False


def _check_tolerations(spec: Object, before: Object, problems: list[FieldProblem]) -> None:
    new = [_without_seconds(each) for each in spec.get("tolerations") or ()]
    for toleration in before.get("tolerations") or ():
        if _without_seconds(toleration) not in new:
            words = "existing toleration can not be modified except its tolerationSeconds"
            problems.append(forbidden("spec.tolerations", words))
            return
    check_tolerations(spec.get("tolerations") or [], "spec.tolerations", problems)


def _without_seconds(toleration: Object) -> Object:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _check_gates(spec: Object, before: Object, problems: list[FieldProblem]) -> None:
    earlier = {gate.get("name", "") for gate in before.get("schedulingGates") or ()}
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        name = gate.get("name", "")
        if name not in earlier:
            words = f"only deletion is allowed, but found new scheduling gate '{name}'"
            problems.append(forbidden(f"spec.schedulingGates[{index}].name", words))


def _with_old_values(spec: Object, before: Object) -> Object:
    """The new specification with all that may change put back."""
    kept = {**spec}
    for field in ("containers", "initContainers"):
        if spec.get(field):
            kept[field] = [
                {**container, "image": old["image"]} if "image" in old else container
                for container, old in zip(spec[field], before.get(field) or (), strict=True)
            ]
    for field in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        _put_back(kept, before, field)
    if before.get("terminationGracePeriodSeconds", 0) < 0 and kept.get("terminationGracePeriodSeconds") == 1:
        _put_back(kept, before, "terminationGracePeriodSeconds")
    return kept


def _put_back(kept: Object, before: Object, field: str) -> None:
    if field in before:
        kept[field] = before[field]
    else:
        kept.pop(field, None)


def _keep_placement(kept: Object, before: Object, problems: list[FieldProblem]) -> None:
    """A pod that waits behind a gate may be told more narrowly where to go, never more widely."""
    selector, earlier = kept.get("nodeSelector") or {}, before.get("nodeSelector") or {}
    if selector != earlier:
        if any(selector.get(key) != value for key, value in earlier.items()):
            words = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            problems.append(invalid("spec.nodeSelector", dict(sorted(selector.items())), words))
        _put_back(kept, before, "nodeSelector")
    affinity, old_affinity = kept.get("affinity"), before.get("affinity")
    nodes = (affinity or {}).get("nodeAffinity")
    old_nodes = (old_affinity or {}).get("nodeAffinity")
    if nodes == old_nodes:
        return
    _check_node_affinity(nodes or {}, old_nodes or {}, problems)
    changed = {**(affinity or {})}
    _put_back(changed, old_affinity or {}, "nodeAffinity")
    if changed or old_affinity is not None:
        kept["affinity"] = changed
    else:
        kept.pop("affinity", None)


def _check_node_affinity(nodes: Object, old_nodes: Object, problems: list[FieldProblem]) -> None:
    old_terms = (old_nodes.get(REQUIRED) or {}).get("nodeSelectorTerms") or []
    terms = (nodes.get(REQUIRED) or {}).get("nodeSelectorTerms") or []
    path = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
    if not old_terms:
        return
    if len(old_terms) != len(terms):
        words = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        problems.append(invalid(path, [_shown_term(each) for each in terms] or None, words))
        return
    for index, (term, old) in enumerate(zip(terms, old_terms, strict=True)):
        if not _only_adds(term, old):
            words = "only additions are allowed (no mutations or deletions)"
            problems.append(invalid(f"{path}[{index}]", _shown_term(term), words))


def _only_adds(term: Object, old: Object) -> bool:
    fields = ("matchExpressions", "matchFields")
    if not any(old.get(field) for field in fields):
        return not any(term.get(field) for field in fields)
    return all((term.get(field) or [])[: len(old.get(field) or ())] == (old.get(field) or []) for field in fields)


def _shown_term(term: Object) -> dict[str, Any]:
    """A term by the names that the server's own fields have."""

    def requirements(field: str) -> list[dict[str, Any]] | None:
        listed = term.get(field)
        if listed is None:
            return None
        return [
            {"Key": each.get("key", ""), "Operator": each.get("operator", ""), "Values": each.get("values")}
            for each in listed
        ]

    return {"MatchExpressions": requirements("matchExpressions"), "MatchFields": requirements("matchFields")}
