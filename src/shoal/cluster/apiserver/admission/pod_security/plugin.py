"""PodSecurity: what pods of a namespace may do, by the level of the Pod Security Standards that its labels name.

Pods that violate the enforced level are refused. Pods and workloads that violate the level to warn of are accepted with
a warning. Workloads are never refused: webhooks may still change their pods, which are checked when they are created.
"""

from __future__ import annotations

from shoal.cluster.apiserver.access.wording import quoted
from shoal.cluster.apiserver.admission.attributes import Attributes
from shoal.cluster.apiserver.admission.pod_security.checks import CheckedPod, Violation
from shoal.cluster.apiserver.admission.pod_security.evaluation import in_detail, violations
from shoal.cluster.apiserver.admission.pod_security.existing_pods import warnings_for
from shoal.cluster.apiserver.admission.pod_security.metrics import PodSecurityMetrics
from shoal.cluster.apiserver.admission.pod_security.policy import Level, LevelVersion, Policy, policy_of
from shoal.cluster.apiserver.admission.refusing import refuse
from shoal.cluster.apiserver.admission.scope import WRITE, Scope
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.reader import Reader
from shoal.cluster.apiserver.refusals import internal_error, invalid
from shoal.kube.admission.wire import Operation

_PODS = "pods"
_NAMESPACES = "namespaces"
_TEMPLATES: dict[str, tuple[str, ...]] = {
    "podtemplates": ("template",),
    "replicationcontrollers": ("spec", "template"),
    "replicasets.apps": ("spec", "template"),
    "deployments.apps": ("spec", "template"),
    "statefulsets.apps": ("spec", "template"),
    "daemonsets.apps": ("spec", "template"),
    "jobs.batch": ("spec", "template"),
    "cronjobs.batch": ("spec", "jobTemplate", "spec", "template"),
}
"""Where each kind of workload holds the template of its pods."""
_SUBRESOURCES = frozenset({"", "ephemeralcontainers", "resize"})
"""What changes a spec; the last two are of pods alone."""


class PodSecurity:
    """Holds pods, workloads and namespaces to the policies of namespaces."""

    mutates = None
    validates = Scope(
        storages=frozenset({_PODS, _NAMESPACES, *_TEMPLATES}), operations=WRITE, subresources=_SUBRESOURCES
    )

    def __init__(self, state: Reader, metrics: PodSecurityMetrics) -> None:
        self._state = state
        self._metrics = metrics

    async def mutate(self, request: Attributes) -> None:
        """Nothing to complete."""

    async def validate(self, request: Attributes) -> None:
        """Refuses pods that violate what is enforced, and labels that name no policy; warns of the rest."""
        if request.kind.storage == _NAMESPACES:
            await self._check_namespace(request)
        elif request.kind.storage == _PODS:
            self._check_pod(request)
        else:
            self._check_workload(request)

    def _check_pod(self, request: Attributes) -> None:
        namespace = self._state.get(_NAMESPACES, "", request.namespace)
        if namespace is None:
            self._metrics.failed(request, fatal=True)
            raise internal_error(f"failed to lookup namespace {quoted(request.namespace)}")
        policy, problems = policy_of(_labels(namespace))
        if policy.is_privileged and not problems:
            self._metrics.evaluated(request, "enforce", policy.enforce, allowed=True)
            return
        pod = request.object or {}
        if request.operation is Operation.UPDATE and not _runs_other_images(pod, request.old or {}):
            return
        if problems:
            self._metrics.failed(request, fatal=False)
        self._evaluate(request, CheckedPod.of(pod), policy, is_enforced=True)

    def _check_workload(self, request: Attributes) -> None:
        namespace = self._state.get(_NAMESPACES, "", request.namespace)
        if namespace is None:
            self._metrics.failed(request, fatal=True)
            return
        policy, problems = policy_of(_labels(namespace))
        if {policy.warn.level, policy.audit.level} == {Level.PRIVILEGED} and not problems:
            return
        template: Object | None = request.object
        for field in _TEMPLATES[request.kind.storage]:
            template = (template or {}).get(field)
        if template is None:
            return
        if problems:
            self._metrics.failed(request, fatal=False)
        self._evaluate(request, CheckedPod.of(template), policy, is_enforced=False)

    def _evaluate(self, request: Attributes, pod: CheckedPod, policy: Policy, *, is_enforced: bool) -> None:
        found: dict[LevelVersion, list[Violation]] = {}

        def of(mode: LevelVersion) -> list[Violation]:
            if mode not in found:
                found[mode] = violations(mode, pod)
            return found[mode]

        refusal = None
        if is_enforced:
            violated = of(policy.enforce)
            self._metrics.evaluated(request, "enforce", policy.enforce, allowed=not violated)
            if violated:
                refusal = refuse(request, f'violates PodSecurity "{policy.enforce}": {in_detail(violated)}')
        if of(policy.audit):
            self._metrics.evaluated(request, "audit", policy.audit, allowed=False)
        if refusal is not None:
            raise refusal
        if violated := of(policy.warn):
            request.warnings.append(f'would violate PodSecurity "{policy.warn}": {in_detail(violated)}')
            self._metrics.evaluated(request, "warn", policy.warn, allowed=False)

    async def _check_namespace(self, request: Attributes) -> None:
        """Refuses new labels that name no policy, and warns of pods that violate a policy to be enforced."""
        namespace = request.object or {}
        policy, problems = policy_of(_labels(namespace))
        name = namespace["metadata"].get("name", "")
        before, known = policy_of(_labels(request.old or {}))
        if problems and problems != known:
            raise invalid(request.kind.kind, request.kind.group, name, problems)
        if request.operation is not Operation.UPDATE or not _is_stricter(policy.enforce, before.enforce):
            return
        count, pods = self._state.scan(_PODS, name)
        request.warnings += await warnings_for(pods, count=count, namespace=name, policy=policy.enforce)


def _labels(value: Object) -> dict[str, str]:
    return (value.get("metadata") or {}).get("labels") or {}


def _is_stricter(new: LevelVersion, old: LevelVersion) -> bool:
    """Whether a policy may forbid what the one before it allowed."""
    if new.level is Level.PRIVILEGED or new == old:
        return False
    return new.version != old.version or new.level.is_stricter_than(old.level)


def _runs_other_images(pod: Object, old: Object) -> bool:
    """Whether an update runs something new: of all that is evaluated, nothing else of a pod can change."""
    new_spec, old_spec = pod.get("spec") or {}, old.get("spec") or {}
    for field in ("containers", "initContainers"):
        images, before = ([each.get("image") for each in spec.get(field) or ()] for spec in (new_spec, old_spec))
        if images != before:
            return True
    known = {each.get("name"): each.get("image") for each in old_spec.get("ephemeralContainers") or ()}
    added = new_spec.get("ephemeralContainers") or ()
    return any(each.get("name") not in known or each.get("image") != known[each.get("name")] for each in added)
