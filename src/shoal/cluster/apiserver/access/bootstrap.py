"""What a new cluster holds before anyone has written to it: namespaces, priorities, roles and whom they are bound to.

The roles are kept in a table beside this file, which says of each no more than is its own; a test compares what is made
of it with a real server's. ``aggregated`` gives the rules of a ClusterRole that collects those of others by label.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import resources
from typing import Any

from shoal.api.meta import LabelSelector, LabelSelectorRequirement, Selector
from shoal.cluster.apiserver.access import authorization
from shoal.cluster.apiserver.access.rules import uncovered
from shoal.cluster.apiserver.kinds.kind import Object

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_VERSION = f"{authorization.GROUP}/v1"
_AUTO_UPDATE = "rbac.authorization.kubernetes.io/autoupdate"
_OWN = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_PRIORITIES = (
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
)


def default_objects() -> Iterator[tuple[str, Object]]:
    """Everything that a new cluster holds, in the order to create it, each with the name its kind is stored under."""
    for name in NAMESPACES:
        yield "namespaces", namespace(name)
    for name, value, description in _PRIORITIES:
        yield (
            "priorityclasses.scheduling.k8s.io",
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name, "generation": 1},
                "value": value,
                "description": description,
                "preemptionPolicy": "PreemptLowerPriority",
            },
        )
    yield from default_roles()


def default_roles() -> list[tuple[str, Object]]:
    """The roles and bindings; those that aggregate have their rules already."""
    text = resources.files(__package__).joinpath("bootstrap_roles.txt").read_text()
    objects = list(_read(text))
    cluster_roles = [role for storage, role in objects if storage == authorization.CLUSTER_ROLES]
    # View goes into edit and edit into admin, so the rules travel one step with each pass.
    collecting = [role for role in cluster_roles if "aggregationRule" in role]
    for _ in collecting:
        for role in collecting:
            role["rules"] = aggregated(role, cluster_roles)
    return objects


def namespace(name: str) -> Object:
    """A namespace as the server makes one for itself."""
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def kubernetes_service(*, cluster_ip: str, target_port: int) -> Object:
    """The Service by which pods find the API server; the address is the first of the range for Services."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": target_port}],
            "clusterIP": cluster_ip,
            "clusterIPs": [cluster_ip],
            "type": "ClusterIP",
            "sessionAffinity": "None",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
        },
        "status": {"loadBalancer": {}},
    }


def aggregated(role: Object, cluster_roles: Iterable[Object]) -> list[Object]:
    """The rules that a ClusterRole with an aggregationRule shall have: those of the roles it selects, each once."""
    by_name = sorted(cluster_roles, key=lambda each: str(each["metadata"]["name"]))
    rules: list[Object] = []
    for stated in (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ():
        selector = Selector.of(_selector(stated))
        for each in by_name:
            metadata = each["metadata"]
            if metadata["name"] == role["metadata"]["name"] or not selector.matches(metadata.get("labels") or {}):
                continue
            rules += [rule for rule in each.get("rules") or () if rule not in rules]
    return rules


def reconciled(live: Object, wanted: Object) -> Object | None:
    """What a default role or binding becomes at a later start: what it has lost is added, nothing is taken away.

    None where nothing is missing, or where its annotation asks to be left alone. A binding to another role stays as it
    is: a reference cannot be changed.
    """
    annotations = live["metadata"].get("annotations") or {}
    if annotations.get(_AUTO_UPDATE) == "false":
        return None
    changes: Object = {}
    if "roleRef" in wanted:
        own = live.get("subjects") or []
        if missing := [subject for subject in wanted.get("subjects") or () if subject not in own]:
            changes["subjects"] = [*own, *missing]
        if live.get("roleRef") != wanted["roleRef"]:
            return None
    elif "aggregationRule" not in wanted:
        own = live.get("rules") or []
        if missing := uncovered(own, wanted.get("rules") or ()):
            changes["rules"] = [*own, *missing]
    labels = live["metadata"].get("labels") or {}
    metadata = {"labels": wanted["metadata"]["labels"] | labels}
    metadata["annotations"] = wanted["metadata"]["annotations"] | annotations
    if metadata != {"labels": labels, "annotations": annotations}:
        changes["metadata"] = {**live["metadata"], **metadata}
    return {**live, **changes} if changes else None


def _read(text: str) -> Iterator[tuple[str, Object]]:
    """The roles of the table, and after each the bindings to it."""
    storage, role = "", Object()
    bindings: list[tuple[str, Object]] = []
    for line in text.splitlines():
        words = line.split()
        match words:
            case [] | ["#", *_]:
                continue
            case ["role", place]:
                if role:
                    yield storage, role
                    yield from bindings
                storage, role = _role(place)
                bindings = []
            case ["label", label]:
                role["metadata"]["labels"][f"{authorization.GROUP}/{label}"] = "true"
            case ["collect", label]:
                selectors = [{"matchLabels": {f"{authorization.GROUP}/{label}": "true"}}]
                role["aggregationRule"] = {"clusterRoleSelectors": selectors}
            case ["to", *subjects]:
                bindings.append(_binding(role, role["metadata"]["name"], subjects))
            case ["as", name, "to", *subjects]:
                bindings.append(_binding(role, name, subjects))
            case _:
                role["rules"].append(_rule(words))
    yield storage, role
    yield from bindings


def _role(place: str) -> tuple[str, Object]:
    home, _, name = place.rpartition("/")
    kind, storage = ("Role", authorization.ROLES) if home else ("ClusterRole", authorization.CLUSTER_ROLES)
    return storage, {"apiVersion": _VERSION, "kind": kind, "metadata": _metadata(name, home), "rules": []}


def _rule(words: list[str]) -> Object:
    values = [word.split(",") for word in words]
    if len(values) == 2:
        return {"verbs": values[0], "nonResourceURLs": values[1]}
    groups = ["" if group == "core" else group for group in values[1]]
    rule = {"verbs": values[0], "apiGroups": groups, "resources": values[2]}
    return rule | {"resourceNames": values[3]} if len(values) == 4 else rule


def _binding(role: Object, name: str, subjects: list[str]) -> tuple[str, Object]:
    home = role["metadata"].get("namespace", "")
    kind = "RoleBinding" if home else "ClusterRoleBinding"
    storage = authorization.ROLE_BINDINGS if home else authorization.CLUSTER_ROLE_BINDINGS
    reference = {"apiGroup": authorization.GROUP, "kind": role["kind"], "name": role["metadata"]["name"]}
    binding: Object = {"apiVersion": _VERSION, "kind": kind, "metadata": _metadata(name, home)}
    if subjects:
        binding["subjects"] = [_subject(each) for each in subjects]
    return storage, {**binding, "roleRef": reference}


def _subject(words: str) -> Object:
    kind, _, place = words.partition("=")
    if kind != "ServiceAccount":
        return {"kind": kind, "apiGroup": authorization.GROUP, "name": place}
    home, _, name = place.partition("/")
    return {"kind": kind, "name": name, "namespace": home}


def _metadata(name: str, home: str) -> Object:
    metadata: Object = {"name": name}
    if home:
        metadata["namespace"] = home
    return metadata | {"labels": dict(_OWN), "annotations": {_AUTO_UPDATE: "true"}}


def _selector(stated: dict[str, Any]) -> LabelSelector:
    expressions = [
        LabelSelectorRequirement(key=each["key"], operator=each["operator"], values=each.get("values") or [])
        for each in stated.get("matchExpressions") or ()
    ]
    return LabelSelector(match_labels=stated.get("matchLabels") or {}, match_expressions=expressions)
