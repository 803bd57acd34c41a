"""Whether the indexes that succeeded are enough for a Job's success policy."""

from __future__ import annotations

from shoal.api.batch import JobSpec
from shoal.cluster.controllers.jobs.indexes import Indexes


def matched_rule(spec: JobSpec, succeeded: Indexes) -> str:
    """Which rule is met, in the words of the condition; empty where none is."""
    if spec.success_policy is None or not succeeded.ranges:
        return ""
    for index, rule in enumerate(spec.success_policy.rules):
        if rule.succeeded_indexes is not None:
            named = Indexes.parse(rule.succeeded_indexes, below=spec.completions or 0)
            enough = len(named) if rule.succeeded_count is None else min(rule.succeeded_count, len(named))
            is_met = bool(named.ranges) and named.common(succeeded) >= enough
        else:
            is_met = rule.succeeded_count is not None and len(succeeded) >= rule.succeeded_count
        if is_met:
            return f"Matched rules at index {index}"
    return ""
