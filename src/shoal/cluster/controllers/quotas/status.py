"""What the status of a quota should say."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from shoal.api.core import ResourceQuota
from shoal.api.core.quotas import ResourceQuotaStatus
from shoal.api.meta import ZERO_QUANTITY, ResourceList, parse_quantity
from shoal.cluster.apiserver.admission.quota_usage import measure_of, scopes_of
from shoal.cluster.controllers.quotas.ledger import Group
from shoal.cluster.pod_resources import Amounts, add_to, amounts

MEASURED = ("pods", "services", "persistentvolumeclaims")
"""The kinds of which more is measured than their number."""

_COUNTED_BY_NAME = ("configmaps", "replicationcontrollers", "resourcequotas", "secrets")
_COUNT = "count/"
_FREE = frozenset({"events", "events.events.k8s.io"})


def measured_kinds(quota: ResourceQuota) -> list[str]:
    """Of the kinds that are measured, those that a quota is about."""
    return [kind for kind in MEASURED if measure_of(kind).names(quota.spec.hard)]


def counted_kinds(quota: ResourceQuota) -> list[str]:
    """The other kinds that a quota is about, each as ``plural.group``."""
    counted = {name.removeprefix(_COUNT) for name in quota.spec.hard if name.startswith(_COUNT)}
    counted.update(name for name in quota.spec.hard if name in _COUNTED_BY_NAME)
    return sorted(counted.difference(MEASURED, _FREE))


def measured_usage(quota: ResourceQuota, kind: str, groups: Iterable[Group], now: datetime) -> Amounts:
    """What the objects of a measured kind use of a quota."""
    measure = measure_of(kind)
    scopes = scopes_of({"spec": msgspec.to_builtins(quota.spec)})
    total: Amounts = {}
    for group in groups:
        if all(measure.in_scope(scope, group.example) for scope in scopes):
            add_to(total, {name: amount * group.count for name, amount in group.usage(measure, now).items()})
    return {name: total.get(name, ZERO_QUANTITY) for name in measure.names(quota.spec.hard)}


def counted_usage(quota: ResourceQuota, kind: str, count: int) -> Amounts:
    """What the number of a kind's objects is of a quota; a quota with scopes is about none of them."""
    is_scoped = bool(quota.spec.scopes or (quota.spec.scope_selector or {}).get("matchExpressions"))
    used = ZERO_QUANTITY if is_scoped else parse_quantity(count)
    return dict.fromkeys(measure_of(kind).names(quota.spec.hard), used)


def quota_status(quota: ResourceQuota, used: Amounts) -> ResourceQuotaStatus:
    """The status of a quota of which this much is used; what could not be found out stays as it was.

    An amount that is there already, written in whichever way, is left as it is.
    """
    known = {name: amount for name, amount in amounts(quota.status.used).items() if name in quota.spec.hard}
    return ResourceQuotaStatus(
        hard=_written(quota.status.hard, amounts(quota.spec.hard)), used=_written(quota.status.used, known | used)
    )


def _written(before: ResourceList, wanted: Amounts) -> ResourceList:
    held = amounts(before)
    return {
        name: before[name] if name in held and held[name] == amount else str(amount) for name, amount in wanted.items()
    }
