"""What PodSecurity counts, under Kubernetes' names."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter

from shoal.cluster.apiserver.admission.attributes import Attributes
from shoal.cluster.apiserver.admission.pod_security.policy import Level, LevelVersion

_REQUEST = ("request_operation", "resource", "subresource")
_RESOURCES = {"pods": "pod", "namespaces": "namespace"}


class PodSecurityMetrics:
    """Counts evaluations by their outcome. ``minor`` is the server's own version: later ones are not told apart."""

    def __init__(self, registry: CollectorRegistry | None = None, *, minor: int) -> None:
        self._minor = minor
        self._evaluations = Counter(
            "pod_security_evaluations_total",
            "Evaluations of pods and workloads by policy, mode and outcome.",
            ("decision", "policy_level", "policy_version", "mode", *_REQUEST),
            registry=registry,
        )
        self._errors = Counter(
            "pod_security_errors_total",
            "Requests that could not be evaluated by the namespace's own policy.",
            ("fatal", *_REQUEST),
            registry=registry,
        )
        self._children: dict[tuple[str, ...], Counter] = {}

    def evaluated(self, request: Attributes, mode: str, policy: LevelVersion, *, allowed: bool) -> None:
        """Counts the evaluation of one mode."""
        decision = "allow" if allowed else "deny"
        key = (decision, policy.level.value, self._version(policy), mode, *_request(request))
        child = self._children.get(key)
        if child is None:
            child = self._children[key] = self._evaluations.labels(*key)
        child.inc()

    def failed(self, request: Attributes, *, fatal: bool) -> None:
        """Counts a request whose namespace, or whose namespace's policy, could not be read."""
        self._errors.labels(str(fatal).lower(), *_request(request)).inc()

    def _version(self, policy: LevelVersion) -> str:
        minor = policy.version.minor
        if minor is None or policy.level is Level.PRIVILEGED:
            return "latest"
        return str(policy.version) if minor <= self._minor else "future"


def _request(request: Attributes) -> tuple[str, str, str]:
    resource = _RESOURCES.get(request.kind.storage, "controller")
    return request.operation.value.lower(), resource, request.subresource
