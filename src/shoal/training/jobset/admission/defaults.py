"""What a JobSet is where its author did not say.

Admission fills it in when a JobSet is made. The controller does the same to what it reads, so that a JobSet that was
made while no webhook was there runs alike.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from shoal.api.batch import INDEXED
from shoal.api.jobset import (
    ClaimRetention,
    FailurePolicy,
    FailureRule,
    JobSet,
    JobSetSpec,
    Network,
    ReplicatedJob,
    StartupPolicy,
    SuccessPolicy,
    VolumeClaimPolicy,
)


def defaulted(job_set: JobSet) -> JobSet:
    """The JobSet with everything filled in; done twice, nothing more is."""
    return replace(job_set, spec=defaulted_spec(job_set.spec))


def defaulted_spec(spec: JobSetSpec) -> JobSetSpec:
    """The specification with everything filled in."""
    return replace(
        spec,
        success_policy=spec.success_policy or SuccessPolicy(operator="All"),
        startup_policy=spec.startup_policy or StartupPolicy(startup_policy_order="AnyOrder"),
        replicated_jobs=[_replicated_job(each) for each in spec.replicated_jobs],
        network=_network(spec.network or Network()),
        failure_policy=_failure_policy(spec.failure_policy),
        volume_claim_policies=[_claim_policy(each) for each in spec.volume_claim_policies],
    )


def _replicated_job(replicated_job: ReplicatedJob) -> ReplicatedJob:
    template, spec = replicated_job.template, replicated_job.job_spec
    pod_template = replicated_job.pod_template
    pod_spec = pod_template.get("spec") or {}
    filled: dict[str, Any] = {
        **spec,
        "completionMode": spec.get("completionMode") or INDEXED,
        "template": {
            **pod_template,
            "spec": {**pod_spec, "restartPolicy": pod_spec.get("restartPolicy") or "OnFailure"},
        },
    }
    return replace(replicated_job, template={**template, "spec": filled})


def _network(network: Network) -> Network:
    return replace(
        network,
        enable_dns_hostnames=True if network.enable_dns_hostnames is None else network.enable_dns_hostnames,
        publish_not_ready_addresses=(
            True if network.publish_not_ready_addresses is None else network.publish_not_ready_addresses
        ),
    )


def _failure_policy(policy: FailurePolicy | None) -> FailurePolicy | None:
    if policy is None:
        return None
    return replace(policy, rules=[_named(rule, index) for index, rule in enumerate(policy.rules)])


def _named(rule: FailureRule, index: int) -> FailureRule:
    return rule if rule.name else replace(rule, name=f"failurePolicyRule{index}")


def _claim_policy(policy: VolumeClaimPolicy) -> VolumeClaimPolicy:
    if policy.retention_policy is not None:
        return policy
    return replace(policy, retention_policy=ClaimRetention(when_deleted="Delete"))
