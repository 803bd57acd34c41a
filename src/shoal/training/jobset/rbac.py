"""What the controller of JobSets may do in a cluster: the rules of its ClusterRole, as data."""

from __future__ import annotations

from shoal.kube.rights import Rule, rule

_READ = ("get", "list", "watch")


RULES: tuple[Rule, ...] = (
    rule("jobset.x-k8s.io", ["jobsets"], [*_READ, "patch", "delete"]),
    rule("jobset.x-k8s.io", ["jobsets/status"], ["get", "update", "patch"]),
    # Children block the deletion of their owner, which asks for this right.
    rule("jobset.x-k8s.io", ["jobsets/finalizers"], ["update"]),
    rule("batch", ["jobs"], [*_READ, "create", "patch", "delete"]),
    rule("batch", ["jobs/status"], ["get", "patch"]),
    rule("", ["services", "persistentvolumeclaims"], [*_READ, "create"]),
    rule("", ["pods"], [*_READ, "delete"]),
    rule("", ["pods/status"], ["get", "patch"]),
    rule("", ["nodes"], _READ),
    rule("", ["events"], ["create", "patch", *_READ]),
    rule("coordination.k8s.io", ["leases"], _READ),
    rule("admissionregistration.k8s.io", ["mutatingwebhookconfigurations"], _READ),
)
