"""Defaults, preparation and validation of the built-in kinds: what each does beyond its schema.

``RULES`` has them by group and kind; ``metadata`` has what all kinds share, custom ones too.
"""

from collections.abc import Mapping
from types import MappingProxyType

from shoal.cluster.apiserver.builtin import (
    autoscaling,
    certificates,
    claims,
    config,
    device_claims,
    device_slices,
    disruption,
    endpoints,
    events,
    ingresses,
    leases,
    namespaces,
    networking,
    nodes,
    priorities,
    quotas,
    roles,
    runtime_classes,
    services,
    storage,
    volumes,
    webhooks,
    workloads,
)
from shoal.cluster.apiserver.kinds.kind import Rules

RULES: Mapping[tuple[str, str], Rules] = MappingProxyType(
    {
        **workloads.RULES,
        **autoscaling.RULES,
        **certificates.RULES,
        **claims.RULES,
        **config.RULES,
        **device_claims.RULES,
        **device_slices.RULES,
        **disruption.RULES,
        **endpoints.RULES,
        **events.RULES,
        **ingresses.RULES,
        **leases.RULES,
        **namespaces.RULES,
        **networking.RULES,
        **nodes.RULES,
        **priorities.RULES,
        **quotas.RULES,
        **roles.RULES,
        **runtime_classes.RULES,
        **services.RULES,
        **storage.RULES,
        **volumes.RULES,
        **webhooks.RULES,
    }
)

__all__ = ["RULES"]
