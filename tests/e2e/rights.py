"""No account of deploy/*.yaml has a right that nothing uses.

The stories of a file run its programs on a real API server, whose audit log says which rights they used. A right that
they did not use must be in the tables below, each with what uses it, so that a new right comes with a story or with a
reason; and a row that no longer is a right must go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
import yaml

from shoal.scheduler.grouper.rbac import RULES as GROUPER_RULES
from tests.e2e.gangs.operators import Platform
from tests.support.clusters.audit import Right, by_kind, granted_rights, log_in, unused_rights, used_rights

Row = tuple[str, str, str]
"""A group, resources and verbs, the latter two as words."""

_READ: Final = "get list watch"
_DOCUMENTED: Final = "create get list watch update patch delete"
_OWN: Final = "get create patch delete"

_OPERATOR: Final[Mapping[str, list[Row]]] = {
    "Grove's document on scheduler backends lists them (test_the_account_may_what_the_document_lists)": [
        ("scheduler.grove.io", "podgangs podgangs/status", _DOCUMENTED),
        *(
            (f"scheduling.{group}", "podgroups podgroups/status", _DOCUMENTED)
            for group in ("run.ai", "k8s.io", "koordinator.sh", "sigs.k8s.io", "volcano.sh")
        ),
        ("scheduling.k8s.io", "workloads workloads/status compositepodgroups compositepodgroups/status", _DOCUMENTED),
    ],
    "asked by the admission plugin OwnerReferencesPermissionEnforcement, which is off by default": [
        ("grove.io", " ".join(f"{kind}/finalizers" for kind in ("podcliquesets", "podcliques")), "update"),
        ("grove.io", "podcliquescalinggroups/finalizers clustertopologybindings/finalizers", "update"),
        ("scheduler.grove.io", "podgangs/finalizers", "update"),
    ],
    "granted to the pods of a set by a Role, so that they must be held": [("", "pods pods/status", _READ)],
    "sets with scaling groups, autoscaling, shared claims and ComputeDomains (tests/gangs)": [
        ("grove.io", "podcliquescalinggroups", _OWN),
        ("grove.io", "podcliquescalinggroups/status", "patch"),
        ("autoscaling", "horizontalpodautoscalers", _OWN),
        ("resource.k8s.io", "resourceclaims", _OWN),
        ("resource.nvidia.com", "computedomains", f"{_OWN} list watch"),
    ],
    "topologies, which a configuration file switches on (tests/gangs/topologies)": [
        ("grove.io", "clustertopologybindings/status", "patch"),
        ("kai.scheduler", "topologies", "list watch create delete"),
        ("apiextensions.k8s.io", "customresourcedefinitions", "list watch"),
    ],
    "what a set no longer wants while it lives, or somebody changed (tests/gangs/sets)": [
        ("", "secrets serviceaccounts services", "patch delete"),
        ("rbac.authorization.k8s.io", "roles rolebindings", "patch delete"),
        ("scheduler.grove.io", "podgangs", "delete"),
        ("grove.io", "podcliques", "delete"),
    ],
    "only with --leader-elect, or where an event is repeated (tests/kube/test_leases.py, tests/kube/test_events.py)": [
        ("coordination.k8s.io", "leases", "get create patch"),
        ("", "events", "patch"),
    ],
}
_WEBHOOKS: Final[dict[str, list[Row]]] = {
    "a certificate is renewed after months (tests/kube/admission)": [("", "secrets", "update")],
    "a registration that newer settings do not have is taken back (tests/cli/test_admission.py)": [
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations validatingwebhookconfigurations", "delete")
    ],
}
_TRAINING: Final[Mapping[str, list[Row]]] = {
    "asked by the admission plugin OwnerReferencesPermissionEnforcement, which is off by default": [
        ("trainer.kubeflow.org", "trainjobs/finalizers", "update"),
        ("jobset.x-k8s.io", "jobsets/finalizers", "update"),
    ],
    "gangs of TrainJobs, in each scheduler's kind (tests/training/plugins)": [
        ("scheduler.grove.io", "podgangs", "get create patch"),
        *((f"scheduling.{group}", "podgroups", "get create patch") for group in ("x-k8s.io", "volcano.sh", "run.ai")),
    ],
    "JobSets with volume claims, exclusive placement, restarts and deadlines (tests/training/jobset)": [
        ("", "persistentvolumeclaims", "get create"),
        ("", "pods", "delete"),
        ("", "pods/status", "patch"),
        ("batch", "jobs", "get patch delete"),
        ("batch", "jobs/status", "patch"),
        ("jobset.x-k8s.io", "jobsets", "patch delete"),
        ("", "services", "get"),
    ],
    "runtimes that are in use, and events of them (tests/training)": [
        ("trainer.kubeflow.org", "trainingruntimes clustertrainingruntimes", "get patch"),
        ("", "events", "list patch"),
    ],
    "training programs that report progress (tests/training/progress)": [
        ("authentication.k8s.io", "tokenreviews", "create"),
    ],
    "a certificate is renewed after months (tests/kube/admission)": [("", "secrets", "update list watch")],
    "children that somebody changed (tests/training)": [("", "configmaps secrets", "patch")],
}
_SCHEDULER: Final[Mapping[str, list[Row]]] = {
    "whatever may own a pod is read by the grouper (tests/scheduler/grouper)": [
        (group, resource, _READ)
        for rule in GROUPER_RULES
        if rule["verbs"] == _READ.split()
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    ],
    "volumes, devices and MIG or shared GPUs bound for pods (tests/scheduler/binding)": [
        ("", "configmaps", "patch delete"),
        ("", "persistentvolumes persistentvolumeclaims", "patch"),
        ("resource.k8s.io", "resourceclaims", "get create patch"),
        ("resource.k8s.io", "resourceclaims/status resourceclaims/binding", "patch"),
        ("scheduling.run.ai", "bindrequests", "patch delete"),
        ("", "pods", "get"),
    ],
    "gangs in the words of other schedulers are told how they fare (tests/scheduler/watching)": [
        ("scheduling.k8s.io", "workloads/status podgroups/status compositepodgroups/status", "patch"),
        ("scheduling.sigs.k8s.io", "podgroups/status", "patch"),
        ("scheduling.volcano.sh", "podgroups/status", "patch"),
    ],
    "the NUMA plugin, which a configuration file switches on (tests/scheduler/numa)": [
        ("topology.node.k8s.io", "noderesourcetopologies", "list watch")
    ],
    "only where an event is repeated (tests/kube/test_events.py)": [("", "events", "patch")],
}
ELSEWHERE: Final[Mapping[str, Mapping[str, list[Row]]]] = {
    "grove-operator": _OPERATOR,
    "shoal-webhooks": _WEBHOOKS
    | {"topologies and the authorizer (tests/gangs/admission)": [
        ("grove.io", "clustertopologybindings podcliquesets", "get"),
    ]},
    "kubeflow-trainer-controller-manager": _TRAINING,
    "kubeflow-trainer-webhooks": _WEBHOOKS
    | {"checks of volumes, priorities, placement and changes of running TrainJobs (tests/training/admission)": [
        ("", "configmaps nodes persistentvolumeclaims", "get"),
        ("", "pods", "list"),
        ("jobset.x-k8s.io", "jobsets", "get"),
        ("scheduling.k8s.io", "priorityclasses", "get"),
        ("trainer.kubeflow.org", "trainingruntimes", "get"),
    ]},
    "kai-scheduler": _SCHEDULER,
    "kai-admission": _WEBHOOKS,
}  # fmt: skip


def explained_rights(account: str) -> set[Right]:
    return set(_rights(ELSEWHERE[account]))


def _rights(table: Mapping[str, list[Row]]) -> Iterator[Right]:
    for rows in table.values():
        for group, resources, verbs in rows:
            for resource in resources.split():
                yield from (Right(group, resource, verb) for verb in verbs.split())


def check_that_no_right_is_unused(platform: Platform, file: Path) -> None:
    """Compares both accounts of a file with what its stories, which have run on this platform, made them do."""
    log = log_in(platform.folder / "audit")
    if not log.exists():
        pytest.skip("the embedded server has no audit log")
    if len(platform.started) < 2:
        pytest.skip("the stories of this file have not run")
    objects = list(yaml.safe_load_all(file.read_text()))
    for account in (platform.account, platform.webhooks_account):
        used = used_rights(log, f"system:serviceaccount:{platform.namespace}:{account}")
        unused = unused_rights(granted_rights(objects, account), used)
        explained = explained_rights(account)
        without_reason = [each for each in unused if Right(each.group, each.resource, each.verb) not in explained]
        assert by_kind(without_reason) == "", f"{account} has rights that nothing uses"
