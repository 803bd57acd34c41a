"""The real server that answers are recorded from: an API server with all its usual admission, and no controllers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shoal.cluster.kubernetes import Binaries, Part, RealKubernetes
from tests.support.waiting import wait_until

# The ServiceAccount admission plugin is on only where a controller manager is; this one makes the accounts that the
# launcher waits for and gathers the rules of the aggregated roles, and then ends.
_CONTROLLERS = "serviceaccount-controller,clusterrole-aggregation-controller"
_AGGREGATED = ("admin", "edit", "view")
_OPTIONS = {
    "controller_manager": True,
    "durable": False,
    "extra_flags": {Part.CONTROLLER_MANAGER: (f"--controllers={_CONTROLLERS}",)},
}


@contextmanager
def real_server(binaries: Binaries, data_dir: Path) -> Iterator[RealKubernetes]:
    """Runs one for the length of a block."""
    cluster = RealKubernetes(binaries, data_dir, **_OPTIONS)  # type: ignore[arg-type]
    cluster.start()
    try:
        wait_until(lambda: _are_gathered(cluster), "the aggregated roles", within=60)
        cluster.processes()[Part.CONTROLLER_MANAGER].kill()
        yield cluster
    finally:
        cluster.stop(grace=0)


def _are_gathered(cluster: RealKubernetes) -> bool:
    """Whether each aggregated role has the rules of all that it gathers, itself gathered or not."""
    found = cluster.admin.request("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles")["items"]
    roles = {role["metadata"]["name"]: role for role in found}
    return all(name in roles and _has_all(roles[name], found) for name in _AGGREGATED)


def _has_all(role: dict[str, Any], roles: list[dict[str, Any]]) -> bool:
    rules = role.get("rules") or []
    chosen = [selector["matchLabels"] for selector in role["aggregationRule"]["clusterRoleSelectors"]]
    parts = [part for part in roles if any(labels.items() <= _labels(part).items() for labels in chosen)]
    return bool(parts) and all(part.get("rules") and all(rule in rules for rule in part["rules"]) for part in parts)


def _labels(role: dict[str, Any]) -> dict[str, str]:
    labels: dict[str, str] = role["metadata"].get("labels", {})
    return labels
