"""Names of resources (cpu, requests.nvidia.com/gpu, count/jobs.batch), where each may stand, and amounts of them."""

from __future__ import annotations

from shoal.api.meta import parse_quantity
from shoal.cluster.apiserver.builtin.names import qualified_name_problems
from shoal.cluster.apiserver.builtin.values import named, not_negative_quantity
from shoal.kube.admission.fields import FieldProblem, invalid

COUNTED = frozenset(
    {
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    }
)
CONTAINER = frozenset({"cpu", "memory", "ephemeral-storage"})
QUOTA = (
    COUNTED
    | {f"{prefix}{name}" for prefix in ("", "requests.", "limits.") for name in CONTAINER}
    | {"requests.storage"}
)
STANDARD = QUOTA | {"storage"}

NOT_STANDARD = "must be a standard resource type or fully qualified"
NOT_INTEGER = "must be an integer"


def is_huge_page(name: str) -> bool:
    """Whether it names huge pages of some size."""
    return name.startswith("hugepages-")


def is_quota_huge_page(name: str) -> bool:
    """The same in a quota."""
    return name.startswith(("hugepages-", "requests.hugepages-"))


def is_native(name: str) -> bool:
    """Whether it is Kubernetes' own."""
    return "/" not in name or "kubernetes.io/" in name


def is_extended(name: str) -> bool:
    """Whether it is somebody else's, such as a device."""
    if is_native(name) or name.startswith("requests."):
        return False
    return not qualified_name_problems(f"requests.{name}")


def is_integer(name: str) -> bool:
    """Whether there are only whole ones of it."""
    return name in COUNTED or is_extended(name)


def allows_overcommit(name: str) -> bool:
    """Whether limits may be above requests."""
    return is_native(name) and not is_huge_page(name)


def resource_name_problems(name: str, path: str) -> list[FieldProblem]:
    """What keeps a text from naming a resource."""
    if problems := named(path, name, qualified_name_problems):
        return problems
    if "/" in name or name in STANDARD or is_quota_huge_page(name):
        return []
    return [invalid(path, name, NOT_STANDARD)]


def container_resource_name_problems(name: str, path: str) -> list[FieldProblem]:
    """The same for what a container may ask for."""
    problems = resource_name_problems(name, path)
    if "/" not in name:
        if name not in CONTAINER and not is_huge_page(name):
            problems.append(invalid(path, name, "must be a standard resource for containers"))
    elif not is_native(name) and not is_extended(name):
        problems.append(invalid(path, name, "doesn't follow extended resource name standard"))
    return problems


def quota_resource_name_problems(name: str, path: str) -> list[FieldProblem]:
    """The same for what a quota may limit."""
    problems = resource_name_problems(name, path)
    if "/" not in name and name not in QUOTA and not is_quota_huge_page(name):
        problems.append(invalid(path, name, "must be a standard resource for quota"))
    return problems


def amount_problems(name: str, value: str, path: str) -> list[FieldProblem]:
    """What is wrong with an amount of a resource."""
    problems = not_negative_quantity(path, value)
    if is_integer(name) and parse_quantity(value).milli_value() % 1000:
        problems.append(invalid(path, value, NOT_INTEGER))
    return problems
