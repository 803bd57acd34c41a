"""What a check of the Pod Security Standards is: a rule on a pod, at a level, in a form for each version.

A rule is a function from a pod to a violation, or None. A rule that changed between versions of Kubernetes is a row of
forms, each with the first minor version that it applies to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from shoal.cluster.apiserver.admission.pod_security.policy import Level
from shoal.cluster.apiserver.kinds.kind import Object


@dataclass(frozen=True, slots=True)
class Container:
    """A container of any sort, with its security context at hand."""

    name: str
    content: Mapping[str, Any]
    security: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CheckedPod:
    """A pod, or the template of one, as checks read it."""

    annotations: Mapping[str, str]
    spec: Mapping[str, Any]
    security: Mapping[str, Any]
    containers: Sequence[Container]
    """Init, regular and ephemeral containers, in the order in which messages list them."""

    @classmethod
    def of(cls, pod: Object) -> CheckedPod:
        """Reads a pod or a pod template."""
        spec = pod.get("spec") or {}
        return cls(
            annotations=(pod.get("metadata") or {}).get("annotations") or {},
            spec=spec,
            security=spec.get("securityContext") or {},
            containers=[
                Container(each.get("name", ""), each, each.get("securityContext") or {})
                for field in ("initContainers", "containers", "ephemeralContainers")
                for each in spec.get(field) or ()
            ],
        )


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken rule: which one, and what in this pod breaks it."""

    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})"


Rule: TypeAlias = Callable[[CheckedPod], Violation | None]


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check of a level."""

    id: str
    """Kubernetes' name of the check; violations are listed in the order of these names."""
    level: Level
    forms: Mapping[int, Rule]
    """The rule by the minor version that it applies from, in ascending order."""
    replaces: str = ""
    """A baseline check that this stricter one covers, and that is not reported besides."""

    def form(self, minor: int) -> Rule | None:
        """The rule in a minor version of the policy; None where the check came later."""
        applicable = [rule for since, rule in self.forms.items() if since <= minor]
        return applicable[-1] if applicable else None


def unless_windows(rule: Rule) -> Rule:
    """A rule on what Windows does not have: pods that are for Windows need not follow it."""
    return lambda pod: None if (pod.spec.get("os") or {}).get("name") == "windows" else rule(pod)


def unless_user_namespace(rule: Rule) -> Rule:
    """A rule that a pod with user IDs of its own (``hostUsers: false``) need not follow."""
    return lambda pod: None if pod.spec.get("hostUsers") is False else rule(pod)
