"""ClusterRoles that gather the rules of others by label: admin, edit and view do."""

from __future__ import annotations

from collections.abc import Callable

from shoal.cluster.apiserver.access.authorization import CLUSTER_ROLES
from shoal.cluster.apiserver.access.bootstrap import aggregated
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.state import State


async def keep_aggregated(state: State) -> None:
    """Follows the ClusterRoles for ever and writes what the gathering ones come to."""
    watcher = state.store.watch(CLUSTER_ROLES, None, since=state.store.revision)
    try:
        while True:
            await _aggregate(state)
            await watcher.changes()
    finally:
        watcher.close()


async def _aggregate(state: State) -> None:
    roles = list(state.list(CLUSTER_ROLES))
    for role in roles:
        if role.get("aggregationRule"):
            await state.update(CLUSTER_ROLES, "", role["metadata"]["name"], _gathered(roles))


def _gathered(roles: list[Object]) -> Callable[[Object], Object | None]:
    def change(role: Object) -> Object | None:
        rules = aggregated(role, roles)
        return None if rules == (role.get("rules") or []) else {**role, "rules": rules}

    return change
