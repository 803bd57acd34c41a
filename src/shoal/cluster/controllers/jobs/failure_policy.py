"""What a Job's pod failure policy says of a failed pod: the first rule that matches decides."""

from __future__ import annotations

from typing import NamedTuple

from shoal.api.batch import ConditionPattern, ExitCodes, PodFailurePolicy
from shoal.api.core import ContainerStatus, Pod

FAIL_JOB, FAIL_INDEX, IGNORE = "FailJob", "FailIndex", "Ignore"
_ACTIONS = (FAIL_JOB, FAIL_INDEX, IGNORE, "Count")


class Verdict(NamedTuple):
    """What is to be done about a failed pod; no action where no rule speaks of it."""

    action: str = ""
    message: str = ""
    """Why the whole Job fails, where it does."""

    @property
    def counts(self) -> bool:
        """Whether the failure is held against the Job's limits."""
        return self.action != IGNORE


def verdict_on(pod: Pod, policy: PodFailurePolicy | None) -> Verdict:
    """What the policy says of a failed pod."""
    for index, rule in enumerate(policy.rules if policy else ()):
        if rule.on_exit_codes is not None:
            why = _exit_reason(pod, rule.on_exit_codes)
        else:
            why = _condition_reason(pod, rule.on_pod_conditions)
        if why and rule.action in _ACTIONS:
            says = f"{why} matching {rule.action} rule at index {index}" if rule.action == FAIL_JOB else ""
            return Verdict(rule.action, says)
    return Verdict()


def _exit_reason(pod: Pod, codes: ExitCodes) -> str:
    for status in [*pod.status.container_statuses, *pod.status.init_container_statuses]:
        if (code := _matching_code(status, codes)) is not None:
            place = f"{pod.metadata.namespace}/{pod.metadata.name}"
            return f"Container {status.name} for pod {place} failed with exit code {code}"
    return ""


def _matching_code(status: ContainerStatus, codes: ExitCodes) -> int | None:
    ended = status.state.terminated
    if ended is None or ended.exit_code == 0 or codes.container_name not in (None, status.name):
        return None
    matches = {"In": ended.exit_code in codes.values, "NotIn": ended.exit_code not in codes.values}
    return ended.exit_code if matches.get(codes.operator) else None


def _condition_reason(pod: Pod, patterns: list[ConditionPattern]) -> str:
    wanted = {(pattern.type, pattern.status) for pattern in patterns}
    for condition in pod.status.conditions:
        if (condition.type, condition.status) in wanted:
            return f"Pod {pod.metadata.namespace}/{pod.metadata.name} has condition {condition.type}"
    return ""
