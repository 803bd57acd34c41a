"""What the controller of JobSets may do in a cluster: the rules of its ClusterRole, as data."""

from __future__ import annotations

from shoal.kube.rights import Rule, rule

_FOLLOW = ("list", "watch")
_READ = ("get", *_FOLLOW)


RULES: tuple[Rule, ...] = (
    rule("jobset.x-k8s.io", ["jobsets"], [*_READ, "patch", "delete"]),
    rule("jobset.x-k8s.io", ["jobsets/status"], ["patch"]),
    # Children block the deletion of their owner, which asks for this right.
    rule("jobset.x-k8s.io", ["jobsets/finalizers"], ["update"]),
    rule("batch", ["jobs"], [*_READ, "create", "patch", "delete"]),
    rule("batch", ["jobs/status"], ["patch"]),
    rule("", ["services", "persistentvolumeclaims"], [*_READ, "create"]),
    rule("", ["pods"], [*_FOLLOW, "delete"]),
    rule("", ["pods/status"], ["patch"]),
    rule("", ["nodes"], _FOLLOW),
    rule("", ["events"], ["create", "patch"]),
    rule("coordination.k8s.io", ["leases"], _FOLLOW),
    rule("admissionregistration.k8s.io", ["mutatingwebhookconfigurations"], _FOLLOW),
)
