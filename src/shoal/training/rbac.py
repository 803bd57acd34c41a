"""What the operator of training may do in a cluster: rules of a ClusterRole, as data.

A plugin of a third party needs a rule of its own for the kinds that it writes, beside these.
"""

from __future__ import annotations

from typing import Any, Final

from shoal.kube.rights import (
    Rule,
    account_of_webhooks,
    account_with_rights,
    holding_lease,
    keeping_certificate,
    registering,
    rule,
)
from shoal.training.admission.webhooks import DEFAULTER, VALIDATOR
from shoal.training.jobset.admission.webhooks import CONFIGURATIONS
from shoal.training.jobset.rbac import RULES as JOB_SET_RULES

ACCOUNT: Final = "kubeflow-trainer-controller-manager"
"""The account, its role and its Deployment are called as Trainer's are, so that people find them."""

WEBHOOKS_ACCOUNT: Final = "kubeflow-trainer-webhooks"
STATUS_CERTIFICATE: Final = "kubeflow-trainer-status-cert"
"""The certificate of the server that training programs report to."""

_FOLLOW = ("list", "watch")
_READ = ("get", *_FOLLOW)
_WRITE = (*_READ, "create", "patch")


TRAIN_JOB_RULES: tuple[Rule, ...] = (
    rule("trainer.kubeflow.org", ["trainjobs"], [*_FOLLOW, "delete"]),
    rule("trainer.kubeflow.org", ["trainjobs/status"], ["patch"]),
    rule("trainer.kubeflow.org", ["trainingruntimes", "clustertrainingruntimes"], [*_READ, "patch"]),
    # Children block the deletion of their owner, which asks for this right.
    rule("trainer.kubeflow.org", ["trainjobs/finalizers"], ["update"]),
    rule("jobset.x-k8s.io", ["jobsets"], [*_WRITE, "delete"]),
    rule("scheduler.grove.io", ["podgangs"], _WRITE),
    rule("", ["configmaps", "secrets"], _WRITE),
    rule("", ["events"], ["create", "patch", "list"]),
    rule("", ["limitranges"], _FOLLOW),
    rule("node.k8s.io", ["runtimeclasses"], _FOLLOW),
    *(
        rule(group, ["podgroups"], _WRITE)
        for group in ("scheduling.x-k8s.io", "scheduling.volcano.sh", "scheduling.run.ai")
    ),
)
"""What TrainJobs and runtimes need."""

RULES: tuple[Rule, ...] = (*TRAIN_JOB_RULES, *JOB_SET_RULES)
"""What all of training needs, JobSets included."""

PROGRESS_RULES: tuple[Rule, ...] = (rule("authentication.k8s.io", ["tokenreviews"], ["create"]),)
"""What the server of reports needs besides, where it runs: it asks whose a token is."""

WEBHOOK_RULES: tuple[Rule, ...] = (
    rule("trainer.kubeflow.org", ["trainingruntimes", "clustertrainingruntimes"], ["get", "list"]),
    rule("jobset.x-k8s.io", ["jobsets"], ["get"]),
    rule("scheduling.k8s.io", ["priorityclasses"], ["get"]),
    rule("", ["configmaps", "persistentvolumeclaims", "nodes"], ["get"]),
    rule("", ["pods"], ["list"]),
    *registering([DEFAULTER, VALIDATOR, *CONFIGURATIONS.values()]),
)
"""What the webhooks need, which run as an account of their own."""


def manifests(namespace: str) -> list[dict[str, Any]]:
    """The accounts of the operator and of the webhooks, and their rights in the cluster and their own namespace."""
    own = (holding_lease(), *keeping_certificate(STATUS_CERTIFICATE))
    rules = (*RULES, *PROGRESS_RULES)
    return [
        *account_with_rights(ACCOUNT, namespace, role=ACCOUNT, rules=rules, own_role=ACCOUNT, own_rules=own),
        *account_of_webhooks(
            WEBHOOKS_ACCOUNT,
            namespace,
            role=WEBHOOKS_ACCOUNT,
            rules=WEBHOOK_RULES,
            certificates=[f"{WEBHOOKS_ACCOUNT}-cert"],
        ),
    ]
