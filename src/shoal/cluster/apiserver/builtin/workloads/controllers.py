"""The older and smaller ones: ReplicationControllers, PodTemplates, ControllerRevisions."""

from __future__ import annotations

from shoal.cluster.apiserver.builtin.names import subdomain_problems
from shoal.cluster.apiserver.builtin.workloads.defaults import default_template
from shoal.cluster.apiserver.builtin.workloads.deployments import (
    prepare_create,
    prepare_update,
    replica_status_problems,
    status_replicas,
    workload_warnings,
)
from shoal.cluster.apiserver.builtin.workloads.features import drop_disabled
from shoal.cluster.apiserver.builtin.workloads.pod_spec import template_problems
from shoal.cluster.apiserver.builtin.workloads.templates import (
    STATUS_RESETS,
    always_problems,
    count_problems,
    keep_spec,
    labels_of,
    mismatch,
)
from shoal.cluster.apiserver.builtin.workloads.texts import nonnegative_problems
from shoal.cluster.apiserver.builtin.workloads.warnings import pod_warnings
from shoal.cluster.apiserver.kinds.kind import Object, Rules
from shoal.kube.admission.fields import FieldProblem, immutable, required


def _default_replication_controller(controller: Object) -> None:
    spec = controller.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    if (template := spec.get("template")) is None:
        return
    if labels := labels_of(template):
        if not spec.get("selector"):
            spec["selector"] = {**labels}
        metadata = controller.setdefault("metadata", {})
        if not metadata.get("labels"):
            metadata["labels"] = {**labels}
    default_template(template)


def _replication_controller_problems(controller: Object) -> list[FieldProblem]:
    spec = controller.get("spec") or {}
    problems = count_problems(spec, "spec", "minReadySeconds")
    selector, template = spec.get("selector") or {}, spec.get("template")
    if not selector:
        problems.append(required("spec.selector"))
    problems += count_problems(spec, "spec", "replicas")
    if template is None:
        return [*problems, required("spec.template")]
    labels = labels_of(template)
    if any(labels.get(key) != value for key, value in selector.items()):
        problems.append(mismatch("spec.template", labels))
    problems += template_problems(template, "spec.template")
    return problems + always_problems(template, "spec.template", kind="ReplicationController")


def _default_pod_template(template: Object) -> None:
    default_template(template.setdefault("template", {}))


def _template_spec(template: Object) -> Object:
    spec: Object = (template.get("template") or {}).get("spec") or {}
    return spec


def _pod_template_problems(template: Object) -> list[FieldProblem]:
    return template_problems(template.get("template") or {}, "template")


def _revision_problems(revision: Object) -> list[FieldProblem]:
    return nonnegative_problems(revision.get("revision"), "revision")


def _validate_revision_create(revision: Object) -> list[FieldProblem]:
    problems, data = _revision_problems(revision), revision.get("data")
    if data is None:
        problems.append(required("data", "data is mandatory"))
    elif not isinstance(data, dict):
        problems.append(required("data", "data must be a valid JSON object"))
    return problems


def _validate_revision_update(new: Object, old: Object) -> list[FieldProblem]:
    problems = _revision_problems(new)
    if new.get("data") != old.get("data"):
        problems.append(immutable("data", new.get("data")))
    return problems


REPLICATION_CONTROLLER = Rules(
    name_problems=subdomain_problems,
    defaults=_default_replication_controller,
    prepare_create=prepare_create,
    prepare_update=prepare_update,
    prepare_status=keep_spec,
    validate_create=_replication_controller_problems,
    validate_update=lambda new, _old: _replication_controller_problems(new),
    validate_status=replica_status_problems,
    warnings=workload_warnings,
    resets=STATUS_RESETS,
    fields={"status.replicas": status_replicas},
)
POD_TEMPLATE = Rules(
    name_problems=subdomain_problems,
    defaults=_default_pod_template,
    prepare_create=lambda new: drop_disabled(_template_spec(new)),
    prepare_update=lambda new, old: drop_disabled(_template_spec(new), _template_spec(old)),
    validate_create=_pod_template_problems,
    validate_update=lambda new, _old: _pod_template_problems(new),
    warnings=lambda new: pod_warnings(new.get("template") or {}, "template"),
)
CONTROLLER_REVISION = Rules(
    name_problems=subdomain_problems,
    validate_create=_validate_revision_create,
    validate_update=_validate_revision_update,
    has_generation=False,
)
