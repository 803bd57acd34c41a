"""The real server that answers are recorded from: an API server with all its usual admission, and no controllers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
        wait_until(lambda: all(_has_rules(cluster, role) for role in _AGGREGATED), "the aggregated roles")
        cluster.processes()[Part.CONTROLLER_MANAGER].kill()
        yield cluster
    finally:
        cluster.stop(grace=0)


def _has_rules(cluster: RealKubernetes, role: str) -> bool:
    return bool(cluster.admin.request("GET", f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{role}").get("rules"))
