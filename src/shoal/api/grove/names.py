"""Every name, label, annotation, gate and finalizer of Grove's objects.

Names are made here and never taken apart: what belongs together is found by label.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from shoal.api.meta.names import fit_name

GROUP: Final = "grove.io"
SCHEDULER_GROUP: Final = "scheduler.grove.io"

# Kubernetes' recommended labels, as Grove fills them.
MANAGED_BY_LABEL: Final = "app.kubernetes.io/managed-by"
PART_OF_LABEL: Final = "app.kubernetes.io/part-of"
NAME_LABEL: Final = "app.kubernetes.io/name"
COMPONENT_LABEL: Final = "app.kubernetes.io/component"
MANAGER: Final = "grove-operator"

HEADLESS_SERVICE_COMPONENT: Final = "pcs-headless-service"
ROLE_COMPONENT: Final = "pod-role"
ROLE_BINDING_COMPONENT: Final = "pod-role-binding"
SERVICE_ACCOUNT_COMPONENT: Final = "pod-service-account"
TOKEN_SECRET_COMPONENT: Final = "pod-sa-token-secret"  # noqa: S105 - a label, no secret
SCALING_GROUP_COMPONENT: Final = "pcs-podcliquescalinggroup"
AUTOSCALER_COMPONENT: Final = "pcs-hpa"
GANG_COMPONENT: Final = "podgang"
SET_CLIQUE_COMPONENT: Final = "pcs-podclique"
GROUP_CLIQUE_COMPONENT: Final = "pcsg-podclique"
CLAIM_COMPONENT: Final = "resource-claim"
COMPUTE_DOMAIN_COMPONENT: Final = "pcs-computedomain"

CLIQUE_LABEL: Final = "grove.io/podclique"
GANG_LABEL: Final = "grove.io/podgang"
BASE_GANG_LABEL: Final = "grove.io/base-podgang"
SET_REPLICA_LABEL: Final = "grove.io/podcliqueset-replica-index"
SCALING_GROUP_LABEL: Final = "grove.io/podcliquescalinggroup"
SCALING_GROUP_REPLICA_LABEL: Final = "grove.io/podcliquescalinggroup-replica-index"
POD_INDEX_LABEL: Final = "grove.io/podclique-pod-index"
TEMPLATE_HASH_LABEL: Final = "grove.io/pod-template-hash"
SCHEDULER_NAME_LABEL: Final = "grove.io/scheduler-name"
SCHEDULER_BACKEND_LABEL: Final = "grove.io/scheduler-backend"

UNPROTECTED_ANNOTATION: Final = "grove.io/disable-managed-resource-protection"
TRIGGER_ANNOTATION: Final = "grove.io/reconcile-trigger"
TOPOLOGY_ANNOTATION: Final = "grove.io/topology-name"
MNNVL_ANNOTATION: Final = "grove.io/mnnvl-group"
PODS_CARRY_ANNOTATION: Final = "grove.io/pods-carry"

GATE: Final = "grove.io/podgang-pending-creation"
SET_FINALIZER: Final = "grove.io/podcliqueset.grove.io"
CLIQUE_FINALIZER: Final = "grove.io/podclique.grove.io"
SCALING_GROUP_FINALIZER: Final = "grove.io/podcliquescalinggroup.grove.io"
COMPUTE_DOMAIN_FINALIZER: Final = "grove.io/computedomain-finalizer"


def is_grove_key(key: str) -> bool:
    """Whether a label or annotation is Grove's own."""
    return key.startswith(f"{GROUP}/")


def index_in(labels: Mapping[str, str], label: str) -> int | None:
    """The index that a label says; None where it is not there, or somebody has made something else of it."""
    text = labels.get(label, "")
    return int(text) if text.isascii() and text.isdecimal() else None


def default_labels(set_name: str) -> dict[str, str]:
    """What every object has that is made for a PodCliqueSet."""
    return {MANAGED_BY_LABEL: MANAGER, PART_OF_LABEL: set_name}


def component_labels(set_name: str, name: str, component: str) -> dict[str, str]:
    """What an object has that is made for a PodCliqueSet, by its name, as far as a label holds it, and its purpose."""
    return {**default_labels(set_name), NAME_LABEL: fit_name(name.replace(":", "-")), COMPONENT_LABEL: component}


def headless_service(set_name: str, replica: int) -> str:
    """The Service under which the pods of a set's replica find each other."""
    return f"{set_name}-{replica}"


def headless_address(set_name: str, replica: int, namespace: str) -> str:
    """The full name of that Service in DNS."""
    return f"{headless_service(set_name, replica)}.{namespace}.svc.cluster.local"


def base_gang(set_name: str, replica: int) -> str:
    """The PodGang that a set's replica cannot be without."""
    return f"{set_name}-{replica}"


def clique(set_name: str, replica: int, clique_name: str) -> str:
    """A PodClique that belongs to no scaling group."""
    return f"{set_name}-{replica}-{clique_name}"


def scaling_group(set_name: str, replica: int, group_name: str) -> str:
    """A PodCliqueScalingGroup."""
    return f"{set_name}-{replica}-{group_name}"


def group_replica(group: str, group_replica_index: int) -> str:
    """One replica of a PodCliqueScalingGroup, given by its full name: a part of the base gang's topology."""
    return f"{group}-{group_replica_index}"


def member_clique(group: str, group_replica_index: int, clique_name: str) -> str:
    """A PodClique inside a PodCliqueScalingGroup, which is given by its full name."""
    return f"{group}-{group_replica_index}-{clique_name}"


def scaled_gang(group: str, group_replica_index: int, min_available: int) -> str:
    """The PodGang of a scaling group's replica beyond the minimum, counted from the first such one."""
    return f"{group}-{group_replica_index - min_available}"


def pod_hostname(clique_full_name: str, index: int) -> str:
    """The host name of a clique's pod."""
    return f"{clique_full_name}-{index}"


def role(set_name: str) -> str:
    """The Role and the RoleBinding of a set's pods."""
    return f"grove.io:pcs:{set_name}"


def service_account(set_name: str) -> str:
    """The account under which start-up order is watched."""
    return set_name


def token_secret(set_name: str) -> str:
    """The Secret with that account's token."""
    return f"{set_name}-ic-sat"


def shared_claim(owner: str, template: str) -> str:
    """A ResourceClaim that all replicas of its owner share."""
    return f"{owner}-all-{template}"


def replica_claim(owner: str, index: int, template: str) -> str:
    """A ResourceClaim of one replica of its owner."""
    return f"{owner}-{index}-{template}"


def compute_domain(set_name: str, replica: int, group: str) -> str:
    """A ComputeDomain and the claim template that goes with it."""
    return f"{set_name}-{replica}-{group}"
