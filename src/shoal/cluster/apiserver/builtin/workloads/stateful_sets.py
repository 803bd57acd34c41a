"""StatefulSets and DaemonSets."""

from __future__ import annotations

from shoal.cluster.apiserver.builtin.claims import claim_spec_problems
from shoal.cluster.apiserver.builtin.metadata import annotations_problems
from shoal.cluster.apiserver.builtin.names import label_problems, subdomain_problems
from shoal.cluster.apiserver.builtin.selectors import label_selector_problems
from shoal.cluster.apiserver.builtin.workloads.defaults import default_claim_spec, default_template
from shoal.cluster.apiserver.builtin.workloads.deployments import (
    prepare_create,
    prepare_update,
    shown_strategy,
    template_warnings,
)
from shoal.cluster.apiserver.builtin.workloads.matching import is_usable, selector_matches, shown_selector
from shoal.cluster.apiserver.builtin.workloads.pod_annotations import annotation_problems
from shoal.cluster.apiserver.builtin.workloads.pod_spec import template_problems
from shoal.cluster.apiserver.builtin.workloads.templates import (
    STATUS_RESETS,
    always_problems,
    at_most_problems,
    count_problems,
    decrement_problems,
    is_empty,
    keep_spec,
    labels_of,
    mismatch,
    over_hundred_problems,
    selector_change_problems,
    selector_problems,
    share_problems,
    share_value,
)
from shoal.cluster.apiserver.builtin.workloads.texts import nonnegative_problems
from shoal.cluster.apiserver.builtin.workloads.volume_warnings import claim_warnings
from shoal.cluster.apiserver.kinds.kind import Object, Rules
from shoal.kube.admission.fields import FieldProblem, forbidden, invalid, not_supported, required

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_MAY_CHANGE = (
    "replicas",
    "template",
    "updateStrategy",
    "minReadySeconds",
    "ordinals",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
)
_FORBIDDEN_CHANGE = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


def _default_stateful_set(stateful_set: Object) -> None:
    spec = stateful_set.setdefault("spec", {})
    spec.setdefault("podManagementPolicy", "OrderedReady")
    strategy = spec.setdefault("updateStrategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and strategy.get("rollingUpdate") is not None:
        strategy["rollingUpdate"].setdefault("partition", 0)
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    retention.setdefault("whenDeleted", "Retain")
    retention.setdefault("whenScaled", "Retain")
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    default_template(spec.setdefault("template", {}))
    for claim in spec.get("volumeClaimTemplates") or ():
        claim["apiVersion"], claim["kind"] = "v1", "PersistentVolumeClaim"
        default_claim_spec(claim.setdefault("spec", {}))
        claim.setdefault("status", {}).setdefault("phase", "Pending")


def _prepare_stateful_set(new: Object) -> None:
    prepare_create(new)
    _drop_unavailable(new, None)


def _prepare_stateful_set_update(new: Object, old: Object) -> None:
    prepare_update(new, old)
    _drop_unavailable(new, old)


def _drop_unavailable(new: Object, old: Object | None) -> None:
    """The share of pods that may be away while the set is updated is a feature that is off."""
    rolling, before = (
        (((each or {}).get("spec") or {}).get("updateStrategy") or {}).get("rollingUpdate") or {} for each in (new, old)
    )
    if "maxUnavailable" not in before:
        rolling.pop("maxUnavailable", None)


def _stateful_set_problems(stateful_set: Object, *, is_new: bool) -> list[FieldProblem]:
    spec = stateful_set.get("spec") or {}
    problems = _policy_problems(spec)
    if is_new:
        for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
            problems += claim_spec_problems(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}].spec")
    problems += count_problems(spec, "spec", "replicas", "minReadySeconds")
    problems += nonnegative_problems((spec.get("ordinals") or {}).get("start"), "spec.ordinals.start")
    if is_new and (service := spec.get("serviceName")):
        problems += [invalid("spec.serviceName", service, each) for each in label_problems(service)]
    problems += selector_problems(spec, "spec", kind="statefulset")
    template = spec.get("template") or {}
    if is_usable(spec.get("selector")):
        problems += _template_problems(spec, template)
    else:
        problems.append(invalid("spec.selector", shown_selector(spec.get("selector")), ""))
    return problems + always_problems(template, "spec.template", kind="StatefulSet")


def _policy_problems(spec: Object) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    management = spec.get("podManagementPolicy", "")
    if management not in ("OrderedReady", "Parallel"):
        words = "must be 'OrderedReady' or 'Parallel'"
        here = "spec.podManagementPolicy"
        problems.append(invalid(here, management, words) if management else required(here))
    strategy = spec.get("updateStrategy") or {}
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    if kind == "OnDelete":
        if rolling is not None:
            shown = {"Partition": rolling.get("partition", 0), "MaxUnavailable": rolling.get("maxUnavailable")}
            words = "only allowed for updateStrategy 'RollingUpdate'"
            problems.append(invalid("spec.updateStrategy.rollingUpdate", shown, words))
    elif kind == "RollingUpdate":
        here = "spec.updateStrategy.rollingUpdate"
        problems += nonnegative_problems((rolling or {}).get("partition"), f"{here}.partition")
        if (share := (rolling or {}).get("maxUnavailable")) is not None:
            problems += share_problems(share, f"{here}.maxUnavailable")
            if share_value(share) == 0:
                problems.append(invalid(f"{here}.maxUnavailable", share, "cannot be 0"))
            problems += over_hundred_problems(share, f"{here}.maxUnavailable")
    elif kind:
        words = "must be 'RollingUpdate' or 'OnDelete'"
        problems.append(invalid("spec.updateStrategy", _shown_update(strategy), words))
    else:
        problems.append(required("spec.updateStrategy"))
    for field, policy in (spec.get("persistentVolumeClaimRetentionPolicy") or {}).items():
        if policy not in ("Retain", "Delete"):
            here = f"spec.persistentVolumeClaimRetentionPolicy.{field}"
            problems.append(not_supported(here, policy, ["Retain", "Delete"]))
    return problems


def _shown_update(strategy: Object) -> Object:
    rolling = strategy.get("rollingUpdate")
    shown = rolling and {"Partition": rolling.get("partition", 0), "MaxUnavailable": rolling.get("maxUnavailable")}
    return {"Type": strategy.get("type", ""), "RollingUpdate": shown}


def _template_problems(spec: Object, template: Object) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    selector, labels = spec.get("selector"), labels_of(template)
    if not is_empty(selector) and not selector_matches(selector, labels):
        problems.append(mismatch("spec.template", labels))
    # Claims become volumes of each pod, whose host names are the set's to give.
    claims = [each.get("metadata", {}).get("name", "") for each in spec.get("volumeClaimTemplates") or ()]
    pod = {key: value for key, value in (template.get("spec") or {}).items() if key not in ("subdomain", "hostname")}
    if claims:
        own = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in dict.fromkeys(claims)]
        pod["volumes"] = own + [each for each in pod.get("volumes") or () if each.get("name", "") not in claims]
    problems += template_problems({**template, "spec": pod}, "spec.template")
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    problems += annotations_problems(annotations, "spec.template.annotations")
    return problems + annotation_problems(annotations, pod, "spec.template.annotations")


def _validate_stateful_set_update(new: Object, old: Object) -> list[FieldProblem]:
    problems = _stateful_set_problems(new, is_new=False)
    spec, before = (
        {key: value for key, value in (each.get("spec") or {}).items() if key not in _MAY_CHANGE} for each in (new, old)
    )
    if spec != before:
        problems.append(forbidden("spec", _FORBIDDEN_CHANGE))
    return problems


def _validate_stateful_set_status(new: Object, old: Object) -> list[FieldProblem]:
    status = new.get("status") or {}
    counts = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
    problems = count_problems(status, "status", "replicas", *counts, "observedGeneration", "collisionCount")
    problems += at_most_problems(status, counts, "replicas", "cannot be greater than status.replicas")
    words = "cannot be greater than status.readyReplicas"
    problems += at_most_problems(status, ("availableReplicas",), "readyReplicas", words)
    return problems + decrement_problems(status, old.get("status") or {})


def _stateful_set_warnings(new: Object) -> list[str]:
    spec = new.get("spec") or {}
    warnings = template_warnings(new)
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        warnings += claim_warnings(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}]")
    if spec.get("revisionHistoryLimit", 0) < 0:
        words = "a negative value retains all historical revisions; a value >= 0 is recommended"
        warnings.append(f"spec.revisionHistoryLimit: {words}")
    return warnings


def _default_daemon_set(daemon_set: Object) -> None:
    spec = daemon_set.setdefault("spec", {})
    strategy = spec.setdefault("updateStrategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    spec.setdefault("revisionHistoryLimit", 10)
    default_template(spec.setdefault("template", {}))
    _set_generation(daemon_set, _generation(daemon_set))


def _prepare_daemon_set(new: Object) -> None:
    prepare_create(new)
    given = _generation(new)
    _set_generation(new, max(given, 1))


def _prepare_daemon_set_update(new: Object, old: Object) -> None:
    prepare_update(new, old)
    is_changed = (new.get("spec") or {}).get("template") != (old.get("spec") or {}).get("template")
    _set_generation(new, _generation(old) + is_changed)


def _prepare_daemon_set_status(new: Object, old: Object) -> None:
    keep_spec(new, old)
    _set_generation(new, _generation(old))


def _generation(daemon_set: Object) -> int:
    """The count of changes of the template, which the wire has in an annotation."""
    text = ((daemon_set.get("metadata") or {}).get("annotations") or {}).get(TEMPLATE_GENERATION, "0")
    try:
        return int(text)
    except ValueError:
        return 0


def _set_generation(daemon_set: Object, generation: int) -> None:
    metadata = daemon_set.setdefault("metadata", {})
    metadata["annotations"] = {**(metadata.get("annotations") or {}), TEMPLATE_GENERATION: str(generation)}


def _daemon_set_problems(daemon_set: Object) -> list[FieldProblem]:
    spec = daemon_set.get("spec") or {}
    selector, template = spec.get("selector"), spec.get("template") or {}
    problems = label_selector_problems(selector, "spec.selector")
    labels = labels_of(template)
    if is_usable(selector) and not selector_matches(selector, labels):
        problems.append(mismatch("spec.template", labels))
    if is_empty(selector):
        problems.append(invalid("spec.selector", shown_selector(selector), "empty selector is invalid for daemonset"))
    problems += template_problems(template, "spec.template")
    problems += always_problems(template, "spec.template", kind="DaemonSet")
    problems += count_problems(spec, "spec", "minReadySeconds")
    problems += nonnegative_problems(_generation(daemon_set), "spec.templateGeneration")
    problems += _daemon_strategy_problems(spec.get("updateStrategy") or {}, "spec.updateStrategy")
    return problems + count_problems(spec, "spec", "revisionHistoryLimit")


def _daemon_strategy_problems(strategy: Object, path: str) -> list[FieldProblem]:
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    if kind == "OnDelete":
        return []
    if kind != "RollingUpdate":
        return [not_supported(path, shown_strategy(strategy), ["RollingUpdate", "OnDelete"])]
    here = f"{path}.rollingUpdate"
    if rolling is None:
        return [required(here)]
    shares = {field: rolling.get(field, 0) for field in ("maxUnavailable", "maxSurge")}
    problems: list[FieldProblem] = []
    for field, share in shares.items():
        problems += share_problems(share, f"{here}.{field}")
    for field, share in shares.items():
        problems += over_hundred_problems(share, f"{here}.{field}")
    unavailable, surge = (share_value(each) != 0 for each in shares.values())
    if unavailable and surge:
        words = "may not be set when maxUnavailable is non-zero"
        problems.append(invalid(f"{here}.maxSurge", shares["maxSurge"], words))
    elif not unavailable and not surge:
        problems.append(required(f"{here}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    return problems


def _validate_daemon_set_update(new: Object, old: Object) -> list[FieldProblem]:
    return selector_change_problems(new, old) + _daemon_set_problems(new)


def _validate_daemon_set_status(new: Object, old: Object) -> list[FieldProblem]:
    status = new.get("status") or {}
    problems = count_problems(
        status,
        "status",
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    )
    return problems + decrement_problems(status, old.get("status") or {})


STATEFUL_SET = Rules(
    name_problems=label_problems,
    defaults=_default_stateful_set,
    prepare_create=_prepare_stateful_set,
    prepare_update=_prepare_stateful_set_update,
    prepare_status=keep_spec,
    validate_create=lambda new: _stateful_set_problems(new, is_new=True),
    validate_update=_validate_stateful_set_update,
    validate_status=_validate_stateful_set_status,
    warnings=_stateful_set_warnings,
    resets=STATUS_RESETS,
)
DAEMON_SET = Rules(
    name_problems=subdomain_problems,
    defaults=_default_daemon_set,
    prepare_create=_prepare_daemon_set,
    prepare_update=_prepare_daemon_set_update,
    prepare_status=_prepare_daemon_set_status,
    validate_create=_daemon_set_problems,
    validate_update=_validate_daemon_set_update,
    validate_status=_validate_daemon_set_status,
    warnings=template_warnings,
    resets=STATUS_RESETS,
)
