"""What the operator of training may do in a cluster: rules of a ClusterRole, as data.

A plugin of a third party needs a rule of its own for the kinds that it writes, beside these.
"""

from __future__ import annotations

from typing import Any, Final

from shoal.kube.rights import Rule, account_with_rights, rule
from shoal.training.jobset.rbac import RULES as JOB_SET_RULES

ACCOUNT: Final = "kubeflow-trainer-controller-manager"
"""The account, its role and its Deployment are called as Trainer's are, so that people find them."""

_READ = ("get", "list", "watch")
_WRITE = (*_READ, "create", "update", "patch", "delete")


TRAIN_JOB_RULES: tuple[Rule, ...] = (
    rule("trainer.kubeflow.org", ["trainjobs"], [*_READ, "delete"]),
    rule("trainer.kubeflow.org", ["trainjobs/status"], ["get", "update", "patch"]),
    rule("trainer.kubeflow.org", ["trainingruntimes", "clustertrainingruntimes"], [*_READ, "update", "patch"]),
    # Children block the deletion of their owner, which asks for this right.
    rule("trainer.kubeflow.org", ["trainjobs/finalizers"], ["update"]),
    rule("jobset.x-k8s.io", ["jobsets"], _WRITE),
    rule("scheduler.grove.io", ["podgangs"], _WRITE),
    rule("", ["configmaps", "secrets"], _WRITE),
    rule("", ["events"], ["create", "patch", *_READ]),
    rule("", ["limitranges"], _READ),
    rule("node.k8s.io", ["runtimeclasses"], _READ),
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
    rule("scheduling.k8s.io", ["priorityclasses"], ["get"]),
    rule("", ["persistentvolumeclaims"], ["get"]),
    rule(
        "admissionregistration.k8s.io",
        ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
        [*_READ, "create", "update", "patch", "delete"],
    ),
)
"""What the webhooks need besides."""


def manifests(namespace: str) -> list[dict[str, Any]]:
    """The account, its rights in the cluster, and its right to a lease and a certificate in its own namespace."""
    own = (
        rule("coordination.k8s.io", ["leases"], _WRITE),
        rule("", ["secrets"], (*_READ, "create", "update")),
    )
    rules = (*RULES, *PROGRESS_RULES, *WEBHOOK_RULES)
    return account_with_rights(ACCOUNT, namespace, role=ACCOUNT, rules=rules, own_role=ACCOUNT, own_rules=own)
